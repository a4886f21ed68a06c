"""Newton's method for bipartite pseudomarginals: certificates, bounds, agreement."""

import doctest
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import engine.inference.matching.bipartite_newton as module
from engine.core.errors import InvalidProblemError
from engine.core.status import Status
from engine.inference.matching.bipartite_newton import compute_bipartite_pseudomarginals
from engine.inference.matching.bipartite_propagation import propagate_bipartite
from engine.inference.matching.exact import compute_bipartite_marginals


def random_scores(n: int, seed: int, scale: float) -> np.ndarray:
    return scale * np.random.default_rng(seed).standard_normal((n, n))


def objective(scores: np.ndarray, tau: np.ndarray, rho: np.ndarray) -> float:
    n = len(tau)
    total = 0.0
    for i in range(n):
        for j in range(n):
            t, c = tau[i, j], rho[i] + rho[n + j] - 1
            total += scores[i, j] * t - t * np.log(t)
            if t < 1:
                total += c * (1 - t) * np.log1p(-t)
    return float(total)


@settings(max_examples=40)
@given(st.integers(2, 8), st.integers(0, 10_000), st.floats(0.01, 8.0))
def test_the_sandwich_holds_at_random_scores(n: int, seed: int, scale: float) -> None:
    """log Z_Bethe <= log perm <= log Z_RW, with certified ends."""
    scores = random_scores(n, seed, scale)
    exact = compute_bipartite_marginals(scores).log_partition
    bethe = compute_bipartite_pseudomarginals(scores, 1.0)
    reweighted = compute_bipartite_pseudomarginals(scores, 0.5)
    assert bethe.value <= exact + 1e-9
    assert reweighted.upper_bound >= exact - 1e-9
    assert reweighted.gap <= 1e-8


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.8, 1.0])
@pytest.mark.parametrize("n", [3, 12])
def test_no_feasible_point_is_better_than_the_upper_bound(n: int, rho: float) -> None:
    scores, rng = random_scores(n, n, 1.5), np.random.default_rng(0)
    solution = compute_bipartite_pseudomarginals(scores, rho)
    assert solution.status is Status.CONVERGED
    weights = np.full(2 * n, rho)
    assert solution.value == pytest.approx(objective(scores, solution.marginals, weights), abs=1e-9)
    for _ in range(50):
        other = np.mean([np.eye(n)[rng.permutation(n)] for _ in range(3 * n)], axis=0)
        mixed = 0.9 * solution.marginals + 0.1 * other
        assert objective(scores, mixed, weights) <= solution.upper_bound + 1e-12


def test_a_rho_per_node_weighs_rows_before_columns() -> None:
    """The optimum of the formula as written, found by a search of its own over the interior."""
    scores, rho = random_scores(3, 5, 1.0), np.array([0.2, 0.5, 1.0, 0.9, 0.6, 0.3])
    solution = compute_bipartite_pseudomarginals(scores, rho)
    assert solution.status is Status.CONVERGED
    hull = np.array([np.eye(3)[list(order)] for order in permutations(range(3))])

    def loss(logits: np.ndarray) -> float:
        share = np.exp(logits - logits.max())
        return -objective(scores, np.tensordot(share / share.sum(), hull, axes=1), rho)

    best = -minimize(loss, np.zeros(6), tol=1e-10).fun
    assert solution.value == pytest.approx(best, abs=1e-7)
    assert best <= solution.upper_bound + 1e-12


@pytest.mark.parametrize("scale", [0.2, 2.0, 6.0])
def test_it_agrees_with_belief_propagation(scale: float) -> None:
    scores = random_scores(15, 3, scale)
    beliefs = propagate_bipartite(scores, tolerance=1e-12, max_sweeps=20_000)
    newton = compute_bipartite_pseudomarginals(scores, tolerance=1e-12)
    np.testing.assert_allclose(newton.marginals, beliefs.marginals, atol=1e-6)


def test_reweighted_half_is_sinkhorn() -> None:
    """With c = 0 the entropy is Shannon's and tau = exp(W - u - v)."""
    scores = random_scores(6, 1, 2.0)
    tau = np.exp(scores)
    for _ in range(2000):
        tau /= tau.sum(axis=1, keepdims=True)
        tau /= tau.sum(axis=0)
    newton = compute_bipartite_pseudomarginals(scores, 0.5, tolerance=1e-12)
    np.testing.assert_allclose(newton.marginals, tau, atol=1e-7)


@pytest.mark.parametrize(("n", "scale", "seed"), [(2, 0.1, 2), (6, 3.0, 8), (4, 3.0, 8)])
def test_an_optimum_at_a_vertex_is_reached_and_certified(n: int, scale: float, seed: int) -> None:
    """Newton steps alone stall there: the Bethe entropy has no barrier at a vertex."""
    solution = compute_bipartite_pseudomarginals(random_scores(n, seed, scale))
    assert solution.gap <= 1e-8
    np.testing.assert_allclose(solution.marginals.sum(axis=0), 1.0, atol=1e-9)


def test_a_warm_start_needs_fewer_steps() -> None:
    scores = random_scores(20, 0, 2.0)
    cold = compute_bipartite_pseudomarginals(scores)
    moved = scores + 0.01 * random_scores(20, 1, 1.0)
    warm = compute_bipartite_pseudomarginals(moved, start=cold.marginals)
    again = compute_bipartite_pseudomarginals(moved)
    assert warm.iterations < again.iterations
    np.testing.assert_allclose(warm.marginals, again.marginals, atol=1e-5)


def test_relabelling_rows_and_columns_relabels_the_answer() -> None:
    scores, rng = random_scores(9, 4, 3.0), np.random.default_rng(1)
    rows, columns = rng.permutation(9), rng.permutation(9)
    plain = compute_bipartite_pseudomarginals(scores, tolerance=1e-12).marginals
    moved = compute_bipartite_pseudomarginals(scores[rows][:, columns], tolerance=1e-12).marginals
    np.testing.assert_allclose(moved, plain[rows][:, columns], atol=1e-6)


@pytest.mark.parametrize("rho", [-0.1, 1.1, np.nan])
def test_weights_outside_the_unit_interval_are_refused(rho: float) -> None:
    with pytest.raises(InvalidProblemError, match="rho"):
        compute_bipartite_pseudomarginals(np.zeros((3, 3)), rho)


@pytest.mark.parametrize("count", [1, 3, 5, 7])
def test_another_number_of_weights_than_nodes_is_refused(count: int) -> None:
    with pytest.raises(InvalidProblemError, match="rho"):
        compute_bipartite_pseudomarginals(np.zeros((3, 3)), np.ones(count))


@pytest.mark.parametrize("rho", [0.0, 0.8, 1.0])
def test_one_row_has_one_matching(rho: float) -> None:
    solution = compute_bipartite_pseudomarginals([[2.0]], rho)
    assert solution.marginals.tolist() == [[1.0]]
    assert (solution.value, solution.upper_bound) == (2.0, 2.0)
    assert solution.status is Status.CONVERGED
    with pytest.raises(InvalidProblemError, match="rho"):
        compute_bipartite_pseudomarginals([[2.0]], 1.5)


@pytest.mark.parametrize("scores", [np.zeros((0, 0)), np.zeros((2, 3)), np.full((2, 2), np.nan)])
def test_bad_scores_are_refused(scores: np.ndarray) -> None:
    with pytest.raises(InvalidProblemError, match="scores"):
        compute_bipartite_pseudomarginals(scores)


def test_docstring_examples_hold() -> None:
    assert doctest.testmod(module).failed == 0
