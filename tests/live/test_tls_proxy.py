"""Behind a real proxy with TLS: whose address a visitor has, and what browsers are told."""

import json
import os
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.live.product import ROOT, new_product

NETWORK = "10.78.0"
CADDYFILE = ROOT / "deploy" / "proxy" / "Caddyfile"
# A certificate of its own instead of one from a public authority, and nothing outside its folder.
LOCAL = "{\n\tlocal_certs\n\tskip_install_trust\n\tadmin off\n"


@dataclass
class Hall:
    """The proxy's namespace and those of two visitors."""

    visitors: tuple[str, str]
    log: Path

    def ask(self, visitor: int, path: str, *options: str) -> str:
        """Ask over https as one visitor; return headers and body."""
        done = subprocess.run(
            ["ip", "netns", "exec", self.visitors[visitor], "curl", "--silent", "--include",
             "--insecure", "--max-time", "60", "--resolve", f"hall.example:443:{NETWORK}.1",
             "--resolve", f"hall.example:80:{NETWORK}.1", *options, path],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        return done.stdout

    def addresses(self) -> list[str]:
        """From which addresses requests came, as the web server understood it."""
        lines = [json.loads(line) for line in self.log.read_text().splitlines()]
        return [line["address"] for line in lines if line["path"] == "/accounts/sign-in/"]


@pytest.fixture(scope="module")
def hall(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hall]:
    for program in ("caddy", "ip", "curl"):
        if shutil.which(program) is None:
            pytest.skip(f"needs {program}, which is absent")
    word = secrets.token_hex(2)
    names = [f"px{word}", f"va{word}", f"vb{word}"]
    if os.geteuid() or subprocess.run(["ip", "netns", "add", names[0]], check=False).returncode:
        pytest.skip("needs the right to make network namespaces")
    folder = tmp_path_factory.mktemp("tls")
    processes: list[subprocess.Popen[bytes]] = []
    try:
        _connect(names)
        product = new_product(
            folder / "hall",
            SECURE_COOKIES="1",
            ALLOWED_HOSTS="hall.example",
            TRUSTED_PROXIES="127.0.0.1",
            LINES_LOG=str(folder / "lines"),
            WEB_WORKERS="1",
        )
        config = folder / "Caddyfile"
        text = CADDYFILE.read_text(encoding="utf-8").replace("{\n", LOCAL, 1)
        config.write_text(text, encoding="utf-8")
        own = {"DOMAIN": "hall.example", "WEB": "127.0.0.1:8000", "HOME": str(folder)}
        for command in (
            [sys.executable, "-m", "webapp.supervisor.roles", "web", "--bind", "127.0.0.1:8000"],
            ["caddy", "run", "--config", str(config), "--adapter", "caddyfile"],
        ):
            with (folder / f"{Path(command[0]).name}.log").open("wb") as log:
                processes.append(
                    subprocess.Popen(
                        ["ip", "netns", "exec", names[0], *command],
                        env=product.environment | own,
                        cwd=ROOT,
                        stdout=log,
                        stderr=log,
                    )
                )
        made = Hall((names[1], names[2]), folder / "lines")
        deadline = time.monotonic() + 240  # of a busy machine
        while "200" not in made.ask(0, "https://hall.example/healthz").partition("\n")[0]:
            assert time.monotonic() < deadline, "the proxy does not answer"
            time.sleep(0.3)
        yield made
    finally:
        for process in processes:
            process.terminate()
            process.wait(20)
        for name in names:
            subprocess.run(["ip", "netns", "del", name], check=False, stderr=subprocess.DEVNULL)


def _connect(names: list[str]) -> None:
    """Give each visitor a wire into the proxy's namespace, where a bridge joins them."""
    proxy, *visitors = names
    words = [["ip", "netns", "add", name] for name in visitors]
    inside = ["ip", "-n", proxy]
    words += [[*inside, "link", "add", "br0", "type", "bridge"],
              [*inside, "addr", "add", f"{NETWORK}.1/24", "dev", "br0"],
              [*inside, "link", "set", "br0", "up"],
              [*inside, "link", "set", "lo", "up"]]  # fmt: skip
    for last, name in enumerate(visitors, start=11):
        words += [
            [*inside, "link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", name],
            [*inside, "link", "set", name, "master", "br0"],
            [*inside, "link", "set", name, "up"],
            ["ip", "-n", name, "addr", "add", f"{NETWORK}.{last}/24", "dev", "eth0"],
            ["ip", "-n", name, "link", "set", "eth0", "up"],
        ]
    for command in words:
        subprocess.run(command, check=True)


@pytest.mark.slow
def test_each_visitor_has_an_address_of_their_own_and_cannot_choose_it(hall: Hall) -> None:
    hall.ask(0, "https://hall.example/accounts/sign-in/")
    hall.ask(1, "https://hall.example/accounts/sign-in/")
    hall.ask(1, "https://hall.example/accounts/sign-in/", "--header", "X-Forwarded-For: 9.9.9.9")
    assert hall.addresses()[-3:] == [f"{NETWORK}.11", f"{NETWORK}.12", f"{NETWORK}.12"]


@pytest.mark.slow
def test_browsers_come_back_over_https_only(hall: Hall) -> None:
    answer = hall.ask(0, "https://hall.example/accounts/sign-in/").lower()
    assert "strict-transport-security: max-age=86400" in answer
    assert "includesubdomains" not in answer
    cookies = [line for line in answer.splitlines() if line.startswith("set-cookie:")]
    assert cookies
    assert all("secure" in line for line in cookies)
    plain = hall.ask(0, "http://hall.example/accounts/sign-in/").lower()
    assert "location: https://hall.example/accounts/sign-in/" in plain


@pytest.mark.slow
def test_a_form_is_taken_over_https_and_another_host_is_refused(hall: Hall, tmp_path: Path) -> None:
    jar = str(tmp_path / "cookies")
    page = hall.ask(0, "https://hall.example/accounts/sign-in/", "--cookie-jar", jar)
    token = page.split('name="csrfmiddlewaretoken" value="')[1].split('"')[0]
    form = f"csrfmiddlewaretoken={token}&username=bob&password=wrong"
    answer = hall.ask(
        0, "https://hall.example/accounts/sign-in/", "--cookie", jar, "--data", form,
        "--header", "Referer: https://hall.example/accounts/sign-in/",
    )  # fmt: skip
    assert answer.split()[1] in {"200", "422"}  # the password was looked at: no 403 of the form
    other = hall.ask(0, "https://hall.example/", "--header", "X-Forwarded-Host: evil.example")
    assert "evil.example" not in other
