"""A person's way through the product in Chromium: acts of hand and seconds of waiting, counted."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from playwright.sync_api import Locator, Page, sync_playwright

from benchmarks.common.reporting import print_machine, print_table
from tests.live.product import new_product


@dataclass
class Step:
    """What one step took: acts of hand, and seconds of waiting."""

    name: str
    clicks: int = 0
    keys: int = 0
    seconds: float = 0.0


@dataclass
class Walk:
    """A browser page that counts; ``look`` is called at the end of every step with its name."""

    page: Page
    look: Callable[[Page, str], None] = lambda page, name: None
    steps: list[Step] = field(default_factory=list)
    facts: dict[str, str] = field(default_factory=dict)

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Begin a step of the walk."""
        self.steps.append(Step(name))
        yield
        self.look(self.page, name)

    def click(self, what: Locator, until: Locator | None = None, timeout: int = 30_000) -> None:
        """Click, and wait for what shows that it worked."""
        self.steps[-1].clicks += 1
        begun = time.perf_counter()
        self.page.wait_for_load_state()  # a button is seen before its script has come
        what.click()
        if until is not None:
            until.first.wait_for(timeout=timeout)
        self.steps[-1].seconds += time.perf_counter() - begun

    def press(self, key: str, until: Locator | None = None) -> None:
        """Press a key, and wait for what shows that it worked."""
        self.steps[-1].keys += 1
        begun = time.perf_counter()
        self.page.keyboard.press(key)
        if until is not None:
            until.first.wait_for(timeout=30_000)
        self.steps[-1].seconds += time.perf_counter() - begun

    def upload(self, file: Path, until: Locator, field_: str = "#file") -> None:
        """Choose a file and wait until it was read."""
        self.steps[-1].clicks += 1
        begun = time.perf_counter()
        self.page.set_input_files(field_, file)
        until.first.wait_for(timeout=60_000)
        self.steps[-1].seconds += time.perf_counter() - begun

    def type(self, what: Locator, text: str) -> None:
        """Fill a field; counted as one act."""
        self.steps[-1].keys += 1
        what.fill(text)

    def button(self, name: str) -> Locator:
        """Return the visible button of a name."""
        return self.page.get_by_role("button", name=name, exact=True)


def report(walk: Walk, title: str) -> None:
    """Print clicks, keys and waiting by step, and what the pages said."""
    rows = [[s.name, str(s.clicks), str(s.keys), f"{s.seconds:.1f}"] for s in walk.steps]
    total = Step(
        "in all",
        sum(s.clicks for s in walk.steps),
        sum(s.keys for s in walk.steps),
        sum(s.seconds for s in walk.steps),
    )
    rows.append([total.name, str(total.clicks), str(total.keys), f"{total.seconds:.1f}"])
    header = ["step", "clicks", "keys and fields", "s waited"]
    print_table(title, header, rows)
    for name, fact in walk.facts.items():
        print(f"{name}: {fact}")


def walk_in_chromium(
    folder: Path,
    title: str,
    person: str,
    make: Callable[[Page, Callable[[Page, str], None]], Walk],
    go: Callable[[Walk], None],
    screens: Path | None,
) -> None:
    """Start the product in a folder of its own, walk through it as a person, print, and stop it.

    Parameters
    ----------
    make : the walk of a page and of what is to be done at the end of every step
    screens : where pictures of every step are kept; None for none
    """
    product = new_product(folder, DJANGO_SETTINGS_MODULE="tests.webapp.live_settings")
    product.start()
    try:
        with sync_playwright() as playwright:
            _walk(playwright, product.url, title, person, make, go, screens)
    finally:
        product.stop()


def _walk(playwright, url, title, person, make, go, screens) -> None:
    from tests.browser.conftest import CHROMIUM_FLAGS, find_chromium, sign_in

    browser = playwright.chromium.launch(executable_path=find_chromium(), args=CHROMIUM_FLAGS)
    page = browser.new_page(
        base_url=url, viewport={"width": 1400, "height": 900}, reduced_motion="reduce"
    )
    page.set_default_timeout(30_000)
    sign_in(page, person)
    look = (lambda page, name: take_pictures(page, screens, name)) if screens else Walk.look
    walk = make(page, look)
    print_machine()
    try:
        go(walk)
    except Exception:
        if screens:
            take_pictures(page, screens, "stuck")
        raise
    finally:
        report(walk, title)
        browser.close()


def take_pictures(page: Page, folder: Path, name: str) -> None:
    """Keep the page at 1,400 and 360 pixels, light and dark."""
    folder.mkdir(parents=True, exist_ok=True)
    for width, height in ((1400, 900), (360, 780)):
        page.set_viewport_size({"width": width, "height": height})
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            page.wait_for_timeout(80)
            page.screenshot(path=folder / f"{name.replace(' ', '-')}-{width}-{scheme}.png")
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    page.set_viewport_size({"width": 1400, "height": 900})
