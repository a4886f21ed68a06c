"""Holding linear algebra to one thread, from several threads at once."""

import os
import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from engine.kernels.threads import one_blas_thread


def blas_threads() -> set[int]:
    np.eye(2) @ np.eye(2)
    return {entry["num_threads"] for entry in threadpool_info() if entry["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def three_threads():
    with threadpool_limits(3, user_api="blas"):
        yield


def overlap(first_out: str) -> None:
    """Let two threads use the limit such that one enters and leaves in the middle of the other."""
    entered, may_leave = threading.Event(), threading.Event()

    def other() -> None:
        with one_blas_thread():
            entered.set()
            may_leave.wait()

    thread = threading.Thread(target=other)
    if first_out == "the first in":
        with one_blas_thread():
            thread.start()
            entered.wait()
        assert blas_threads() == {1}, "the other still needs it"
    else:
        thread.start()
        entered.wait()
        with one_blas_thread():
            may_leave.set()
            thread.join()
            assert blas_threads() == {1}, "this one still needs it"
    may_leave.set()
    thread.join()


@pytest.mark.parametrize("first_out", ["the first in", "the last in"])
def test_overlapping_uses_restore_all_threads(first_out: str) -> None:
    """Each restored what it had found: one of two left one thread for the rest of the process."""
    overlap(first_out)
    assert blas_threads() == {3}


def test_an_error_restores_all_threads() -> None:
    with pytest.raises(KeyError), one_blas_thread(), one_blas_thread():
        raise KeyError
    assert blas_threads() == {3}


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_starts_with_all_threads() -> None:
    with one_blas_thread():
        child = os.fork()
        if child == 0:
            is_whole = blas_threads() == {3}
            with one_blas_thread():
                is_whole = is_whole and blas_threads() == {1}
            os._exit(0 if is_whole and blas_threads() == {3} else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
