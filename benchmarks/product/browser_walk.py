"""A person's way through the product in Chromium: acts of hand and seconds of waiting, counted."""

import json
import re
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from playwright.sync_api import Error as PlaywrightError
from playwright.sync_api import Locator, Page, sync_playwright

from benchmarks.common.reporting import machine_facts, print_machine, print_table
from tests.live.product import new_product

TARGET_MS = 200  # server time of a page
_KEY = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}")
_NUMBER = re.compile(r"/\d+/")


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


def report_times(times: dict[str, list[float]]) -> None:
    """Print the processor milliseconds of every page, the slowest first."""
    rows = [
        [page, str(len(found)), f"{statistics.median(found):.0f}", f"{max(found):.0f}"]
        for page, found in times.items()
    ]
    rows.sort(key=lambda row: -float(row[2]))
    header = ["page", "asked", "median ms", "most ms"]
    print_table("Processor milliseconds of the server", header, rows)


def store(walk: Walk, times: dict[str, list[float]], path: Path) -> None:
    """Write clicks, seconds and server times of a walk into a file."""
    result = {
        **machine_facts(["django", "gunicorn"]),
        "measured": datetime.now(UTC).date().isoformat(),
        "steps": [
            {"name": s.name, "clicks": s.clicks, "keys": s.keys, "seconds": round(s.seconds, 1)}
            for s in walk.steps
        ],
        "facts": walk.facts,
        "processor_ms": {
            page: {
                "asked": len(found),
                "median": round(statistics.median(found), 1),
                "most": round(max(found), 1),
            }
            for page, found in sorted(times.items())
        },
    }
    path.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def walk_in_chromium(
    folder: Path,
    title: str,
    person: str,
    make: Callable[[Page, Callable[[Page, str], None]], Walk],
    go: Callable[[Walk], None],
    screens: Path | None,
    stored: Path | None = None,
) -> None:
    """Start the product in a folder of its own, walk through it as a person, print, and stop it.

    Parameters
    ----------
    make : the walk of a page and of what is to be done at the end of every step
    screens : where pictures of every step are kept; None for none
    stored : file that receives the result; None for none
    """
    product = new_product(folder, DJANGO_SETTINGS_MODULE="tests.webapp.live_settings")
    product.start()
    try:
        with sync_playwright() as playwright:
            walk = _walk(playwright, product.url, title, person, make, go, screens)
    finally:
        product.stop()
        times = server_times(folder / "log" / "access.log")
        report_times(times)
    if stored is not None:
        store(walk, times, stored)


def _walk(playwright, url, title, person, make, go, screens) -> Walk:
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
    return walk


def _screenshot(page: Page, path: Path) -> None:
    """Keep a picture of the page; a busy machine fails to take it now and then."""
    for is_last in (False, False, True):
        try:
            page.screenshot(path=path)
            return
        except PlaywrightError:
            if is_last:
                raise


def server_times(log: Path) -> dict[str, list[float]]:
    """Return the processor milliseconds of every answer by page, from the log of requests.

    Keys and numbers in an address are replaced, so that a page is one entry.
    """
    found: dict[str, list[float]] = {}
    for line in log.read_text(encoding="utf-8").splitlines():
        fields = json.loads(line)
        if fields.get("event") != "request" or fields["path"].startswith("/static/"):
            continue
        page = _KEY.sub("…", fields["path"])
        name = f"{fields['method']} {_NUMBER.sub('/…/', page)}"
        found.setdefault(name, []).append(fields["processor_milliseconds"])
    return found


def take_pictures(page: Page, folder: Path, name: str) -> None:
    """Keep the page at 1,400 and 390 pixels, light and dark."""
    folder.mkdir(parents=True, exist_ok=True)
    for width, height in ((1400, 900), (390, 844)):
        page.set_viewport_size({"width": width, "height": height})
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            page.wait_for_timeout(80)
            _screenshot(page, folder / f"{name.replace(' ', '-')}-{width}-{scheme}.png")
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    page.set_viewport_size({"width": 1400, "height": 900})
