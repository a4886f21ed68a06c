"""Sharp assignment problems: bounds by multipliers, and the gaps that they close."""

import numpy as np
import pytest

from engine.core.arguments import FloatArray
from engine.inference.matching import bipartite_dual
from engine.inference.matching.bipartite_bethe import compute_bethe_marginals
from engine.inference.matching.bipartite_dual import evaluate_bound, minimise_bound
from engine.inference.matching.bipartite_newton import (
    bracket_value,
    compute_bipartite_pseudomarginals,
    counting_numbers,
    round_to_doubly_stochastic,
)


def mixed_counts(n: int, rng: np.random.Generator) -> FloatArray:
    """Counting numbers from -1 to 0, both ends among them."""
    rho = rng.choice([0.0, 0.2, 0.5], size=2 * n)
    return counting_numbers(rho, n)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("size", [0.1, 3.0])
def test_any_multipliers_bound_every_doubly_stochastic_point(seed: int, size: float) -> None:
    rng = np.random.default_rng(seed)
    scores, counts = size * rng.normal(size=(5, 5)), mixed_counts(5, rng)
    rows, columns = rng.normal(size=(2, 5))
    bound = evaluate_bound(scores, counts, rows, columns)
    for _ in range(20):
        tau = round_to_doubly_stochastic(rng.dirichlet(np.full(5, 0.3), size=5))
        assert bracket_value(scores, counts, tau)[0] <= bound.value + 1e-9


@pytest.mark.parametrize("seed", range(4))
def test_the_gradient_is_what_sums_lack(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores, counts, at = rng.normal(size=(4, 4)), mixed_counts(4, rng), rng.normal(size=8)

    def value(x: FloatArray) -> float:
        return evaluate_bound(scores, counts, x[:4], x[4:]).value

    steps = 1e-5 * np.eye(8)
    slopes = [(value(at + step) - value(at - step)) / 2e-5 for step in steps]
    told = evaluate_bound(scores, counts, at[:4], at[4:]).gradient
    np.testing.assert_allclose(told, slopes, atol=1e-6)


@pytest.mark.parametrize("deviation", [1.0, 300.0])
@pytest.mark.parametrize("seed", range(3))
def test_the_least_bound_is_attained(seed: int, deviation: float) -> None:
    rng = np.random.default_rng(seed)
    scores, counts = deviation * rng.normal(size=(9, 9)), mixed_counts(9, rng)
    dual, _ = minimise_bound(scores, counts)
    value, _ = bracket_value(scores, counts, round_to_doubly_stochastic(dual.tau))
    assert value <= dual.value + 1e-9
    assert dual.value == pytest.approx(value, abs=1e-6)


@pytest.mark.parametrize("rho", [0.0, 0.3, 0.5])
@pytest.mark.parametrize("kind", ["heavy", "outer product"])
def test_sharp_reweighted_problems_are_certified(kind: str, rho: float) -> None:
    """They ended after 2,100 steps, up to 400 nats below their bound."""
    rng = np.random.default_rng(2)
    scores = 300.0 * rng.standard_t(1.2, size=(25, 25))
    if kind == "outer product":
        scores = 300.0 * np.outer(rng.normal(size=25), rng.normal(size=25))
    found = compute_bipartite_pseudomarginals(scores, rho, tolerance=1e-6)
    assert found.status.is_converged
    assert found.gap <= 1e-6
    assert found.iterations < 400


@pytest.mark.parametrize("seed", range(3))
def test_messages_of_sharp_repeated_rows_begin_at_multipliers(seed: int) -> None:
    """Ten thousand sweeps from 0 left up to 1.7 nats open."""
    rng = np.random.default_rng(seed)
    scores = 1_000.0 * rng.normal(size=(25, 25))[rng.integers(8, size=25)]
    solution, beliefs = compute_bethe_marginals(scores, tolerance=1e-6)
    assert solution.gap <= 1e-3
    assert solution.value <= solution.upper_bound
    assert beliefs.marginals.shape == (25, 25)


def test_a_singular_system_is_damped_further() -> None:
    """Where every pair is sure nothing curves: it was an exception of linear algebra."""
    system, gradient = np.zeros((2, 2)), np.ones(2)
    assert np.isnan(bipartite_dual._damped_step(system, 0.0, gradient)).all()
    scores = 1e4 * np.eye(6)
    dual, _ = minimise_bound(scores, np.full((6, 6), -1.0))
    assert dual.value == pytest.approx(6e4)


@pytest.mark.parametrize("count", [0.0, -0.5, -1.0])
def test_far_from_its_least_the_bound_is_finite_and_holds(count: float) -> None:
    """It was infinite at c = 0, where no step could be compared with another."""
    bound = evaluate_bound(np.full((2, 2), 1e3), np.full((2, 2), count), *np.full((2, 2), -1e3))
    assert 4 * 3e3 - 4 * 1e3 <= bound.value < np.inf
    assert np.isfinite(bound.gradient).all()
