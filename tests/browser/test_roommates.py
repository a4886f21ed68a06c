"""From a survey file to exported pairs, in a real browser against the running product."""

import csv
import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from engine import simulate_university
from webapp.cohorts.demonstration import survey_as_csv

pytestmark = pytest.mark.browser

JOB_MS = 240_000


def survey_file(folder: Path) -> Path:
    """Write the survey of a generated year: 210 and 190 students, who are paired by gender."""
    path = folder / "generated.csv"
    university = simulate_university(400, 1, rng=np.random.default_rng(1), by_gender=True)
    path.write_bytes(survey_as_csv(university.cohorts[0].survey))
    return path


def open_menu(page: Page, choice: str) -> None:
    page.locator("summary[aria-label='More actions']").click()
    page.get_by_role("button", name=choice).click()


def import_survey(page: Page, path: Path, name: str) -> None:
    page.goto("/cohorts/import/")
    page.set_input_files("#file", path)
    page.wait_for_url("**/cohorts/import/*-*/")
    best = page.get_by_role("button", name="Use the 14 that differ most")
    if best.count():
        best.first.click()
    expect(page.get_by_text("Ready to import")).to_be_visible()
    page.get_by_role("button", name="Import", exact=False).last.click()
    dialog = page.locator("#confirm-import")
    dialog.get_by_label("Name of the cohort").fill(name)
    dialog.get_by_role("button", name="Import", exact=True).click()
    page.wait_for_url("**/cohorts/*-*/")


def split_and_simulate(page: Page) -> None:
    """Split the open cohort, and draw pairs for its first half."""
    open_menu(page, "Practise without pairs")
    page.get_by_label("Seed").first.fill("1")
    page.get_by_role("button", name="Split").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("half A")
    open_menu(page, "Practise without pairs")
    page.get_by_label("Seed").last.fill("2")
    page.get_by_role("button", name="Simulate pairs").click()
    expect(page.get_by_text("These pairs were simulated.")).to_be_visible(timeout=JOB_MS)


def pair_half_b(page: Page) -> None:
    page.get_by_role("link", name="Place a cohort").click()
    half = page.locator("#cohort option", has_text="half B").first
    page.select_option("#cohort", half.get_attribute("value"))  # waits for the page
    page.wait_for_url("**cohort=*")
    page.get_by_label("Pairs alone, without rooms").check()
    page.get_by_role("button", name="Place ").last.click()
    expect(page.locator("tr.pair").first).to_be_visible(timeout=JOB_MS)


@pytest.mark.slow
def test_from_a_survey_to_exported_pairs(
    page_as: Callable[..., Page],
    assert_accessible: Callable[[Page], None],
    screenshot: Callable[..., None],
    tmp_path: Path,
) -> None:
    page = page_as("bob")
    page.goto("/cohorts/import/")
    assert_accessible(page)
    page.set_input_files("#file", survey_file(tmp_path))
    page.wait_for_url("**/cohorts/import/*-*/")
    assert_accessible(page)
    draft = page.url
    import_survey(page, survey_file(tmp_path), "Whole survey")
    assert_accessible(page)
    split_and_simulate(page)
    page.get_by_role("link", name="Learn from it").click()
    assert_accessible(page)
    page.locator("#learn-form").get_by_role("button", name="Learn").click()
    expect(page.get_by_text("Certified: within").first).to_be_visible(timeout=JOB_MS)
    assert_accessible(page)
    model = page.url
    pair_half_b(page)
    assert_accessible(page)
    decide_some(page, assert_accessible)
    export_some(page)
    pairs = page.url.split("?")[0]
    page.goto(f"{pairs}numbers/")
    assert_accessible(page)
    for name, address in (("import", draft), ("model", model), ("pairs", pairs)):
        page.goto(address)
        screenshot(page, f"roommates-{name}", full=False)


def hold_undo(page: Page) -> None:
    """Keep the toast with Undo as if it had the focus: else it leaves after ten seconds.

    A busy machine needs longer for the keys before Undo.
    """
    page.locator("#toasts .toast").dispatch_event("focusin")


def decide_some(page: Page, assert_accessible: Callable[[Page], None]) -> None:
    """Accept by mouse, lock by key, swap by the card, undo, and pair again."""
    rows = page.locator("tr.pair")
    first = rows.first.get_attribute("id")
    rows.first.get_by_label("Accept").click()
    expect(page.locator(f"#{first}")).to_have_count(0)
    expect(page.get_by_text("accepted.").first).to_be_visible()
    rows.nth(2).locator("[data-open]").click()
    expect(page.locator("[data-drawer]")).to_be_visible()
    assert_accessible(page)
    page.locator(".next-best a").first.click()
    expect(page.locator("#swap-dialog")).to_be_visible()
    expect(page.locator("#swap-dialog").get_by_text("After the swap")).to_be_visible()
    page.locator("#swap-dialog").get_by_role("button", name="Swap", exact=True).click()
    expect(page.locator("#tab-swapped")).to_contain_text("2")
    hold_undo(page)
    page.get_by_role("button", name="Undo").last.click()
    expect(page.locator("#tab-swapped")).to_contain_text("0")
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    page.locator("tr.pair").nth(1).get_by_label("Never pair").click()
    expect(page.get_by_text("1 change since")).to_be_visible()
    page.get_by_role("button", name="Pair again").click()
    expect(page.get_by_text("Certified best")).to_be_visible(timeout=JOB_MS)
    expect(page.locator("#tab-accepted")).to_contain_text("1")


def export_some(page: Page) -> None:
    """The export has everybody of the half, each once, by original id."""
    page.get_by_text("Export", exact=True).click()
    with page.expect_download() as download:
        page.get_by_role("link", name="Pairs that stand as CSV").click()
    text = Path(download.value.path()).read_text(encoding="utf-8-sig")
    rows = list(csv.DictReader(io.StringIO(text)))
    ids = [row[column] for row in rows for column in ("student_a", "student_b")]
    assert len(ids) == len(set(ids))
    assert len(ids) == 200


def deciding_goes_on_with_the_next_card(page: Page) -> None:
    """The open card, the current row and what keys act on are always the same pair."""
    card, row = page.locator("[data-drawer]"), page.locator("tr.pair[data-selected]")
    first = card.get_attribute("data-drawer")
    page.keyboard.press("l")
    expect(page.locator("#tab-locked")).to_contain_text("1")
    hold_undo(page)
    expect(card).not_to_have_attribute("data-drawer", first)
    expect(row).to_have_attribute("id", f"pair-{card.get_attribute('data-drawer')}")
    second = card.get_attribute("data-drawer")
    page.keyboard.press("j")
    expect(card).not_to_have_attribute("data-drawer", second)
    expect(row).to_have_attribute("id", f"pair-{card.get_attribute('data-drawer')}")
    page.keyboard.press("z")
    expect(page.locator("#tab-locked")).to_contain_text("0")
    page.wait_for_load_state()  # undoing reloads the page; keys work once its scripts run
    page.keyboard.press("Enter")
    expect(card).to_be_visible()


@pytest.mark.slow
def test_deciding_by_keyboard_alone(page_as: Callable[..., Page], tmp_path: Path) -> None:
    page = page_as("bob")
    university = simulate_university(60, 1, rng=np.random.default_rng(3))
    path = tmp_path / "small.csv"
    path.write_bytes(survey_as_csv(university.cohorts[0].survey))
    import_survey(page, path, "Small survey")
    split_and_simulate(page)
    page.get_by_role("link", name="Learn from it").click()
    page.locator("#learn-form").get_by_role("button", name="Learn").press("Enter")
    expect(page.get_by_text("Certified: within").first).to_be_visible(timeout=JOB_MS)
    pair_half_b(page)
    page.wait_for_load_state()  # the page reloads when the job ends; keys work once its scripts run
    total = page.locator("tr.pair").count()
    page.keyboard.press("j")
    expect(page.locator("tr.pair:focus")).to_have_count(1)
    page.keyboard.press("j")
    page.keyboard.press("a")
    expect(page.locator("#tab-accepted")).to_contain_text("1")
    expect(page.locator("tr.pair:focus")).to_have_count(1)
    page.keyboard.press("l")
    expect(page.locator("#tab-locked")).to_contain_text("1")
    hold_undo(page)
    page.keyboard.press("z")
    expect(page.locator("#tab-locked")).to_contain_text("0")
    page.wait_for_load_state()  # undoing reloads the page; keys work once its scripts run
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.locator("[data-drawer]")).to_be_visible()
    deciding_goes_on_with_the_next_card(page)
    page.keyboard.press("Escape")
    expect(page.locator("[data-drawer]")).to_have_count(0)
    page.keyboard.press("s")
    expect(page.get_by_label("New roommate")).to_be_focused()
    other = page.locator("tr.pair").last.locator("b").first  # never of the pair that is swapped
    page.keyboard.type(other.inner_text())
    page.keyboard.press("Enter")
    expect(page.locator("#swap-dialog").get_by_text("After the swap")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    expect(page.locator("#search-input")).to_be_focused()
    assert page.locator("tr.pair").count() == total - 1
