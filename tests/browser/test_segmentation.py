"""Segmentation as people use it: upload, learn, predict, look, correct, learn again."""

import io
import re
import zipfile

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Page, expect

from engine import generate_leaf_images
from engine.datasets import LabelledImage
from tests.browser.conftest import PATIENCE_MS, sign_in
from tests.browser.image_pages import (
    drawn,
    learn,
    make_set,
    open_viewer,
    predict,
    ready,
    upload,
    wait_till_learned,
)
from tests.browser.labelled_pictures import encoded, zip_file
from tests.patience import busyness

LEARNED, NEW = 20, 10


@pytest.fixture(scope="module")
def pictures() -> tuple[list[LabelledImage], list[LabelledImage]]:
    """Generated leaves: what is learned from, and what is new."""
    made = list(generate_leaf_images(LEARNED + NEW, rng=np.random.default_rng(3)))
    return made[:LEARNED], made[LEARNED:]


@pytest.fixture(scope="module")
def prepared(browser, product, pictures, tmp_path_factory) -> dict[str, str]:
    """Addresses of a model and of a prediction of ten images, six of them with masks."""
    folder = tmp_path_factory.mktemp("prepared")
    context = browser.new_context(base_url=product.url, viewport={"width": 1400, "height": 900})
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    sign_in(page, "bob")
    make_set(page, "Prepared to learn from")
    upload(page, zip_file(folder / "learn.zip", pictures[0][:6], masks=6))
    learn(page)
    wait_till_learned(page)
    addresses = {"model": page.url}
    make_set(page, "Prepared to predict")
    upload(page, zip_file(folder / "new.zip", pictures[1], masks=6))
    predict(page)
    addresses["prediction"] = page.url
    context.close()
    return addresses


@pytest.mark.slow
def test_from_upload_to_learning_again(
    page_as, pictures, tmp_path, assert_accessible, screenshot
) -> None:
    page = page_as("bob")
    page.goto("/image-sets/")
    assert_accessible(page)
    make_set(page, "Things with masks")
    assert_accessible(page)

    upload(page, zip_file(tmp_path / "learn.zip", pictures[0], masks=LEARNED))
    expect(page.locator("[data-uploads-note]")).to_have_text("40 saved, 1 not saved")
    refused = page.locator(".uploads__row[data-outcome=refused]")
    expect(refused).to_contain_text("notes.txt")
    assert_accessible(page)
    screenshot(page, "seg-upload")
    expect(page.locator(".page-header__facts")).to_contain_text("20 images, 20 with a mask")
    assert_accessible(page)
    screenshot(page, "seg-set")

    learn(page)
    expect(page.locator(".preview__map").first).to_be_visible(timeout=240_000)
    expect(page.get_by_text("of pixels wrong")).to_be_visible(timeout=240_000)
    assert_accessible(page)
    screenshot(page, "seg-learning")
    wait_till_learned(page)
    assert_accessible(page)
    screenshot(page, "seg-learned")

    make_set(page, "New things")
    upload(page, zip_file(tmp_path / "new.zip", pictures[1], masks=6))
    predict(page)
    expect(page.locator(".page-header__facts")).to_contain_text("10 of 10 images predicted")
    assert_accessible(page)
    screenshot(page, "seg-prediction")
    prediction = page.url

    open_viewer(page)
    page.get_by_role("button", name="Correct the mask").click()
    box = page.locator("[data-stage]").bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.4, box["y"] + box["height"] * 0.4)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + box["height"] * 0.5, steps=6)
    page.mouse.up()
    page.keyboard.press("e")
    expect(page.locator("[data-tool=erase]")).to_have_attribute("aria-pressed", "true")
    assert_accessible(page)
    screenshot(page, "seg-correct")
    page.get_by_role("button", name="Save as new mask").click()
    expect(page.locator("#toasts")).to_contain_text("corrected-1.mask.png")
    ready(page)

    page.goto(prediction)
    page.get_by_role("link", name="Predictions").first.click()
    page.goto("/image-sets/")
    page.get_by_role("link", name="New things").click()
    learn(page)
    wait_till_learned(page)


LABELS_OUTSIDE = """() => [...document.querySelectorAll(".panel svg text")].filter((text) => {
  const box = text.getBoundingClientRect(), outer = text.closest(".panel").getBoundingClientRect();
  return box.width > 0 && (box.left < outer.left || box.right > outer.right
    || box.top < outer.top || box.bottom > outer.bottom);
}).map((text) => text.textContent)"""


@pytest.mark.parametrize("width", [360, 760, 1400])
def test_labels_of_charts_lie_within_their_panels(page_as, prepared, width: int) -> None:
    page = page_as("bob")
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(prepared["prediction"])
    expect(page.locator("main svg text").first).to_be_attached()
    assert page.evaluate(LABELS_OUTSIDE) == []


def viewer_of(page: Page, prepared: dict[str, str], number: int = 1) -> None:
    page.goto(prepared["prediction"])
    open_viewer(page, number)


def pixel(page: Page, x: float, y: float) -> list[int]:
    """Colour of the viewer's canvas at a share of its width and height, once drawn."""
    drawn(page)
    return page.evaluate(
        """([x, y]) => {
          const canvas = document.querySelector("[data-canvas]");
          const context = canvas.getContext("2d");
          const at = [Math.round(x * canvas.width), Math.round(y * canvas.height)];
          return [...context.getImageData(...at, 1, 1).data];
        }""",
        [x, y],
    )


def expect_in_address(page: Page, *parts: str) -> None:
    """Wait till the address holds all the parts; the page writes it a moment after a change."""
    ahead = "".join(f"(?=.*[?&]{re.escape(part)}(&|$))" for part in parts)
    expect(page).to_have_url(re.compile(f"^{ahead}"))


def test_every_control_of_the_viewer(page_as, prepared, assert_accessible, screenshot) -> None:
    page = page_as("bob")
    viewer_of(page, prepared)
    slider = page.locator("[data-opacity]")

    slider.focus()
    page.keyboard.press("Home")
    expect(page.locator("[data-opacity-value]")).to_have_text("0 %")
    nothing = pixel(page, 0.5, 0.5)
    page.keyboard.press("End")
    expect(page.locator("[data-opacity-value]")).to_have_text("100 %")
    everything = pixel(page, 0.5, 0.5)
    assert nothing != everything
    expect_in_address(page, "probability=100")

    page.locator("[data-stage]").focus()
    for key, name in enumerate(["outline", "probability", "entropy", "errors", "image"], start=1):
        row = page.locator(f"[data-layer={name}]")
        before = row.locator("[data-eye]").get_attribute("aria-pressed")
        page.keyboard.press(str(key))
        expect(row.locator("[data-eye]")).not_to_have_attribute("aria-pressed", before)
    expect_in_address(page, "outline=off", "probability=off", "image=off")
    for key in "125":
        page.keyboard.press(key)
    page.keyboard.press("3")
    page.keyboard.press("4")

    page.locator("[data-layer=probability] [data-select]").click()
    page.keyboard.press("[")
    expect(page.locator("[data-opacity-value]")).to_have_text("95 %")
    page.keyboard.press("]")

    page.get_by_role("button", name="Side by side").click()
    screenshot(page, "seg-viewer-side")
    page.keyboard.press("w")
    handle = page.locator("[data-handle]")
    expect(handle).to_be_visible()
    handle.focus()
    for _ in range(5):
        page.keyboard.press("ArrowLeft")
    expect(handle).to_have_attribute("aria-valuenow", "40")
    assert_accessible(page)
    screenshot(page, "seg-viewer-swipe")

    page.keyboard.press("o")
    before = page.locator("[data-zoom-value]").inner_text()
    page.keyboard.press("+")
    page.keyboard.press("+")
    expect(page.locator("[data-zoom-value]")).not_to_have_text(before)
    expect(page).to_have_url(re.compile("zoom="))
    page.keyboard.press("0")
    expect(page.locator("[data-zoom-value]")).to_have_text(before)
    expect(page).not_to_have_url(re.compile("zoom="))
    assert_accessible(page)
    screenshot(page, "seg-viewer")


def test_the_value_under_the_pointer_and_the_crosshair(page_as, prepared, product) -> None:
    page = page_as("bob")
    viewer_of(page, prepared)
    box = page.locator("[data-stage]").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    tip = page.locator("[data-tip]")
    expect(tip).to_be_visible()
    words = tip.inner_text()
    x, y = map(int, re.search(r"x (\d+), y (\d+)", words).groups())
    batch, image = re.search(r"predictions/([0-9a-f-]+)/([0-9a-f-]+)/", page.url).groups()
    response = page.request.get(f"/predictions/{batch}/{image}/marginals.npy")
    marginals = np.load(io.BytesIO(response.body()), allow_pickle=False)
    assert abs(float(words.split()[0]) - float(marginals[y, x])) <= 0.0051

    page.mouse.move(2, 2)
    page.locator("[data-stage]").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Shift+ArrowDown")
    drawn(page)
    readout = page.locator("[data-readout]").inner_text()
    x, y = map(int, re.search(r"x (\d+), y (\d+)", readout).groups())
    shown = float(re.search(r"probability ([\d.]+)", readout)[1])
    assert abs(shown - float(marginals[y, x])) <= 0.0051
    expect_in_address(page, f"at={x}%2C{y}")


def test_a_view_can_be_linked(page_as, prepared) -> None:
    page = page_as("alice")
    viewer_of(page, prepared)
    path = page.evaluate("window.location.pathname")
    page.goto(f"{path}?mode=swipe&swipe=30&layer=entropy&entropy=40&probability=off&at=12%2C9")
    ready(page)
    expect(page.locator("[data-handle]")).to_have_attribute("aria-valuenow", "30")
    expect(page.locator("[data-opacity-value]")).to_have_text("40 %")
    expect(page.locator("[data-bar-label]")).to_have_text("Entropy (bits)")
    expect(page.locator("[data-tip]")).to_contain_text("x 12, y 9")
    next_link = page.locator("a[rel=next]")
    page.keyboard.press("1")
    expect(next_link).to_have_attribute("href", re.compile("mode=swipe.*outline=off"))
    next_link.click()
    ready(page)
    expect(page.locator("[data-layer=outline] [data-eye]")).to_have_attribute(
        "aria-pressed", "false"
    )


def test_two_panes_stand_one_above_the_other_on_a_phone(page_as, prepared) -> None:
    page = page_as("alice", width="phone")
    viewer_of(page, prepared)
    page.get_by_role("button", name="Side by side").click()
    stage = page.locator("[data-stage]")
    drawn(page)
    box = stage.bounding_box()
    assert box["height"] > box["width"]
    places = []
    for middle in (0.25 * box["height"] - 2, 0.75 * box["height"] + 2):  # of a pane; 8 px between
        page.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + middle)
        drawn(page)
        words = page.locator("[data-tip-place]").inner_text()
        places.append([int(number) for number in re.findall(r"\d+", words)])
    assert np.abs(np.subtract(*places)).max() <= 1


def test_senseless_addresses_show_the_usual_view(page_as, prepared) -> None:
    page = page_as("alice")
    viewer_of(page, prepared)
    path = page.evaluate("window.location.pathname")
    page.goto(f"{path}?mode=x&swipe=NaN&zoom=-4&centre=a,b&at=99999,1&probability=900&layer=z")
    ready(page)
    expect(page.locator("[data-opacity-value]")).to_have_text("100 %")
    expect(page.locator("[data-tip]")).to_be_hidden()


def test_downloads(page_as, prepared) -> None:
    page = page_as("alice")
    viewer_of(page, prepared)
    page.locator("summary", has_text="Download").click()
    with page.expect_download() as taken:
        page.get_by_role("link", name="Mask (PNG)").click()
    assert Image.open(taken.value.path()).mode == "L"
    page.goto(prepared["prediction"])
    with page.expect_download() as taken:
        page.get_by_role("link", name="Download all (ZIP)").click()
    with zipfile.ZipFile(taken.value.path()) as archive:
        assert archive.testzip() is None
        assert len(archive.namelist()) == 43


def test_corrections_by_keyboard_can_be_undone(page_as, prepared) -> None:
    page = page_as("bob")
    viewer_of(page, prepared, number=2)
    page.keyboard.press("c")
    expect(page.locator("[data-painter]")).to_be_visible()
    page.locator("[data-stage]").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("]")
    page.locator("[data-stage]").focus()
    page.keyboard.press("Space")
    save = page.get_by_role("button", name="Save as new mask")
    expect(save).to_be_enabled()
    page.keyboard.press("z")
    expect(save).to_be_disabled()
    page.keyboard.press("y")
    expect(save).to_be_enabled()
    expect(page.locator("[data-scale]")).to_be_hidden()  # it measures no layer that is shown
    page.get_by_role("button", name="Discard").click()
    expect(page.locator("[data-painter]")).to_be_hidden()
    expect(page.locator("#toasts")).to_contain_text("Corrections discarded.")
    page.keyboard.press("c")
    page.keyboard.press("z")  # what was discarded by a slip comes back
    page.keyboard.press("z")
    expect(save).to_be_disabled()
    page.keyboard.press("c")
    expect(page.locator("[data-scale]")).to_be_visible()


def test_a_four_megapixel_image_is_interactive_within_two_seconds(
    page_as, prepared, tmp_path
) -> None:
    """From the click to the first picture, with everything that the viewer needs."""
    (large,) = generate_leaf_images(1, rng=np.random.default_rng(1), shape=(300, 450))
    picture = Image.fromarray(large.image).resize((2464, 1648))
    path = tmp_path / "large.jpg"
    picture.save(path, quality=92)
    page = page_as("bob")
    make_set(page, "Large")
    upload(page, path)
    predict(page)
    open_viewer(page)  # the screen-sized copy is made at the first look
    page.reload()
    ready(page)
    seconds = page.evaluate("performance.now()") / 1000
    print(f"viewer of 4.06 megapixels ready {seconds:.2f} s after the click")
    assert seconds < 2.0 * busyness()


def test_an_upload_by_drag_and_drop_and_one_that_fails(page_as, tmp_path) -> None:
    page = page_as("bob")
    make_set(page, "Dropped")
    page.evaluate(
        """async () => {
          const canvas = new OffscreenCanvas(40, 30);
          canvas.getContext("2d").fillRect(0, 0, 9, 9);
          const blob = await canvas.convertToBlob({ type: "image/png" });
          const transfer = new DataTransfer();
          transfer.items.add(new File([blob], "dropped.png", { type: "image/png" }));
          transfer.items.add(new File(["hello"], "notes.txt"));
          document.querySelector(".drop-zone").dispatchEvent(
            new DragEvent("drop", { dataTransfer: transfer, bubbles: true, cancelable: true }));
        }"""
    )
    expect(page.locator("[data-uploads-note]")).to_have_text("1 saved, 1 not saved")
    expect(page.locator(".uploads__row").first).to_contain_text("notes.txt")


def test_an_upload_shows_in_the_page_and_leaves_results_and_focus(
    page_as, prepared, tmp_path
) -> None:
    page = page_as("bob")
    make_set(page, "Filled")
    page.locator("#upload-files").focus()
    picture = encoded(np.zeros((9, 9, 3), dtype=np.uint8), "PNG")
    for count in (1, 2):
        path = tmp_path / f"{count}.png"
        path.write_bytes(picture)
        upload(page, path)
        expect(page.locator("#set-files .gallery__item")).to_have_count(count)
        expect(page.locator(".page-header__facts")).to_contain_text(f"{count} image")
        expect(page.locator(".uploads__row")).to_have_count(count)
        expect(page.locator("#upload-files")).to_be_focused()
    expect(page.get_by_role("link", name="Predict masks")).to_be_visible()
    page.get_by_role("button", name="Close this list").click()
    expect(page.locator("[data-uploads]")).to_be_hidden()
    expect(page.locator("#upload-files")).to_be_focused()

    page.locator(".gallery__menu summary").first.click()
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Replace…").first.click()
    path.write_bytes(encoded(np.ones((9, 9, 3), dtype=np.uint8), "PNG"))
    chooser.value.set_files(path)
    expect(page.locator(".uploads__row")).to_contain_text("Replaced")


def test_the_server_goes_away_during_an_upload(page_as, tmp_path) -> None:
    page = page_as("bob")
    make_set(page, "Broken off")
    page.route("**/files/", lambda route: route.abort())
    path = tmp_path / "a.png"
    path.write_bytes(encoded(np.zeros((9, 9, 3), dtype=np.uint8), "PNG"))
    upload(page, path)
    expect(page.locator(".uploads__row")).to_contain_text("stopped before its end")


def test_foreign_addresses_answer_like_missing_ones(page_as, prepared) -> None:
    page = page_as("mallory")
    for address in prepared.values():
        assert page.goto(address).status == 404
