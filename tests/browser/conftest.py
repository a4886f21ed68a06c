"""Fixtures that drive Chromium against the running product.

``page_as("bob")`` opens a page as a person of ``product``; ``assert_accessible(page)`` runs axe.
With KEEP_SCREENS=1, ``screenshot(page, "name")`` keeps pictures in ``results/screens`` at phone and
desk width, light and dark. Every request that leaves the product's origin, every script error and
every breach of the Content-Security-Policy fails the test in which it happens.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import (
    Browser,
    BrowserContext,
    Error,
    Page,
    Request,
    expect,
    sync_playwright,
)

from tests.live.product import PASSWORD, ROOT, Product, new_product

CHROMIUM_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-dev-shm-usage",
    "--force-color-profile=srgb",
]
PATIENCE_MS = 60_000  # for every wait: the machine that tests may be busy
# What the browser says when a page goes away under a script: jobs' pages do when the job ends.
LOADED_ANEW = ("context was destroyed", "axe is not defined", "navigat")
WIDTHS = {"phone": (360, 780), "desk": (1400, 900)}
SCREENS = ROOT / "results" / "screens"
KEEPS_SCREENS = os.environ.get("KEEP_SCREENS") == "1"  # no test reads them
# Dark pages differ from light ones in colours alone; these rules of axe look at colours.
COLOUR_RULES = ("color-contrast", "link-in-text-block")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything in this folder drives a browser."""
    for item in items:
        if Path(str(item.fspath)).parent.name == "browser":
            item.add_marker(pytest.mark.browser)


def find_chromium() -> str | None:
    """Return the path of Chromium; CHROMIUM names another one."""
    named = os.environ.get("CHROMIUM")
    return named or shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Headless Chromium."""
    path = find_chromium()
    if path is None:
        pytest.skip("needs Chromium, which is absent")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=path, headless=True, args=CHROMIUM_FLAGS
        )
        expect.set_options(timeout=PATIENCE_MS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """The product, once for all browser tests: alice, bob, carol; mallory belongs elsewhere."""
    running = new_product(
        tmp_path_factory.mktemp("product"), DJANGO_SETTINGS_MODULE="tests.webapp.live_settings"
    )
    running.start()
    yield running
    running.stop()


_SESSION = """
from django.test import Client
from webapp.accounts.models import User
client = Client()
person = User.objects.get(username="{name}")
client.force_login(person, backend="django.contrib.auth.backends.ModelBackend")
print(client.cookies["sessionid"].value)
"""


class Misbehaviour:
    """What no page may do: leave the origin, break the policy, throw."""

    def __init__(self, origin: str) -> None:
        self._origin = origin
        self.found: list[str] = []

    def watch(self, context: BrowserContext) -> None:
        """Listen to everything that happens in a browser context."""
        context.on("request", self._on_request)
        context.on("weberror", lambda error: self.found.append(f"script error: {error.error}"))
        context.on("console", self._on_console)

    def _on_request(self, request: Request) -> None:
        if not request.url.startswith((self._origin + "/", "data:", "blob:")):
            self.found.append(f"request leaves the origin: {request.url}")

    def _on_console(self, message: object) -> None:
        text = message.text
        if "Content Security Policy" in text or "Content-Security-Policy" in text:
            self.found.append(f"policy: {text}")


@pytest.fixture
def page_as(
    browser: Browser, product: Product, request: pytest.FixtureRequest
) -> Iterator[Callable[..., Page]]:
    """A function ``page_as("bob", width="desk", dark=False)`` to Home with a session of bob's.

    ``page_as(None)`` is a visitor who has not signed in. Downloads are accepted. The form of the
    sign-in costs a page and a slow hash of the password: those who test it fill it in.
    """
    misbehaviour = Misbehaviour(product.url)
    contexts: list[BrowserContext] = []

    def open_page(name: str | None = "bob", *, width: str = "desk", dark: bool = False) -> Page:
        columns, lines = WIDTHS[width]
        context = browser.new_context(
            base_url=product.url,
            viewport={"width": columns, "height": lines},
            color_scheme="dark" if dark else "light",
            reduced_motion="reduce",
            has_touch=width == "phone",
            accept_downloads=True,
        )
        context.set_default_timeout(PATIENCE_MS)
        misbehaviour.watch(context)
        contexts.append(context)
        if name is not None:
            session = product.run(_SESSION.format(name=name)).splitlines()[-1]
            context.add_cookies([{"name": "sessionid", "value": session, "url": product.url}])
        page = context.new_page()
        if name is not None:
            page.goto("/")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not misbehaviour.found, "\n".join(misbehaviour.found)


def sign_in(page: Page, name: str) -> None:
    """Sign in through the form."""
    page.goto("/accounts/sign-in/")
    page.get_by_label("Username").fill(name)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(lambda url: "/sign-in/" not in url)


@pytest.fixture
def screenshot() -> Callable[..., None]:
    """A function that keeps four pictures of the page: phone and desk width, light and dark."""

    def take(page: Page, name: str, *, full: bool = True) -> None:
        if not KEEPS_SCREENS:
            return
        SCREENS.mkdir(parents=True, exist_ok=True)
        before = page.viewport_size
        for width, (columns, lines) in WIDTHS.items():
            page.set_viewport_size({"width": columns, "height": lines})
            for scheme in ("light", "dark"):
                page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
                page.wait_for_timeout(80)
                page.screenshot(path=SCREENS / f"{name}-{width}-{scheme}.png", full_page=full)
        page.emulate_media(color_scheme="light", reduced_motion="reduce")
        page.set_viewport_size(before)

    return take


@pytest.fixture
def assert_accessible() -> Callable[..., None]:
    """A function that fails when axe finds anything, or when the page scrolls sideways at 360."""

    def check(page: Page) -> None:
        found = []
        before = page.viewport_size
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            violations = run_axe(page, scheme)
            if violations:  # of a part that was just exchanged, perhaps, half in the old colours
                page.wait_for_timeout(500)
                violations = run_axe(page, scheme)
            for violation in violations:
                nodes = "; ".join(
                    f"{node['html'][:160]} {node['failureSummary']}"
                    for node in violation["nodes"][:4]
                )
                found.append(f"{scheme} {violation['id']}: {violation['help']}: {nodes}")
        page.emulate_media(color_scheme="light", reduced_motion="reduce")
        page.set_viewport_size({"width": 360, "height": 780})
        width = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        overflow = standing_still(page, lambda: page.evaluate(width))
        page.set_viewport_size(before)
        if overflow > 0:
            found.append(f"scrolls sideways by {overflow} px at 360 px")
        assert not found, f"{page.url}:\n" + "\n".join(found)

    return check


def run_axe(page: Page, scheme: str = "light") -> list[dict[str, Any]]:
    """Return what axe finds on the page: by all rules in light colours, by colour in dark ones."""
    options: dict[str, Any] = {"resultTypes": ["violations"]}
    if scheme == "dark":
        options["runOnly"] = {"type": "rule", "values": list(COLOUR_RULES)}

    def look() -> list[dict[str, Any]]:
        page.evaluate(
            "() => new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))"
        )
        page.wait_for_timeout(150)  # the machine may be slow to paint
        if not page.evaluate("() => 'axe' in window"):
            page.evaluate(Axe().axe_script)
        return page.evaluate("options => axe.run(options).then(r => r.violations)", options)

    return standing_still(page, look)


def standing_still(page: Page, look: Callable[[], Any]) -> Any:
    """Return the answer of ``look``; repeat it if the page loads itself again meanwhile."""
    for _ in range(5):
        try:
            return look()
        except Error as error:
            if not any(sign in error.message for sign in LOADED_ANEW):
                raise
            page.wait_for_load_state()
    raise AssertionError(f"{page.url} never stood still")
