"""Whether the process that claimed a job still exists, as far as this machine can know."""

import os
import socket
from pathlib import Path


def this_process() -> str:
    """Return a name of this process that no later process gets: host, id, start time."""
    return f"{socket.gethostname()}:{os.getpid()}:{_start_of(os.getpid())}"


def is_alive(worker: str) -> bool | None:
    """Return whether the named process lives; None when only its own machine could tell."""
    host, _, rest = worker.rpartition(":")
    host, _, process_id = host.rpartition(":")
    if host != socket.gethostname() or not process_id.isdigit():
        return None
    start = _start_of(int(process_id))
    if not start and not Path("/proc/self/stat").exists():
        return None
    return start == rest and start != ""


def _start_of(process_id: int) -> str:
    """Start time of a process in clock ticks since boot; '' when it is gone or cannot be read."""
    try:
        stat = Path(f"/proc/{process_id}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
    fields = stat.rpartition(")")[2].split()  # the name before may hold anything
    is_zombie = fields[0] == "Z"
    return "" if is_zombie else fields[19]
