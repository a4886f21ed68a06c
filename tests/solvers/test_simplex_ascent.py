"""The quadratic master problem against its optimality conditions."""

import numpy as np
import pytest

from engine.solvers.simplex_ascent import ascend_faces


def first_corners(block: np.ndarray) -> np.ndarray:
    """All weight of every block on its first corner."""
    weights = np.zeros(len(block))
    weights[np.unique(block, return_index=True)[1]] = 1.0
    return weights


def assert_optimal(
    gram: np.ndarray, linear: np.ndarray, block: np.ndarray, weights: np.ndarray
) -> None:
    slopes = linear - gram @ weights
    assert (weights >= 0).all()
    for b in np.unique(block):
        own = block == b
        assert weights[own].sum() == pytest.approx(1.0, abs=1e-12)
        assert slopes[own].max() - slopes[own & (weights > 1e-6)].min() < 1e-5


@pytest.mark.parametrize("seed", range(5))
def test_it_reaches_the_optimality_conditions_of_every_simplex(seed: int) -> None:
    rng = np.random.default_rng(seed)
    factors = rng.standard_normal((30, 8))
    gram, linear = factors @ factors.T, rng.standard_normal(30)
    block = np.sort(np.concatenate([np.arange(4), rng.integers(0, 4, 26)]))
    weights = first_corners(block)
    gap = ascend_faces(gram, linear, block, 4, weights, 1e-12, 1_000)
    assert gap <= 1e-12
    assert_optimal(gram, linear, block, weights)


def test_the_gap_bounds_what_is_missing() -> None:
    rng = np.random.default_rng(0)
    factors = rng.standard_normal((12, 20))
    gram, linear, block = factors @ factors.T, rng.standard_normal(12), np.zeros(12, dtype=np.int64)

    def value(w: np.ndarray) -> float:
        return float(linear @ w - 0.5 * w @ gram @ w)

    optimum = np.eye(12)[0]
    ascend_faces(gram, linear, block, 1, optimum, 1e-13, 1_000)
    early = np.eye(12)[0]
    gap = ascend_faces(gram, linear, block, 1, early, 0.0, 3)
    slopes = linear - gram @ early
    remaining = slopes.max() - slopes @ early
    assert 0 < value(optimum) - value(early) <= remaining
    assert gap == pytest.approx(remaining)


def test_scales_far_apart_are_no_obstacle() -> None:
    """Pairwise steps were at -216 after 20,000 of them; the optimum is 1.937."""
    rng = np.random.default_rng(3)
    factors = rng.standard_normal((150, 60)) * np.geomspace(1e4, 1.0, 60)
    gram, linear = factors @ factors.T, rng.uniform(0.9, 1.0, 150)
    block = np.arange(150) % 2
    weights = first_corners(block)
    gap = ascend_faces(gram, linear, block, 2, weights, 1e-6, 400)
    assert gap <= 1e-6
    assert linear @ weights - 0.5 * weights @ gram @ weights == pytest.approx(1.9367, abs=1e-4)
    assert_optimal(gram, linear, block, weights)


def test_every_solve_ascends_and_stays_feasible() -> None:
    rng = np.random.default_rng(4)
    factors = rng.standard_normal((40, 6))
    gram, linear = factors @ factors.T, rng.standard_normal(40)
    block = np.sort(np.arange(40) % 3)
    weights = first_corners(block)
    values = []
    for _ in range(60):
        ascend_faces(gram, linear, block, 3, weights, 0.0, 1)
        assert (weights >= 0).all()
        np.testing.assert_allclose(np.bincount(block, weights), 1.0, atol=1e-12)
        values.append(linear @ weights - 0.5 * weights @ gram @ weights)
    assert (np.diff(values) >= -1e-12).all()


@pytest.mark.parametrize("copies", [2, 5])
def test_corners_met_twice_and_corners_without_curvature_do_no_harm(copies: int) -> None:
    rng = np.random.default_rng(5)
    factors = np.tile(rng.standard_normal((6, 3)), (copies, 1))
    factors[0] = 0.0
    gram, linear = factors @ factors.T, np.tile(rng.standard_normal(6), copies)
    block = np.zeros(6 * copies, dtype=np.int64)
    weights = np.full(6 * copies, 1.0 / (6 * copies))
    assert ascend_faces(gram, linear, block, 1, weights, 1e-10, 1_000) <= 1e-10
    flat = np.full(6 * copies, 1.0 / (6 * copies))
    assert ascend_faces(np.zeros_like(gram), linear, block, 1, flat, 1e-10, 1_000) <= 1e-10
    assert flat @ linear == pytest.approx(linear.max())
