"""Clocks that stand still while kernels compile: a time limit is for work, not for the first use.

A first call compiles for seconds to half a minute. A limit that counted this ended a search before
its first step, and the same command gave another answer on a new machine.
"""

import threading
import time
from collections.abc import Callable

from numba.core import event

_COMPILING = "numba:compile"  # the first work of a process that no cache has
_LOCKED = "numba:compiler_lock"  # compiling, reading the cache, and waiting for another thread


class _Compilation(event.Listener):
    """Seconds that this process spent on compiling, of the wall clock and of processors."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._own = threading.local()
        self._n_busy = 0
        self._since = 0.0
        self._wall = 0.0
        self._processor = 0.0

    def on_start(self, event: event.Event) -> None:
        """Begin an interval unless this thread is within one."""
        depth = getattr(self._own, "depth", 0)
        self._own.depth = depth + 1
        if depth:
            return
        self._own.since = time.thread_time()
        with self._lock:
            if not self._n_busy:
                self._since = time.perf_counter()
            self._n_busy += 1

    def on_end(self, event: event.Event) -> None:
        """End the outermost interval of this thread."""
        self._own.depth -= 1
        if self._own.depth:
            return
        seconds = time.thread_time() - self._own.since
        self._own.seconds = self.thread + seconds
        with self._lock:
            self._processor += seconds
            self._n_busy -= 1
            if not self._n_busy:
                self._wall += time.perf_counter() - self._since

    def wall_clock(self) -> float:
        """Return the wall clock without the seconds during which any thread compiled."""
        with self._lock:
            return (self._since if self._n_busy else time.perf_counter()) - self._wall

    @property
    def thread(self) -> float:
        """Processor seconds of finished compilations in this thread."""
        return float(getattr(self._own, "seconds", 0.0))

    @property
    def processor(self) -> float:
        """Processor seconds of finished compilations in all threads."""
        return self._processor


_compilation = _Compilation()
event.register(_LOCKED, _compilation)  # type: ignore[no-untyped-call]  # no stubs


def wall_seconds() -> float:
    """Return seconds of a wall clock that stands still while any thread compiles."""
    return _compilation.wall_clock()


def thread_seconds() -> float:
    """Return processor seconds of this thread without those that it compiled for."""
    return time.thread_time() - _compilation.thread


def process_seconds() -> float:
    """Return processor seconds of this process without those that it compiled for."""
    return time.process_time() - _compilation.processor


class _FirstUse(event.Listener):
    def __init__(self, tell: Callable[[], None]) -> None:
        self._tell: Callable[[], None] | None = tell

    def on_start(self, event: event.Event) -> None:
        """Tell once."""
        tell, self._tell = self._tell, None
        if tell is not None:
            tell()

    def on_end(self, event: event.Event) -> None:
        """Do nothing."""


def on_first_compilation(tell: Callable[[], None]) -> None:
    """Call ``tell`` once, when a kernel is compiled that no cache holds."""
    event.register(_COMPILING, _FirstUse(tell))  # type: ignore[no-untyped-call]  # no stubs
