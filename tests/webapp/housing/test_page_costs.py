"""What a page costs does not grow with the university: as many queries, and rows that fit a screen.

A relation that is read row by row, or a list that is written whole, once made the pages of a hall
of 1,400 rooms take seconds.
"""

import re
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.db.models import Count, QuerySet
from django.test import Client
from django.test.utils import CaptureQueriesContext

from benchmarks.product.housing import fill, pages_of
from benchmarks.product.housing_university import SHORT, Size
from webapp.housing.models import Place
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


@pytest.mark.django_db
@pytest.mark.any_database  # the plan is that of SQLite
@pytest.mark.parametrize(
    ("places", "index"),
    [
        (Place.objects.filter(has_left=True).values_list("number"), "people_who_left"),
        (Place.objects.dated().values_list("number"), "people_with_own_days"),
        (
            Place.objects.present()
            .values("placement")
            .annotate(people=Count("pk"), placed=Count("room")),
            "COVERING INDEX people_and_beds",
        ),
    ],
    ids=["left", "own days", "counts"],
)
def test_few_of_many_places_are_found_by_an_index(places: QuerySet[Place, Any], index: str) -> None:
    """Every decision read all 10,000 places of its placement three times."""
    assert f"{index} (placement_id=?)" in places.filter(placement=uuid4()).explain()
