"""The audit log: page, filter, export."""

from collections.abc import Callable

import pytest
from django.test import Client

from tests.webapp.roles import Page
from webapp.accounts.models import User
from webapp.audit.models import AuditLine
from webapp.audit.services import audit

ClientOf = Callable[[User], Client]


def log_of(client: Client, query: str = "") -> list[str]:
    """The lines of the log that a page shows."""
    rows = Page(client.get(f"/audit/{query}")).one("table", "Audit log").every("row")[1:]
    return [row.text for row in rows]


def test_viewers_do_not_see_it(client_of: ClientOf, alice: User) -> None:
    assert client_of(alice).get("/audit/").status_code == 403
    assert client_of(alice).get("/audit/export/").status_code == 403


def test_it_shows_lines_of_one_organisation_only(
    client_of: ClientOf, bob: User, mallory: User
) -> None:
    audit(bob, "imported", "First-years 2026", rows=312)
    audit(mallory, "imported", "Secret cohort")
    page = Page(client_of(bob).get("/audit/"))
    assert page.one("row", "First-years 2026").says("rows 312")
    assert "Secret cohort" not in page.source
    file = client_of(bob).get("/audit/export/").getvalue().decode()
    assert "First-years 2026" in file
    assert "Secret cohort" not in file


def test_it_filters_and_pages(client_of: ClientOf, bob: User) -> None:
    for k in range(60):
        audit(bob, "locked", f"S-{k}")
    audit(bob, "exported", "pairs", rows=3)
    client = client_of(bob)
    assert len(log_of(client)) == 50
    assert len(log_of(client, "?page=2")) == 12  # 60 locks, 1 export, 1 sign-in
    (only,) = log_of(client, "?verb=exported")
    assert only.endswith("rows 3")
    (only,) = log_of(client, "?text=S-17")
    assert "S-17" in only
    assert log_of(client, "?since=2100-01-01") == ["No act matches. Widen the filter."]


def test_it_sorts_by_a_column_both_ways(client_of: ClientOf, bob: User) -> None:
    known = ("Beech", "Alder", "Cedar")
    for name in known:
        audit(bob, "closed", name)
    client = client_of(bob)

    def names(sort: str) -> list[str]:
        lines = log_of(client, f"?verb=closed&sort={sort}")
        return [name for line in lines for name in line.split() if name in known]

    assert names("target_name") == ["Alder", "Beech", "Cedar"]
    assert names("-target_name") == ["Cedar", "Beech", "Alder"]
    assert names("-created_at") == ["Cedar", "Alder", "Beech"]


def test_an_invalid_day_is_named(client_of: ClientOf, bob: User) -> None:
    page = Page(client_of(bob).get("/audit/?since=yesterday"))
    assert page.has("listitem", "Enter a valid date.")


@pytest.mark.parametrize("bad", ["page=zero", "page=999", "since=yesterday", "sort=-nonsense"])
def test_a_bad_address_is_no_error(client_of: ClientOf, bob: User, bad: str) -> None:
    audit(bob, "locked", "S-1")
    assert client_of(bob).get(f"/audit/?{bad}").status_code == 200


def test_the_export_defuses_formulas_and_is_itself_recorded(client_of: ClientOf, bob: User) -> None:
    audit(bob, "imported", "=HYPERLINK(1)")
    response = client_of(bob).get("/audit/export/?verb=imported")
    assert "sandbox" in response["Content-Security-Policy"]
    body = response.getvalue().decode()
    assert "'=HYPERLINK(1)" in body
    assert AuditLine.objects.get(verb="exported").details == {"lines": 1}


def test_details_are_words_even_for_odd_values(bob: User) -> None:
    import uuid

    import numpy as np

    line = audit(bob, "proposed", "x", pairs=np.int64(3), key=uuid.UUID(int=1), odd={1: {2}})
    line.refresh_from_db()
    assert line.details == {"pairs": 3, "key": str(uuid.UUID(int=1)), "odd": {"1": [2]}}


def test_a_verb_longer_than_its_column_is_refused_on_every_database(bob: User) -> None:
    audit(bob, "x" * 40, bob)
    with pytest.raises(ValueError, match="at most 40 characters"):
        audit(bob, "x" * 41, bob)
