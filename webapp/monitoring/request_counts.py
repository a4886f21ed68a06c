"""Counts of answers by view and status, in memory that the web processes of a host share.

The memory has no file behind it: with a mapped file, a full disk would end the process (SIGBUS).
"""

import math
import mmap
import threading
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import Any

from django.urls import URLPattern, get_resolver

BOUNDS = (0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, math.inf)  # seconds
OTHER = "none"  # answers without a view, or of a view that is not counted separately
_CLASSES = 5  # of statuses: 1xx to 5xx
_WIDTH = len(BOUNDS) + 1  # numbers of one view and class: answers by bound, then the seconds
_BYTES = 8


class RequestCounts:
    """Histograms of the seconds of answers, by view and class of status.

    Every process counts in a part of its own, so that no process waits for another one or loses its
    counts. Make the object before the first fork.

    Parameters
    ----------
    views : iterable of str
        The names that are counted separately; all others count as ``none``.
    n_parts : int
        Number of processes that may count at the same time.
    """

    def __init__(self, views: Iterable[str], n_parts: int = 1) -> None:
        self._rows = {name: row for row, name in enumerate([OTHER, *sorted(set(views) - {OTHER})])}
        self._n_parts = n_parts
        self._size = len(self._rows) * _CLASSES * _WIDTH
        self._memory = mmap.mmap(-1, self._size * n_parts * _BYTES)
        self._numbers = memoryview(self._memory).cast("d")
        self._part = 0
        self._lock = threading.Lock()
        self._taken: set[int] = set()

    def take_part(self) -> int:
        """Return a part in which no living process counts; call it in the process that forks.

        Counts of ended processes stay there and grow. If more processes live than there are parts,
        the last part is shared, and may lose a count.
        """
        free = (part for part in range(self._n_parts) if part not in self._taken)
        part = next(free, self._n_parts - 1)
        self._taken.add(part)
        return part

    def free_part(self, part: int) -> None:
        """Release the part of an ended process."""
        self._taken.discard(part)

    def count_in(self, part: int) -> None:
        """Count in this part from now on; call it in the forked process."""
        self._part = part

    def count(self, view: str, status: int, seconds: float) -> None:
        """Count one answer."""
        kind = min(max(status // 100, 1), _CLASSES) - 1
        row = self._rows.get(view, 0) * _CLASSES + kind
        at = self._part * self._size + row * _WIDTH
        with self._lock:
            self._numbers[at + bisect_left(BOUNDS, seconds)] += 1
            self._numbers[at + len(BOUNDS)] += seconds

    def histograms(self) -> Iterator[tuple[str, str, list[tuple[float, float]], float]]:
        """Yield view, class ("2xx"), cumulative counts up to each bound, and the sum of seconds."""
        for name, row in self._rows.items():
            for kind in range(_CLASSES):
                numbers = self._sum(row * _CLASSES + kind)
                total, buckets = 0.0, []
                for bound, number in zip(BOUNDS, numbers, strict=False):
                    total += number
                    buckets.append((bound, total))
                if total:
                    yield name, f"{kind + 1}xx", buckets, numbers[-1]

    def _sum(self, row: int) -> list[float]:
        starts = (part * self._size + row * _WIDTH for part in range(self._n_parts))
        parts = (self._numbers[start : start + _WIDTH] for start in starts)
        return [sum(numbers) for numbers in zip(*parts, strict=True)]


def view_names(resolver: Any = None, namespaces: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield the names of all views, as in ``ResolverMatch.view_name``."""
    for pattern in (resolver or get_resolver()).url_patterns:
        if isinstance(pattern, URLPattern):
            yield ":".join([*namespaces, pattern.name or pattern.lookup_str])
        else:
            inner = (*namespaces, pattern.namespace) if pattern.namespace else namespaces
            yield from view_names(pattern, inner)


_counts: RequestCounts | None = None


def share_request_counts(n_processes: int) -> RequestCounts:
    """Make the counts for ``n_processes`` processes, which are forked after this call."""
    global _counts
    _counts = RequestCounts(view_names(), n_processes)
    return _counts


def request_counts() -> RequestCounts:
    """Return the counts of this host's web processes; without a fork, those of this process."""
    return _counts or share_request_counts(1)
