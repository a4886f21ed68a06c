"""Every text of a page about pictures is in the language of staff, or data."""

import pytest

from tests.webapp.pseudo_language import untranslated
from tests.webapp.segmentation.test_scoping import addresses  # noqa: F401 - a fixture


@pytest.mark.any_database
@pytest.mark.usefixtures("pseudo_language")
def test_every_text_is_translated_or_data(client_of, bob, addresses) -> None:  # noqa: F811
    count, found = untranslated(client_of(bob), addresses, {})
    assert count > 15
    assert not found, "\n".join(found)
