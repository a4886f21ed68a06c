"""Samples of matchings against exact marginals."""

import numpy as np
import pytest

from benchmarks.papers.tang2015.sampled_matchings import sample_bipartite_matchings
from engine.core.errors import InfeasibleError
from engine.inference.matching.exact import compute_bipartite_marginals


def test_samples_follow_the_marginals_and_repeat_with_the_seed() -> None:
    rng = np.random.default_rng(8)
    scores = rng.standard_normal((6, 6))
    scores[rng.random((6, 6)) < 0.3] = -np.inf
    np.fill_diagonal(scores, 1.0)  # one matching always stays
    partners = sample_bipartite_matchings(scores, 20_000, rng=np.random.default_rng(2))
    assert (np.sort(partners, axis=1) == np.arange(6)).all()
    frequency = np.zeros((6, 6))
    np.add.at(frequency, (np.tile(np.arange(6), 20_000), partners.ravel()), 1 / 20_000)
    expected = compute_bipartite_marginals(scores).marginals
    np.testing.assert_allclose(frequency, expected, atol=4 * np.sqrt(0.25 / 20_000))
    assert (frequency[np.isneginf(scores)] == 0).all()
    again = sample_bipartite_matchings(scores, 20_000, rng=np.random.default_rng(2))
    np.testing.assert_array_equal(partners, again)


def test_a_graph_without_a_perfect_matching_is_refused() -> None:
    scores = np.zeros((3, 3))
    scores[:, 1] = -np.inf
    with pytest.raises(InfeasibleError, match="no perfect matching"):
        sample_bipartite_matchings(scores, 1, rng=np.random.default_rng(0))
