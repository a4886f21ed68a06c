"""Objects of a predicted image: live splits, numbers, rows that highlight, measuring again."""

import re

import numpy as np
from playwright.sync_api import expect
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
    row = page.locator("[data-number='3']")
    row.hover()
    expect(row).to_have_class(re.compile("is-shown"))
    assert_accessible(page)
    screenshot(page, "objects-of-an-image")
    page.get_by_label("Splits: from fewer to more").fill("-1")
    expect(count).to_have_text("6 objects")
    expect(page.locator("[data-objects-message]")).to_contain_text("stored 12 objects")
    page.get_by_role("button", name="Use for all images").click()
    page.wait_for_url(re.compile(r"/jobs/"))
    expect(page.get_by_text("2 images measured.").first).to_be_visible()
    viewer = page_as("alice", width="phone", dark=True)
    viewer.goto(page.url)
