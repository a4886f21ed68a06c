"""Blocks over matchings: the oracle's gap, the slopes, and agreement between layouts."""

import numpy as np
import pytest

from engine.core.errors import InvalidProblemError
from engine.crf.bipartite import BipartiteItems
from engine.crf.survey_features import make_survey_features
from engine.objectives.matching_block import (
    make_bipartite_block,
    make_graph_block,
    make_survey_block,
)
from engine.solvers.control import Limits
from engine.solvers.pairwise_frank_wolfe import PairwiseFrankWolfe
from tests.learning.roommate_cohorts import random_cohorts


def bipartite_blocks(rho):
    """The same assignment as a bipartite block and as a general graph."""
    rng = np.random.default_rng(0)
    n = 4
    features = rng.normal(size=(n, n, 3))
    columns = np.array([1, 0, 3, 2])
    items = BipartiteItems(features)
    rows, others = np.divmod(np.arange(n * n), n)
    edges = np.stack([rows, others + n], axis=1)
    matched = np.arange(n) * n + columns
    return (
        make_bipartite_block(items, columns, rho),
        make_graph_block(2 * n, edges, features.reshape(-1, 3), matched, rho),
    )


def survey_block():
    survey, pairs = random_cohorts(10, 1)[0]
    return make_survey_block(survey, pairs, make_survey_features([survey]), 1.0)


@pytest.mark.parametrize("rho", [1.0, 0.5])
def test_bipartite_and_general_layouts_agree(rho):
    one, two = bipartite_blocks(rho)
    assert one.observed == pytest.approx(two.observed)
    limits = Limits(1e-5, max_iterations=400)
    first = PairwiseFrankWolfe([one], 2.0, limits).solve()
    second = PairwiseFrankWolfe([two], 2.0, limits).solve()
    assert first.status.is_converged
    assert second.status.is_converged
    assert first.objective == pytest.approx(second.objective, rel=2e-5)


@pytest.mark.parametrize("make", [survey_block, lambda: bipartite_blocks(1.0)[0]])
def test_slopes_are_derivatives_and_the_gap_is_the_largest(make):
    block = make()
    theta = np.random.default_rng(1).normal(size=len(block.observed)) * 0.1
    point = block.initial_point()
    answer = block.compute_extreme_direction(theta, point)
    slope = block.directional_slope(theta, point, answer.vertex)
    assert slope == pytest.approx(answer.gap, abs=1e-9)
    segment = block.segment(point.copy(), answer.vertex)
    change = answer.statistics - block.statistics(point)
    assert slope == pytest.approx(theta @ change + segment.entropy(1e-9)[1], abs=1e-5)
    other = block.compute_extreme_direction(-theta, point).vertex
    assert block.directional_slope(theta, point, other) <= answer.gap + 1e-9


def test_statistics_of_a_moved_point_are_the_same_combination():
    block = survey_block()
    theta = np.zeros(len(block.observed))
    point = block.initial_point()
    answer = block.compute_extreme_direction(theta + 0.1, point)
    before = block.statistics(point)
    moved = block.segment(point, answer.vertex).point(0.25)
    expected = 0.75 * before + 0.25 * answer.statistics
    assert block.statistics(moved) == pytest.approx(expected)
    assert block.entropy(moved) == pytest.approx(
        block.segment(block.initial_point(), answer.vertex).entropy(0.25)[0]
    )
    restored = block.unpack(block.pack(moved))
    assert np.array_equal(restored, moved)


@pytest.mark.parametrize("columns", [[0, 0, 1, 1], [0, 1, 2], [1, 2, 3, 4]])
def test_an_observation_that_is_no_assignment_is_refused(columns):
    items = BipartiteItems(np.ones((4, 4, 2)))
    with pytest.raises(InvalidProblemError, match="permutation"):
        make_bipartite_block(items, np.array(columns), 1.0)
