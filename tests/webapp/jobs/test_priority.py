"""Long work gives way to pages, and keeps its share of a busy machine."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from webapp.sizing import sizes

_AUTOGROUP = Path("/proc/self/autogroup")
_SECONDS = 4.0
_SPIN = f"import time; end = time.monotonic() + {_SECONDS}\nwhile time.monotonic() < end: pass"


def _lines_of(code: str) -> list[str]:
    """Return the lines that a program of its own session prints."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        capture_output=True,
        text=True,
        start_new_session=True,
    )
    return done.stdout.splitlines()


@pytest.mark.parametrize(("steps", "own"), [(0, 0), (5, 1), (7, 2), (19, 6)])
def test_a_session_gives_way_further_than_its_processes(steps: int, own: int) -> None:
    code = f"""
import os
from pathlib import Path
from webapp.jobs.priority import give_way
before = os.nice(0)
give_way({steps})
print(before, os.nice(0))
print(os.sched_getscheduler(0) == os.SCHED_OTHER)
group = Path("/proc/self/autogroup")
print(group.read_text() if group.exists() else "")
"""
    numbers, has_its_share, group = _lines_of(code)[:3]
    before, niceness = map(int, numbers.split())
    assert niceness == min(before + own, 19)
    assert has_its_share == "True", "SCHED_IDLE starves on a busy machine"
    if _AUTOGROUP.exists():  # the kernel shares the processor among sessions
        assert group.endswith(f"nice {steps}")


@pytest.mark.skipif(not _AUTOGROUP.exists(), reason="needs sessions that share the processor")
def test_a_job_that_stores_its_results_gives_way_no_longer() -> None:
    """Pages wait for the one lock of SQLite, so its holder must not wait for a learning."""
    lines = _lines_of("""
from pathlib import Path
from webapp.jobs.priority import at_usual_priority, give_way
group = Path("/proc/self/autogroup")
give_way(7)
try:
    with at_usual_priority():
        print(group.read_text().strip())
        raise OSError
except OSError:
    print(group.read_text().strip())
give_way(0)
with at_usual_priority():
    print(group.read_text().strip())
""")
    assert [line.rpartition(" ")[2] for line in lines] == ["0", "7", "7"]


@pytest.mark.skipif(not _AUTOGROUP.exists(), reason="needs sessions that share the processor")
def test_a_process_in_place_of_one_that_was_killed_while_it_stored_gives_way() -> None:
    lines = _lines_of("""
import os
from pathlib import Path
from webapp.jobs import priority
group = Path("/proc/self/autogroup")
priority.give_way(5)
if not (child := os.fork()):
    with priority.at_usual_priority():
        os._exit(0)
os.waitpid(child, 0)
print(group.read_text().strip())
priority.give_way_again()
print(group.read_text().strip())
""")
    assert [line.rpartition(" ")[2] for line in lines] == ["0", "5"]


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="needs Linux")
def test_learning_keeps_a_seventh_of_a_core_beside_eight_busy_loops(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two cores, eight loops of another program, two threads of a learner.

    What else runs on the machine of the test takes from both, so shares are compared.
    """
    cores = sorted(os.sched_getaffinity(0))[:2]
    if len(cores) < 2:
        pytest.skip("needs two cores")
    monkeypatch.delenv("LEARN_NICE", raising=False)
    program = f"""
import os, sys
os.sched_setaffinity(0, {cores})
if sys.argv[1] == "learner":
    from webapp.jobs.priority import give_way
    give_way({sizes().learn_nice})
children = []
for _ in range(int(sys.argv[2])):
    if not (pid := os.fork()):
        exec({_SPIN!r})
        os._exit(0)
    children.append(pid)
for pid in children:
    os.waitpid(pid, 0)
times = os.times()
print(times.children_user + times.children_system)
"""
    running = [
        subprocess.Popen(
            [sys.executable, "-c", program, *words],
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        for words in (("other", "8"), ("learner", "2"))
    ]
    others, own = (float(process.communicate()[0]) for process in running)
    assert 2 * own / (own + others) >= 0.15, (own, others)
