"""Exact sums against enumeration, closed forms and each other."""

import doctest
from math import factorial

import numpy as np
import pytest

import engine.inference.matching.exact as module
from engine.core.errors import InfeasibleError, InvalidProblemError
from engine.inference.matching.exact import (
    compute_bipartite_marginals,
    compute_matching_marginals,
)
from tests.reference.exact_matchings import (
    list_bipartite_matchings,
    list_matchings,
    sum_matchings,
)


def random_scores(n: int, seed: int, scale: float, missing: float = 0.0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    scores = scale * rng.standard_normal((n, n))
    scores[rng.random((n, n)) < missing] = -np.inf
    np.fill_diagonal(scores, scale)  # one bipartite matching always stays
    return scores


def symmetric_scores(n: int, seed: int, scale: float) -> np.ndarray:
    scores = random_scores(n, seed, scale)
    return np.tril(scores, -1) + np.tril(scores, -1).T


@pytest.mark.parametrize("method", ["subsets", "ryser"])
@pytest.mark.parametrize("n", [1, 2, 5, 7])
@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_bipartite_sums_agree_with_enumeration(method: str, n: int, missing: float) -> None:
    scores = random_scores(n, n, 1.5, missing)
    partition, marginals = sum_matchings(scores, list_bipartite_matchings(n))
    result = compute_bipartite_marginals(scores, method=method)
    assert result.log_partition == pytest.approx(np.log(partition), abs=1e-10)
    np.testing.assert_allclose(result.marginals, marginals, atol=1e-9)


@pytest.mark.parametrize("kind", ["perfect", "any"])
@pytest.mark.parametrize("n", [2, 4, 8])
def test_general_sums_agree_with_enumeration(kind: str, n: int) -> None:
    scores = symmetric_scores(n, n, 1.5)
    if n > 2:
        scores[0, 1] = scores[1, 0] = -np.inf
    matchings = list_matchings(list(range(n)), perfect=kind == "perfect")
    partition, marginals = sum_matchings(scores, matchings)
    result = compute_matching_marginals(scores, kind=kind)
    assert result.log_partition == pytest.approx(np.log(partition), abs=1e-10)
    np.testing.assert_allclose(result.marginals, marginals + marginals.T, atol=1e-10)


def test_odd_graph_has_imperfect_matchings_only() -> None:
    scores = symmetric_scores(5, 0, 1.0)
    partition, _ = sum_matchings(scores, list_matchings(list(range(5)), perfect=False))
    result = compute_matching_marginals(scores, kind="any")
    assert result.log_partition == pytest.approx(np.log(partition), abs=1e-10)
    with pytest.raises(InfeasibleError, match="no perfect matching"):
        compute_matching_marginals(scores, kind="perfect")


@pytest.mark.parametrize("scale", [0.3, 5.0])
def test_ryser_agrees_with_the_subset_programme(scale: float) -> None:
    scores = random_scores(13, 3, scale)
    subsets = compute_bipartite_marginals(scores)
    ryser = compute_bipartite_marginals(scores, method="ryser")
    assert ryser.log_partition == pytest.approx(subsets.log_partition, abs=1e-7)
    np.testing.assert_allclose(ryser.marginals, subsets.marginals, atol=1e-7)


def test_twenty_equal_scores_count_all_matchings() -> None:
    bipartite = compute_bipartite_marginals(np.zeros((20, 20)))
    assert bipartite.log_partition == pytest.approx(np.log(factorial(20)), rel=1e-12)
    np.testing.assert_allclose(bipartite.marginals, 1 / 20, rtol=1e-10)
    general = compute_matching_marginals(np.zeros((20, 20)))
    double_factorial = factorial(20) / (2**10 * factorial(10))
    assert general.log_partition == pytest.approx(np.log(double_factorial), rel=1e-12)
    np.testing.assert_allclose(general.marginals.sum(axis=1), 1.0, rtol=1e-10)


def test_huge_scores_neither_overflow_nor_lose_the_small_ones() -> None:
    """exp(1000) overflows and exp(-1000) vanishes; sums of logarithms keep both."""
    scores = random_scores(6, 1, 0.7)
    shifted = scores + np.linspace(-1000, 1000, 6)[:, None]
    plain, moved = compute_bipartite_marginals(scores), compute_bipartite_marginals(shifted)
    np.testing.assert_allclose(moved.marginals, plain.marginals, atol=1e-10)


def test_marginals_are_the_gradient_of_the_log_partition() -> None:
    scores, step = symmetric_scores(6, 5, 1.0), 1e-5
    for kind in ("perfect", "any"):
        bumped = [scores.copy(), scores.copy()]
        for sign, array in zip((1, -1), bumped, strict=True):
            array[1, 4] += sign * step
            array[4, 1] += sign * step
        up, down = (compute_matching_marginals(b, kind=kind).log_partition for b in bumped)
        marginal = compute_matching_marginals(scores, kind=kind).marginals[1, 4]
        assert (up - down) / (2 * step) == pytest.approx(marginal, abs=1e-8)


@pytest.mark.parametrize("method", ["subsets", "ryser"])
def test_forbidden_column_is_infeasible(method: str) -> None:
    scores = np.zeros((3, 3))
    scores[:, 1] = -np.inf
    with pytest.raises(InfeasibleError, match="no perfect matching"):
        compute_bipartite_marginals(scores, method=method)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("method", ["subsets", "ryser"])
def test_three_rows_that_share_two_columns_are_infeasible(method: str, seed: int) -> None:
    """Every row and column has an edge; rounding once made the empty sum positive."""
    scores = np.random.default_rng(seed).standard_normal((6, 6))
    scores[:3, 2:] = -np.inf
    with pytest.raises(InfeasibleError, match="no perfect matching"):
        compute_bipartite_marginals(scores, method=method)


@pytest.mark.parametrize("scale", [60.0, 1000.0])
@pytest.mark.parametrize("n", [4, 8, 12])
def test_ryser_keeps_its_digits_at_sharp_scores(n: int, scale: float) -> None:
    """Half-scaled matrices cancelled: marginals were off by a tenth at n = 8."""
    for seed in range(5):
        scores = scale * np.random.default_rng(seed).standard_normal((n, n))
        subsets = compute_bipartite_marginals(scores)
        ryser = compute_bipartite_marginals(scores, method="ryser")
        assert ryser.log_partition == pytest.approx(subsets.log_partition, rel=1e-9)
        np.testing.assert_allclose(ryser.marginals, subsets.marginals, atol=1e-9)


def test_ryser_names_the_other_method_where_too_many_digits_are_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "SCALING_SWEEPS", 1)
    scores = 200.0 * np.random.default_rng(1).standard_normal((8, 8))
    with pytest.raises(InvalidProblemError, match="subsets"):
        compute_bipartite_marginals(scores, method="ryser")


@pytest.mark.parametrize(
    "scores", [np.zeros((2, 3)), np.zeros((23, 23)), np.full((2, 2), np.nan), np.zeros(4)]
)
def test_bad_scores_are_refused(scores: np.ndarray) -> None:
    with pytest.raises(InvalidProblemError, match="scores"):
        compute_bipartite_marginals(scores)


def test_asymmetric_scores_are_refused() -> None:
    with pytest.raises(InvalidProblemError, match="symmetric"):
        compute_matching_marginals(np.arange(16.0).reshape(4, 4))


def test_docstring_examples_hold() -> None:
    assert doctest.testmod(module).failed == 0
