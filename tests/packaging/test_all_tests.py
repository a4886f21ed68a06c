"""``bin/test`` runs every stage, prints each output once and fails if one stage fails."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.live.product import ROOT, is_running
from tests.patience import wait_for

# In place of pytest: names its stage, then waits or fails as the test asks.
PYTHON = """#!/bin/sh
if [ "$1" = -c ]; then exec python3 "$@"; fi
for last; do case "$last" in cache_dir=*) cache=${last#cache_dir=} ;; esac; done
case "$*" in
  "-m pytest tests --ignore"*) stage=engine ;;
  "-m pytest tests/live"*) stage=live ;;
  "-m pytest tests/webapp"*) stage=postgres ;;
  *) exit 0 ;;
esac
echo "output of $stage on ${DATABASE_URL:-sqlite}"
case "$*" in *--last-failed*) [ "$FAILING_AGAIN" != "$stage" ]; exit ;; esac
echo "count passed 7" >> "$TEST_SUMMARY"
if [ "$WAITING" = "$stage" ]; then echo $$ > "$STARTED"; exec sleep 1000; fi
[ "$FAILING" != "$stage" ] && exit 0
mkdir -p "$cache/v/cache"
python3 -c 'import json, sys
print(json.dumps({f"test_{k}[a b]": True for k in range(int(sys.argv[1]))}))' "$TESTS" \\
  > "$cache/v/cache/lastfailed"
exit 1
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Variables that make ``bin/test`` use the small program above."""
    if not list(Path("/usr/lib/postgresql").glob("*/bin/initdb")):
        pytest.skip("needs PostgreSQL, which is absent")
    python = tmp_path / "venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(PYTHON)
    python.chmod(0o755)
    return os.environ | {
        "VENV": str(tmp_path / "venv"),
        "BETHE_HALL_INSTANCE": str(tmp_path / "instance"),
        "STARTED": str(tmp_path / "started"),
        "WAITING": "",
        "FAILING": "",
        "FAILING_AGAIN": "",
        "TESTS": "1",
    }


def run(environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run all tests to their end."""
    return subprocess.run(["bin/test"], cwd=ROOT, env=environment, capture_output=True, text=True)


@pytest.mark.parametrize("failing", ["", "postgres"])
def test_the_run_fails_if_one_stage_fails(environment: dict[str, str], failing: str) -> None:
    done = run(environment | {"FAILING": failing, "TESTS": "6"})
    assert done.returncode == (1 if failing else 0), done.stdout + done.stderr
    assert "repeated" not in done.stdout.lower()
    outputs = [line for line in done.stdout.splitlines() if line.startswith("output of")]
    assert outputs[:2] == ["output of engine on sqlite", "output of live on sqlite"]
    assert len(outputs) == 3
    assert outputs[2].startswith("output of postgres on postgres://")
    assert "21 passed" in done.stdout


@pytest.mark.parametrize("again", ["", "live"])
def test_a_few_failed_tests_are_repeated_and_named(environment: dict[str, str], again: str) -> None:
    """A fault fails again; a time limit that a busy machine broke does not, and is reported."""
    done = run(environment | {"FAILING": "live", "FAILING_AGAIN": again, "TESTS": "2"})
    assert done.returncode == (1 if again else 0), done.stdout + done.stderr
    report = "Failed once and passed when repeated alone:\ntest_0[a b]\ntest_1[a b]\n"
    assert (report in done.stdout) is not bool(again)


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
def test_an_interrupted_run_leaves_no_process_and_no_database(
    environment: dict[str, str], tmp_path: Path, sent: signal.Signals
) -> None:
    started = tmp_path / "started"
    process = subprocess.Popen(
        ["bin/test"],
        cwd=ROOT,
        env=environment | {"WAITING": "postgres"},
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    waiting = wait_for(lambda: started.exists() and started.read_text().strip())
    address = Path(f"/proc/{waiting}/environ").read_bytes().partition(b"DATABASE_URL=")[2]
    folder = Path(address.partition(b"@")[2].split(b"/")[0].decode().replace("%2F", "/"))
    assert (folder / "data" / "postmaster.pid").exists()
    os.killpg(process.pid, sent)
    assert process.wait() == 128 + sent
    assert not is_running(int(waiting))
    assert not folder.exists()
