"""Products of polytopes that share their weights: every part of a step against plain matrices."""

import numpy as np
import pytest

from engine.core.arguments import FloatArray
from engine.inference.matching.bipartite_interior import LearnedAssignment
from engine.inference.matching.bipartite_points import (
    bracket_value,
    counting_numbers,
    round_to_doubly_stochastic,
)
from engine.solvers.barrier import first_state, solve_by_barrier
from engine.solvers.barrier_product import ProductPolytope

SIZES, N_FEATURES, RIDGE = (3, 5), 2, 0.3


def make_parts(seed: int, rho: float = 0.7) -> list[LearnedAssignment]:
    rng = np.random.default_rng(seed)
    parts = []
    for n in SIZES:
        features = rng.normal(size=(n, n, N_FEATURES))
        observed = features[np.arange(n), rng.permutation(n)]
        parts.append(LearnedAssignment(counting_numbers(rho, n), features - observed[:, None]))
    return parts


def plain_sums() -> FloatArray:
    """B: rows and columns of the first part, then of the second, (16, 34)."""
    total = np.zeros((2 * sum(SIZES), sum(n * n for n in SIZES)))
    node = entry = 0
    for n in SIZES:
        for place in range(n * n):
            total[node + place // n, entry + place] = 1.0
            total[node + n + place % n, entry + place] = 1.0
        node, entry = node + 2 * n, entry + n * n
    return total


@pytest.mark.parametrize("seed", range(3))
def test_every_part_of_a_step_is_that_of_plain_matrices(seed: int) -> None:
    parts = make_parts(seed)
    product, sums = ProductPolytope(parts, RIDGE), plain_sums()
    rng = np.random.default_rng(seed)
    x, _ = product.start()
    rate, values = rng.uniform(0.1, 1.0, len(x)), rng.normal(size=len(x))
    features = np.concatenate([part.features.reshape(-1, N_FEATURES) for part in parts])
    none = np.empty((0, product.n_nodes))
    np.testing.assert_allclose(product.sums(values), sums @ values, atol=1e-12)
    np.testing.assert_allclose(product.missing(x), 1.0 - sums @ x, atol=1e-12)
    np.testing.assert_allclose(product.statistics(values), values @ features, atol=1e-12)
    np.testing.assert_allclose(
        product.border(rate, none), sums @ (rate[:, None] * features), atol=1e-12
    )
    np.testing.assert_allclose(
        product.information(rate), features.T @ (rate[:, None] * features), atol=1e-12
    )
    theta = rng.normal(size=N_FEATURES)
    np.testing.assert_allclose(product.scores_of(theta), features @ theta, atol=1e-12)
    solve = product.bordered(x, rate, none, np.empty(0))
    assert solve is not None
    right = sums @ (rate * values)
    nu = solve(right)
    assert nu is not None
    np.testing.assert_allclose((sums * rate) @ sums.T @ nu, right, atol=1e-10)
    spread = product.spread(nu, none, np.empty(0))
    np.testing.assert_allclose(spread, sums.T @ nu, atol=1e-12)


@pytest.mark.parametrize("rho", [0.3, 1.0])
def test_its_bounds_hold_at_any_theta_and_any_point(rho: float) -> None:
    parts, rng = make_parts(4, rho), np.random.default_rng(5)
    found = solve_by_barrier(ProductPolytope(parts, RIDGE))
    assert found.gap <= 1e-8
    for _ in range(20):
        points = [round_to_doubly_stochastic(rng.dirichlet(np.ones(n), size=n)) for n in SIZES]
        phi = sum(part.statistics(tau) for part, tau in zip(parts, points, strict=True))
        entropy = sum(
            bracket_value(np.zeros(tau.shape), part.counts, tau)[0]
            for part, tau in zip(parts, points, strict=True)
        )
        assert entropy - phi @ phi / (2.0 * RIDGE) <= found.upper_bound + 1e-9


def test_the_first_point_is_judged_with_the_better_of_two_thetas() -> None:
    product = ProductPolytope(make_parts(6), RIDGE)
    state, mu = first_state(product)
    assert mu > 0.0
    judged = product.judge(state, is_last=False)
    assert judged.value <= judged.upper_bound < np.inf
    assert state.theta.tolist() == [0.0, 0.0]
    assert judged.state.theta.shape == (N_FEATURES,)
