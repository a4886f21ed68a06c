"""Processes that a killed supervisor left behind: its grandchildren, which may hold the port."""

import contextlib
import os
import signal
import time
from pathlib import Path

MARK = "BETHE_HALL_CHILD_OF"  # environment variable of all that a supervisor starts: its process id
_GRACE_SECONDS = 3.0


def end_leftovers(instance: Path) -> int:
    """End all processes of an earlier supervisor of this instance folder; return their number.

    Call it while holding the lock of the folder: then no other supervisor of it runs. The processes
    get a signal first, and are killed after three seconds. Without /proc none is found.
    """
    found = _leftovers(instance)
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid in _leftovers(instance):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)
        deadline = time.monotonic() + _GRACE_SECONDS
        while _leftovers(instance) and time.monotonic() < deadline:
            time.sleep(0.05)
    return len(found)


def _leftovers(instance: Path) -> list[int]:
    wanted = f"BETHE_HALL_INSTANCE={instance}".encode()
    return [pid for pid in _process_ids() if pid != os.getpid() and _is_left(pid, wanted)]


def _process_ids() -> list[int]:
    folder = Path("/proc")
    if not folder.is_dir():
        return []
    return [int(entry.name) for entry in folder.iterdir() if entry.name.isdigit()]


def _is_left(pid: int, wanted: bytes) -> bool:
    """Return True if a supervisor of this folder started the process; others are not readable."""
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False
    own = f"{MARK}={os.getpid()}".encode()
    is_child = any(entry.startswith(f"{MARK}=".encode()) for entry in environment)
    return wanted in environment and is_child and own not in environment
