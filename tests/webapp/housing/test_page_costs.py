"""What a page costs does not grow with the university: as many queries, and rows that fit a screen.

A relation that is read row by row, or a list that is written whole, once made the pages of a hall
of 1,400 rooms take seconds.
"""

import re
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from benchmarks.product.housing import fill, pages_of
from benchmarks.product.housing_university import SHORT, Size
from webapp.reports.models import PlacementCheck

# Twice as many: more rooms than are shown at once, more students than a page holds.
MORE = Size(200, 60, 80, 24, 8, 3, 12, 12, 2, 5, 3, 8)
MOST_ROWS = 160
WHOLE = {"report by hall", "roster, CSV"}  # for paper and for other systems: everybody is in them
ROW = re.compile(rb"<tr|<article")


def costs(keys: dict[str, Any]) -> dict[str, tuple[int, int]]:
    """Queries and rows of every page, read a second time."""
    client = Client()
    client.force_login(keys["user"], backend="django.contrib.auth.backends.ModelBackend")
    found = {}
    for name, address in pages_of(keys).items():
        client.get(address)
        with CaptureQueriesContext(connection) as queries:
            answer = client.get(address)
        assert answer.status_code == 200, name
        found[name] = len(queries), len(ROW.findall(answer.content))
    return found


@pytest.mark.django_db
def test_pages_of_a_larger_university_cost_as_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # With another seed the checks may list no pair of roommates, and then read no names.
    monkeypatch.setattr("webapp.jobs.services.secrets.randbelow", lambda limit: 0)
    small = costs(fill(tmp_path, SHORT, "small"))
    large = costs(fill(tmp_path, MORE, "large"))
    checks = PlacementCheck.objects.all()
    assert len(checks) == 2
    assert all(check.figures["doubt"]["pairs"] for check in checks)
    assert {name: queries for name, (queries, _) in large.items()} == {
        name: queries for name, (queries, _) in small.items()
    }
    assert {name: rows for name, (_, rows) in large.items() if rows > MOST_ROWS}.keys() <= WHOLE
