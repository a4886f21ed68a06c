"""Wrappers count, time and remember without changing an answer."""

import numpy as np
import pytest

from engine.core.errors import InfeasibleError, InvalidProblemError
from engine.graphs.grid import Grid
from engine.graphs.pairwise import PairwiseGraph
from engine.inference.pairwise.dual_oracle import DualOracle
from engine.oracles.assignment import AssignmentOracle
from engine.oracles.grid_roof_duality import GridRoofDuality
from engine.oracles.local_polytope import LocalPolytopeProgramme
from engine.oracles.one_hot_scores import OneHotScores
from engine.oracles.perfect_matching import CompleteGraphMatcher
from engine.oracles.protocol import ExtremePoint, Vertex
from engine.oracles.roof_duality import RoofDuality
from engine.oracles.wrappers import CachingOracle, CountingOracle, TimingOracle


class Recorder:
    """An oracle that returns its call number."""

    def __init__(self) -> None:
        self.calls = 0

    def compute_extreme_point(self, scores: np.ndarray) -> ExtremePoint:
        self.calls += 1
        return ExtremePoint(Vertex(np.array([float(self.calls)])), 1.0, 1.5)


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
    failing = TimingOracle(AssignmentOracle())
    with pytest.raises(InvalidProblemError):
        failing.compute_extreme_point(np.zeros(3))
    assert failing.seconds > 0


def test_caching_asks_once_for_the_same_scores_and_forgets_the_oldest() -> None:
    inner = Recorder()
    oracle = CachingOracle(inner, capacity=2)
    first, second, third = np.zeros(3), np.ones(3), np.zeros((3, 1))
    assert oracle.compute_extreme_point(first).vertex.values[0] == 1
    assert oracle.compute_extreme_point(first.copy()).vertex.values[0] == 1
    assert oracle.compute_extreme_point(second).vertex.values[0] == 2
    assert oracle.compute_extreme_point(first).vertex.values[0] == 1
    assert oracle.compute_extreme_point(third).vertex.values[0] == 3  # same bytes, another shape
    assert oracle.compute_extreme_point(second).vertex.values[0] == 4
    assert (inner.calls, oracle.hits) == (4, 2)


def test_caching_knows_one_hot_scores() -> None:
    inner = Recorder()
    oracle = CachingOracle(inner)
    codes = np.array([[0], [1]])
    oracle.compute_extreme_point(OneHotScores(codes, np.eye(2)))
    oracle.compute_extreme_point(OneHotScores(codes.copy(), np.eye(2)))
    oracle.compute_extreme_point(OneHotScores(codes, 2 * np.eye(2)))
    assert inner.calls == 2


def test_caching_keeps_a_vertex_that_its_oracle_overwrites() -> None:
    """Every remembered answer used to be the latest vertex."""
    graph = PairwiseGraph(np.array([2, 2]), np.array([[0, 1]]))
    oracle = CachingOracle(RoofDuality(graph, reuse_vertex=True))
    first, second = graph.indicator(np.array([0, 1])), graph.indicator(np.array([1, 0]))
    oracle.compute_extreme_point(first)
    oracle.compute_extreme_point(second)
    np.testing.assert_array_equal(oracle.compute_extreme_point(first).vertex.values, first)
    assert oracle.hits == 1


ORACLES = {
    "complete graph": (CompleteGraphMatcher(), np.ones((4, 4))),
    "one-hot": (CompleteGraphMatcher(), OneHotScores(np.array([[0], [1]] * 2), np.eye(2))),
    "assignment": (AssignmentOracle(), np.eye(3)),
    "grid": (GridRoofDuality(Grid(2, 2)), np.arange(24.0)),
    "sparse": (RoofDuality(Grid(2, 2).to_pairwise()), np.arange(24.0)),
    "linear programme": (LocalPolytopeProgramme(Grid(2, 2).to_pairwise()), np.arange(24.0)),
    "dual": (DualOracle(Grid(2, 2).to_pairwise()), np.arange(24.0)),
}


@pytest.mark.parametrize("name", ORACLES)
def test_wrappers_stack_around_every_oracle(name: str) -> None:
    oracle, scores = ORACLES[name]
    counted = CountingOracle(TimingOracle(oracle))
    cached = CachingOracle(counted)
    alone = oracle.compute_extreme_point(scores)
    for _ in range(2):
        point = cached.compute_extreme_point(scores)
        assert point.vertex.equals(alone.vertex)
        assert point.value == alone.value
        assert point.upper_bound == pytest.approx(alone.upper_bound)  # some keep dual variables
    assert (counted.calls, cached.hits) == (1, 1)


def test_a_cache_needs_room() -> None:
    with pytest.raises(InvalidProblemError, match="capacity"):
        CachingOracle(Recorder(), capacity=0)


def test_a_gap_is_never_negative() -> None:
    assert ExtremePoint(np.zeros(1), 2.0, 1.0).gap == 0.0
    assert ExtremePoint(np.zeros(1), 2.0, 2.5).gap == 0.5
