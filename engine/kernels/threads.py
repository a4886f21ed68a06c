"""Threads that share the rows of an array; kernels release the lock, so two cores work at once.

Python threads instead of Numba's parallel loops: they survive a fork of the process (a task
queue's workers), and kernels compile several times faster. Linear algebra inside is limited to one
thread: two levels of threads wait for each other, 10 times slower on a machine with other work.
"""

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from itertools import pairwise
from typing import Any

from threadpoolctl import (  # type: ignore[import-untyped]
    OpenBLASController,
    ThreadpoolController,
)

SMALL = 256  # rows below which another thread costs more than it gains

_pool: ThreadPoolExecutor | None = None


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def _take_control() -> None:
    """Let this thread set the limit: threadpoolctl obeys only the first thread that set it.

    Several threads set it in turn here, under a separate lock.
    """
    OpenBLASController.clear_controlling_thread(force=True)


class _OneBlasThread:
    """Limit of linear algebra to one thread while any thread of the process requests it.

    The number of threads is one setting for the whole process. So the first user limits it and the
    last one restores it, however their uses overlap: if each user restored the previous value, one
    thread could remain for good.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._limit: Any = None

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Limit the process from here to the end of the block."""
        with self._lock:
            if self._users == 0:
                _take_control()
                self._limit = _controller().limit(limits=1, user_api="blas")
            self._users += 1
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if self._users == 0:
                    self._restore()

    def start_again(self) -> None:
        """Reset the limit in a forked child, which has not the parent's threads and lock."""
        self._lock = threading.Lock()
        self._users = 0
        self._restore()

    def _restore(self) -> None:
        if self._limit is not None:
            _take_control()
            self._limit.restore_original_limits()
            self._limit = None


_one_blas_thread = _OneBlasThread()


def one_blas_thread() -> AbstractContextManager[None]:
    """Return a context in which linear algebra runs in the calling thread alone."""
    return _one_blas_thread()


def _start_again_in_child() -> None:
    """Reset the pool in a forked child, which has none of its parent's threads."""
    global _pool
    _pool = None
    _one_blas_thread.start_again()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_again_in_child)


def count_threads() -> int:
    """Return the number of threads that share rows: the cores of this process, at most eight."""
    wanted = os.environ.get("NUMBA_NUM_THREADS", "")
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2
    return max(1, min(int(wanted) if wanted.isdigit() else 8, available, 8))


def for_row_ranges(n_rows: int, work: Callable[[int, int], None], small: int = SMALL) -> None:
    """Call ``work(first, last)`` for ranges over 0 .. n_rows, in threads from ``small`` rows."""
    global _pool
    threads = count_threads()
    if threads == 1 or n_rows < small:
        work(0, n_rows)
        return
    if _pool is None:
        _pool = ThreadPoolExecutor(threads, thread_name_prefix="rows")
    ranges = list(pairwise(n_rows * k // threads for k in range(threads + 1)))
    with one_blas_thread():
        futures = [_pool.submit(work, first, last) for first, last in ranges[1:]]
        work(*ranges[0])
        for future in futures:
            future.result()
