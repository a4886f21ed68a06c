"""The audit of packages by pip-audit and npm themselves; services of the test answer them."""

import http.server
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.patience import PATIENCE_SECONDS

ROOT = Path(__file__).resolve().parents[2]
PACKUMENT = {
    "name": "htmx.org",
    "dist-tags": {"latest": "2.0.4"},
    "versions": {
        version: {
            "name": "htmx.org",
            "version": version,
            "dist": {"tarball": "http://127.0.0.1:9/htmx.tgz", "integrity": "sha512-AAAA"},
        }
        for version in (f"{a}.{b}.{c}" for a in (1, 2) for b in range(10) for c in range(13))
    },
}
ADVISORY = {
    "id": 1, "url": "https://example.org/1", "title": "It runs what it should not.",
    "severity": "high", "vulnerable_versions": "<99", "cwe": [],
    "cvss": {"score": 8.1, "vectorString": None},
}  # fmt: skip


class Service(http.server.BaseHTTPRequestHandler):
    """The advisories that npm and OSV serve, as they serve them: none, or one of each."""

    def do_GET(self) -> None:
        self._answer(PACKUMENT if self.path == "/htmx.org" else None)

    def do_POST(self) -> None:
        sent = self.rfile.read(int(self.headers["Content-Length"]))
        harmful = self.server.harmful
        if self.path == "/osv":
            asked = json.loads(sent)["package"]["name"]
            self.server.asked.add(asked)
            vulns = [{"id": "PYSEC-1", "affected": []}] if harmful == asked else []
            self._answer({"vulns": vulns} if vulns else {})
        elif self.path.startswith("/-/npm/v1/security/advisories/bulk"):
            self.server.asked.add("htmx.org")
            self._answer({"htmx.org": [ADVISORY]} if harmful == "htmx.org" else {})
        else:
            self._answer(None)

    def _answer(self, content: Any) -> None:
        body = json.dumps(content).encode()
        self.send_response(404 if content is None else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words: object) -> None:
        """Say nothing."""


@pytest.fixture
def service() -> Iterator[Any]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Service)
    server.harmful, server.asked = "", set()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="session")
def pip_audit(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return pip-audit, in an environment of its own, as ``bin/audit`` makes one."""
    found = os.environ.get("PIP_AUDIT") or shutil.which("pip-audit")
    if found:
        return found
    folder = tmp_path_factory.mktemp("pip-audit")
    venv.create(folder, with_pip=True)
    pip = [folder / "bin" / "pip", "install", "-q", "pip-audit"]
    if subprocess.run(pip, capture_output=True, check=False).returncode:
        pytest.skip("needs pip-audit, which is absent and cannot be installed")
    return str(folder / "bin" / "pip-audit")


def audit(folder: Path, pip_audit: str, address: str) -> tuple[int, str]:
    """Run ``bin/audit`` against services at an address; return its exit code and what it said."""
    if shutil.which("npm") is None:
        pytest.skip("needs npm, which is absent")
    named = {
        "PATH": os.environ["PATH"], "HOME": str(folder),
        "PIP_AUDIT": pip_audit,
        "PIP_AUDIT_VULNERABILITY_SERVICE": "osv", "PIP_AUDIT_OSV_URL": f"{address}/osv",
        "npm_config_registry": address, "npm_config_fetch_retries": "0",
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, ROOT / "bin" / "audit"],
        env=named, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False,
    )  # fmt: skip
    assert done.stderr == ""
    return done.returncode, done.stdout


@pytest.mark.parametrize(
    ("harmful", "said"),
    [
        ("", "Python packages compared: "),
        ("django", "The advisory PYSEC-1 names django 5."),
        ("htmx.org", "An advisory of severity high names htmx.org."),
    ],
)
def test_an_advisory_of_what_runs_fails_and_none_passes(
    service: Any, tmp_path: Path, pip_audit: str, harmful: str, said: str
) -> None:
    service.harmful = harmful
    code, text = audit(tmp_path, pip_audit, f"http://127.0.0.1:{service.server_port}")
    assert code == bool(harmful), text
    assert said in text
    assert "cannot be reached" not in text
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    pinned = {re.split(r"==|\[", line)[0] for line in lines if "==" in line and line[0] != "#"}
    names = {re.sub(r"[-_.]+", "-", name).lower() for name in pinned}
    assert len(names) > 60
    assert service.asked == names | {"htmx.org"}, "every package was asked about"


def test_services_out_of_reach_are_said_and_fail_nothing(tmp_path: Path, pip_audit: str) -> None:
    code, text = audit(tmp_path, pip_audit, "http://127.0.0.1:9")
    assert code == 0
    assert "The advisories about Python packages cannot be reached: nothing was compared." in text
    assert "The advisories about htmx cannot be reached: nothing was compared." in text
