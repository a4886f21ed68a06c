"""A housing office's year in a real browser, the short way: from files to rosters, and August."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from benchmarks.housing_university import SHORT, write_year
from benchmarks.housing_walk import Walk, walk_year

pytestmark = pytest.mark.browser

# Steps whose pages are asked by axe and kept as pictures.
HOUSING = {
    "import rooms", "requests", "place", "decide", "letters before sending", "letters",
    "withdrawals", "latecomers", "late changes proposed", "late changes",
}  # fmt: skip
MOST_CLICKS = 64


@pytest.mark.slow
def test_a_housing_year_from_files_to_rosters(
    page_as: Callable[..., Page],
    assert_accessible: Callable[[Page], None],
    screenshot: Callable[..., None],
    tmp_path: Path,
) -> None:
    def look(page: Page, name: str) -> None:
        if name in HOUSING:
            assert_accessible(page)
            screenshot(page, f"housing-{name.replace(' ', '-')}", full=False)

    page = page_as("carol")
    walk = Walk(page, write_year(tmp_path / "files", SHORT), look)
    walk_year(walk)
    assert walk.facts["roster"] == "100 of 100 have a bed"
    assert "2 students added" in walk.facts["latecomers"]
    assert walk.facts["last roster"].endswith("have a bed")
    assert sum(step.clicks for step in walk.steps) <= MOST_CLICKS
    page.goto(walk.placement)
    for query in ("view=table&hall=all&sort=doubt", "view=students", "look=free&hall=all"):
        page.goto(f"{page.url.split('?')[0]}?{query}")
        assert_accessible(page)
        screenshot(page, f"housing-{query.split('&')[0].replace('=', '-')}", full=False)
    placement = page.url.split("?")[0]
    for name in ("checks", "report", "rosters", "rules"):
        page.goto(f"{placement}{name}/")
        assert_accessible(page)
        screenshot(page, f"housing-{name}", full=False)
    for address in ("/letters/", "/letters/new/", "/webhooks/", "/buildings/new/", "/placements/"):
        page.goto(address)
        assert_accessible(page)
        screenshot(page, f"housing{address.replace('/', '-').rstrip('-')}", full=False)
    page.goto("/")
    expect(page.get_by_text("Where each cohort stands")).to_be_visible()
    assert_accessible(page)
