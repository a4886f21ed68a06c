"""Every text of a page about pictures is in the language of staff, or data."""

import pytest

from tests.webapp.pseudo_language import untranslated


@pytest.mark.any_database
@pytest.mark.usefixtures("pseudo_language")
def test_every_text_is_translated_or_data(client_of, bob, addresses) -> None:
    count, found = untranslated(client_of(bob), addresses, {})
    assert count > 15
    assert not found, "\n".join(found)
