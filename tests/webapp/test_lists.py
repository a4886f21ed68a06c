"""Every list costs as many queries as its page needs, however many objects there are.

A count that was joined, a relation that was read row by row and a column of curves that no list
shows once made pages of a large university take minutes.
"""

import re
from collections.abc import Callable

import pytest
from django.apps import apps
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from benchmarks.product.web_load import Filler
from tests.webapp.roles import Page
from webapp.accounts.models import User
from webapp.api.services import token_create
from webapp.cohorts.models import Cohort
from webapp.common.listing import PAGE_SIZE
from webapp.housing.models import Placement
from webapp.matching.models import LearnedModel
from webapp.segmentation.models import ImageSet, PredictionBatch, Segmenter

FEW = 1e-4  # four of each kind
LISTS = {
    "cohorts:list": Cohort,
    "matching:models": LearnedModel,
    "housing:placements": Placement,
    "segmentation:image-sets": ImageSet,
    "segmentation:segmenters": Segmenter,
    "segmentation:predictions": PredictionBatch,
}
OTHERS = (
    "common:home",
    "jobs:list",
    "audit:log",
    "accounts:people",
    "api:tokens",
    "housing:placement-new",
    "segmentation:segmenter-new",
    "segmentation:prediction-new",
)
PROGRAMS = (
    "cohorts",
    "roommate-models",
    "proposals",
    "image-sets",
    "image-models",
    "predictions",
    "jobs",
)


@pytest.fixture
def filled(bob: User, carol: User) -> User:
    Filler(bob, FEW).fill(say=lambda text: None)
    return carol


def fill_more(bob: User) -> None:
    Filler(bob, FEW, prefix="More ").fill(say=lambda text: None)


def heavy_columns() -> list[re.Pattern[str]]:
    """Patterns of the heavy columns where a query brings them whole, not computed upon."""
    return [
        re.compile(rf'(?<!\()"{model._meta.db_table}"\."{name}"(,| AS| FROM)')
        for model in apps.get_models()
        for name in getattr(model, "HEAVY", ())
    ]


def ask(client: Client, address: str, **headers: str) -> list[str]:
    client.get(address, headers=headers)  # what is kept for a process is read once
    with CaptureQueriesContext(connection) as queries:
        status = client.get(address, headers=headers).status_code
    assert status == 200 or (status == 302 and "/search/" in address), address  # the one found
    return [query["sql"] for query in queries]


def test_pages_cost_the_same_with_twice_as_many_objects(
    bob: User, filled: User, client_of: Callable[[User], Client]
) -> None:
    client = client_of(filled)
    addresses = [*map(reverse, [*LISTS, *OTHERS]), "/search/?q=1001", "/search/?q=Hall"]
    before = {address: ask(client, address) for address in addresses}
    fill_more(bob)
    for address, queries in before.items():
        after = ask(client, address)
        assert len(after) <= len(queries), f"{address}: {len(queries)}, then {len(after)}"
        for pattern in heavy_columns():
            assert not [sql for sql in after if pattern.search(sql)], f"{address} {pattern}"


def test_a_list_is_never_counted_by_a_join(
    filled: User, client_of: Callable[[User], Client]
) -> None:
    client = client_of(filled)
    for name in [*LISTS, "common:home"]:
        for sql in ask(client, reverse(name)):
            for columns in re.findall(r"GROUP BY ([^()]*)", sql):
                assert "," not in columns.partition("ORDER BY")[0], f"{name}: {sql}"


def test_home_asks_nothing_twice(filled: User, client_of: Callable[[User], Client]) -> None:
    queries = ask(client_of(filled), reverse("common:home"))
    tables = ("matching_", "cohorts_", "segmentation_", "jobs_job")
    asked = [sql for sql in queries if any(f'FROM "{table}' in sql for table in tables)]
    long = [sql for sql in asked if not sql.startswith("SELECT COUNT(")]
    assert sorted(set(long)) == sorted(long)


def test_lists_for_programs_cost_the_same_with_twice_as_many_objects(
    bob: User, filled: User, client_of: Callable[[User], Client]
) -> None:
    _, secret = token_create(user=bob, name="sync", days=1, may_change=False)
    headers = {"authorization": f"Bearer {secret}"}
    before = {name: len(ask(Client(), f"/api/v1/{name}", **headers)) for name in PROGRAMS}
    fill_more(bob)
    for name, count in before.items():
        assert len(ask(Client(), f"/api/v1/{name}", **headers)) <= count, name


@pytest.mark.parametrize("name", LISTS)
def test_a_list_is_paged_and_filtered(
    filled: User, client_of: Callable[[User], Client], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, client = LISTS[name], client_of(filled)
    one = model.objects.order_by("pk").first()
    copies = []
    for k in range(PAGE_SIZE):
        copy = model.objects.get(pk=one.pk)
        copy.pk = copy.uuid = None
        copy.uuid = type(one)._meta.get_field("uuid").get_default()
        copy.name = f"Copy {k:02d}"
        for field in ("job_id", "check_job_id", "intervals_job_id"):
            if hasattr(copy, field):
                setattr(copy, field, None)
        copies.append(copy)
    model.objects.bulk_create(copies)
    first, second = (Page(client.get(reverse(name), {"page": page})) for page in (1, 2))
    total = model.objects.filter(organisation=filled.organisation).count()
    assert first.one("navigation", "Pages").says(f"1–{PAGE_SIZE} of {total}")
    assert second.one("navigation", "Pages").says(f"{PAGE_SIZE + 1}–{total} of {total}")
    assert second.element.xpath("//a[@data-open]")
    found = Page(client.get(reverse(name), {"q": "copy 07"}))
    assert found.has("link", "Copy 07")
    assert "Copy 08" not in found.source
    none = Page(client.get(reverse(name), {"q": "<b>nobody"}))
    assert none.says("Nothing has “<b>nobody” in its name.")
