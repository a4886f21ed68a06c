"""The audit of packages reports advisories, packages without data, and data out of reach."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FINE = {"dependencies": [{"name": "django", "version": "5.2", "vulns": []}]}
BAD = {"dependencies": [{"name": "django", "version": "5.2", "vulns": [{"id": "CVE-1"}]}]}
UNKNOWN = {"dependencies": [{"name": "django", "skip_reason": "Dependency not found"}]}
HALF = {"dependencies": FINE["dependencies"] + [{"name": "six", "skip_reason": "not found"}]}
NO_HARM = {"vulnerabilities": {}}
HARM = {"vulnerabilities": {"htmx.org": {"severity": "high"}}}
AWAY = {"message": "request failed", "error": {"code": "ENOTFOUND"}}


def program(path: Path, answer: object) -> str:
    """Return the path of a program that prints an answer, whatever it is asked."""
    path.write_text(f"#!/bin/sh\ncat <<'END'\n{json.dumps(answer)}\nEND\n", encoding="utf-8")
    path.chmod(0o700)
    return str(path)


@pytest.mark.parametrize(
    ("packages", "scripts", "code", "said"),
    [
        (FINE, NO_HARM, 0, "Python packages compared: 1."),
        (BAD, NO_HARM, 1, "The advisory CVE-1 names django 5.2."),
        (FINE, HARM, 1, "An advisory of severity high names htmx.org."),
        (HALF, NO_HARM, 0, "nothing is known about them: six."),
        (UNKNOWN, NO_HARM, 0, "The advisories about Python packages cannot be reached"),
        (FINE, AWAY, 0, "The advisories about htmx cannot be reached"),
        (BAD, AWAY, 1, "The advisory CVE-1 names django 5.2."),
    ],
)
def test_advisories_are_told(
    tmp_path: Path, packages: object, scripts: object, code: int, said: str
) -> None:
    named = {
        "PIP_AUDIT": program(tmp_path / "pip-audit", packages),
        "NPM": program(tmp_path / "npm", scripts),
        "PATH": "/usr/bin:/bin",
    }
    done = subprocess.run(
        [sys.executable, ROOT / "bin" / "audit"],
        env=named, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (code, "")
    assert said in done.stdout
