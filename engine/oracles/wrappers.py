"""Wrappers that count, time and cache the calls of any oracle."""

import hashlib
from collections import OrderedDict
from dataclasses import replace
from typing import Any

import numpy as np

from engine.core.arguments import read_only
from engine.core.errors import InvalidProblemError
from engine.core.options import check_whole
from engine.kernels.work_time import wall_seconds
from engine.oracles.one_hot_scores import OneHotScores
from engine.oracles.protocol import ExtremePoint, LinearMinimizationOracle


class CountingOracle:
    """Oracle that counts the calls of another; ``calls`` includes those that raised.

    Parameters
    ----------
    oracle : LinearMinimizationOracle
        The wrapped oracle.

    Examples
    --------
    >>> from engine.oracles.assignment import AssignmentOracle
    >>> oracle = CountingOracle(AssignmentOracle())
    >>> oracle.compute_extreme_point(np.eye(2)).value, oracle.calls
    (2.0, 1)
    """

    def __init__(self, oracle: LinearMinimizationOracle) -> None:
        self._oracle = oracle
        self.calls = 0

    def compute_extreme_point(self, scores: Any) -> ExtremePoint:
        """Pass the call on and count it."""
        self.calls += 1
        return self._oracle.compute_extreme_point(scores)


class TimingOracle:
    """Oracle that adds up another's wall-clock seconds; ``last_seconds`` is the latest call's.

    Parameters
    ----------
    oracle : LinearMinimizationOracle
        The wrapped oracle.

    Examples
    --------
    >>> from engine.oracles.assignment import AssignmentOracle
    >>> oracle = TimingOracle(AssignmentOracle())
    >>> oracle.compute_extreme_point(np.eye(2)).value, oracle.seconds >= oracle.last_seconds > 0
    (2.0, True)
    """

    def __init__(self, oracle: LinearMinimizationOracle) -> None:
        self._oracle = oracle
        self.seconds = 0.0
        self.last_seconds = 0.0

    def compute_extreme_point(self, scores: Any) -> ExtremePoint:
        """Pass the call on and time it."""
        started = wall_seconds()
        try:
            return self._oracle.compute_extreme_point(scores)
        finally:
            self.last_seconds = wall_seconds() - started
            self.seconds += self.last_seconds


class CachingOracle:
    """Oracle that caches another's results for the latest scores, by a digest of their bytes.

    A vertex that is not read-only is copied: its oracle may write the next vertex into its memory.

    Parameters
    ----------
    oracle : LinearMinimizationOracle
    capacity : int
        Most results kept; the least recently used one is dropped first.

    Examples
    --------
    >>> from engine.oracles.assignment import AssignmentOracle
    >>> oracle = CountingOracle(AssignmentOracle())
    >>> kept = CachingOracle(oracle)
    >>> kept.compute_extreme_point(np.eye(2)).value, kept.compute_extreme_point(np.eye(2)).value
    (2.0, 2.0)
    >>> oracle.calls
    1
    """

    def __init__(self, oracle: LinearMinimizationOracle, capacity: int = 16) -> None:
        check_whole("capacity", capacity, at_least=1)
        if capacity < 1:
            raise InvalidProblemError(f"capacity: expected 1 or more, received {capacity}.")
        self._oracle = oracle
        self._capacity = capacity
        self._answers: OrderedDict[bytes, ExtremePoint] = OrderedDict()
        self.hits = 0

    def compute_extreme_point(self, scores: Any) -> ExtremePoint:
        """Return the cached result for these scores, or call the oracle and cache its result."""
        key = _digest(scores)
        if key in self._answers:
            self.hits += 1
            self._answers.move_to_end(key)
            return self._answers[key]
        answer = self._oracle.compute_extreme_point(scores)
        if answer.vertex.values.flags.writeable:
            kept = replace(answer.vertex, values=read_only(answer.vertex.values.copy()))
            answer = replace(answer, vertex=kept)
        self._answers[key] = answer
        if len(self._answers) > self._capacity:
            self._answers.popitem(last=False)
        return answer


def _digest(scores: Any) -> bytes:
    arrays = (scores.codes, scores.block) if isinstance(scores, OneHotScores) else (scores,)
    digest = hashlib.blake2b(digest_size=20)
    for values in arrays:
        array = np.ascontiguousarray(values)
        digest.update(repr((array.shape, array.dtype.str)).encode())
        digest.update(array.tobytes())
    return digest.digest()
