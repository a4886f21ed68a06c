"""The pages of a placement as they stand: on a phone, and by keyboard alone."""

import json
import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.live.product import PASSWORD, Product

pytestmark = pytest.mark.browser

# A housed cohort of an organisation of its own; its mutual requests became a must afterwards.
_HOUSED = f"""
import json, tempfile
from pathlib import Path
from benchmarks.product.housing import fill
from benchmarks.product.housing_university import SHORT
with tempfile.TemporaryDirectory() as folder:
    keys = fill(Path(folder), SHORT, name="hazel")
user, placement = keys["user"], keys["placement"]
user.set_password("{PASSWORD}")
user.save()
placement.rules["mutual"] = "must"
placement.save()
print(json.dumps({{"placement": str(placement.pk), "cohort": str(placement.cohort_id)}}))
"""
# What a select shows, as wide as the browser draws it, beside the room that it has for words.
WORDS_CUT_OFF = """() => {
  const brush = document.createElement("canvas").getContext("2d");
  return [...document.querySelectorAll(".housing .filters .select")].filter((select) => {
    const style = getComputedStyle(select);
    brush.font = `${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
    const room = select.clientWidth - parseFloat(style.paddingLeft)
      - parseFloat(style.paddingRight);
    return brush.measureText(select.selectedOptions[0].text).width > room + 1;
  }).map((select) => select.selectedOptions[0].text);
}"""
OUTSIDE = """(selector) => [...document.querySelectorAll(selector)].filter((element) => {
  const box = element.getBoundingClientRect();
  return box.width && (box.left < 0 || box.right > innerWidth);
}).map((element) => element.textContent.trim().slice(0, 40))"""
OVERLAPPING = """() => [...document.querySelectorAll("a.hall-list__item")].filter((item) =>
  item.querySelector("b").getBoundingClientRect().right
    > item.querySelector("span").getBoundingClientRect().left).map((item) => item.textContent)"""
FOCUSED = "document.activeElement"


@pytest.fixture(scope="module")
def housed(product: Product) -> dict[str, str]:
    """Keys of a placement and of its cohort; hazel is an administrator there."""
    return json.loads(product.run(_HOUSED).splitlines()[-1])


def test_nothing_of_a_placement_is_cut_off_on_a_phone(
    page_as: Callable[..., Page], housed: dict[str, str]
) -> None:
    """Filters once ended in the middle of a word, and menus opened beyond the left edge."""
    page = page_as("hazel", width="phone")
    placement = f"/placements/{housed['placement']}/"
    for query in ("", "?hall=Alder", "?view=table&hall=all&sort=score", "?view=students&hall=all"):
        page.goto(placement + query)
        assert page.evaluate(WORDS_CUT_OFF) == []
        assert page.evaluate(OVERLAPPING) == []
    page.locator(".page-header summary").click()
    assert page.evaluate(OUTSIDE, ".page-header .menu__items > *") == []
    page.goto(f"{placement}letters/")
    page.locator(".page-header summary").click()
    assert page.evaluate(OUTSIDE, ".page-header .menu__items > *") == []
    student, button = (
        page.locator(f".letter-columns .filters {part}").bounding_box()
        for part in (".input", "[aria-label='Next student']")
    )
    assert button["y"] < student["y"] + student["height"]
    page.goto(f"/cohorts/{housed['cohort']}/requests/")
    page.locator("#unknown summary").first.click()
    assert page.evaluate(OUTSIDE, "#unknown details[open] .inline-form *") == []
    page.goto("/accounts/people/")
    panel = page.locator(".panel:has(.panel__footer)").first.bounding_box()
    button = page.locator(".panel__footer .button").first.bounding_box()
    assert button["x"] + button["width"] < panel["x"] + panel["width"]
    page.goto(f"{placement}checks/?tab=parity")
    for caption in page.locator(".check-caption").all():
        assert caption.bounding_box()["width"] > 200


def test_people_and_import_use_their_whole_page(
    page_as: Callable[..., Page], housed: dict[str, str]
) -> None:
    """What each role may do once stood a word a line beside an empty half."""
    page = page_as("hazel")
    page.goto("/accounts/people/")
    for row in page.locator(".roles-table tbody tr").all():
        assert row.bounding_box()["height"] < 40
    page.goto("/cohorts/import/")
    steps = page.locator("ol.steps-list")
    assert steps.evaluate("list => getComputedStyle(list).listStyleType") == "decimal"


def test_a_must_is_decided_by_keyboard_alone(
    page_as: Callable[..., Page],
    assert_accessible: Callable[[Page], None],
    screenshot: Callable[..., None],
    housed: dict[str, str],
) -> None:
    page = page_as("hazel")
    page.goto(f"/cohorts/{housed['cohort']}/requests/")
    musts = page.locator("#musts")
    rows = musts.locator("[data-row]")
    expect(musts.get_by_role("button", name="Leave out").first).to_be_visible()
    assert_accessible(page)
    screenshot(page, "housing-musts", full=False)
    second = rows.nth(1).locator(".request-pair").inner_text()

    page.keyboard.press("j")  # the first row, then its buttons by Tab
    expect(rows.first).to_be_focused()
    assert rows.first.evaluate("row => getComputedStyle(row).outlineStyle") == "solid"
    leave = rows.first.get_by_role("button", name="Leave out")
    while not leave.evaluate("button => button === document.activeElement"):
        page.keyboard.press("Tab")
        assert rows.first.evaluate("row => row.contains(document.activeElement)")
    page.keyboard.press("Enter")
    expect(page.locator(".toast", has_text="left out")).to_be_visible()
    expect(rows.first.locator(".request-pair")).to_have_text(second)
    expect(rows.first).to_be_focused()  # what took the place of the settled one

    focused = musts.locator("[data-row]:focus")
    solving = focused.get_by_role("button", name=re.compile("^(Swap|Move)"))
    for _ in range(rows.count()):  # the first that a swap or a move solves
        if not solving.count():
            page.keyboard.press("j")
    solved = focused.locator(".request-pair").inner_text()
    page.keyboard.press("s")
    expect(page.locator(".toast", has_text=re.compile("swapped|moved"))).to_be_visible()
    assert page.url.endswith("/requests/")
    expect(musts.locator(".request-pair").filter(has_text=solved)).to_have_count(0)
    assert page.evaluate(f"{FOCUSED}.closest('[data-row], main') !== null")
    assert page.evaluate(f"{FOCUSED} !== document.body")


def test_a_scenario_is_published_and_the_report_read_by_keyboard_alone(
    page_as: Callable[..., Page],
    assert_accessible: Callable[[Page], None],
    housed: dict[str, str],
) -> None:
    page = page_as("hazel")
    page.goto(f"/cohorts/{housed['cohort']}/scenarios/")
    assert_accessible(page)
    tab_to(page, "Publish…")
    assert page.evaluate(f"getComputedStyle({FOCUSED}).outlineStyle") == "solid"
    page.keyboard.press("Enter")
    dialog = page.locator("dialog[open]")
    expect(dialog).to_be_visible()
    assert dialog.evaluate("dialog => dialog.contains(document.activeElement)")
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    assert page.evaluate(f"{FOCUSED}.textContent.trim()").startswith("Publish…")
    page.keyboard.press("Enter")
    tab_to(page, "Publish")
    page.keyboard.press("Enter")
    expect(page.locator(".page-header__facts")).to_contain_text("is published")
    page.goto(f"/placements/{housed['placement']}/report/")
    page.evaluate("window.print = () => { window.printed = true; }")
    tab_to(page, "Print")
    page.keyboard.press("Enter")
    assert page.evaluate("window.printed")
    tab_to(page, "XLSX")
    with page.expect_download() as download:
        page.keyboard.press("Enter")
    assert download.value.suggested_filename.endswith(".xlsx")


def test_what_a_decision_brought_is_ready_when_it_shows(
    page_as: Callable[..., Page], housed: dict[str, str]
) -> None:
    """Settling once came 20 ms later, by a timer, at every decision."""
    page = page_as("hazel")
    page.goto(f"/placements/{housed['placement']}/?hall=Alder")
    page.evaluate(
        """() => {
          window.order = [];
          document.body.addEventListener("htmx:afterSwap", () => {
            setTimeout(() => window.order.push("timer"));
          });
          document.body.addEventListener("htmx:afterSettle", () => window.order.push("settled"));
        }"""
    )
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.locator("#drawer [data-drawer]").wait_for()
    page.wait_for_function("window.order.includes('timer') && window.order.includes('settled')")
    assert page.evaluate("window.order[0]") == "settled"


def tab_to(page: Page, words: str) -> None:
    """Press Tab until what has the focus says these words."""
    for _ in range(120):
        page.keyboard.press("Tab")
        if page.evaluate(f"{FOCUSED}.textContent.trim()").startswith(words):
            return
    raise AssertionError(f"Tab does not reach “{words}”")
