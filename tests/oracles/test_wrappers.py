"""Wrappers count, time and remember without changing an answer."""

import numpy as np
import pytest

from engine.core.errors import InfeasibleError, InvalidProblemError
from engine.oracles.one_hot_scores import OneHotScores
from engine.oracles.perfect_matching import CompleteGraphMatcher
from engine.oracles.protocol import ExtremePoint
from engine.oracles.wrappers import CachingOracle, CountingOracle, TimingOracle


class Recorder:
    """An oracle that returns its call number."""

    def __init__(self) -> None:
        self.calls = 0

    def compute_extreme_point(self, scores: np.ndarray) -> ExtremePoint:
        self.calls += 1
        return ExtremePoint(np.array([self.calls]), 1.0, 1.5)


def test_counting_passes_answers_on_and_counts_failures_too() -> None:
    oracle = CountingOracle(CompleteGraphMatcher())
    scores = np.array([[0.0, 2.0], [2.0, 0.0]])
    assert oracle.compute_extreme_point(scores).value == 2.0
    with pytest.raises(InfeasibleError):
        oracle.compute_extreme_point(np.zeros((3, 3)))
    assert oracle.calls == 2


def test_timing_adds_up() -> None:
    oracle = TimingOracle(Recorder())
    oracle.compute_extreme_point(np.zeros(1))
    first = oracle.seconds
    oracle.compute_extreme_point(np.zeros(1))
    assert first > 0
    assert oracle.seconds == pytest.approx(first + oracle.last_seconds)


def test_caching_asks_once_for_the_same_scores_and_forgets_the_oldest() -> None:
    inner = Recorder()
    oracle = CachingOracle(inner, capacity=2)
    first, second, third = np.zeros(3), np.ones(3), np.zeros((3, 1))
    assert oracle.compute_extreme_point(first).vertex[0] == 1
    assert oracle.compute_extreme_point(first.copy()).vertex[0] == 1
    assert oracle.compute_extreme_point(second).vertex[0] == 2
    assert oracle.compute_extreme_point(first).vertex[0] == 1
    assert oracle.compute_extreme_point(third).vertex[0] == 3  # same bytes, another shape
    assert oracle.compute_extreme_point(second).vertex[0] == 4
    assert (inner.calls, oracle.hits) == (4, 2)


def test_caching_knows_one_hot_scores() -> None:
    inner = Recorder()
    oracle = CachingOracle(inner)
    codes = np.array([[0], [1]])
    oracle.compute_extreme_point(OneHotScores(codes, np.eye(2)))
    oracle.compute_extreme_point(OneHotScores(codes.copy(), np.eye(2)))
    oracle.compute_extreme_point(OneHotScores(codes, 2 * np.eye(2)))
    assert inner.calls == 2


def test_a_cache_needs_room() -> None:
    with pytest.raises(InvalidProblemError, match="capacity"):
        CachingOracle(Recorder(), capacity=0)


def test_a_gap_is_never_negative() -> None:
    assert ExtremePoint(np.zeros(1), 2.0, 1.0).gap == 0.0
    assert ExtremePoint(np.zeros(1), 2.0, 2.5).gap == 0.5
