"""Certified Bethe marginals: both bounds, vertices, warm starts."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.core.errors import InvalidProblemError
from engine.inference.matching.bipartite_bethe import (
    certify_beliefs,
    compute_bethe_marginals,
)
from engine.inference.matching.bipartite_newton import (
    compute_bipartite_pseudomarginals,
    round_to_doubly_stochastic,
)
from engine.inference.matching.bipartite_propagation import propagate_bipartite
from engine.inference.matching.exact import compute_bipartite_marginals
from engine.kernels.simplex_entropy import maximum_over_simplex


def random_scores(n: int, seed: int, scale: float) -> np.ndarray:
    return scale * np.random.default_rng(seed).standard_normal((n, n))


@settings(max_examples=60)
@given(st.integers(2, 8), st.integers(0, 10_000), st.floats(0.01, 30.0))
def test_the_bounds_close_below_the_exact_sum(n: int, seed: int, scale: float) -> None:
    scores = random_scores(n, seed, scale)
    solution, _ = compute_bethe_marginals(scores, tolerance=1e-6)
    assert solution.gap <= 1e-6
    assert solution.value <= compute_bipartite_marginals(scores).log_partition + 1e-9
    np.testing.assert_allclose(solution.marginals.sum(axis=0), 1.0, atol=1e-8)
    np.testing.assert_allclose(solution.marginals.sum(axis=1), 1.0, atol=1e-8)


@pytest.mark.parametrize("sweeps", [1, 3, 10])
def test_messages_stopped_early_still_give_valid_bounds(sweeps: int) -> None:
    scores = random_scores(10, 5, 2.0)
    value = compute_bipartite_pseudomarginals(scores).value
    early = certify_beliefs(scores, propagate_bipartite(scores, max_sweeps=sweeps))
    assert early.value < value < early.upper_bound


def test_forged_messages_cannot_break_the_upper_bound() -> None:
    scores, rng = random_scores(7, 2, 1.0), np.random.default_rng(0)
    value = compute_bipartite_pseudomarginals(scores).value
    for _ in range(50):
        forged = (5 * rng.standard_normal((7, 7)), 5 * rng.standard_normal((7, 7)))
        beliefs = propagate_bipartite(scores, max_sweeps=1, damping=0.999, start=forged)
        bounds = certify_beliefs(scores, beliefs)
        assert bounds.value <= value + 1e-9 <= bounds.upper_bound + 1e-8


def test_a_warm_start_needs_fewer_sweeps() -> None:
    scores = random_scores(30, 0, 8.0)
    _, beliefs = compute_bethe_marginals(scores, tolerance=1e-6)
    moved = scores + 0.01 * random_scores(30, 1, 1.0)
    warm, _ = compute_bethe_marginals(moved, tolerance=1e-6, start=beliefs.messages)
    cold, _ = compute_bethe_marginals(moved, tolerance=1e-6)
    assert warm.iterations <= cold.iterations
    assert warm.value == pytest.approx(cold.value, abs=1e-5)


@pytest.mark.parametrize("n", [2, 4])
@pytest.mark.parametrize("scale", [0.1, 1.0, 4.0])
def test_the_node_problem_against_a_search_of_the_simplex(n: int, scale: float) -> None:
    scores = random_scores(n, n, scale)[0]
    rng = np.random.default_rng(1)
    points = rng.dirichlet(np.full(n, 0.3), 200_000)
    points = np.vstack([points, np.eye(n)])
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = (1 - points) * np.log(1 - points) - points * np.log(points)
    values = points @ scores + 0.5 * np.nan_to_num(terms, nan=0.0).sum(axis=1)
    maximum = maximum_over_simplex(scores)
    assert values.max() <= maximum + 1e-12
    assert maximum == pytest.approx(values.max(), abs=0.02)


def test_rounding_keeps_what_is_doubly_stochastic_and_repairs_the_rest() -> None:
    exact = np.full((4, 4), 0.25)
    np.testing.assert_allclose(round_to_doubly_stochastic(exact), exact, atol=1e-15)
    noisy = np.abs(exact + 0.05 * random_scores(4, 0, 1.0))
    rounded = round_to_doubly_stochastic(noisy)
    assert (rounded >= 0).all()
    np.testing.assert_allclose(rounded.sum(axis=0), 1.0, atol=1e-12)
    np.testing.assert_allclose(rounded.sum(axis=1), 1.0, atol=1e-12)
    error = np.abs(noisy.sum(axis=0) - 1).sum() + np.abs(noisy.sum(axis=1) - 1).sum()
    assert np.abs(rounded - noisy).sum() <= 2 * error


@pytest.mark.parametrize("entry", [-np.inf, np.inf, np.nan])
def test_scores_that_are_not_finite_are_refused(entry: float) -> None:
    """Messages know forbidden edges, the bounds do not: a value of NaN came back."""
    with pytest.raises(InvalidProblemError, match="scores"):
        compute_bethe_marginals(np.array([[0.0, entry], [0.0, 0.0]]))
