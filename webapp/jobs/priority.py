"""Scheduling priority of a worker's jobs relative to pages and to other programs."""

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

_AUTOGROUP = Path("/proc/self/autogroup")
_SESSION_STEPS = 3  # steps of a session per niceness step of its process
_TRIES, _PAUSE_SECONDS = 5, 0.11

_steps = 0  # of this process's session while it computes; a forked process inherits it


def give_way(steps: int) -> None:
    """Lower the priority of this process's session by ``steps`` (0 to 19), its own by a third.

    With autogrouping (sched_autogroup), Linux first shares the processor among sessions. Every
    program of the product is a session of its own, and so are most other programs that keep a
    machine busy. There the session's steps decide. In containers and services, each process of
    another program counts for itself, and jobs with all the steps would starve beside them.
    There the fewer steps of the process decide.

    ``SCHED_IDLE`` is not used: on a busy machine it gets one second of processor in minutes.
    """
    global _steps
    _steps = steps
    os.nice(steps // _SESSION_STEPS)
    give_way_again()


def give_way_again() -> None:
    """Lower the session's priority again, after a process was killed `at_usual_priority`."""
    if _steps:
        _set_session(_steps)


@contextlib.contextmanager
def at_usual_priority() -> Iterator[None]:
    """Give this session the usual priority while it holds a lock that pages wait for.

    SQLite has one lock for all that is written. Otherwise other jobs would take processor time from
    its holder.
    """
    if not _steps:
        yield
        return
    _set_session(0)
    try:
        yield
    finally:
        _set_session(_steps)


def _set_session(steps: int) -> None:
    """Set the steps of the session; Linux lets a user do so once in a tenth of a second."""
    for _ in range(_TRIES):
        try:
            _AUTOGROUP.write_text(str(steps), encoding="ascii")
        except BlockingIOError:
            time.sleep(_PAUSE_SECONDS)
        except OSError:  # this kernel does not share the processor among sessions
            return
        else:
            return
