"""Perturb-and-MAP: its own limit in closed form, where it meets the marginals, seeds and calls."""

from itertools import permutations

import numpy as np
import pytest

from engine.core.errors import InvalidProblemError
from engine.inference.matching.exact import (
    compute_bipartite_marginals,
    compute_matching_marginals,
)
from engine.inference.perturb_and_map import estimate_perturb_and_map
from engine.oracles.assignment import AssignmentOracle
from engine.oracles.perfect_matching import CompleteGraphMatcher
from engine.oracles.protocol import ExtremePoint, make_indicator
from engine.oracles.wrappers import CountingOracle


def estimate(scores, n_samples, seed, **options):
    oracle = options.pop("oracle", AssignmentOracle())
    rng = np.random.default_rng(seed)
    return estimate_perturb_and_map(scores, oracle, n_samples, rng=rng, **options)


def allowed(n_samples):
    """Four standard deviations of a frequency, at most."""
    return 4 * np.sqrt(0.25 / n_samples)


@pytest.mark.parametrize("lead", [-2.0, 0.5, 3.0])
def test_two_by_two_tends_to_its_own_limit_and_not_to_the_marginal(lead):
    """The noises of two edges against two others: the sum of two logistic variables."""
    scores = np.array([[lead, 0.0], [0.0, 0.0]])
    a = np.exp(-lead)
    limit = (1 - a - a * lead) / (1 - a) ** 2
    found = estimate(scores, 4000, seed=1)
    np.testing.assert_allclose(found, [[limit, 1 - limit], [1 - limit, limit]], atol=allowed(4000))
    assert abs(limit - compute_bipartite_marginals(scores).marginals[0, 0]) > 0.02


def test_noise_is_shared_by_both_ends_and_single_nodes_are_counted_nowhere():
    """One edge, matched if W + G > 0: a share of 1 - exp(-exp(W - 0.577))."""

    class OneEdgeOrNone:
        def compute_extreme_point(self, scores):
            assert scores[0, 1] == scores[1, 0]
            best = max(scores[0, 1], 0.0)
            return ExtremePoint(
                make_indicator(np.array([1, 2] if best > 0 else [], dtype=int)), best, best
            )

    scores = 0.4 * (1 - np.eye(2))
    found = estimate(scores, 4000, seed=2, oracle=OneEdgeOrNone(), is_bipartite=False)
    limit = 1 - np.exp(-np.exp(0.4 - np.euler_gamma))
    np.testing.assert_allclose(found, limit * (1 - np.eye(2)), atol=allowed(4000))


@pytest.mark.parametrize("lead", [25.0, 100.0])
def test_at_low_temperature_it_agrees_with_the_exact_marginals(lead):
    """Scores over a temperature so low that the best matching leads by ``lead`` nats."""
    scores = np.random.default_rng(3).random((5, 5))
    values = np.sort([scores[np.arange(5), list(p)].sum() for p in permutations(range(5))])
    scores *= lead / (values[-1] - values[-2])
    exact = compute_bipartite_marginals(scores).marginals
    np.testing.assert_allclose(estimate(scores, 500, seed=4), exact, atol=0.01)


def test_at_infinite_temperature_symmetry_decides():
    np.testing.assert_allclose(estimate(np.zeros((4, 4)), 4000, seed=0), 0.25, atol=0.03)


@pytest.mark.parametrize("is_bipartite", [True, False])
def test_between_the_two_it_comes_near(is_bipartite):
    scores = 0.5 * np.random.default_rng(5).standard_normal((6, 6))
    scores = scores if is_bipartite else np.tril(scores, -1) + np.tril(scores, -1).T
    compute = compute_bipartite_marginals if is_bipartite else compute_matching_marginals
    oracle = AssignmentOracle() if is_bipartite else CompleteGraphMatcher()
    found = estimate(scores, 1000, seed=6, oracle=oracle, is_bipartite=is_bipartite)
    np.testing.assert_allclose(found.sum(axis=0), 1.0)
    np.testing.assert_allclose(found, compute(scores).marginals, atol=0.15)
    if not is_bipartite:
        np.testing.assert_array_equal(found, found.T)


def test_the_seed_decides_and_nothing_else():
    scores = np.random.default_rng(7).standard_normal((5, 5))
    kept = scores.copy()
    first, again, other = (estimate(scores, 60, seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    np.testing.assert_array_equal(scores, kept)
    rng = np.random.default_rng(1)  # two halves with one generator are one whole
    halves = [estimate_perturb_and_map(scores, AssignmentOracle(), 30, rng=rng) for _ in "ab"]
    np.testing.assert_allclose(np.mean(halves, axis=0), first)


def test_one_call_of_the_oracle_a_sample():
    oracle, seen = CountingOracle(AssignmentOracle()), []
    found = estimate(
        np.zeros((3, 3)),
        40,
        seed=8,
        oracle=oracle,
        on_progress=lambda progress: seen.append((progress.iteration, progress.fraction)),
        should_stop=lambda: oracle.calls == 8,
    )
    assert seen == [(k, k / 40) for k in range(1, 9)]
    np.testing.assert_array_equal(8 * found, np.round(8 * found))  # a share of the eight made
    estimate(np.zeros((3, 3)), 40, seed=8, oracle=oracle)
    assert oracle.calls == 48


def test_no_sample_at_all_is_refused():
    with pytest.raises(InvalidProblemError, match=r"n_samples: .* at least 1"):
        estimate(np.zeros((2, 2)), 0, seed=0)
    with pytest.raises(InvalidProblemError, match="made 0 of 9"):
        estimate(np.zeros((2, 2)), 9, seed=0, should_stop=lambda: True)
    with pytest.raises(InvalidProblemError, match="scores"):
        estimate(np.zeros((2, 3)), 9, seed=0)
