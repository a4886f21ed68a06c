"""What people do on the pages of image sets, models and predictions."""

import re
from pathlib import Path

from playwright.sync_api import Page, expect


def make_set(page: Page, name: str) -> None:
    """Make an empty image set and stay on its page."""
    page.goto("/image-sets/new/")
    page.get_by_label("Name").fill(name)
    page.get_by_label("What the masks mark").fill("thing")
    page.get_by_role("button", name="Make the set").click()
    page.wait_for_url(re.compile(r"/image-sets/[0-9a-f-]{36}/"))


def upload(page: Page, *paths: Path, seconds: float = 240) -> None:
    """Choose files on the page of a set, and wait till each is settled."""
    page.locator("#upload-files").set_input_files([str(path) for path in paths])
    expect(page.locator("[data-uploads-close]")).to_be_visible(timeout=1000 * seconds)


def learn(page: Page) -> None:
    """From the page of a set, learn for a minute at low detail; stay on the model's page."""
    page.get_by_role("link", name="Learn", exact=True).click()
    page.get_by_label("Stop at the latest after").select_option("60")
    page.get_by_text("More settings").click()
    page.get_by_label("Detail").select_option("100")
    page.get_by_role("button", name="Learn", exact=True).click()
    page.wait_for_url(re.compile(r"/image-models/[0-9a-f-]{36}/"))


def wait_till_learned(page: Page) -> None:
    """Wait on the page of a model that learns."""
    ended = re.compile("Certified|Stopped early|Learned")
    expect(page.locator("#segmenter-badge")).to_have_text(ended, timeout=240_000)


def predict(page: Page, *, seconds: float = 240) -> None:
    """From the page of a set, predict it with the newest model, and wait till that is done."""
    page.get_by_role("link", name="Predict masks").click()
    page.get_by_role("button", name="Predict", exact=True).click()
    page.wait_for_url(re.compile(r"/predictions/[0-9a-f-]{36}/"))
    expect(page.locator(".badge", has_text="Done").first).to_be_visible(timeout=1000 * seconds)


def open_viewer(page: Page, number: int = 0) -> None:
    """From the page of a prediction, open one of its images."""
    page.locator("tr[data-row] a[data-open]").nth(number).click()
    ready(page)


def drawn(page: Page) -> None:
    """Wait till what the page has changed so far is on the canvas: it draws at the next frame."""
    page.evaluate(
        "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
    )


def ready(page: Page) -> None:
    """Wait till the viewer shows its first picture."""
    page.wait_for_selector("[data-viewer][data-ready=true]", state="attached")
