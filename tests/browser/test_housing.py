"""A housing office's year in a real browser, the short way: from files to rosters, and August."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from benchmarks.product.housing_university import SHORT, write_year
from benchmarks.product.housing_walk import Walk, walk_year

pytestmark = pytest.mark.browser

# Steps whose pages are asked by axe and kept as pictures.
HOUSING = {
    "import rooms", "requests", "place", "version compared", "history", "question accept", "decide",
    "letters before sending", "letters", "draft of late changes", "undo asks", "withdrawals",
    "latecomers", "late arrivals undo asks", "late changes proposed", "late changes", "purge asks",
    "withdrawal asks",
}  # fmt: skip
MOST_CLICKS = 96
# Before and after once stood over the edge of its panel, which does not scroll.
TABLES_OVER_THEIR_PANEL = """[...document.querySelectorAll(".panel table")]
  .filter(table => !table.closest(".table-wrap") && table.getBoundingClientRect().right
    > table.closest(".panel").getBoundingClientRect().right + 1)
  .map(table => table.className)"""


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
            assert page.evaluate(TABLES_OVER_THEIR_PANEL) == []

    page = page_as("carol")
    walk = Walk(page, look, year=write_year(tmp_path / "files", SHORT))
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
        if name == "report":
            assert_prints_hall_by_hall(page)
    for address in ("/letters/", "/letters/new/", "/webhooks/", "/buildings/new/", "/placements/"):
        page.goto(address)
        assert_accessible(page)
        screenshot(page, f"housing{address.replace('/', '-').rstrip('-')}", full=False)
    page.goto("/")
    expect(page.get_by_text("Where each cohort stands")).to_be_visible()
    assert_accessible(page)


def assert_prints_hall_by_hall(page: Page) -> None:
    """Paper once showed the report in the width of the menus, a letter a line."""
    page.emulate_media(media="print", color_scheme="dark")
    for gone in (".rail", ".topbar", ".breadcrumbs", ".page-header__actions"):
        expect(page.locator(gone).first).to_be_hidden()
    halls = page.locator(".hall-report")
    for part in (page.locator(".page-header"), halls.first.locator("table")):
        box = part.bounding_box()
        assert box is not None
        assert box["width"] > 0.8 * page.viewport_size["width"]
    expect(halls.first.locator("thead tr").first).to_contain_text("beds taken")
    styles = halls.first.evaluate(
        "e => [getComputedStyle(e).breakBefore, getComputedStyle(e.querySelector('td')).color]"
    )
    assert styles == ["page", "rgb(0, 0, 0)"]
    pages = len(re.findall(rb"/Type /Page\b(?!s)", page.pdf(format="A4")))
    assert halls.count() < pages <= 2 * halls.count() + 2
    page.emulate_media(media="screen", color_scheme="light")
