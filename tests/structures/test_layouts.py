"""Structures over matchings: the oracle's gap, and agreement between layouts."""

import numpy as np
import pytest

from engine.core.errors import InvalidProblemError
from engine.crf.bipartite import BipartiteItems
from engine.crf.survey_features import make_survey_features
from engine.solvers.control import Limits
from engine.solvers.fully_corrective_frank_wolfe import FullyCorrectiveFrankWolfe
from engine.solvers.iterate import find_direction
from engine.structures.bipartite import BipartiteStructure
from engine.structures.graph import GraphStructure
from engine.structures.survey import SurveyStructure
from tests.learning.roommates.cohorts import random_cohorts


def bipartite_structures(rho):
    """The same assignment between two sides and in a general graph."""
    rng = np.random.default_rng(0)
    n = 4
    features = rng.normal(size=(n, n, 3))
    columns = np.array([1, 0, 3, 2])
    rows, others = np.divmod(np.arange(n * n), n)
    edges = np.stack([rows, others + n], axis=1)
    matched = np.arange(n) * n + columns
    return (
        BipartiteStructure(BipartiteItems(features), columns, rho),
        GraphStructure(2 * n, edges, features.reshape(-1, 3), matched, rho),
    )


def survey_structure():
    survey, pairs = random_cohorts(10, 1)[0]
    return SurveyStructure(survey, pairs, make_survey_features([survey]), 1.0)


@pytest.mark.parametrize("rho", [1.0, 0.5])
def test_bipartite_and_general_layouts_agree(rho):
    one, two = bipartite_structures(rho)
    assert one.observed == pytest.approx(two.observed)
    first, second = (
        FullyCorrectiveFrankWolfe([structure], 2.0, Limits(1e-6)).solve()
        for structure in (one, two)
    )
    assert first.status.is_converged
    assert second.status.is_converged
    assert first.objective == pytest.approx(second.objective, rel=2e-6)


@pytest.mark.parametrize("make", [survey_structure, lambda: bipartite_structures(1.0)[0]])
def test_the_gap_is_the_slope_towards_the_vertex_and_the_largest(make):
    structure = make()
    theta = np.random.default_rng(1).normal(size=len(structure.observed)) * 0.1
    point = structure.start
    best, other = (find_direction(structure, t, point) for t in (theta, -theta))
    slopes = [
        theta @ (d.statistics - structure.statistics(point))
        + structure.entropy.along(point, d.vertex)(1e-9)[1]
        for d in (best, other)
    ]
    assert best.gap == pytest.approx(slopes[0], abs=1e-5)
    assert slopes[1] <= best.gap + 1e-5


@pytest.mark.parametrize("make", [survey_structure, lambda: bipartite_structures(1.0)[1]])
def test_statistics_of_a_moved_point_are_the_same_combination(make):
    structure = make()
    point = structure.start.copy()
    answer = find_direction(structure, np.full(len(structure.observed), 0.1), point)
    before, value = structure.statistics(point), structure.entropy.along(point, answer.vertex)(0.25)
    answer.vertex.move(point, 0.25)
    expected = 0.75 * before + 0.25 * answer.statistics
    assert structure.statistics(point) == pytest.approx(expected)
    assert structure.entropy.value(point) == pytest.approx(value[0])
    dense = answer.vertex.dense(point.size).reshape(point.shape)
    assert structure.statistics(dense) == pytest.approx(structure.statistics(answer.vertex))
    assert structure.statistics(structure.labels) == pytest.approx(structure.observed)


@pytest.mark.parametrize("columns", [[0, 0, 1, 1], [0, 1, 2], [1, 2, 3, 4]])
def test_an_observation_that_is_no_assignment_is_refused(columns):
    items = BipartiteItems(np.ones((4, 4, 2)))
    with pytest.raises(InvalidProblemError, match="permutation"):
        BipartiteStructure(items, np.array(columns), 1.0)
