"""Calls at any depth do without the system: it is asked for memory once, not for every call."""

import resource

from webapp.common.frames import with_room_for_frames
from webapp.wsgi import application

N_CALLS = 500


def _wide(*values: int) -> int:
    """Have a larger frame than ``_faults_at``, so that an edge falls on it at some depth."""
    a, b, c, d, e, f, g, h, i, j, k, m, n, o, p, q = values
    return a + b + c + d + e + f + g + h + i + j + k + m + n + o + p + q


def _faults_at(depth: int) -> int:
    """Return the page faults of a loop of calls below so many frames."""
    if depth:
        return _faults_at(depth - 1)
    before = resource.getrusage(resource.RUSAGE_THREAD).ru_minflt
    for _ in range(N_CALLS):
        _wide(*range(16))
    return resource.getrusage(resource.RUSAGE_THREAD).ru_minflt - before


def _worst() -> int:
    return max(_faults_at(depth) for depth in range(300))


def test_no_depth_of_calls_asks_the_system_for_memory_again_and_again():
    with_room_for_frames(_worst)()  # what is loaded at the first call
    assert with_room_for_frames(_worst)() < N_CALLS / 10


def test_arguments_answers_and_errors_pass():
    with_room = with_room_for_frames(lambda *values, key: (values, key))
    assert with_room(1, 2, key=3) == ((1, 2), 3)


def test_the_web_server_answers_with_room_for_frames():
    assert application.__code__.co_stacksize > 30_000
