"""Chains, trees and forests: exact MAP, and learning that is exact maximum likelihood."""

import numpy as np
import pytest
from scipy.optimize import minimize

from engine.baselines.structured_perceptron import train_structured_perceptron
from engine.baselines.structured_svm import train_structured_svm
from engine.core.errors import InfeasibleError, InvalidProblemError
from engine.entropies.pairwise import graph_entropy
from engine.graphs.grid import Grid
from engine.graphs.pairwise import PairwiseGraph, PairwiseModel
from engine.objectives.learning_dual import make_learning_dual
from engine.oracles.forest import ForestOracle
from engine.oracles.protocol import Vertex
from engine.oracles.roof_duality import RoofDuality
from engine.solvers.control import Limits
from engine.solvers.frank_wolfe import FrankWolfe
from engine.structures.linear import LinearStructure
from tests.reference.pairwise_models import enumerate_model


def random_forest(rng: np.random.Generator, n_nodes: int, most_labels: int = 3) -> PairwiseGraph:
    """Nodes joined to one before them, or to none."""
    pairs = [(int(rng.integers(v)), v) for v in range(1, n_nodes) if rng.random() < 0.8]
    pairs = [pair if rng.random() < 0.5 else pair[::-1] for pair in pairs]
    cards = rng.integers(1, most_labels + 1, n_nodes)
    return PairwiseGraph(cards, np.array(pairs, dtype=np.int64).reshape(-1, 2))


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("zeros", [0.0, 0.2])
def test_the_best_labelling_is_that_of_enumeration(seed, zeros):
    rng = np.random.default_rng(seed)
    graph = random_forest(rng, 7)
    scores = rng.normal(size=graph.size)
    scores[rng.random(graph.size) < zeros] = -np.inf
    values, _ = enumerate_model(PairwiseModel(graph, scores))
    if values.max() == -np.inf:
        with pytest.raises(InfeasibleError):
            ForestOracle(graph).compute_extreme_point(scores)
        return
    point = ForestOracle(graph).compute_extreme_point(scores)
    assert point.value == pytest.approx(values.max())
    assert values.max() <= point.upper_bound <= values.max() + 1e-9


def test_a_cycle_is_refused():
    with pytest.raises(InvalidProblemError, match="no cycle"):
        ForestOracle(PairwiseGraph(np.full(3, 2), np.array([[0, 1], [1, 2], [2, 0]])))


def test_learning_on_trees_is_exact_maximum_likelihood():
    """The certified interval of the surrogate holds the exact optimum, and theta is its."""
    rng, ridge, structures, exact = np.random.default_rng(0), 1.0, [], []
    for _ in range(3):
        graph = random_forest(rng, 5)
        features = rng.normal(size=(graph.size, 2))
        labels = rng.integers(0, graph.cardinalities)
        _, labellings = enumerate_model(PairwiseModel(graph, np.zeros(graph.size)))
        exact.append(np.array([graph.indicator(x) @ features for x in labellings]))
        structures.append(
            LinearStructure(
                features,
                Vertex(graph.indicator(labels)),
                ForestOracle(graph),
                graph_entropy(graph, 1.0),
                graph.uniform(),
            )
        )

    def loss(theta: np.ndarray) -> float:
        partitions = sum(np.logaddexp.reduce(rows @ theta) for rows in exact)
        return partitions - theta @ sum(s.observed for s in structures) + ridge / 2 * theta @ theta

    best = minimize(loss, np.zeros(2), tol=1e-10)
    dual = make_learning_dual([s.observed for s in structures], ridge)
    result = FrankWolfe(structures, dual, limits=Limits(1e-3, max_iterations=4000)).solve()
    assert result.status.is_converged
    assert result.lower_bound - 1e-9 <= -best.fun <= result.objective + 1e-9
    np.testing.assert_allclose(result.theta, best.x, atol=0.1)


def test_max_margin_and_perceptron_learn_grids_by_roof_duality():
    """Labels drawn from their own best labellings are fitted without a mistake."""
    rng, truth = np.random.default_rng(1), np.array([1.0, 0.6])
    grid = Grid(4, 5)
    graph = grid.to_pairwise()
    structures = []
    for _ in range(4):
        features = np.zeros((graph.size, 2))
        features[1 : 2 * graph.n_nodes : 2, 0] = 3.0 * rng.normal(size=graph.n_nodes)
        features[2 * graph.n_nodes :, 1] = np.tile([1.0, 0.0, 0.0, 1.0], graph.n_edges)
        best = RoofDuality(graph).compute_extreme_point(features @ truth).vertex
        labels = Vertex(np.array(best.values))
        structures.append(
            LinearStructure(
                features, labels, RoofDuality(graph), graph_entropy(graph, 0.5), graph.uniform()
            )
        )
    machine = train_structured_svm(structures, ridge=1e-3, rng=rng, relative_gap=1e-2)
    assert machine.status.is_converged
    perceptron = train_structured_perceptron(structures, rng=rng, max_passes=50)
    for theta in (machine.theta, perceptron.theta):
        for s in structures:
            found = s.oracle.compute_extreme_point(s.scores(theta)).vertex.values
            assert np.abs(found - s.labels.values)[: 2 * graph.n_nodes].sum() <= 4.0
