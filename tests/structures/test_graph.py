"""The solve in theta on general graphs: exact optima, odd sets checked, Frank-Wolfe agrees."""

from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from scipy.optimize import minimize

from engine.core.checkpoint import FileCheckpoint
from engine.core.errors import InfeasibleError, InvalidProblemError
from engine.entropies.matching import edge_layout
from engine.inference.matching.graph_pseudomarginals import compute_graph_pseudomarginals
from engine.objectives.learning_dual import make_learning_dual
from engine.oracles.sparse_matching import max_weight_matching
from engine.solvers.block_orders import ShuffledOrder
from engine.solvers.control import Callbacks, Limits
from engine.solvers.frank_wolfe import FrankWolfe
from engine.solvers.fully_corrective_frank_wolfe import FullyCorrectiveFrankWolfe
from engine.solvers.theta_ascent import ThetaAscent
from engine.structures.graph import GraphStructure, has_two_sides, interior_of_graph

GRAPHS = {
    "complete": nx.complete_graph(6),
    "ladder": nx.ladder_graph(4),
    "cube": nx.hypercube_graph(3),
    "Petersen": nx.petersen_graph(),
    "path": nx.path_graph(6),
    "two parts": nx.disjoint_union(nx.complete_graph(4), nx.cycle_graph(4)),
}

PRISM = np.array([(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5), (0, 3), (1, 4), (2, 5)])


def edges_of(graph):
    return np.array(nx.convert_node_labels_to_integers(graph).edges)


def observation(name, is_perfect, seed=0):
    """Edges with three features each, and a matching drawn at random."""
    rng = np.random.default_rng(seed)
    n, edges = GRAPHS[name].number_of_nodes(), edges_of(GRAPHS[name])
    features, kind = rng.normal(size=(len(edges), 3)), "perfect" if is_perfect else "any"
    matched = max_weight_matching(n, edges, rng.normal(size=len(edges)), kind).edge_indices
    return n, edges, features, matched


def matchings_of(n, edges, is_perfect):
    """Indicators of all matchings, one by one."""
    found = []
    for size in (n // 2,) if is_perfect else range(n // 2 + 1):
        for chosen in combinations(range(len(edges)), size):
            if len(np.unique(edges[list(chosen)])) == 2 * size:
                found.append(np.isin(np.arange(len(edges)), chosen).astype(float))
    return np.array(found)


def entropy_of(tau, n, edges, rho, is_perfect):
    """H_rho and its gradient as the formulas are written."""

    def log(x):
        return np.log(np.maximum(x, 1e-300))

    value = np.sum((2 * rho - 1) * (1 - tau) * log(1 - tau) - tau * log(tau))
    gradient = -(2 * rho - 1) * (1 + log(1 - tau)) - 1 - log(tau)
    if not is_perfect:
        free = 1 - np.bincount(edges.ravel(), np.repeat(tau, 2), n)
        value -= rho * np.sum(free * log(free))
        gradient += rho * (1 + log(free))[edges].sum(axis=1)
    return value, gradient


@pytest.mark.parametrize("is_perfect", [True, False])
@pytest.mark.parametrize("rho", [0.5, 1.0])
@pytest.mark.parametrize("name", ["ladder", "path", "two parts", "complete"])
def test_the_optimum_is_that_over_the_hull_of_all_matchings(name, rho, is_perfect):
    n, edges, features, matched = observation(name, is_perfect)
    problem = GraphStructure(n, edges, features, matched, rho, is_perfect)
    result = ThetaAscent([problem], 2.0, Limits(1e-8)).solve()
    hull = matchings_of(n, edges, is_perfect)

    def dual(logits):
        share = np.exp(logits - logits.max())
        share /= share.sum()
        tau = share @ hull
        residual = problem.observed - tau @ features
        entropy, slope = entropy_of(tau, n, edges, rho, is_perfect)
        by_share = hull @ (-features @ residual / 2.0 - slope)
        return residual @ residual / 4.0 - entropy, share * (by_share - share @ by_share)

    options = {"maxiter": 2000, "ftol": 1e-15, "gtol": 1e-10}
    start = np.zeros(len(hull))
    best = minimize(dual, start, jac=True, method="L-BFGS-B", options=options).fun
    assert result.is_certified
    assert result.lower_bound <= best + 1e-9
    assert result.objective == pytest.approx(best, abs=1e-6)


@pytest.mark.parametrize("is_perfect", [True, False])
@pytest.mark.parametrize("rho", [0.6, 1.0])
@pytest.mark.parametrize("name", GRAPHS)
def test_theta_and_frank_wolfe_share_objective_and_certificate(name, rho, is_perfect):
    parts = [observation(name, is_perfect, seed) for seed in (0, 1)]
    problems = [GraphStructure(*part, rho, is_perfect) for part in parts]
    direct = ThetaAscent(problems, 3.0, Limits(1e-7)).solve()
    dual = make_learning_dual([p.observed for p in problems], 3.0)
    stepped = (
        FullyCorrectiveFrankWolfe(problems, 3.0, Limits(1e-6)).solve(),
        FrankWolfe(problems, dual, ShuffledOrder(), limits=Limits(1e-2, 2000)).solve(),
    )
    for walk in stepped:
        assert walk.status.is_converged
        assert direct.lower_bound <= walk.objective + 1e-9
        if direct.is_certified:
            assert walk.lower_bound <= direct.objective + 1e-9
    if direct.is_certified:
        assert stepped[0].theta == pytest.approx(direct.theta, abs=5e-3)


def prism(weight):
    """Two triangles joined by three edges; scores that favour the triangles."""
    features = np.r_[np.ones(6), np.zeros(3)][:, None]
    problem = GraphStructure(6, PRISM, features, np.array([0, 3, 8]))
    return problem.maximise(np.array([weight]), None, 1e-9)


def test_a_violated_odd_set_binds():
    assert not prism(0.0).state.sets.nodes
    answer = prism(8.0)
    assert answer.is_feasible
    assert [len(nodes) for nodes in answer.state.sets.nodes] == [3]
    assert answer.statistics[0] == pytest.approx(2.0, abs=1e-6)  # at most two triangle edges
    entropy = 6.0 * np.log(2.0) - 3.0 * np.log(3.0)  # of nine edges at 1/3
    assert answer.log_partition == pytest.approx(16.0 + entropy, abs=1e-6)


@pytest.mark.parametrize("scale", [1.0, 6.0])
@pytest.mark.parametrize("is_perfect", [True, False])
@pytest.mark.parametrize("name", GRAPHS)
def test_bounds_hold_where_marginals_exceed_one_half(name, is_perfect, scale):
    n, edges, features, matched = observation(name, is_perfect)
    theta = scale * np.array([1.0, -1.0, 0.5])
    problem = GraphStructure(n, edges, features, matched, 1.0, is_perfect)
    cold = problem.maximise(theta, None, 1e-8)
    assert cold.log_partition - theta @ cold.statistics - cold.entropy <= 1e-8 + 1e-12
    warm = problem.maximise(1.02 * theta, problem.maximise(theta, None, 1e-8).state, 1e-8)
    again = problem.maximise(1.02 * theta, None, 1e-8)
    assert warm.log_partition == pytest.approx(again.log_partition, abs=1e-7)
    if scale > 1.0:
        assert cold.state.marginals.max() > 0.5


@pytest.mark.parametrize("scale", [0.5, 2.0])
@pytest.mark.parametrize("rho", [0.5, 0.8, 1.0])
@pytest.mark.parametrize("is_perfect", [True, False])
@pytest.mark.parametrize("name", GRAPHS)
def test_rounding_in_the_sums_does_not_end_the_steps_early(name, is_perfect, rho, scale):
    """The slope once held the multipliers times the rounding of the sums: below 0 near the end."""
    n, edges = GRAPHS[name].number_of_nodes(), edges_of(GRAPHS[name])
    interior = interior_of_graph(edge_layout(n, edges), is_perfect=is_perfect)
    scores = scale * np.random.default_rng(3).normal(size=len(edges))
    found = compute_graph_pseudomarginals(
        scores, edges, np.full(n, rho), interior, is_perfect=is_perfect, tolerance=1e-9
    )
    assert found.status.is_converged


@pytest.mark.parametrize("is_perfect", [True, False])
def test_curvature_agrees_with_differences_of_the_statistics(is_perfect):
    problem = GraphStructure(*observation("Petersen", is_perfect), 0.8, is_perfect)
    theta = np.array([0.3, -0.2, 0.1])
    hessian = problem.curvature(theta, problem.maximise(theta, None, 1e-11).state)
    for k, unit in enumerate(np.eye(3)):
        up, down = (
            problem.maximise(theta + g * unit, None, 1e-11).statistics for g in (1e-4, -1e-4)
        )
        assert (up - down) / 2e-4 == pytest.approx(hessian[k], abs=1e-4)


def test_edges_without_a_choice_stay_where_they_are():
    """On a path of six every edge is in the only perfect matching or in none."""
    n, edges, features, matched = observation("path", True)
    solution = GraphStructure(n, edges, features, matched).maximise(np.ones(3), None, 1e-9)
    assert solution.state.marginals.tolist() == [1, 0, 1, 0, 1]
    assert solution.entropy == pytest.approx(0.0, abs=1e-12)


def test_the_wanted_gap_is_that_of_all_parts_together():
    edges = np.concatenate([6 * k + edges_of(nx.complete_graph(6)) for k in range(12)])
    interior, scores = np.full(len(edges), 0.2), np.tile(np.linspace(-1.0, 1.0, 15), 12)
    for tolerance in 10.0 ** np.arange(-9.0, 0.0):
        found = compute_graph_pseudomarginals(
            scores, edges, np.ones(72), interior, tolerance=tolerance
        )
        assert found.status.is_converged
        assert found.upper_bound - found.value <= tolerance


def test_an_edge_that_is_given_leaves_none_of_its_nodes_single():
    edges, interior = np.array([(0, 1), (2, 3)]), np.array([1.0, 0.3])
    found = compute_graph_pseudomarginals(
        np.array([2.0, 0.0]), edges, np.ones(5), interior, is_perfect=False
    )
    assert found.singles[[0, 1, 4]].tolist() == [0.0, 0.0, 1.0]
    assert found.value == pytest.approx(2.0 + np.log(2.0), abs=1e-8)


@pytest.mark.parametrize(
    ("name", "expected"), [("cube", True), ("path", True), ("complete", False)]
)
def test_graphs_of_two_sides_are_recognised(name, expected):
    assert has_two_sides(GRAPHS[name].number_of_nodes(), edges_of(GRAPHS[name])) is expected


def test_hopeless_graphs_and_settings_are_refused():
    star = np.array([(0, 1), (0, 2), (0, 3)])
    with pytest.raises(InfeasibleError) as caught:
        GraphStructure(4, star, np.ones((3, 1)), np.array([0]))
    assert caught.value.deficient_set == (0,)
    interior = np.full(3, 0.2)
    with pytest.raises(InvalidProblemError, match="stay single"):
        compute_graph_pseudomarginals(np.ones(3), star, np.zeros(4), interior, is_perfect=False)


@pytest.mark.parametrize(
    ("matched", "is_perfect", "words"),
    [
        ([0, 1], True, "node 1"),
        ([0, 1], False, "node 1"),
        ([0, 0], False, "node 0"),
        ([0], True, "node 2"),
        ([-1, 1], True, "edges from 0 to 3"),
        ([0, 4], False, "edges from 0 to 3"),
        ([[0, 2]], True, "shape"),
    ],
)
def test_an_observation_that_is_no_matching_is_refused(matched, is_perfect, words):
    square = np.array([(0, 1), (1, 2), (2, 3), (3, 0)])
    part = 4, square, np.ones((4, 2)), np.array(matched)
    with pytest.raises(InvalidProblemError, match=words):
        GraphStructure(*part, 1.0, is_perfect=is_perfect)


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_a_resumed_run_certifies_no_bound_that_was_not_proved(steps, tmp_path, monkeypatch):
    """The saved point breaks an odd set: its dual value may lie below the optimum."""
    monkeypatch.setattr("engine.solvers.control.CHECKPOINT_SECONDS", 0.0)
    looks = "engine.inference.matching.graph_polytope.find_violated_sets"
    monkeypatch.setattr(
        looks, lambda _, x, *__: ((), x.max() < 0.4)
    )  # proved at equal scores alone
    favours_triangles = np.r_[np.ones(6), np.zeros(3)][:, None]
    square = np.array([(0, 1), (1, 2), (2, 3), (3, 0)])
    problems = [GraphStructure(6, PRISM, favours_triangles, np.array([0, 3, 8]), 0.5)]
    for _ in range(2):
        alternating = np.array([[1.0], [0.0], [1.0], [0.0]])
        problems.append(GraphStructure(4, square, alternating, np.array([0, 2]), 0.5))
    callbacks = Callbacks(checkpoint=FileCheckpoint(tmp_path / "checkpoint.npz"))
    limits = Limits(1e-9, max_iterations=steps)
    stopped, resumed = (ThetaAscent(problems, 0.05, limits, callbacks).solve() for _ in range(2))
    assert stopped.is_certified
    assert not problems[0].maximise(stopped.theta, None, 1e-9).is_feasible
    assert resumed.is_certified
    assert resumed.objective == stopped.objective
