"""What one decision by keyboard costs until the page shows it, at 2,500 students in Chromium.

    python -m benchmarks product housing_move [--moves N]

Serves the rooms of ``bench_housing`` to a browser from a process of its own, opens a room and
presses L, A and E. Prints milliseconds by the clock from the key: until the answer is there, until
the page is painted with it (300 is the aim), and the processor milliseconds of the server and of
the page's own thread, which other programs on the machine disturb less.
"""

import argparse
import os
import signal
import time
from pathlib import Path
from socketserver import ThreadingMixIn
from tempfile import TemporaryDirectory
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from benchmarks.common.reporting import print_machine, print_table

TARGET_MS = 300
QUIET_MS = 2_500  # after a key: by then the page has changed and is still
KEYS = "lae"
# A timer that begins in the frame of a change ends when that frame was drawn.
WATCH = """() => {
  document.addEventListener("keydown", () => { window.pressed = performance.now(); }, true);
  document.body.addEventListener("htmx:xhr:loadend", () => {
    window.answered = performance.now();
  });
  document.body.addEventListener("htmx:afterSettle", () => requestAnimationFrame(
    () => setTimeout(() => { window.painted = performance.now(); })));
}"""


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class _Quiet(WSGIRequestHandler):
    disable_nagle_algorithm = True  # as gunicorn does; else the body waits 40 ms for the head

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: a line a request would hide the table."""


def main() -> None:
    """Fill, press, print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--moves", type=int, default=9)
    options = parser.parse_args()
    with TemporaryDirectory(prefix="bh-move-") as folder:
        os.environ |= {
            "BETHE_HALL_INSTANCE": folder,
            "DJANGO_SETTINGS_MODULE": "webapp.settings",
            "DJANGO_ALLOW_ASYNC_UNSAFE": "1",  # Playwright's loop runs in this thread
            "SECURE_COOKIES": "0",
            "ALLOWED_HOSTS": "testserver,127.0.0.1",
        }
        import django
        from django.core.management import call_command

        django.setup()
        call_command("migrate", verbosity=0)
        call_command("collectstatic", interactive=False, verbosity=0)
        print_machine()
        rows = measure(Path(folder), options.moves)
    header = ["key", "answer ms", "shown ms", f"within {TARGET_MS}", "server CPU", "page CPU"]
    print_table("A decision until it shows, by the clock, 2,500 students", header, rows)


def measure(folder: Path, moves: int) -> list[list[str]]:
    """Serve, decide, and return a row a decision."""
    from django.test import Client
    from playwright.sync_api import sync_playwright

    from benchmarks.product.housing import fill
    from tests.browser.conftest import CHROMIUM_FLAGS, find_chromium
    from webapp.collector import freeze_loaded_objects

    keys = fill(folder)
    freeze_loaded_objects()
    client = Client()
    client.force_login(keys["user"], backend="django.contrib.auth.backends.ModelBackend")
    process, url = _serve()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=CHROMIUM_FLAGS)
        context = browser.new_context(base_url=url, reduced_motion="reduce")
        context.add_cookies(
            [{"name": n, "value": c.value, "url": url} for n, c in client.cookies.items()]
        )
        page = context.new_page()
        page.goto(f"/placements/{keys['placement'].pk}/?hall=Alder", timeout=120_000)
        page.keyboard.press("j")
        page.keyboard.press("Enter")
        page.locator("#drawer [data-drawer]").wait_for(timeout=120_000)
        page.evaluate(WATCH)
        session = context.new_cdp_session(page)
        session.send("Performance.enable", {"timeDomain": "threadTicks"})
        rows = [_press(page, session, process, KEYS[k % len(KEYS)]) for k in range(moves)]
        browser.close()
    os.kill(process, signal.SIGTERM)
    os.waitpid(process, 0)
    return rows


def _serve() -> tuple[int, str]:
    """Serve from a process of its own, as the product does; return its id and its address."""
    from django.core.wsgi import get_wsgi_application
    from django.db import connections

    connections.close_all()  # a connection is not for two processes
    application = get_wsgi_application()
    server = make_server("127.0.0.1", 0, application, _Server, _Quiet)
    process = os.fork()
    if process == 0:
        server.serve_forever()
    url = f"http://127.0.0.1:{server.server_port}"
    server.socket.close()
    return process, url


def _press(page: Any, session: Any, process: int, key: str) -> list[str]:
    page.wait_for_timeout(500)
    before, begun = _task_seconds(session), _cpu_seconds(process)
    page.keyboard.press(key)
    page.wait_for_timeout(QUIET_MS)
    server = 1000 * (_cpu_seconds(process) - begun)
    script = 1000 * (_task_seconds(session) - before)
    answered, shown = page.evaluate("[answered - pressed, painted - pressed]")
    verdict = "yes" if shown <= TARGET_MS else "NO"
    return [key, f"{answered:.0f}", f"{shown:.0f}", verdict, f"{server:.0f}", f"{script:.0f}"]


def _cpu_seconds(process: int) -> float:
    return time.clock_gettime(~process << 3 | 2)  # the kernel's clock of another process


def _task_seconds(session: Any) -> float:
    found = session.send("Performance.getMetrics")["metrics"]
    return next(float(row["value"]) for row in found if row["name"] == "TaskDuration")


if __name__ == "__main__":
    main()
