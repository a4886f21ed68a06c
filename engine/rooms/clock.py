"""Time left, and whether somebody asked to stop."""

import time
from collections.abc import Callable

from engine.core.progress import StopCallback


class SearchClock:
    """Seconds since the start; ``is_over`` once the limit has passed or the caller said stop."""

    def __init__(self, max_seconds: float | None, should_stop: StopCallback) -> None:
        self._started = time.monotonic()
        self._limit = float("inf") if max_seconds is None else float(max_seconds)
        self._should_stop = should_stop
        self.is_cancelled = False

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._started

    @property
    def left(self) -> float:
        """Seconds until the limit, inf without one."""
        return max(self._limit - self.seconds, 0.0)

    def is_over(self) -> bool:
        """Whether to stop now."""
        if self._should_stop():
            self.is_cancelled = True
        return self.is_cancelled or self.left <= 0.0

    def part(self, seconds: float) -> Callable[[], bool]:
        """Return a callback that says stop after so many seconds, or when all is over."""
        end = self.seconds + seconds
        return lambda: self.is_over() or self.seconds >= end
