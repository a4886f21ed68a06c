"""Planar Ising models as structures: exact learning, held against enumeration."""

import itertools

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp

from engine.baselines.structured_svm import train_structured_svm
from engine.core.errors import InvalidProblemError
from engine.estimators import StructuredModel
from engine.graphs.grid import Grid
from engine.graphs.pairwise import PairwiseGraph
from engine.structures.planar_ising import PlanarIsingStructure

RIDGE = 0.5


def observations(count: int, seed: int) -> list[PlanarIsingStructure]:
    rng = np.random.default_rng(seed)
    graph = Grid(3, 3).to_pairwise()
    return [
        PlanarIsingStructure(
            graph, rng.normal(size=(graph.n_edges, 3)), rng.integers(0, 2, graph.n_nodes)
        )
        for _ in range(count)
    ]


def all_statistics(one: PlanarIsingStructure) -> np.ndarray:
    """phi of every labelling of nine nodes."""
    labellings = np.array(list(itertools.product((0, 1), repeat=9)))
    return np.array([one.statistics(one.oracle.vertex(labels)) for labels in labellings])


def test_learning_is_the_exact_maximum_of_the_likelihood() -> None:
    structures = observations(3, 0)
    tables = [all_statistics(one) for one in structures]

    def loss(theta: np.ndarray) -> float:
        sums = sum(logsumexp(table @ theta) for table in tables)
        seen = sum(float(theta @ one.observed) for one in structures)
        return float(sums - seen + 0.5 * RIDGE * theta @ theta)

    model = StructuredModel(ridge=RIDGE, solver="theta", relative_gap=1e-8).fit(structures)
    exact = minimize(loss, np.zeros(3), options={"gtol": 1e-9})
    np.testing.assert_allclose(model.theta_, exact.x, atol=1e-4)
    assert model.result_.is_certified
    assert model.result_.lower_bound - 1e-9 <= -exact.fun <= model.result_.objective + 1e-9
    for one, table in zip(structures, tables, strict=True):
        vertex = one.oracle.compute_extreme_point(one.scores(model.theta_))
        assert vertex.value == pytest.approx((table @ model.theta_).max(), abs=1e-9)
        assert vertex.upper_bound >= vertex.value


def test_max_margin_learns_with_the_same_oracle() -> None:
    structures = observations(2, 1)
    fit = train_structured_svm(structures, ridge=1.0, rng=np.random.default_rng(0))
    assert np.isfinite(fit.theta).all()
    assert fit.theta.any()


def test_frank_wolfe_says_what_it_lacks() -> None:
    with pytest.raises(InvalidProblemError, match="has no entropy"):
        StructuredModel(max_iterations=2).fit(observations(1, 2))


def test_other_graphs_and_labels_are_refused() -> None:
    complete = PairwiseGraph(np.full(5, 2), np.array(list(itertools.combinations(range(5), 2))))
    with pytest.raises(InvalidProblemError, match="drawn in the plane"):
        PlanarIsingStructure(complete, np.ones((10, 1)), np.zeros(5, dtype=np.int64))
    edge = PairwiseGraph(np.full(2, 2), np.array([[0, 1]]))
    with pytest.raises(InvalidProblemError, match="labels"):
        PlanarIsingStructure(edge, np.ones((1, 1)), np.array([0, 2]))
