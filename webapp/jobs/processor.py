"""Detector of jobs that wait for the processor on a busy machine, by Linux's counts."""

import os
from pathlib import Path

_PROC = Path("/proc")
WINDOW_SECONDS = 8.0  # seconds over which waiting is compared with running
WAITING_SHARE = 0.5  # share of the time in which the process could have run


class ProcessorWatch:
    """Detector of a process that mostly waits for the processor.

    Without the kernel's counts (``/proc/self/task/*/schedstat``), it never reports waiting.
    """

    def __init__(self) -> None:
        self._since = 0.0
        self._last: tuple[int, int] | None = None
        self._competitors = 0

    def competitors(self, now: float) -> int:
        """Return how many other processes need the processor while this one waits; else 0.

        Parameters
        ----------
        now : float
            Seconds of a monotonic clock; an answer holds until the window is over.
        """
        if self._last is not None and now - self._since < WINDOW_SECONDS:
            return self._competitors
        found = _ran_and_waited()
        if found is not None and self._last is not None:
            ran, waited = (new - old for new, old in zip(found, self._last, strict=True))
            wanted = ran + waited
            is_starved = waited > WAITING_SHARE * wanted and wanted > 0.5e9 * WINDOW_SECONDS
            self._competitors = max(_count_running(), 1) if is_starved else 0
        self._last, self._since = found, now
        return self._competitors


def _ran_and_waited() -> tuple[int, int] | None:
    """Return the nanoseconds in which this process's threads ran and waited for a core."""
    ran = waited = 0
    try:
        for folder in (_PROC / "self" / "task").iterdir():
            fields = (folder / "schedstat").read_text(encoding="ascii").split()
            ran, waited = ran + int(fields[0]), waited + int(fields[1])
    except (OSError, ValueError, IndexError):  # not Linux, or a thread that ended just now
        return None
    return ran, waited


def _count_running() -> int:
    """Return the number of other processes that run or wait for a core at this moment."""
    count = 0
    for folder in _PROC.iterdir():
        if not folder.name.isdigit() or int(folder.name) == os.getpid():
            continue
        try:
            stat = (folder / "stat").read_text(encoding="ascii", errors="replace")
        except OSError:  # the process has ended meanwhile
            continue
        count += stat.rpartition(")")[2].split()[0] == "R"
    return count
