"""Odd-set inequalities: the cheap proofs are right, and violations are found."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.inference.odd_sets import (
    bound_second_eigenvalue,
    find_violated_odd_set,
    is_in_matching_polytope,
    odd_sets_hold,
)
from engine.kernels.odd_cuts import smallest_odd_cut
from tests.reference import perfect_matchings as reference


def smallest_cut_by_enumeration(weights):
    n = len(weights)
    inside = [set(u) for size in range(1, n, 2) for u in combinations(range(n), size)]
    return min(sum(weights[i, j] for i in u for j in range(n) if j not in u) for u in inside)


def two_triangles():
    """Degrees are one, but the halves of six students cannot be left by less than one unit."""
    tau = np.zeros((6, 6))
    for a, b in [(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5)]:
        tau[a, b] = tau[b, a] = 0.5
    return tau


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([4, 6, 8]))
def test_smallest_odd_cut_agrees_with_enumeration(seed, n):
    weights = np.random.default_rng(seed).random((n, n)) ** 4
    weights = weights + weights.T
    np.fill_diagonal(weights, 0.0)
    side = np.zeros(n, dtype=bool)
    value = smallest_odd_cut(weights, side)
    assert value == pytest.approx(smallest_cut_by_enumeration(weights), abs=1e-9)
    assert side.sum() % 2 == 1
    assert weights[side][:, ~side].sum() == pytest.approx(value, abs=1e-9)


def test_two_triangles_are_refused():
    assert not is_in_matching_polytope(two_triangles())
    found = find_violated_odd_set(two_triangles())
    assert sorted(found) in ([0, 1, 2], [3, 4, 5])


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.floats(0.0, 1.0))
def test_cheap_tests_never_accept_a_violation(seed, share):
    rng = np.random.default_rng(seed)
    mixture = np.einsum("k,kij->ij", rng.dirichlet(np.full(15, 0.3)), reference.all_matchings(6))
    tau = share * two_triangles() + (1 - share) * mixture
    holds = smallest_cut_by_enumeration(tau) >= 1.0 - 1e-9
    assert is_in_matching_polytope(tau) == holds
    if odd_sets_hold(6, float((tau**2).sum()), float(tau.max())):
        assert holds


@pytest.mark.parametrize("columns", [1, 3, 10])
def test_eigenvalue_bound_holds(columns):
    rng = np.random.default_rng(columns)
    for _ in range(20):
        scores = rng.normal(size=(40, 40))
        tau = np.exp(scores + scores.T)
        np.fill_diagonal(tau, 0.0)
        for _ in range(200):
            scale = 1.0 / np.sqrt(tau.sum(axis=1))
            tau = tau * scale[:, None] * scale
        z = np.column_stack([np.ones(40), rng.normal(size=(40, columns))])
        bound = bound_second_eigenvalue(z.T @ z, z.T @ tau @ z, tau @ z, float((tau**2).sum()))
        assert bound >= np.linalg.eigvalsh(tau)[-2]


def balanced(scores):
    """Symmetric, zero diagonal, row sums 1."""
    tau = np.exp(scores + scores.T)
    np.fill_diagonal(tau, 0.0)
    for _ in range(200):
        scale = 1.0 / np.sqrt(tau.sum(axis=1))
        tau = tau * scale[:, None] * scale
    return tau


def test_fourth_powers_prove_what_squares_do_not(monkeypatch):
    """Above 128 nodes, without the eigenvalues, which take three times as long as a product."""
    n = 300
    tau = balanced(np.random.default_rng(1).normal(size=(n, n)) * 0.85)
    assert not odd_sets_hold(n, float((tau**2).sum()), float(tau.max()))
    monkeypatch.delattr(np.linalg, "eigvalsh")
    assert is_in_matching_polytope(tau)


def test_two_large_odd_halves_are_not_proved():
    tau = np.kron(np.eye(2), np.ones((65, 65)) - np.eye(65)) / 64
    assert not is_in_matching_polytope(tau)
