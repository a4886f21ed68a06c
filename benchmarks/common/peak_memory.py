"""The most memory that this process has held, since it was last told to forget (Linux)."""

from pathlib import Path

STATUS = Path("/proc/self/status")
CLEAR = Path("/proc/self/clear_refs")
FORGET_PEAK = "5"


def forget_peak() -> None:
    """Start the peak again from what is held now; `ru_maxrss` would remember even a parent's."""
    CLEAR.write_text(FORGET_PEAK)


def peak_gigabytes() -> float:
    """Largest resident size since ``forget_peak``, in 2^30 bytes."""
    lines = dict(line.split(":", 1) for line in STATUS.read_text().splitlines())
    return int(lines["VmHWM"].split()[0]) / 2**20
