"""Rows of an array shared among threads; kernels release the lock, so two cores work at once.

Threads of our own instead of Numba's parallel loops: they survive a fork of the process (a task
queue's workers), and kernels compile several times faster. Linear algebra inside is held to one
thread: two levels of threads wait for each other, tenfold slower on a machine that has other work.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import cache
from itertools import pairwise
from typing import Any

from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

SMALL = 256  # rows below which a hand-over to another thread costs more than it gains

_pool: ThreadPoolExecutor | None = None


def _forget_pool() -> None:
    """A forked child has none of its parent's threads: it starts its own."""
    global _pool
    _pool = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[Any]:
    """Return a context in which linear algebra runs in the calling thread alone."""
    context: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return context


def count_threads() -> int:
    """Number of threads that share the rows: the cores that this process may use, at most eight."""
    wanted = os.environ.get("NUMBA_NUM_THREADS", "")
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2
    return max(1, min(int(wanted) if wanted.isdigit() else 8, available, 8))


def for_row_ranges(n_rows: int, work: Callable[[int, int], None], small: int = SMALL) -> None:
    """Call ``work(first, last)`` for ranges that cover 0 .. n_rows, at once from ``small`` rows."""
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
