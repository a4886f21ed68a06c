"""Which tests run on another database: together they send every statement."""

from pathlib import Path

import pytest
from django.db import IntegrityError, transaction

from tests.made_once import shared_folder
from tests.webapp.statements import Sent, covering, noted, read_notes, shape_of
from webapp.accounts.models import Organisation


def test_quick_tests_are_kept_that_send_everything_together() -> None:
    notes = {
        "slow": Sent(frozenset("abcd"), 9.0),
        "quick": Sent(frozenset("ab"), 0.1),
        "alike": Sent(frozenset("ab"), 0.2),
        "other": Sent(frozenset("c"), 0.3),
        "none": Sent(frozenset(), 0.0),
    }
    assert covering(notes) == {"slow"}, "only it sends d, and then no other is needed"
    del notes["slow"]
    assert covering(notes) == {"quick", "other"}


def test_numbers_and_lengths_of_lists_make_no_statement_of_its_own() -> None:
    one = shape_of('SELECT "a" FROM "t" WHERE "a"."id" IN (%s, %s) LIMIT 21')
    assert one == shape_of('SELECT "a" FROM "t" WHERE "a"."id" IN (%s) LIMIT 3')
    rows = [f'INSERT INTO "t" ("a", "b") VALUES {", ".join(["(%s, %s)"] * n)}' for n in (1, 2, 9)]
    assert len(set(map(shape_of, rows))) == 1
    assert shape_of('SELECT "a" FROM "t"') != shape_of('SELECT "b" FROM "t"')


@pytest.mark.django_db
def test_an_error_is_noted_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shared_folder.cache_clear()
    monkeypatch.setenv("TEST_SHARED_FOLDER", str(tmp_path))
    one = Organisation(name="One")
    try:
        with noted("first"):
            one.save()
        with noted("second"), pytest.raises(IntegrityError), transaction.atomic():
            Organisation(pk=one.pk, name="Two").save(force_insert=True)
        with noted("third"):
            Organisation(name="Three").save()
        notes = read_notes()
    finally:
        shared_folder.cache_clear()
    assert notes["first"].statements == notes["third"].statements
    assert not notes["first"].statements & notes["second"].statements
