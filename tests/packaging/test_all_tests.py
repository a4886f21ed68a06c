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
case "$*" in
  "-m pytest tests --ignore"*) stage=engine ;;
  "-m pytest tests/live"*) stage=live ;;
  "-m pytest tests/webapp"*) stage=postgres ;;
  *) exit 0 ;;
esac
echo "output of $stage on ${DATABASE_URL:-sqlite}"
echo "count passed 7" >> "$TEST_SUMMARY"
if [ "$WAITING" = "$stage" ]; then echo $$ > "$STARTED"; exec sleep 1000; fi
[ "$FAILING" != "$stage" ]
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
    }


@pytest.mark.parametrize("failing", ["", "postgres"])
def test_the_run_fails_if_one_stage_fails(environment: dict[str, str], failing: str) -> None:
    done = subprocess.run(
        ["bin/test"],
        cwd=ROOT,
        env=environment | {"FAILING": failing},
        capture_output=True,
        text=True,
    )
    assert done.returncode == (1 if failing else 0), done.stdout + done.stderr
    outputs = [line for line in done.stdout.splitlines() if line.startswith("output of")]
    assert outputs[:2] == ["output of engine on sqlite", "output of live on sqlite"]
    assert len(outputs) == 3
    assert outputs[2].startswith("output of postgres on postgres://")
    assert "21 passed" in done.stdout


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
