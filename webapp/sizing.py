"""Numbers of processes and threads of an installation, from the machine's usable cores.

``WEB_WORKERS``, ``WEB_THREADS``, ``JOB_WORKERS`` (for short work), ``LEARN_WORKERS`` (for long),
``CARD_WORKERS`` (for networks, on a card) and ``JOB_THREADS`` override each number. ``LEARN_NICE``
is the nice value of long work, from 0 (no lower priority than other programs) to 19.
"""

import math
import os
from dataclasses import dataclass
from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup")
_MOST_WEB_WORKERS = 8
_MOST_JOB_WORKERS = 8
_MOST_LEARN_WORKERS = 4
_MOST_JOB_THREADS = 8
_MOST_NICE = 19
_LEARN_NICE = 10  # pages come first; a sixth of a core is left on a busy machine


@dataclass(frozen=True, slots=True)
class Sizes:
    """Numbers of processes, threads in each, and the nice value of long work."""

    web_workers: int
    web_threads: int
    job_workers: int
    learn_workers: int
    card_workers: int
    job_threads: int
    learn_nice: int


def count_cores(cgroup: Path = _CGROUP) -> int:
    """Return the number of cores that this process may use, by its affinity and container quota."""
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    quota = _cgroup_quota(cgroup)
    return max(1, cores if quota is None else min(cores, math.ceil(quota)))


def sizes() -> Sizes:
    """Return the sizes of this installation; ValueError names an override that is not a number."""
    cores = count_cores()
    return Sizes(
        # At least two of each: one that is busy, or being replaced, must not stop everybody.
        web_workers=_override("WEB_WORKERS", max(2, min(cores, _MOST_WEB_WORKERS))),
        web_threads=_override("WEB_THREADS", 8),
        job_workers=_override("JOB_WORKERS", max(2, min(cores, _MOST_JOB_WORKERS))),
        # One learning process uses all cores by threads; more processes only share them.
        learn_workers=_override("LEARN_WORKERS", max(1, min(cores // 2, _MOST_LEARN_WORKERS))),
        card_workers=_override("CARD_WORKERS", 1),  # two networks only share a card and its memory
        job_threads=_override("JOB_THREADS", min(cores, _MOST_JOB_THREADS)),
        learn_nice=min(_override("LEARN_NICE", _LEARN_NICE, least=0), _MOST_NICE),
    )


def _override(name: str, default: int, least: int = 1) -> int:
    text = os.environ.get(name, "").strip()
    if not text:
        return default
    if not text.isdigit() or int(text) < least:
        raise ValueError(f"{name}: expected a whole number from {least}, received {text!r}.")
    return int(text)


def _cgroup_quota(cgroup: Path) -> float | None:
    """Return the cores allowed by control groups (version 2 or 1); None if there is no limit."""
    try:
        quota, _, period = (cgroup / "cpu.max").read_text(encoding="ascii").partition(" ")
    except OSError:
        try:
            quota = (cgroup / "cpu" / "cpu.cfs_quota_us").read_text(encoding="ascii")
            period = (cgroup / "cpu" / "cpu.cfs_period_us").read_text(encoding="ascii")
        except OSError:
            return None
    try:
        return int(quota) / int(period) if int(quota) > 0 else None
    except (ValueError, ZeroDivisionError):  # "max", or an unknown format
        return None
