"""Limits of a search: processor seconds, counted work, and cancellation by the caller."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from engine.core.progress import StopCallback, never_stop
from engine.kernels.work_time import thread_seconds


class SearchClock:
    """Time and work spent by a search; ``is_over`` after a limit or when the caller cancels.

    Processor seconds are those of the calling thread: other programs do not shorten a search.
    Counted seconds are the work that parts of a search report, at the speed of the machine
    where they were measured: a limit on them stops at the same place in every run.

    Parameters
    ----------
    max_seconds : float or None, processor seconds.
    should_stop : called whenever the search checks the clock.
    max_work : float or None, counted seconds.
    parent : SearchClock, optional, which is charged as well, and whose end ends this one.
    """

    def __init__(
        self,
        max_seconds: float | None,
        should_stop: StopCallback = never_stop,
        max_work: float | None = None,
        parent: "SearchClock | None" = None,
    ) -> None:
        self._started, self._parent = thread_seconds(), parent
        self._limit = float("inf") if max_seconds is None else float(max_seconds)
        self._most_work = float("inf") if max_work is None else float(max_work)
        self._should_stop = should_stop
        self.work = 0.0
        self.is_cancelled = False
        self._is_without_limit = False
        self.is_cut = False  # by processor seconds: another run may end at a different place

    @property
    def seconds(self) -> float:
        """Processor seconds since the start."""
        return thread_seconds() - self._started

    @property
    def limit(self) -> float:
        """Smaller limit given at the start, counted or processor seconds; inf without a limit."""
        return min(self._limit, self._most_work)

    def charge(self, seconds: float) -> None:
        """Add counted seconds of work to this clock and its parents."""
        self.work += seconds
        if self._parent is not None:
            self._parent.charge(seconds)

    def child(self, max_work: float | None) -> "SearchClock":
        """Return a clock for part of the work, with its own limit in counted seconds."""
        return SearchClock(None, never_stop, max_work, self)

    @contextmanager
    def without_limit(self) -> Iterator[None]:
        """Suspend the limits in a block; the caller can still cancel."""
        self._is_without_limit = True
        try:
            yield
        finally:
            self._is_without_limit = False

    def restore(self, work: float, seconds: float) -> None:
        """Restore the work and time that an interrupted run had spent."""
        self.work, self._started = work, thread_seconds() - seconds

    def is_over(self) -> bool:
        """Return True if the search must stop now."""
        is_limited = not self._is_without_limit
        if is_limited and self.work >= self._most_work:
            return True
        if self._parent is not None:
            return self._parent.is_over()
        if is_limited and self.seconds >= self._limit:
            self.is_cut = True
        if self._should_stop():
            self.is_cancelled = True
        return self.is_cancelled or self.is_cut

    def part(self, seconds: float) -> Callable[[], bool]:
        """Return a callback that ends after some counted seconds, or when the search is over."""
        end = self.work + seconds
        return lambda: self.is_over() or self.work >= end
