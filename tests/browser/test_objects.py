"""Objects of a predicted image: live splits, numbers, rows that highlight, measuring again."""

import re

import numpy as np
from playwright.sync_api import Page, expect
from scipy.ndimage import gaussian_filter
from skimage.draw import disk

from engine.datasets import LabelledImage
from tests.browser.image_pages import learn, make_set, predict, upload, wait_till_learned
from tests.browser.labelled_pictures import zip_file


def cells(seed: int) -> LabelledImage:
    """Bright discs on a dark ground. Six pairs of them touch."""
    rng = np.random.default_rng(seed)
    mask = np.zeros((160, 240), dtype=bool)
    for row in (25, 75, 125):
        for column in (40, 150):
            radius = rng.uniform(11, 14)
            for shift in (0, 2 * radius - 3):
                mask[disk((row, column + shift), radius, shape=mask.shape)] = True
    grey = gaussian_filter(40 + 150.0 * mask, 1) + rng.normal(0, 8, mask.shape)
    image = np.repeat(np.clip(grey, 0, 255).astype(np.uint8)[:, :, np.newaxis], 3, axis=2)
    return LabelledImage(image, mask)


def correct_objects(page: Page) -> None:
    """Join two cells, undo, split one by a line, delete one by keys, and take everything back."""
    count = page.locator("[data-objects-count]")
    page.locator("h1").scroll_into_view_if_needed()
    canvas = page.locator("[data-objects-canvas]").bounding_box()
    scale = min((canvas["width"] - 24) / 240, (canvas["height"] - 24) / 160)

    def at(x: float, y: float) -> tuple[float, float]:
        middle = canvas["x"] + canvas["width"] / 2, canvas["y"] + canvas["height"] / 2
        return middle[0] + (x - 120) * scale, middle[1] + (y - 80) * scale

    page.mouse.click(*at(40, 25))
    page.keyboard.down("Shift")
    page.mouse.click(*at(63, 25))
    page.keyboard.up("Shift")
    page.get_by_role("button", name="Join").click()
    expect(count).to_have_text("11 objects")
    page.keyboard.press("Control+z")
    expect(count).to_have_text("12 objects")
    page.keyboard.press("s")
    page.mouse.move(*at(40, 55))
    page.mouse.down()
    page.mouse.move(*at(40, 75), steps=3)
    page.mouse.move(*at(40, 95), steps=3)
    page.mouse.up()
    expect(count).to_have_text("13 objects")
    page.keyboard.press("v")
    page.get_by_role("application").focus()
    page.keyboard.press("ArrowRight")
    page.locator("[data-number='1']").click()
    page.get_by_role("application").focus()
    page.keyboard.press("Delete")
    expect(count).to_have_text("12 objects")
    expect(page.locator("[data-history-list] li")).to_have_count(3)
    expect(page.locator("[data-number]")).to_have_count(12)
    page.reload()
    page.wait_for_selector("[data-objects-page][data-ready=true]", state="attached")
    expect(count).to_have_text("12 objects")
    for left in (13, 12):
        page.get_by_role("button", name="Undo my last correction").click()
        expect(count).to_have_text(f"{left} objects")
    expect(page.get_by_role("button", name="Undo my last correction")).to_be_disabled()


def test_touching_cells_are_counted_and_the_slider_shows_it(
    page_as, tmp_path, assert_accessible, screenshot
) -> None:
    page = page_as("bob")
    pictures = [cells(seed) for seed in range(6)]
    make_set(page, "Touching cells")
    upload(page, zip_file(tmp_path / "cells.zip", pictures, masks=6))
    learn(page)
    wait_till_learned(page)
    make_set(page, "More touching cells")
    upload(page, zip_file(tmp_path / "more.zip", [cells(seed) for seed in (8, 9)], masks=0))
    predict(page)
    page.get_by_role("link", name="Objects", exact=True).click()
    expect(page.get_by_role("heading", name="What counts as an object")).to_be_visible()
    assert_accessible(page)
    screenshot(page, "objects-of-a-prediction")
    page.get_by_role("region", name="Objects by image").get_by_role("link").first.click()
    page.wait_for_selector("[data-objects-page][data-ready=true]", state="attached")
    count = page.locator("[data-objects-count]")
    expect(count).to_have_text("12 objects")
    assert page.locator("[data-number]").count() == 12
    row = page.locator("tr[data-number='3']")
    row.hover()
    expect(row).to_have_class(re.compile("is-shown"))
    assert_accessible(page)
    screenshot(page, "objects-of-an-image")
    correct_objects(page)
    page.get_by_label("Splits: from fewer to more").fill("-1")
    expect(count).to_have_text("6 objects")
    expect(page.locator("[data-objects-message]")).to_contain_text("stored 12 objects")
    page.get_by_role("button", name="Use for all images").click()
    page.wait_for_url(re.compile(r"/jobs/"))
    expect(page.get_by_text("2 images measured.").first).to_be_visible()
    viewer = page_as("alice", width="phone", dark=True)
    viewer.goto(page.url)
