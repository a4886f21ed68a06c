"""How far long work gives way to pages."""

import subprocess
import sys
from pathlib import Path

import pytest

_AUTOGROUP = Path("/proc/self/autogroup")


@pytest.mark.parametrize("steps", [0, 19])
def test_a_session_gives_way_as_its_processes_do(steps: int) -> None:
    code = f"""
import os
from pathlib import Path
from tasks.priority import give_way
before = os.nice(0)
give_way({steps})
print(before, os.nice(0))
print(os.sched_getscheduler(0) == os.SCHED_IDLE)
group = Path("/proc/self/autogroup")
print(group.read_text() if group.exists() else "")
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        capture_output=True,
        text=True,
        start_new_session=True,
    )
    numbers, is_idle, group = done.stdout.splitlines()[:3]
    before, niceness = map(int, numbers.split())
    assert niceness == min(before + steps, 19)
    assert (is_idle == "True") == (niceness == 19)
    if _AUTOGROUP.exists():  # the kernel shares the processor among sessions
        assert group.endswith(f"nice {niceness if steps else 0}")
