"""Memory of this machine, total and used."""

from pathlib import Path


def memory() -> tuple[float, float] | None:
    """Return used and total bytes of memory, of the container if it has less; None if unknown."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        facts = dict(line.split(":") for line in lines)
        total = float(facts["MemTotal"].split()[0]) * 1024
        used = total - float(facts["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError, IndexError):
        return None
    try:
        limit = float(Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii"))
        taken = float(Path("/sys/fs/cgroup/memory.current").read_text(encoding="ascii"))
    except (OSError, ValueError):  # no container, or "max"
        return used, total
    return (taken, limit) if limit < total else (used, total)
