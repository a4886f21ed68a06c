"""Whether the process that claimed a job still exists, as far as this machine can know."""

import os
import socket
from functools import cache
from pathlib import Path

_LONGEST_HOST = 40  # characters; a host's name is for people, what follows it tells machines apart


def this_process() -> str:
    """Return a name of this process that no other process ever gets: machine, id, start time."""
    return f"{machine_name()}:{os.getpid()}:{_start_of(os.getpid())}"


def is_alive(worker: str) -> bool | None:
    """Return whether the named process lives; None when only its own machine could tell."""
    machine, _, rest = worker.rpartition(":")
    machine, _, process_id = machine.rpartition(":")
    if machine != machine_name() or not process_id.isdigit():
        return None
    start = _start_of(int(process_id))
    if not start and not Path("/proc/self/stat").exists():
        return None
    return start == rest and start != ""


@cache
def machine_name() -> str:
    """Name of what process ids belong to: host, boot, and namespace of process ids.

    Containers and copies of one machine may share a host name, and with it ids and even start
    times; no two running systems share a boot id, no two containers of one system a namespace.
    """
    host = socket.gethostname()[:_LONGEST_HOST]
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        namespace = Path("/proc/self/ns/pid").stat().st_ino
    except OSError:  # not Linux
        return host
    return f"{host}/{boot}/{namespace}"


def _start_of(process_id: int) -> str:
    """Start time of a process in clock ticks since boot; '' when it is gone or cannot be read."""
    try:
        stat = Path(f"/proc/{process_id}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
    fields = stat.rpartition(")")[2].split()  # the name before may hold anything
    is_zombie = fields[0] == "Z"
    return "" if is_zombie else fields[19]
