"""Assignment problems from the inside: bounds, accuracy of the systems, and gaps that close."""

from itertools import permutations

import numpy as np
import pytest

from engine.core.arguments import FloatArray
from engine.core.errors import StoppedError
from engine.core.status import Status
from engine.inference.matching.bipartite_bethe import compute_bethe_marginals
from engine.inference.matching.bipartite_interior import AssignmentPolytope, maximise_inside
from engine.inference.matching.bipartite_margins import Margins
from engine.inference.matching.bipartite_newton import compute_bipartite_pseudomarginals
from engine.inference.matching.bipartite_points import (
    bound_from_point,
    bracket_value,
    counting_numbers,
    excess,
    round_to_doubly_stochastic,
)
from engine.solvers.barrier import first_state, solve_by_barrier


def mixed_counts(n: int, rng: np.random.Generator) -> FloatArray:
    """Counting numbers from -1 to 1, both ends among them."""
    return counting_numbers(rng.choice([0.0, 0.2, 0.5, 0.8, 1.0], size=2 * n), n)


def heavy_scores(kind: str, n: int, rng: np.random.Generator) -> FloatArray:
    if kind == "heavy":
        return 300.0 * rng.standard_t(1.2, size=(n, n))
    if kind == "outer product":
        return 300.0 * np.outer(rng.normal(size=n), rng.normal(size=n))
    return 1_000.0 * rng.normal(size=(n, n))[rng.integers(max(n // 3, 2), size=n)]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("size", [0.1, 3.0, 100.0])
def test_any_point_bounds_every_doubly_stochastic_point(seed: int, size: float) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 8))
    scores, counts = size * rng.normal(size=(n, n)), mixed_counts(n, rng)
    drawn = [round_to_doubly_stochastic(rng.dirichlet(np.full(n, 0.3), size=n)) for _ in range(30)]
    bound = min(bound_from_point(scores, counts, tau) for tau in drawn[:3])
    vertices = [np.eye(n)[list(order)] for order in permutations(range(n))][:200]
    for tau in drawn + vertices:
        assert bracket_value(scores, counts, tau)[0] <= bound + 1e-9 * max(size, 1.0)


@pytest.mark.parametrize("seed", range(4))
def test_the_bound_of_a_vertex_is_finite_and_holds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores, counts = 3.0 * rng.normal(size=(5, 5)), mixed_counts(5, rng)
    bound = bound_from_point(scores, counts, np.eye(5))
    assert np.isfinite(bound)
    for _ in range(30):
        tau = round_to_doubly_stochastic(rng.dirichlet(np.full(5, 0.3), size=5))
        assert bracket_value(scores, counts, tau)[0] <= bound + 1e-9


@pytest.mark.parametrize("seed", range(4))
def test_any_multipliers_of_columns_bound_the_bethe_problem(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores, counts = 3.0 * rng.normal(size=(5, 5)), np.ones((5, 5))
    bound = AssignmentPolytope(scores, counts).bound_by_multipliers(rng.normal(size=5))
    lower = AssignmentPolytope(scores, counts - 0.1).bound_by_multipliers(np.zeros(5))
    assert lower == np.inf  # the bound holds for c = 1 alone
    for _ in range(30):
        tau = round_to_doubly_stochastic(rng.dirichlet(np.full(5, 0.3), size=5))
        assert bracket_value(scores, counts, tau)[0] <= bound + 1e-9


@pytest.mark.parametrize("smallest", [1e-2, 1e-12])
def test_steps_keep_the_sums_where_pairs_are_nearly_sure(smallest: float) -> None:
    """Entries of 1e-12 beside one of 1: plain sums lost what tells rows and columns apart."""
    rng, n = np.random.default_rng(0), 6
    others = smallest * rng.random((n, n))
    tau = round_to_doubly_stochastic(np.where(np.eye(n), 1.0 - n * smallest, others))
    rates, gradient = tau * rng.uniform(0.5, 1.0, (n, n)), rng.normal(size=(n, n))
    margins = Margins(tau, rates)
    reduced = gradient - margins.spread(margins.solve(margins.targets(rates * gradient)))
    direction = rates * reduced
    polytope = AssignmentPolytope(np.zeros((n, n)), np.ones((n, n)))
    after = polytope.settle(tau + 0.1 * direction)
    assert np.abs(excess(after) - 0.9 * excess(tau)).max() <= 1e-9 * smallest
    assert np.abs(after.sum(axis=0) - 1.0).max() <= 1e-12


@pytest.mark.parametrize("likely", [True, False])
def test_multipliers_solve_the_system_as_written(likely: bool) -> None:
    rng, n = np.random.default_rng(1), 4
    tau = np.full((n, n), 0.05) + 0.8 * np.eye(n) if likely else np.full((n, n), 0.25)
    rates, gradient = rng.uniform(0.1, 1.0, (n, n)), rng.normal(size=(n, n))
    margins = Margins(tau, rates)
    products = rates * gradient
    by_node = margins.by_node(margins.solve(margins.targets(products)))
    matrix = np.block([[np.diag(rates.sum(axis=1)), rates], [rates.T, np.diag(rates.sum(axis=0))]])
    right = np.concatenate([products.sum(axis=1), products.sum(axis=0)])
    np.testing.assert_allclose(matrix @ by_node, right, atol=1e-12)


@pytest.mark.parametrize("rho", [0.0, 0.3, 0.5, 0.7, 0.9, 1.0])
@pytest.mark.parametrize("kind", ["heavy", "outer product", "repeated"])
@pytest.mark.parametrize("n", [2, 3, 25])
def test_sharp_problems_are_certified_at_every_rho(kind: str, rho: float, n: int) -> None:
    """They ended after 2,100 steps up to 1 % below their bound; with rho 1 up to 1.7 nats."""
    scores = heavy_scores(kind, n, np.random.default_rng(2))
    size = float(np.abs(scores).max(axis=1).sum())
    found = maximise_inside(scores, counting_numbers(rho, n), 2e-8 * size)
    assert found.status is Status.CONVERGED
    assert found.upper_bound - found.value <= 2e-8 * size
    assert found.steps <= 60
    assert round_to_doubly_stochastic(found.point) == pytest.approx(found.point, abs=1e-12)


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.75, 1.0])
@pytest.mark.parametrize("scale", [0.3, 3.0])
def test_it_agrees_with_newtons_method_where_that_converges(rho: float, scale: float) -> None:
    scores = scale * np.random.default_rng(3).normal(size=(12, 12))
    inside = maximise_inside(scores, counting_numbers(rho, 12), 1e-9)
    newton = compute_bipartite_pseudomarginals(scores, rho, tolerance=1e-9)
    assert newton.status is Status.CONVERGED
    assert inside.value == pytest.approx(newton.value, abs=1e-8)
    np.testing.assert_allclose(inside.point, newton.marginals, atol=1e-4)


@pytest.mark.parametrize("rho", [0.3, 0.7, 1.0])
def test_the_public_solvers_close_sharp_gaps(rho: float) -> None:
    scores = heavy_scores("heavy", 25, np.random.default_rng(4))
    found = compute_bipartite_pseudomarginals(scores, rho, tolerance=1e-4)
    assert found.status is Status.CONVERGED
    if rho == 1.0:
        solution, beliefs = compute_bethe_marginals(scores, tolerance=1e-4)
        assert solution.status is Status.CONVERGED
        assert solution.value == pytest.approx(found.value, abs=1e-4)
        assert beliefs.marginals.shape == (25, 25)


def test_it_stops_when_asked() -> None:
    with pytest.raises(StoppedError):
        maximise_inside(np.eye(3), np.zeros((3, 3)), 1e-9, should_stop=lambda: True)


def test_the_barrier_of_a_system_that_is_not_finite_ends() -> None:
    part = AssignmentPolytope(np.eye(3), np.ones((3, 3)), 1e-9)
    state, _ = first_state(part)
    rate = np.full((3, 3), np.nan)
    assert part.bordered(state.x, rate, np.empty((0, 6)), np.empty(0)) is None
    found = solve_by_barrier(AssignmentPolytope(np.full((3, 3), 1e300), np.ones((3, 3)), 1e-9))
    assert found.steps < 60


def test_by_node_the_multipliers_are_those_of_the_sums() -> None:
    rng, n = np.random.default_rng(2), 5
    tau = round_to_doubly_stochastic(np.full((n, n), 0.02) + 0.9 * np.eye(n))
    rates, products = rng.uniform(0.1, 1.0, (n, n)), rng.normal(size=(n, n, 2))
    margins = Margins(tau, rates)
    right = np.concatenate([products.sum(axis=1), products.sum(axis=0)])
    both = margins.solve_by_node(right)
    for k in range(2):
        by_sums = margins.by_node(margins.solve(margins.sums(products[:, :, k : k + 1])))
        np.testing.assert_allclose(both[:, k], by_sums, atol=1e-12)
        np.testing.assert_allclose(margins.solve_by_node(right[:, k]), both[:, k], atol=1e-12)
