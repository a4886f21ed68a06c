"""The proxies of deploy/, running: what they log of somebody who opens a personal link."""

import http.server
import os
import shutil
import ssl
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.live.product import free_ports
from tests.patience import PATIENCE_SECONDS, wait_for
from tests.webapp.test_deploy import nginx_files
from webapp.instance import BASE_DIR

SECRET = "J0bXx1bU-gWkqv3sE_4fZk8yq5Yw2m1oPl9nRt7uVx0"
LINK = f"/q/7.kT3-x_9aBcDe~1wABcd~{SECRET}/"
STOP = f"/q/stop/7~{SECRET}/"


class Web(http.server.BaseHTTPRequestHandler):
    """A web server that leads back to the link, as ours does for a browser without cookies."""

    def do_GET(self) -> None:
        self.send_response(302 if "?" not in self.path else 200)
        self.send_header("Location", f"{LINK}?cookies=1")
        self.send_header("Set-Cookie", f"link-x={LINK}")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *words: object) -> None:
        """Say nothing."""


@contextmanager
def running(command: list[str], log: Path, **environment: str) -> Iterator[None]:
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=output, env=os.environ | environment
        )
    try:
        yield
    finally:
        process.terminate()
        process.wait(20)


@contextmanager
def nginx(folder: Path, web: int) -> Iterator[tuple[int, int]]:
    plain, tls = free_ports(2)
    whole = nginx_files(folder, web=web, http=plain, https=tls)
    program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if program is None:
        pytest.skip("needs nginx, which is absent")
    command = [program, "-p", str(folder), "-c", str(whole)]
    with running(command, folder / "output.log"):
        yield plain, tls


@contextmanager
def caddy(folder: Path, web: int) -> Iterator[tuple[int, int]]:
    program = shutil.which("caddy")
    if program is None:
        pytest.skip("needs caddy, which is absent")
    plain, tls = free_ports(2)
    text = (BASE_DIR / "deploy" / "proxy" / "Caddyfile").read_text(encoding="utf-8")
    local = (
        f"{{\n\tlocal_certs\n\tskip_install_trust\n\tadmin off\n"
        f"\thttp_port {plain}\n\thttps_port {tls}\n"
    )
    config = folder / "Caddyfile"
    config.write_text(text.replace("{\n", local, 1), encoding="utf-8")
    command = [program, "run", "--config", str(config), "--adapter", "caddyfile"]
    own = {"DOMAIN": "localhost", "WEB": f"127.0.0.1:{web}", "HOME": str(folder)}
    own |= {"XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    with running(command, folder / "output.log", **own):
        yield plain, tls


class Visitor:
    """Somebody who opens addresses and follows nothing."""

    def __init__(self) -> None:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        self._opener = urllib.request.build_opener(
            urllib.request.HTTPSHandler(context=context), NoRedirect()
        )

    def get(self, address: str, referer: str) -> int:
        """Return the status, as soon as somebody answers."""
        asked = urllib.request.Request(address, headers={"Referer": referer})
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                return self._opener.open(asked, timeout=20).status
            except urllib.error.HTTPError as error:
                return error.code
            except OSError:
                assert time.monotonic() < deadline, f"{address} does not answer"
                time.sleep(0.2)


def logs_in(folder: Path) -> str:
    return "".join(path.read_text() for path in folder.glob("*.log"))


class NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args: object) -> None:
        return None


@pytest.mark.parametrize("proxy", [nginx, caddy])
def test_a_proxy_logs_no_personal_link(proxy: Callable, tmp_path: Path) -> None:
    web = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Web)
    thread = threading.Thread(target=web.serve_forever)
    thread.start()
    with proxy(tmp_path, web.server_address[1]) as (plain, tls):
        visitor = Visitor()
        secure, referer = f"https://localhost:{tls}", f"https://localhost:{tls}{LINK}"
        statuses = [
            visitor.get(address, referer)
            for address in (
                f"{secure}{LINK}",
                f"{secure}{LINK.replace('~', '%7E')}",
                f"{secure}{LINK[:-4]}",
                f"{secure}{LINK}?cookies=1",
                f"{secure}{STOP}",
                f"http://localhost:{plain}{LINK}",
                f"{secure}/static/x.css?v=1",
            )
        ]
        assert statuses[:2] == [302, 302]
        assert statuses[5] in (301, 308)
        web.shutdown()
        web.server_close()
        thread.join()
        assert visitor.get(f"{secure}{LINK}", referer) == 502
        wait_for(lambda: "502" in logs_in(tmp_path))  # the last line
    logs = logs_in(tmp_path)
    assert "/q/[link]" in logs
    assert "/q/stop/[link]" in logs
    assert "/static/x.css" in logs
    assert SECRET[:-5] not in logs
