"""How far a worker's jobs give way to all else on its machine."""

import contextlib
import os
from pathlib import Path

LOWEST = 19
_AUTOGROUP = Path("/proc/self/autogroup")


def give_way(steps: int) -> None:
    """Lower the priority of this process and of its session by so many steps (0 to 19).

    Linux shares the processor among sessions before it looks at priorities (sched_autogroup), and
    every program of the product is a session of its own: without the second, work at the lowest
    priority would take as much as the pages. The lowest priority also takes a core for what is
    left of it only: else Linux leaves a learner alone on one core and all pages on the other.
    """
    niceness = os.nice(steps)
    if steps:
        with contextlib.suppress(OSError):  # a kernel that shares among processes
            _AUTOGROUP.write_text(str(niceness), encoding="ascii")
    if niceness == LOWEST and hasattr(os, "SCHED_IDLE"):
        with contextlib.suppress(OSError):  # a container that forbids to choose
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
