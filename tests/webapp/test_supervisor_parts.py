"""Parts of the supervisor that need no running product."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from webapp.supervisor import child, leftovers


def test_the_log_of_a_child_that_never_restarts_is_rotated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child, "LARGEST_LOG_BYTES", 100)
    path = tmp_path / "web.log"
    with path.open("ab", buffering=0) as log:
        log.write(b"a" * 90)
        assert not child.rotate(path)
        log.write(b"b" * 90)
        assert child.rotate(path)
        assert path.read_bytes() == b""
        log.write(b"after")  # the child appends as before
    assert path.read_bytes() == b"after"
    assert (tmp_path / "web.log.1").read_bytes() == b"a" * 90 + b"b" * 90


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc")
def test_what_a_killed_supervisor_of_this_folder_left_is_ended(tmp_path: Path) -> None:
    def sleeper(**variables: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-c", "import time; time.sleep(60)"],
            env={**os.environ, **variables},
            start_new_session=True,
        )

    here, elsewhere = str(tmp_path), str(tmp_path / "other")
    left = sleeper(BETHE_HALL_INSTANCE=here, BETHE_HALL_CHILD_OF="1")
    kept = [
        sleeper(BETHE_HALL_INSTANCE=here),  # a command that somebody runs beside it
        sleeper(BETHE_HALL_INSTANCE=here, BETHE_HALL_CHILD_OF=str(os.getpid())),  # our own
        sleeper(BETHE_HALL_INSTANCE=elsewhere, BETHE_HALL_CHILD_OF="1"),
    ]
    try:
        time.sleep(0.3)
        reaper_free = leftovers.end_leftovers(tmp_path)
        assert reaper_free == 1
        assert left.wait(5) != 0
        assert [process.poll() for process in kept] == [None, None, None]
    finally:
        for process in [left, *kept]:
            process.kill()
            process.wait()
