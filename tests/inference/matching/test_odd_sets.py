"""Odd-set inequalities: the cheap proofs are right, and violations are found."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.core.errors import StoppedError
from engine.inference.matching import odd_cuts, odd_sets
from engine.inference.matching.odd_cuts import find_odd_cuts
from engine.inference.matching.odd_sets import (
    examine_cheaply,
    examine_odd_sets,
    prove_second_eigenvalue,
)
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


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.sampled_from([4, 6, 8]), st.sampled_from([1, 4, 12]))
def test_odd_cuts_agree_with_enumeration(seed, n, power):
    """Against what is asked for, below the smallest, near it and above many."""
    rng = np.random.default_rng(seed)
    weights = rng.random((n, n)) ** power
    weights = weights + weights.T
    np.fill_diagonal(weights, 0.0)
    smallest = smallest_cut_by_enumeration(weights)
    for enough in (0.9 * smallest, 1.001 * smallest, 2.0 * smallest, 10.0 * smallest):
        found, values = find_odd_cuts(weights, np.ones(n, dtype=bool), enough, 3)
        assert len(found) == len(values) <= 3
        assert (len(values) > 0) == (enough > smallest)
        for side, value in zip(found, values, strict=True):
            assert side.sum() % 2 == 1
            assert weights[side][:, ~side].sum() == pytest.approx(value, rel=1e-9)
        if len(values):
            assert values[0] == pytest.approx(smallest, rel=1e-9)


@pytest.mark.parametrize("parts", [2, 9, 40])
def test_groups_that_hardly_meet_are_proved_at_once(parts):
    """Years of near-duplicates: 190 students took maximum flows eleven seconds."""
    rng = np.random.default_rng(parts)
    group = np.sort(rng.integers(parts, size=200))
    scores = np.where(group[:, None] == group, 0.0, -12.0) + rng.normal(0.0, 0.3, (200, 200))
    tau = balanced(scores / 2.0)
    proof = examine_odd_sets(tau)
    assert proof.holds or proof.violated
    for nodes in proof.violated:
        assert len(nodes) % 2 == 1
        assert np.delete(tau[nodes], nodes, axis=1).sum() < 1.0


def test_two_triangles_are_refused():
    assert not examine_odd_sets(two_triangles()).holds
    violated = [sorted(nodes) for nodes in examine_odd_sets(two_triangles()).violated]
    assert violated
    assert all(nodes in ([0, 1, 2], [3, 4, 5]) for nodes in violated)


@settings(max_examples=60)
@given(st.integers(0, 10**6), st.floats(0.0, 1.0))
def test_cheap_tests_never_accept_a_violation(seed, share):
    rng = np.random.default_rng(seed)
    mixture = np.einsum("k,kij->ij", rng.dirichlet(np.full(15, 0.3)), reference.all_matchings(6))
    tau = share * two_triangles() + (1 - share) * mixture
    holds = smallest_cut_by_enumeration(tau) >= 1.0 - 1e-9
    assert examine_odd_sets(tau).holds == holds
    if examine_cheaply(6, float((tau**2).sum()), float(tau.max())).holds:
        assert holds


def balanced(scores):
    """Symmetric, zero diagonal, row sums 1."""
    tau = np.exp(scores + scores.T)
    np.fill_diagonal(tau, 0.0)
    for _ in range(400):
        scale = 1.0 / np.sqrt(tau.sum(axis=1))
        tau = tau * scale[:, None] * scale
    return tau


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.sampled_from([8, 10]), st.sampled_from([0.3, 2.0, 6.0]))
def test_without_the_smallest_cut_of_all_every_proof_and_violation_is_true(seed, n, spread):
    """Also where the graph falls into groups that hardly meet, as similar students do."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 3, n)
    apart = np.where(group[:, None] == group, 0.0, rng.uniform(0.0, 15.0))
    tau = balanced(rng.normal(size=(n, n)) * spread - apart)
    if np.abs(tau.sum(axis=1) - 1.0).max() > 1e-12:
        return
    proof = examine_odd_sets(tau, exact_up_to=0)
    true = smallest_cut_by_enumeration(tau)
    assert proof.least <= true + 1e-9
    assert proof.holds or proof.violated
    for nodes in proof.violated:
        assert len(nodes) % 2 == 1
        assert tau[nodes].sum() - tau[np.ix_(nodes, nodes)].sum() < 1.0 - 1e-9
    share = proof.share_of_interior(n)
    uniform = (np.ones((n, n)) - np.eye(n)) / (n - 1)
    mixed = (1.0 - share) * tau + share * uniform
    assert smallest_cut_by_enumeration(mixed) >= 1.0 - 2e-9


def test_the_second_eigenvalue_is_bounded_closely():
    tau = balanced(np.random.default_rng(1).normal(size=(300, 300)) * 1.5)
    true = np.linalg.eigvalsh(tau)[-2]
    assert true <= prove_second_eigenvalue(tau) <= true + 0.06 * (1.0 - true)


def test_the_second_eigenvalue_is_not_believed_without_a_proof(monkeypatch):
    """Lanczos may miss an eigenvalue; the factor exists for no smaller bound."""
    tau = balanced(np.random.default_rng(1).normal(size=(60, 60)) * 1.5)
    monkeypatch.setattr(odd_sets, "eigsh", lambda *_, **__: np.array([0.1]))
    assert prove_second_eigenvalue(tau) == 1.0


@pytest.mark.parametrize("spread", [1.4, 2.2])
def test_several_hundred_students_with_likely_pairs_are_proved(spread):
    """The largest marginal and the sum of squares alone leave sets of 3 and 5 open."""
    tau = balanced(np.random.default_rng(3).normal(size=(400, 400)) * spread)
    cheap = examine_cheaply(400, float((tau**2).sum()), float(tau.max()))
    assert not cheap.holds
    assert examine_odd_sets(tau).holds


def test_a_triangle_and_five_alike_among_hundreds_are_found():
    scores = np.random.default_rng(0).normal(size=(300, 300)) * 0.3
    scores[:3, :3] += 8.0
    scores[10:15, 10:15] += 8.0
    proof = examine_odd_sets(balanced(scores))
    assert sorted(tuple(nodes) for nodes in proof.violated) in (
        [(0, 1, 2)],
        [(0, 1, 2), (10, 11, 12, 13, 14)],
    )


def test_two_large_odd_halves_are_found_apart():
    tau = np.kron(np.eye(2), np.ones((151, 151)) - np.eye(151)) / 150
    assert {len(nodes) for nodes in examine_odd_sets(tau).violated} == {151}


def test_two_large_even_halves_are_proved_apart():
    tau = np.kron(np.eye(2), np.ones((150, 150)) - np.eye(150)) / 149
    assert examine_odd_sets(tau).holds


def alike_in_blocks(n, size, spread):
    """Students in blocks whose members are alike: many likely pairs, and large sets left open."""
    rng = np.random.default_rng(n)
    block = np.arange(n) // size
    return balanced(np.where(block[:, None] == block, 3.0, -3.0) + rng.normal(size=(n, n)) * spread)


def test_sets_that_only_the_smallest_cut_of_all_proves_are_proved():
    tau = alike_in_blocks(440, 44, 1.5)
    left_open = examine_odd_sets(tau, exact_up_to=0)
    assert not left_open.holds
    assert not left_open.violated
    assert examine_odd_sets(tau).holds


def test_looking_at_all_odd_cuts_can_be_stopped():
    weights = np.ones((60, 60)) - np.eye(60)
    with pytest.raises(StoppedError):
        find_odd_cuts(weights, np.ones(60, dtype=bool), 1.0, 4, lambda: True)


@pytest.mark.parametrize("count", [2, 5, 9])
def test_a_split_costs_what_its_smaller_side_does(count):
    """Both sides were once summed up anew from the whole graph: n^3 entries for n cuts."""
    rng, n = np.random.default_rng(count), 12
    weights = np.triu(rng.random((n, n)), 1)
    weights += weights.T
    side = np.zeros(n, dtype=bool)
    side[rng.permutation(n)[:count]] = True
    everyone = np.ones(n, dtype=bool)
    part = odd_cuts._Part(weights.copy(), everyone.copy(), everyone.copy(), np.arange(n), n)
    smaller, larger = part.split(side)
    assert larger.weights is part.weights
    for half, is_few in ((smaller, True), (larger, False)):
        own = side == (is_few == (2 * count <= n))
        assert half.count == own.sum() + 1
        assert (half.group[own].size, len(set(half.group[~own]))) == (own.sum(), 1)
        other = half.group[~own][0]
        assert not half.terminal[other]
        assert half.is_odd[other] == ((~own).sum() % 2 == 1)
        for i in np.flatnonzero(own):
            row = half.weights[half.group[i], : half.count]
            assert row[other] == pytest.approx(weights[i, ~own].sum())
            assert np.allclose(row[half.group[own]], weights[i, own])
