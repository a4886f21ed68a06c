"""The optimum over the matching polytope of any graph, against all of its matchings."""

from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from scipy.optimize import linprog, minimize

from engine.core.errors import StoppedError
from engine.core.progress import never_stop
from engine.core.status import Status
from engine.entropies.matching import edge_layout
from engine.inference.matching.graph_polytope import EdgePolytope, solve_over_graph_polytope
from engine.inference.matching.graph_problem import GraphProblem
from engine.inference.matching.graph_pseudomarginals import compute_graph_pseudomarginals
from engine.oracles.sparse_matching import max_weight_matching
from engine.solvers.control import Limits
from engine.solvers.theta_ascent import ThetaAscent
from engine.structures.graph import GraphStructure, interior_of_graph
from tests.patience import busyness
from tests.structures.test_graph import PRISM, edges_of, entropy_of

FLOWER = [(0, 3), (1, 6), (2, 9), (0, 6), (1, 9), (2, 3)] + [
    (first + a, first + b) for first in (3, 6, 9) for a, b in ((0, 1), (1, 2), (0, 2))
]
"""Three triangles and three nodes in between: one pair leaves each triangle in every matching."""
BRIDGED = [
    *combinations(range(5), 2),
    *((5 + a, 5 + b) for a, b in combinations(range(5), 2)),
    (4, 5),
    (0, 9),
]


def matchings_of(n, edges, is_perfect):
    """Indicators of all matchings, node by node."""
    found = []

    def go(node, chosen, used):
        while node < n and used >> node & 1:
            node += 1
        if node == n:
            found.append(np.isin(np.arange(len(edges)), chosen))
            return
        if not is_perfect:
            go(node + 1, chosen, used)
        for k in np.flatnonzero(edges.min(axis=1) == node):
            other = int(edges[k].max())
            if not used >> other & 1:
                go(node + 1, [*chosen, k], used | 1 << node | 1 << other)

    go(0, [], 0)
    return np.array(found, dtype=np.float64)


def most_over_matchings(scores, n, edges, rho, is_perfect):
    """The maximum of <W, tau> + H over means of all matchings, by weights of each."""
    hull = matchings_of(n, edges, is_perfect)

    def negative(logits):
        share = np.exp(logits - logits.max())
        share /= share.sum()
        tau = share @ hull
        entropy, slope = entropy_of(tau, n, edges, rho, is_perfect)
        by_share = hull @ (scores + slope)
        return -(scores @ tau + entropy), share * (share @ by_share - by_share)

    options = {"maxiter": 3000, "ftol": 1e-16, "gtol": 1e-10}
    starts = np.zeros(len(hull)), hull @ scores / 2.0
    return max(
        -minimize(negative, start, jac=True, method="L-BFGS-B", options=options).fun
        for start in starts
    )


def solve(scores, n, edges, rho, is_perfect, **options):
    interior = interior_of_graph(edge_layout(n, edges), is_perfect=is_perfect)
    return solve_over_graph_polytope(
        scores, edges, np.full(n, rho), interior, is_perfect=is_perfect, **options
    )


def excluded_pairs(n, share, rng):
    """A graph with a perfect matching that so many pairs are missing from."""
    edges = np.array(list(combinations(range(n), 2)))
    is_kept = (rng.random(len(edges)) >= share) | (edges[:, 0] + 1 == edges[:, 1])
    return edges[is_kept]


@pytest.mark.parametrize("share", [0.1, 0.3, 0.6])
@pytest.mark.parametrize(
    ("n", "is_perfect"), [(4, True), (6, True), (8, True), (4, False), (5, False), (7, False)]
)
def test_the_optimum_is_that_over_all_matchings(n, share, is_perfect):
    rng = np.random.default_rng([n, int(10 * share), is_perfect])
    edges = excluded_pairs(n, share, rng)
    alike = edges[:, 0] // 3 == edges[:, 1] // 3  # triangles of identical students
    for rho, scores in ((1.0, 5.0 * alike), (0.6, rng.normal(size=len(edges)) + 30.0 * alike)):
        found = solve(scores, n, edges, rho, is_perfect)
        best = most_over_matchings(scores, n, edges, rho, is_perfect)
        assert found.is_feasible
        assert best <= found.upper_bound + 1e-7 * max(abs(best), 1.0)
        assert found.value == pytest.approx(best, rel=1e-5, abs=1e-6)
        assert found.upper_bound - found.value <= 1e-5 * max(abs(best), 1.0)


@pytest.mark.parametrize("scale", [0.0, 1.0, 10.0])
@pytest.mark.parametrize(("n", "edges"), [(6, PRISM), (12, FLOWER), (10, BRIDGED)])
def test_sets_that_leave_no_choice_or_a_bridge_hold(n, edges, scale):
    edges = np.array(edges)
    scores = scale * np.random.default_rng(0).normal(size=len(edges))
    scores[edges[:, 0] // 3 == edges[:, 1] // 3] += scale
    found = solve(scores, n, edges, 1.0, True)
    best = most_over_matchings(scores, n, edges, 1.0, True)
    assert found.is_feasible
    assert found.value == pytest.approx(best, abs=1e-5)
    assert best - 1e-7 <= found.upper_bound <= best + 1e-4


def test_no_bound_is_lost_where_the_objective_is_flat():
    """On a square the entropies cancel; the bound once lay 1e-5 below the better matching."""
    square = np.array([(0, 1), (0, 2), (1, 3), (2, 3)])
    scores = np.array([-0.42019589, -13.56569137, 2.75617638, 1.03300926])
    found = compute_graph_pseudomarginals(
        scores, square, np.ones(4), np.full(4, 0.5), tolerance=1e-8
    )
    assert scores[0] + scores[3] <= found.upper_bound <= scores[0] + scores[3] + 1e-6


@pytest.mark.parametrize("scale", [10.0, 50.0])
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(("degree", "n", "is_perfect"), [(9, 10, False), (3, 40, True)])
def test_values_at_halves_are_of_points_whose_sums_are_exact(degree, n, is_perfect, seed, scale):
    """Sums 2e-6 above 1 once counted: the value lay 1e-4 above the bound, and read as converged."""
    edges = edges_of(nx.random_regular_graph(degree, n, seed=1))
    interior = interior_of_graph(edge_layout(n, edges), is_perfect=is_perfect)
    scores = scale * np.random.default_rng(seed).normal(size=len(edges))
    found = compute_graph_pseudomarginals(
        scores, edges, np.ones(n), interior, is_perfect=is_perfect
    )
    sums = np.bincount(edges.ravel(), np.repeat(found.marginals, 2)) + found.singles
    np.testing.assert_allclose(sums, 1.0, atol=1e-9)
    assert 0.0 <= found.upper_bound - found.value <= 1e-9
    assert found.status.is_converged
    assert found.iterations <= 80


@pytest.mark.parametrize("is_perfect", [True, False])
@pytest.mark.parametrize("has_odd_sets", [True, False])
def test_the_bound_by_a_vertex_is_that_of_the_constraints(has_odd_sets, is_perfect):
    """Two triangles joined by an edge: without odd sets the best point has all triangles at 1/2."""
    edges = np.array([(0, 1), (1, 2), (0, 2), (2, 3), (3, 4), (4, 5), (3, 5)])
    scores = np.array([9.0, 9.0, 9.0, 0.0, 9.0, 9.0, 9.0])
    interior = np.array([3.0, 1.0, 1.0, 2.0, 1.0, 3.0, 1.0]) / (4.0 if is_perfect else 8.0)
    problem = GraphProblem.build(scores, edges, np.ones(6), is_perfect)
    polytope = EdgePolytope(problem, interior, 1e-9, has_odd_sets, never_stop)
    x = problem.repair(problem.complete(interior))
    constant, rewards = problem.tangent(x)
    cover = np.zeros((6, len(x)))
    np.add.at(cover, (edges.ravel(), np.repeat(np.arange(7), 2)), 1.0)
    cover[:, 7:] = np.eye(6)[:, : len(x) - 7]
    best = linprog(
        -rewards,
        A_eq=cover,
        b_eq=np.ones(6),
        bounds=(0.0, 1.0),
        integrality=np.full(len(x), int(has_odd_sets)),
    )
    assert polytope._vertex_bound(x) == pytest.approx(constant - best.fun, rel=1e-9)


def year(n, share, seed):
    """Triangles of identical students who answer four questions, some pairs excluded."""
    rng = np.random.default_rng(seed)
    answers = np.repeat(rng.integers(0, 5, (n // 3, 4)), 3, axis=0)
    edges = excluded_pairs(n, share, rng)
    apart = np.abs(answers[edges[:, 0]] - answers[edges[:, 1]])
    closeness = rng.gumbel(size=len(edges)) / 2.0 - apart.sum(axis=1)
    matched = max_weight_matching(n, edges, closeness, "perfect").edge_indices
    return GraphStructure(n, edges, np.hstack([apart, apart == 0]).astype(float), matched)


@pytest.mark.parametrize(("n", "share"), [(24, 0.3), (36, 0.1)])
@pytest.mark.parametrize("ridge", [1.0, 0.01])
def test_years_with_excluded_pairs_are_certified(n, share, ridge):
    problem = year(n, share, 1)
    result = ThetaAscent([problem], ridge, Limits(1e-4, max_iterations=60)).solve()
    assert result.status is Status.CONVERGED
    assert result.is_certified


def test_curvature_knows_the_sets_that_bind():
    problem = year(12, 0.2, 3)
    theta = np.array([-1.0, -1.0, -0.5, -1.0, 0.5, 1.0, 0.5, 1.0])
    answer = problem.maximise(theta, None, 1e-11)
    assert answer.state.sets.nodes
    hessian = problem.curvature(theta, answer.state)
    for k, unit in enumerate(np.eye(8)):
        up, down = (
            problem.maximise(theta + g * unit, answer.state, 1e-11).statistics
            for g in (1e-4, -1e-4)
        )
        assert (up - down) / 2e-4 == pytest.approx(hessian[k], abs=2e-3)


def test_a_stop_is_heard_at_every_step():
    problem = year(24, 0.3, 2)
    theta = np.array([-2.0, -2.0, -2.0, -2.0, 1.0, 1.0, 1.0, 1.0])
    asked = 0

    def never():
        nonlocal asked
        asked += 1
        return False

    problem.should_stop = never
    steps = problem.maximise(theta, None, 1e-9).sweeps
    assert asked >= steps > 20
    for last in (1, steps // 2, steps):
        answers = iter([False] * (last - 1) + [True])
        problem.should_stop = lambda answers=answers: next(answers)
        with pytest.raises(StoppedError):
            problem.maximise(theta, None, 1e-9)


def test_a_time_limit_is_kept_by_years_with_excluded_pairs():
    """One of 60 students once overran its limit of 20 s."""
    result = ThetaAscent([year(60, 0.3, 1)], 1e-3, Limits(1e-14, max_seconds=0.3)).solve()
    assert result.seconds < 3.0 * busyness()
    assert np.isfinite(result.relative_gap)
