"""Painting classes in Chromium: strokes, answers, doubt, undo, what stays after a reload."""

import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
import tifffile
from playwright.sync_api import Page, expect

from tests.browser.image_pages import drawn, make_set, upload, wait_till_learned
from tests.live.product import Product


@pytest.fixture
def plate(tmp_path: Path) -> list[Path]:
    """Two 12-bit pictures with a bright disc each; a pixel is .325 micrometres."""
    rows, columns = np.mgrid[:200, :260]
    paths = []
    for k in range(2):
        disc = (rows - 100) ** 2 + (columns - 90 - 40 * k) ** 2 < 40**2
        noise = np.random.default_rng(k).normal(0, 60, disc.shape)
        values = (300 + 2500 * disc + noise).clip(0, 4095).astype(np.uint16)
        paths.append(tmp_path / f"well_{k}.tif")
        unit = {"unit": "um"}
        size = (1 / 0.325, 1 / 0.325)
        tifffile.imwrite(paths[-1], values, imagej=True, resolution=size, metadata=unit)
    return paths


def answers(page: Page) -> int:
    return int(page.locator("[data-paint]").get_attribute("data-answers") or 0)


def paint(page: Page, start: tuple[float, float], end: tuple[float, float]) -> None:
    """Drag from one share of the stage to another, and wait for the next answer."""
    box = page.locator("[data-canvas]").bounding_box()
    before = answers(page)
    for k, (x, y) in enumerate((start, end)):
        page.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"], steps=4)
        if k == 0:
            page.mouse.down()
    page.mouse.up()
    expect(page.locator("[data-paint]")).not_to_have_attribute("data-answers", str(before))


def look_at_each_layer(page: Page) -> None:
    """Show what each button of the viewer names: the label says which, and the pixels differ."""
    words = page.locator("[data-label]")
    seen = set()
    for name, said in (
        ("Picture", "Picture"),
        ("Probability", "Probability of Thing"),
        ("Errors", "Where labels are known"),
        ("Doubt", "Doubt"),
        ("Classes", "Classes, "),
    ):
        page.get_by_role("button", name=name, exact=True).click()
        expect(words).to_contain_text(said)
        drawn(page)
        seen.add(page.locator("[data-canvas]").evaluate("canvas => canvas.toDataURL()"))
    assert len(seen) == 5


def click_three_classes(page: Page) -> None:
    """Paint a dot of class 1, of 2 and of 1, without waiting for anything."""
    box = page.locator("[data-canvas]").bounding_box()
    for k in range(3):
        page.keyboard.press(str(1 + k % 2))
        page.mouse.move(box["x"] + (0.3 + 0.1 * k) * box["width"], box["y"] + 0.5 * box["height"])
        page.mouse.down()
        page.mouse.up()


def go(page: Page, key: str, name: str) -> None:
    """Go to the picture before or after, whose name is given."""
    page.keyboard.press(key)
    expect(page.locator("h1")).to_have_text(name)
    page.wait_for_selector("[data-paint][data-ready=true]")


@pytest.fixture
def busy_database(product: Product) -> Iterator[sqlite3.Connection]:
    """A writer that nobody passes until it is rolled back; pages are read all the same."""
    database = product.instance / "bethe_hall.sqlite3"
    with closing(sqlite3.connect(database, isolation_level=None, timeout=60)) as writer:
        yield writer
        if writer.in_transaction:
            writer.execute("ROLLBACK")


def test_no_stroke_is_lost_nor_overtaken_when_the_page_is_left_at_once(
    page_as: Callable[..., Page],
    plate: list[Path],
    product: Product,
    busy_database: sqlite3.Connection,
) -> None:
    """Requests of a page that went came in any order, and later than the page that showed them."""
    page = page_as("bob")
    make_set(page, "Painted in haste")
    upload(page, *plate)
    page.get_by_role("link", name="Paint classes").click()
    page.wait_for_selector("[data-paint][data-ready=true]")
    page.route("**/answer/", lambda route: None)  # the answer never comes
    key = page.url.rstrip("/").rpartition("/")[2].replace("-", "")
    query = "SELECT value FROM segmentation_stroke WHERE file_id = ? ORDER BY number"
    busy_database.execute("BEGIN IMMEDIATE")
    click_three_classes(page)
    go(page, "j", "well_1.tif")
    go(page, "k", "well_0.tif")
    expect(page.locator("[data-n-strokes]")).to_have_text("3")
    assert not product.rows(query, key)
    busy_database.execute("ROLLBACK")
    page.wait_for_function("() => !Object.keys(localStorage).some(k => k.startsWith('stroke:'))")
    assert [row["value"] for row in product.rows(query, key)] == [1, 2, 1]


def test_strokes_outlast_a_server_that_is_away(
    page_as: Callable[..., Page], plate: list[Path]
) -> None:
    page = page_as("bob")
    make_set(page, "Painted without a server")
    upload(page, *plate)
    page.get_by_role("link", name="Paint classes").click()
    page.wait_for_selector("[data-paint][data-ready=true]")
    page.route("**/strokes/", lambda route: route.abort())
    click_three_classes(page)
    expect(page.locator(".toast--error")).to_contain_text("Strokes wait in this browser")
    expect(page.locator("[data-n-strokes]")).to_have_text("3")
    go(page, "j", "well_1.tif")
    page.unroute("**/strokes/")
    page.reload()
    expect(page.locator("[data-n-strokes]")).to_have_text("3")  # of the picture before
    go(page, "k", "well_0.tif")
    expect(page.locator("[data-badge]")).to_have_text(re.compile(r"Answered in [\d.]+ s"))
    page.keyboard.press("z")
    expect(page.locator("[data-n-strokes]")).to_have_text("2")


def test_strokes_answers_and_a_reload(
    page_as: Callable[..., Page],
    plate: list[Path],
    assert_accessible: Callable[..., None],
    screenshot: Callable[..., None],
) -> None:
    page = page_as("bob")
    make_set(page, "Plate to paint")
    upload(page, *plate)
    page.reload()
    expect(page.get_by_text("0.325 µm").first).to_be_visible()
    page.get_by_role("link", name="Paint classes").click()
    page.wait_for_selector("[data-paint][data-ready=true]")
    expect(page.get_by_text("Paint a little of each class.")).to_be_visible()
    paint(page, (0.36, 0.45), (0.4, 0.55))
    expect(page.get_by_text("Paint a second class.")).to_be_visible()
    page.keyboard.press("2")
    paint(page, (0.75, 0.2), (0.75, 0.8))
    expect(page.locator("[data-badge]")).to_have_text(re.compile(r"Answered in [\d.]+ s"))
    expect(page.locator("[data-objects]")).to_be_visible(timeout=240_000)
    expect(page.locator("[data-object-facts]")).to_contain_text("µm²")
    expect(page.locator("[data-n-strokes]")).to_have_text("2")
    page.keyboard.press("z")
    expect(page.locator("[data-n-strokes]")).to_have_text("1")
    page.keyboard.press("y")
    expect(page.locator("[data-n-strokes]")).to_have_text("2")
    page.keyboard.press("Control+z")
    expect(page.locator("[data-n-strokes]")).to_have_text("1")
    page.keyboard.press("Control+Shift+z")
    expect(page.locator("[data-n-strokes]")).to_have_text("2")
    page.get_by_role("button", name="Clear this picture").click()
    expect(page.locator("[data-n-strokes]")).to_have_text("0")
    page.get_by_role("button", name="Bring the strokes back").click()
    expect(page.locator("[data-n-strokes]")).to_have_text("2")
    page.locator("[data-tones] summary").click()
    page.get_by_label("Gamma").fill("2")
    expect(page.locator("[data-tones-name]")).to_have_text("Picture, changed")
    page.get_by_role("button", name="As stored").click()
    expect(page.locator("[data-tones-name]")).to_have_text("Picture")
    expect(page.locator("[data-badge]")).to_have_text(re.compile(r"Answered in [\d.]+ s"))
    expect(page.get_by_role("button", name="Save the model")).to_be_enabled()
    screenshot(page, "paint")
    assert_accessible(page)
    page.reload()
    page.wait_for_selector("[data-paint][data-ready=true]")
    expect(page.locator("[data-n-strokes]")).to_have_text("2")
    expect(page.locator("[data-badge]")).to_have_text(re.compile(r"Answered in [\d.]+ s"))
    page.get_by_role("button", name="Learn, then predict 2 images").click()
    page.wait_for_url(re.compile(r"/image-models/[0-9a-f-]{36}/"))
    predictions = page.locator(".rail__link[href='/predictions/'] .rail__count")
    before = int(predictions.text_content() or 0)
    expect(page.get_by_text("Prediction follows learning")).to_be_visible()
    wait_till_learned(page)
    expect(predictions).to_have_text(str(before + 1))  # learning began it; no page was loaded
    page.reload()
    expect(page.get_by_role("heading", name="Class by class")).to_be_visible()
    expect(page.get_by_text("Thing is painted in one place only")).to_be_visible()
    assert page.locator(".class-swatch").first.bounding_box()["width"] < 20
    screenshot(page, "class-model")
    page.goto("/predictions/")
    page.locator("tr[data-row] a[data-open]").first.click()
    expect(page.locator(".badge", has_text="Done").first).to_be_visible(timeout=240_000)
    page.reload()
    expect(page.get_by_text("no figure of how right it is")).to_be_visible()
    screenshot(page, "predicted-classes")
    page.locator("tr[data-row] a[data-open]").first.click()
    page.wait_for_selector("[data-paint][data-ready=true]")
    look_at_each_layer(page)
    screenshot(page, "class-viewer")
    assert_accessible(page)
