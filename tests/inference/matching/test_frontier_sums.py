"""Sums over sets of pairs, kept by what is taken of later students."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.core.errors import InfeasibleError, StoppedError
from engine.inference.matching.exact import compute_matching_marginals
from engine.inference.matching.frontier_sums import sum_perfect_matchings


def scores_without(n, share, spread, rng):
    """Symmetric scores of which about a share is forbidden."""
    scores = rng.normal(size=(n, n)) * spread
    scores += scores.T
    scores[np.triu(rng.random((n, n)) < share, 1)] = -np.inf
    return np.minimum(scores, scores.T)


@settings(max_examples=80)
@given(
    st.integers(0, 10**6),
    st.integers(1, 12),
    st.sampled_from([0.0, 0.4, 0.8]),
    st.sampled_from([0.1, 3.0, 300.0]),
)
def test_sums_agree_with_those_over_all_subsets(seed, n, share, spread):
    scores = scores_without(n, share, spread, np.random.default_rng(seed))
    try:
        expected = compute_matching_marginals(scores)
    except InfeasibleError:
        with pytest.raises(InfeasibleError):
            sum_perfect_matchings(scores)
        return
    found = sum_perfect_matchings(scores)
    assert found.log_partition == pytest.approx(expected.log_partition, abs=1e-9, rel=1e-12)
    np.testing.assert_allclose(found.marginals, expected.marginals, atol=1e-10)


def test_all_pairs_of_24_are_as_likely_as_one_in_23():
    found = sum_perfect_matchings(np.zeros((24, 24)))
    assert found.log_partition == pytest.approx(np.log(np.arange(1.0, 24.0, 2.0)).sum())
    np.testing.assert_allclose(found.marginals[~np.eye(24, dtype=bool)], 1 / 23, rtol=1e-12)


def test_a_long_ring_is_summed_exactly():
    """Each of 300 may share with the next or the one before: two sets of pairs."""
    i = np.arange(300)
    apart = np.abs(i[:, None] - i)
    scores = np.where(np.minimum(apart, 300 - apart) == 1, 0.0, -np.inf)
    scores[0, 1] = scores[1, 0] = np.log(3.0)
    found = sum_perfect_matchings(scores)
    assert found.log_partition == pytest.approx(np.log(4.0))
    assert found.marginals[0, 1] == pytest.approx(0.75)
    assert found.marginals[0, 299] == pytest.approx(0.25)


def test_too_many_sets_are_not_begun_or_given_up():
    assert sum_perfect_matchings(np.zeros((40, 40))) is None
    assert sum_perfect_matchings(np.zeros((20, 20)), most_sets=100) is None


def test_sums_can_be_stopped():
    with pytest.raises(StoppedError):
        sum_perfect_matchings(np.zeros((6, 6)), should_stop=lambda: True)
