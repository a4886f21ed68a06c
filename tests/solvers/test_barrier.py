"""One barrier loop for dense groups and edge lists: it closes where Newton's method stalls."""

import numpy as np
import pytest

from engine.core.errors import StoppedError
from engine.inference.matching.graph_polytope import EdgePolytope, solve_over_graph_polytope
from engine.inference.matching.graph_problem import GraphProblem
from engine.inference.matching.interior import solve_from_inside
from engine.inference.matching.odd_sets import EXACT_UP_TO
from engine.solvers.barrier import solve_by_barrier
from engine.solvers.control import Limits
from engine.solvers.theta_ascent import ThetaAscent
from engine.structures.graph import GraphStructure
from tests.inference.matching.test_interior import make_scores


def random_scores(n, spread, seed):
    scores = np.random.default_rng(seed).normal(size=(n, n)) * spread
    return (scores + scores.T) / np.sqrt(2)


@pytest.mark.parametrize("rho", [1.0, 0.5])
@pytest.mark.parametrize(
    "scores",
    [
        random_scores(100, 60.0, 0),
        random_scores(12, 1000.0, 1),
        make_scores(6, 40.0, 10.0, np.random.default_rng(1)),
        make_scores(20, 100.0, 50.0, np.random.default_rng(1)),
    ],
    ids=["sharp", "very sharp", "triangles", "sharp triangles"],
)
def test_edge_lists_close_as_dense_groups_do(scores, rho):
    """Edges had a loop of their own, which left 5e-4 of the value open after 2,840 steps."""
    n = len(scores)
    upper = np.triu_indices(n, 1)
    weights, edges = np.full(n, rho), np.stack(upper, axis=1)
    dense = solve_from_inside(scores, weights, 1e-9, exact_up_to=EXACT_UP_TO)
    size = max(1.0, abs(dense.value))
    found = solve_over_graph_polytope(
        scores[upper], edges, weights, np.full(len(edges), 1.0 / (n - 1)), tolerance=1e-9 * size
    )
    assert found.is_feasible
    assert 0.0 <= found.upper_bound - found.value <= 1.01e-9 * size
    assert found.value == pytest.approx(dense.value, abs=3e-9 * size)
    assert found.steps <= 250


def test_a_stop_is_heard_before_every_step():
    scores = make_scores(4, 6.0, 1.0, np.random.default_rng(5))
    upper = np.triu_indices(12, 1)
    edges = np.stack(upper, axis=1)
    problem = GraphProblem.build(scores[upper], edges, np.ones(12), is_perfect=True)
    asked = []

    def should_stop():
        asked.append(0)
        return len(asked) > 5

    polytope = EdgePolytope(problem, np.full(len(edges), 1 / 11), 1e-9, True, lambda: False)
    with pytest.raises(StoppedError):
        solve_by_barrier(polytope, should_stop=should_stop)
    assert len(asked) == 6


@pytest.mark.parametrize("ridge", [3.0, 0.1])
def test_kinks_of_even_cycles_are_closed_with_few_features(ridge):
    """The Bethe optimum of a cycle of four jumps; only 400 features or more went on from there."""
    rng = np.random.default_rng(3)
    edges = np.array([(0, 1), (1, 2), (2, 3), (3, 0)])
    problems = [
        GraphStructure(4, edges, rng.normal(size=(4, 3)), np.array(matched))
        for matched in ((0, 2), (1, 3), (0, 2))
    ]
    result = ThetaAscent(problems, ridge, Limits(1e-6, max_iterations=100)).solve()
    assert result.status.is_converged
    assert result.is_certified
