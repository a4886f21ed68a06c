"""Clocks of time limits stand still while kernels compile."""

import threading
import time

from numba import njit

from engine.kernels import work_time

WORK_SECONDS = 0.05


def spend(seconds: float) -> None:
    """Use the processor for as long."""
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


def compile_something() -> None:
    """Compile a kernel that no cache has, within which another one is compiled."""

    @njit
    def inner(x):
        return x * x + 1.0

    @njit
    def outer(x):
        return inner(x) - inner(x + 1.0)

    assert outer(2.0) == -5.0


def test_compiling_is_no_part_of_a_time_limit() -> None:
    clocks = (work_time.wall_seconds, work_time.thread_seconds, work_time.process_seconds)
    began = [clock() for clock in clocks]
    real = time.thread_time()
    compile_something()
    compiled = time.thread_time() - real
    spend(WORK_SECONDS)
    wall, thread, process = (clock() - start for clock, start in zip(clocks, began, strict=True))
    assert compiled > 0.02, "nothing was compiled"
    for seconds in (wall, thread, process):
        assert seconds >= 0.9 * WORK_SECONDS
    # Making the functions and calling them is work; compiling them is nearly all of the time.
    assert thread < 0.5 * compiled + WORK_SECONDS
    assert process < 0.5 * compiled + WORK_SECONDS


def test_a_thread_that_compiles_takes_no_time_of_another() -> None:
    own = work_time.thread_seconds()
    before = work_time.process_seconds()
    real = time.process_time()
    thread = threading.Thread(target=compile_something)
    thread.start()
    thread.join()
    assert work_time.thread_seconds() - own < 0.05
    assert work_time.process_seconds() - before < 0.5 * (time.process_time() - real)


def test_clocks_never_run_backwards() -> None:
    seen: list[float] = []
    compiling = threading.Thread(target=compile_something)
    compiling.start()
    while compiling.is_alive():
        seen.append(work_time.wall_seconds())
    compiling.join()
    seen.append(work_time.wall_seconds())
    assert seen == sorted(seen)


def test_the_first_compilation_is_told_once() -> None:
    told: list[int] = []
    work_time.on_first_compilation(lambda: told.append(1))
    compile_something()
    compile_something()
    assert told == [1]
