"""Pair probabilities by a Markov chain: within their stated error of the exact sums."""

from itertools import count

import numpy as np
import pytest

from engine.core.errors import StoppedError
from engine.inference.matching.cascade import compute_group_marginals, exclude_pairs
from engine.inference.matching.exact import compute_matching_marginals
from engine.inference.matching.sampling import sample_marginals

NONE = np.empty((0, 2), dtype=np.int64)


def random_scores(n, spread, seed):
    scores = np.random.default_rng(seed).normal(size=(n, n)) * spread
    return (scores + scores.T) / np.sqrt(2)


@pytest.mark.parametrize("spread", [0.5, 3.0])
@pytest.mark.parametrize("seed", range(3))
def test_probabilities_lie_within_their_stated_error_of_the_exact_sums(spread, seed):
    """Bethe values of strong groups are off by up to .14."""
    scores = random_scores(18, spread, seed)
    exact = compute_matching_marginals(scores).marginals
    even = np.full((18, 18), 1.0 / 17.0)  # however poor what the chain is held against
    for guide in (np.where(np.eye(18), 0.0, even), 0.8 * exact + 0.2 * even):
        np.fill_diagonal(guide, 0.0)
        found = sample_marginals(scores, guide, rng=np.random.default_rng(seed), max_seconds=60.0)
        assert found.has_mixed
        assert 0.0 < found.error <= 0.003
        assert np.abs(found.tau - exact).max() <= 5.0 * found.error
        assert np.abs(found.tau.sum(axis=1) - 1.0).max() < 0.1 * found.error
        assert np.array_equal(found.tau, found.tau.T)


def test_forbidden_pairs_have_no_probability():
    forbidden = np.array([(0, 1), (2, 5), (3, 4)])
    scores = exclude_pairs(random_scores(20, 2.0, 1), forbidden)
    exact = compute_matching_marginals(scores).marginals
    bethe = compute_group_marginals(random_scores(20, 2.0, 1), 1.0, forbidden).tau
    found = sample_marginals(scores, bethe, rng=np.random.default_rng(0), max_seconds=60.0)
    assert found.tau[forbidden[:, 0], forbidden[:, 1]].max() == 0.0
    assert np.abs(found.tau - exact).max() <= 5.0 * found.error


def test_small_probabilities_keep_the_digits_of_what_they_are_held_against():
    """A chain would need a hundred million draws to order them."""
    scores = random_scores(60, 0.4, 2)
    bethe = compute_group_marginals(scores, 1.0, NONE).tau
    found = sample_marginals(scores, bethe, rng=np.random.default_rng(0), max_seconds=60.0)
    upper = np.triu_indices(60, 1)
    assert np.abs(found.tau - bethe)[upper].max() < 0.01
    assert np.corrcoef(found.tau[upper], bethe[upper])[0, 1] > 0.95


def test_a_year_in_which_no_pair_is_likely():
    """Then no pair is followed through the run, as in large years with little to tell by."""
    scores = random_scores(600, 0.01, 4)
    guide = np.where(np.eye(600), 0.0, 1.0 / 599.0)
    found = sample_marginals(scores, guide, rng=np.random.default_rng(0), max_seconds=60.0)
    assert found.has_mixed
    assert np.abs(found.tau - guide).max() <= 5.0 * found.error


def test_a_machine_that_gives_little_time_changes_no_probability(monkeypatch):
    """Sampling ended by the clock on the wall: the same proposal had other probabilities."""
    scores = random_scores(60, 1.0, 3)
    bethe = compute_group_marginals(scores, 1.0, NONE).tau
    expected = sample_marginals(scores, bethe, rng=np.random.default_rng(0), max_seconds=25.0)
    assert expected.has_mixed
    clock = count(step=30)
    monkeypatch.setattr("time.perf_counter", lambda: float(next(clock)))
    found = sample_marginals(scores, bethe, rng=np.random.default_rng(0), max_seconds=25.0)
    assert found.tau.tolist() == expected.tau.tolist()
    assert (found.error, found.n_matchings) == (expected.error, expected.n_matchings)


@pytest.mark.parametrize("uphill", [0.0, 40.0])
def test_chains_meet_or_say_that_they_do_not(uphill):
    """A ring has two matchings, and between them every other pair is worth nothing.

    Exchanges of two pairs, which had to pass through scores of -60, never met here.
    """
    scores = np.full((8, 8), -60.0)
    for k, score in enumerate([uphill, 0.0, -uphill, 0.0, 0.0, 0.0, 0.0, 0.0]):
        i, j = [0, 2, 4, 6, 1, 3, 5, 7, 0][k : k + 2]
        scores[i, j] = scores[j, i] = score
    tau = np.where(scores > -60.0, 0.5, 1e-12)
    found = sample_marginals(scores, tau, rng=np.random.default_rng(0), max_seconds=0.5)
    exact = compute_matching_marginals(scores).marginals
    off = np.abs(found.tau - exact).max()
    assert off <= 5.0 * found.error + 1e-9 or (uphill and not found.has_mixed)


def test_sampling_stops_when_it_is_told_to():
    scores = random_scores(20, 1.0, 0)
    guide = np.where(np.eye(20), 0.0, 1.0 / 19.0)
    with pytest.raises(StoppedError):
        sample_marginals(scores, guide, rng=np.random.default_rng(0), should_stop=lambda: True)
