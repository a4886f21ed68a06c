"""What a killed supervisor left behind: the children of its children, which may hold the port."""

import contextlib
import os
import signal
import time
from pathlib import Path

MARK = "BETHE_HALL_CHILD_OF"  # in the environment of all that a supervisor starts: its process id
_GRACE_SECONDS = 3.0


def end_leftovers(instance: Path) -> int:
    """End what an earlier supervisor of this instance folder started; return how many there were.

    Call it with the lock of the folder held: then no other supervisor of it lives. They are asked
    first, and ended after three seconds. Where there is no /proc nothing is found.
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
    """Whether a supervisor of this folder started the process; of others one may not read it."""
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False
    own = f"{MARK}={os.getpid()}".encode()
    is_child = any(entry.startswith(f"{MARK}=".encode()) for entry in environment)
    return wanted in environment and is_child and own not in environment
