"""Check that the process which claimed a job still exists, as far as this machine knows."""

import contextlib
import os
import signal
import socket
from functools import cache
from pathlib import Path

_COMMAND = Path("/proc/self/comm")  # the name of the process's first thread
_COUNTS = Path("/proc/vmstat")  # counters of the kernel, containers included
_STOPPING = "stopping"
_LONGEST_HOST = 40  # characters; people read it, the rest distinguishes machines


def this_process() -> str:
    """Return a unique name of this process: machine, id, start time."""
    return _name_of(os.getpid())


def parent_process() -> str:
    """Return the name of the process that forked this one."""
    return _name_of(os.getppid())


def is_alive(worker: str) -> bool | None:
    """Return True if the named process lives; None if only its own machine knows."""
    process_id, start = _read(worker)
    if not process_id or not Path("/proc/self/stat").exists():
        return None
    return start != "" and _start_of(process_id) == start


def say_stopping() -> None:
    """Show to other processes of this machine that this one was asked to stop.

    Its forked processes end next, because of the stop and not by themselves.
    """
    with contextlib.suppress(OSError):
        _COMMAND.write_text(_STOPPING, encoding="ascii")


def is_at_work(worker: str) -> bool:
    """Return True if the named process lives on this machine and was not asked to stop."""
    if not is_alive(worker):
        return False
    process_id, _ = _read(worker)
    try:
        command = Path(f"/proc/{process_id}/comm").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return command.strip() != _STOPPING


def end_process(worker: str) -> bool:
    """Kill the named process; return False if it is gone, or of another machine or user."""
    process_id, _ = _read(worker)
    if not is_alive(worker):
        return False
    try:
        os.kill(process_id, signal.SIGKILL)  # a stopped process takes no other signal
    except OSError:
        return False
    return True


def memory_kills() -> int | None:
    """Return the number of processes killed for lack of memory since this machine started.

    None if the kernel does not count them.
    """
    try:
        lines = _COUNTS.read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    counts = [int(line.split()[1]) for line in lines if line.startswith("oom_kill ")]
    return counts[0] if counts else None


def _name_of(process_id: int) -> str:
    return f"{machine_name()}:{process_id}:{_start_of(process_id)}"


def _read(worker: str) -> tuple[int, str]:
    """Return process id and start time of a name; 0 for a name of another machine."""
    machine, _, start = worker.rpartition(":")
    machine, _, process_id = machine.rpartition(":")
    is_ours = machine == machine_name() and process_id.isdigit()
    return (int(process_id) if is_ours else 0), start


@cache
def machine_name() -> str:
    """Return the name of a space of process ids: host, boot, and namespace.

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
    """Return the start of a process in clock ticks since boot; '' if it is gone or not readable."""
    try:
        stat = Path(f"/proc/{process_id}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
    fields = stat.rpartition(")")[2].split()  # the name before it may hold any character
    is_zombie = fields[0] == "Z"
    return "" if is_zombie else fields[19]
