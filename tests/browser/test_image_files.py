"""The files of an image set, one by one."""

import json

import numpy as np
from PIL import Image
from playwright.sync_api import expect

from engine import generate_leaf_images
from tests.browser.image_pages import make_set, upload
from tests.browser.labelled_pictures import zip_file


def test_a_file_leaves_its_set_only_after_a_question(page_as, tmp_path, assert_accessible) -> None:
    images = list(generate_leaf_images(2, rng=np.random.default_rng(5)))
    page = page_as("bob")
    make_set(page, "Small")
    upload(page, zip_file(tmp_path / "small.zip", images, masks=2))
    files = page.locator(".gallery__item")
    expect(files).to_have_count(2)
    more = files.first.locator("summary")
    more.click()
    page.get_by_role("link", name="Remove the image…").click()
    dialog = page.get_by_role("dialog", name="Remove this image")
    expect(dialog).to_contain_text("It cannot be undone.")
    assert_accessible(page)
    dialog.get_by_role("link", name="Keep it").click()
    expect(dialog).to_be_hidden()
    expect(more).to_be_focused()
    more.click()
    page.get_by_role("link", name="Remove the image…").click()
    dialog.get_by_role("button", name="Remove").click()
    expect(page.locator("#toasts")).to_contain_text("was removed from the set.")
    expect(files).to_have_count(1)


def test_pictures_of_a_drop_come_before_what_is_about_them(page_as, tmp_path) -> None:
    """Annotations that lay before their picture in the folder were refused: it was not there."""
    picture = np.random.default_rng(1).integers(0, 90, (24, 36, 3), dtype=np.uint8)
    Image.fromarray(picture).save(tmp_path / "d.png")
    classes = np.repeat(np.arange(3, dtype=np.uint8), 12)[np.newaxis].repeat(24, axis=0)
    Image.fromarray(classes).save(tmp_path / "d_labels.png")
    shape = {"label": "Leaf", "points": [[2, 2], [9, 2], [9, 9]], "shape_type": "polygon"}
    size = {"imagePath": "d.png", "imageWidth": 36, "imageHeight": 24}
    (tmp_path / "d.json").write_text(json.dumps({"shapes": [shape], **size}))
    page = page_as("bob")
    make_set(page, "Dropped")
    upload(page, *(tmp_path / name for name in ("d.json", "d_labels.png", "d.png")))
    sentences = page.locator(".uploads__sentence")
    expect(sentences).to_have_count(3)
    assert all(text.startswith("Saved") for text in sentences.all_inner_texts())
