"""The search for edge probabilities: its minimum, and a stop with a bound that holds."""

import numpy as np
import pytest
from scipy.optimize import minimize

from engine.graphs.pairwise import PairwiseGraph, PairwiseModel
from engine.inference.pairwise.tree_reweighted import TreeReweighted
from engine.inference.pairwise.tree_weights import mutual_information, optimise_tree_weights
from tests.reference.pairwise_models import exact_node_marginals, random_model


@pytest.mark.parametrize("answers", [1, 7])
def test_a_stopped_search_ends_within_a_sweep_and_its_bound_holds(answers):
    model = random_model(0, 6, density=0.9, scale=2.0)
    asked = []

    def should_stop():
        asked.append(True)
        return len(asked) >= answers

    weights = optimise_tree_weights(model, tolerance=0.0, should_stop=should_stop)
    assert len(asked) <= answers + 4  # each solve on the way out asks once more
    assert weights.upper_bound >= exact_node_marginals(model)[0] - 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_the_bound_is_the_smallest_of_all_edge_probabilities(seed):
    """Against a general minimiser on a cycle of four, whose trees leave out one edge each."""
    rng = np.random.default_rng(seed)
    graph = PairwiseGraph(np.full(4, 2), np.array([[0, 1], [1, 2], [2, 3], [3, 0]]))
    couplings = np.array([1.6, 1.2, 0.9, 1.3])
    edges = np.multiply.outer(couplings, [1.0, -1.0, -1.0, 1.0]).ravel()
    model = PairwiseModel(graph, np.concatenate([0.3 * rng.normal(size=8), edges]))

    def bound(rho):
        solver = TreeReweighted(graph, rho, from_trees=True)
        return solver.solve(model, tolerance=1e-11).upper_bound

    found = optimise_tree_weights(model, max_steps=100)
    best = minimize(
        bound,
        np.full(4, 0.75),
        method="SLSQP",
        bounds=[(0.05, 1.0)] * 4,
        constraints={"type": "eq", "fun": lambda rho: rho.sum() - 3.0},
    )
    assert best.success
    assert best.fun < found.bounds[0] - 1e-3
    assert found.upper_bound == pytest.approx(best.fun, abs=1e-4)


def test_margins_too_small_to_be_multiplied_have_their_information():
    """Their product is no number above zero, and the information was infinite."""
    graph = PairwiseGraph(np.array([2, 2]), np.array([[0, 1]]))
    rare = 1e-174
    tables = np.array([1.0, rare, 1.0, rare, 1.0, 0.0, 0.0, rare])
    np.testing.assert_allclose(mutual_information(graph, tables), [-rare * np.log(rare)])
