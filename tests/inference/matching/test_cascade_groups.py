"""Probabilities of the pairs of a group: exact, or what approximates them, under forbids."""

import numpy as np
import pytest

from engine.core.errors import InfeasibleError, StoppedError
from engine.inference.matching.cascade import compute_group_marginals
from engine.inference.matching.odd_sets import examine_odd_sets
from tests.reference.perfect_matchings import enumerate_pairs

NONE = np.empty((0, 2), dtype=np.int64)


def random_scores(n, spread, seed):
    scores = np.random.default_rng(seed).normal(size=(n, n)) * spread
    return (scores + scores.T) / np.sqrt(2)


def enumerated(scores, forbidden=NONE):
    """Marginals by summing the allowed matchings one by one."""
    n = len(scores)
    never = {tuple(sorted(p)) for p in forbidden.tolist()}
    tau, total = np.zeros((n, n)), 0.0
    for pairs in enumerate_pairs(tuple(range(n))):
        if not never & set(pairs):
            weight = np.exp(sum(scores[p] for p in pairs))
            total += weight
            for i, j in pairs:
                tau[i, j] += weight
                tau[j, i] += weight
    return tau / total


def two_halves(half):
    """Two complete graphs of odd size, joined by one pair, which is then in every matching."""
    n = 2 * half
    side = np.arange(n) < half
    forbidden = np.triu(side[:, None] != side[None, :], 1)
    forbidden[half - 1, half] = False
    return np.zeros((n, n)), np.argwhere(forbidden)


@pytest.mark.parametrize("bridge_score", [0.0, -2.0])
@pytest.mark.parametrize("half", [3, 9, 33])
def test_the_only_pair_between_odd_halves_is_certain(half, bridge_score):
    """Row sums alone gave it 1 / half, at -2 a tenth of that."""
    scores, forbidden = two_halves(half)
    scores[half - 1, half] = scores[half, half - 1] = bridge_score
    found = compute_group_marginals(scores, 1.0, forbidden)
    expected = np.zeros((2 * half, 2 * half))
    expected[: half - 1, : half - 1] = expected[half + 1 :, half + 1 :] = 1.0 / (half - 2)
    np.fill_diagonal(expected, 0.0)
    expected[half - 1, half] = expected[half, half - 1] = 1.0
    np.testing.assert_allclose(found.tau, expected, atol=1e-8)
    assert found.accuracy == ("exact" if half <= 15 else "bethe")


@pytest.mark.parametrize("rho", [1.0, 0.5])
@pytest.mark.parametrize("n", [2, 4, 6, 8])
def test_small_groups_agree_with_enumeration(n, rho):
    for seed in range(5):
        scores = random_scores(n, 1.2, seed)
        found = compute_group_marginals(scores, rho, NONE)
        np.testing.assert_allclose(found.tau, enumerated(scores), atol=1e-10)
        assert np.array_equal(found.tau, found.tau.T)
        assert found.accuracy == "exact"


def test_small_groups_with_forbidden_pairs_agree_with_enumeration():
    scores = random_scores(6, 1.2, 3)
    for forbidden in ([(0, 1)], [(0, k) for k in range(2, 6)], [(1, 0), (2, 3), (5, 4)]):
        found = compute_group_marginals(scores, 1.0, np.array(forbidden))
        np.testing.assert_allclose(found.tau, enumerated(scores, np.array(forbidden)), atol=1e-10)
        assert all(found.tau[i, j] == 0.0 for i, j in forbidden)


def test_rows_of_four_with_a_forbidden_pair_sum_to_one():
    found = compute_group_marginals(np.zeros((4, 4)), 1.0, np.array([(0, 1)]))
    np.testing.assert_allclose(found.tau.sum(axis=1), 1.0, atol=1e-12)


def test_scores_that_are_symmetric_only_up_to_rounding_give_symmetric_marginals():
    scores = random_scores(8, 1.0, 0)
    scores[0, 1] += 1e-13
    tau = compute_group_marginals(scores, 1.0, NONE).tau
    assert np.array_equal(tau, tau.T)


@pytest.mark.parametrize("n", [32, 60])
def test_larger_groups_are_the_bethe_optimum_when_the_odd_sets_hold(n):
    found = compute_group_marginals(random_scores(n, 0.6, 1), 1.0, NONE)
    assert found.accuracy == "bethe"
    assert examine_odd_sets(found.tau).holds


def loosely_joined(half):
    """Two odd halves with strong ties inside and three weak ones between, all of them usable."""
    scores, forbidden = two_halves(half)
    joined = [(half - 1 - k, half + k) for k in range(3)]
    kept = [p for p in forbidden.tolist() if tuple(p) not in joined]
    for i, j in joined:
        scores[i, j] = scores[j, i] = -6.0
    return scores, np.array(kept)


def test_an_odd_set_that_binds_is_held_where_pairs_are_forbidden():
    """At least one of three pairs must join the halves; the row sums left it at 0.01 together."""
    scores, forbidden = loosely_joined(33)
    found = compute_group_marginals(scores, 1.0, forbidden)
    assert found.accuracy == "bethe"
    assert found.gap == 0.0
    assert found.tau[:33, 33:].sum() >= 1.0 - 1e-9
    assert found.tau[32, 33] == pytest.approx(1 / 3, abs=0.02)
    np.testing.assert_allclose(found.tau.sum(axis=1), 1.0, atol=1e-9)
    assert found.tau[forbidden[:, 0], forbidden[:, 1]].max() == 0.0


def test_sharp_scores_without_forbidden_pairs_are_repaired_too():
    found = compute_group_marginals(random_scores(32, 5.0, 0), 1.0, NONE)
    assert found.accuracy == "bethe"
    assert found.gap < 0.5
    assert examine_odd_sets(found.tau).holds


def test_large_groups_are_proved_as_well():
    """The only pair between the halves is found: the row sums gave it 1 / 65."""
    scores, forbidden = two_halves(65)
    found = compute_group_marginals(scores, 1.0, forbidden)
    assert found.accuracy == "bethe"
    assert found.tau[64, 65] == pytest.approx(1.0, abs=1e-8)
    assert compute_group_marginals(random_scores(130, 5.0, 0), 1.0, NONE).accuracy == "bethe"


def test_no_pair_is_looked_for_among_those_that_all_are_usable(monkeypatch):
    monkeypatch.setattr("engine.inference.matching.cascade._interior_point", None)
    found = compute_group_marginals(random_scores(130, 5.0, 0), 1.0, np.array([(0, 1), (2, 3)]))
    assert found.accuracy == "bethe"
    assert found.tau[0, 1] == found.tau[3, 2] == 0.0


@pytest.mark.parametrize("half", [5, 11])
def test_forbids_without_a_complete_set_of_pairs_are_named(half):
    scores, forbidden = two_halves(half)
    with pytest.raises(InfeasibleError):
        compute_group_marginals(scores, 1.0, np.append(forbidden, [(half - 1, half)], axis=0))


def test_a_group_is_stopped_between_sweeps_and_oracle_calls():
    """Whenever the answer changes to True, whatever runs then ends soon."""
    scores, forbidden = loosely_joined(33)
    for patience in (0, 3, 30, 60):
        asked = 0

        def should_stop(patience=patience):
            nonlocal asked
            asked += 1
            return asked > patience

        with pytest.raises(StoppedError):
            compute_group_marginals(scores, 1.0, forbidden, should_stop=should_stop)
        assert asked <= patience + 2


def test_relabelling_students_relabels_marginals():
    scores = random_scores(20, 0.6, 3)
    order = np.random.default_rng(0).permutation(20)
    tau = compute_group_marginals(scores, 1.0, NONE).tau
    shuffled = compute_group_marginals(scores[np.ix_(order, order)], 1.0, NONE).tau
    assert np.abs(shuffled - tau[np.ix_(order, order)]).max() < 1e-7


def test_a_group_of_nobody():
    assert compute_group_marginals(np.zeros((0, 0)), 1.0, NONE).tau.shape == (0, 0)


@pytest.mark.parametrize("n", [12, 24])
def test_a_large_shift_of_all_scores_changes_nothing(n):
    scores = random_scores(n, 0.5, 2)
    tau = compute_group_marginals(scores, 1.0, NONE).tau
    assert np.abs(compute_group_marginals(scores - 5000.0, 1.0, NONE).tau - tau).max() < 1e-7


@pytest.mark.parametrize("spread", [4.0, 16.0])
@pytest.mark.parametrize("n", [40, 100])
def test_strong_groups_are_certified_where_pairs_are_forbidden(n, spread):
    """Frank-Wolfe left gaps of .05 to 1.2 nats."""
    rng = np.random.default_rng(n)
    forbidden = np.argwhere(np.triu(rng.random((n, n)) < 0.3, 1))
    found = compute_group_marginals(random_scores(n, spread, n), 1.0, forbidden)
    assert found.gap == 0.0
    assert examine_odd_sets(found.tau).holds
    assert found.tau[forbidden[:, 0], forbidden[:, 1]].max() == 0.0


def test_parts_that_no_pair_joins_are_summed_exactly_beside_one_that_is_too_large():
    sizes = (6, 40, 2)
    part = np.repeat(np.arange(3), sizes)
    scores = random_scores(48, 1.0, 0)
    forbidden = np.argwhere(np.triu(part[:, None] != part, 1))
    found = compute_group_marginals(scores, 1.0, forbidden)
    assert found.is_exact.tolist() == (part != 1).tolist()
    np.testing.assert_allclose(found.tau[:6, :6], enumerated(scores[:6, :6]), atol=1e-10)
    assert found.tau[46, 47] == 1.0


def test_a_guide_is_near_the_optimum_and_claims_no_bound():
    """Proofs of odd sets took 43 of 75 s of 2,500 students, whom a chain then sampled anyway."""
    scores = random_scores(60, 3.0, 5)
    guide = compute_group_marginals(scores, 1.0, NONE, is_guide=True)
    proved = compute_group_marginals(scores, 1.0, NONE)
    assert guide.gap == np.inf
    assert proved.gap == 0.0
    assert np.abs(guide.tau.sum(axis=1) - 1.0).max() <= 1e-4
    assert np.abs(guide.tau - proved.tau).max() < 0.01


def test_where_some_pairs_may_be_unusable_a_guide_is_the_proved_answer():
    scores, forbidden = two_halves(17)
    guide = compute_group_marginals(scores, 1.0, forbidden, is_guide=True)
    assert guide.tau[16, 17] == pytest.approx(1.0, abs=1e-9)
    assert guide.gap < np.inf
