"""Scheduling priority of a worker's jobs relative to pages and to other programs."""

import contextlib
import os
from pathlib import Path

_AUTOGROUP = Path("/proc/self/autogroup")
_SESSION_STEPS = 3  # steps of a session per niceness step of its process


def give_way(steps: int) -> None:
    """Lower the priority of this process's session by ``steps`` (0 to 19), its own by a third.

    With autogrouping (sched_autogroup), Linux first shares the processor among sessions. Every
    program of the product is a session of its own, and so are most other programs that keep a
    machine busy. There the session's steps decide. In containers and services, each process of
    another program counts for itself, and jobs with all the steps would starve beside them.
    There the fewer steps of the process decide.

    ``SCHED_IDLE`` is not used: on a busy machine it gets one second of processor in minutes.
    """
    os.nice(steps // _SESSION_STEPS)
    if steps:
        with contextlib.suppress(OSError):  # this kernel shares the processor among sessions
            _AUTOGROUP.write_text(str(steps), encoding="ascii")
