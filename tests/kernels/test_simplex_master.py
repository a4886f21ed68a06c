"""The quadratic master problem against its optimality conditions."""

import numpy as np
import pytest

from engine.kernels.simplex_master import ascend_pairwise


@pytest.mark.parametrize("seed", range(5))
def test_it_reaches_the_optimality_conditions_of_every_simplex(seed: int) -> None:
    rng = np.random.default_rng(seed)
    factors = rng.standard_normal((30, 8))
    gram, linear = factors @ factors.T, rng.standard_normal(30)
    block = np.sort(np.concatenate([np.arange(4), rng.integers(0, 4, 26)]))
    weights = np.zeros(30)
    weights[np.unique(block, return_index=True)[1]] = 1.0
    gap = ascend_pairwise(gram, linear, block, 4, weights, 1e-12, 1_000_000)
    slopes = linear - gram @ weights
    assert gap <= 1e-12
    assert (weights >= 0).all()
    for b in range(4):
        own = block == b
        assert weights[own].sum() == pytest.approx(1.0, abs=1e-12)
        assert slopes[own].max() - slopes[own & (weights > 1e-6)].min() < 1e-5


def test_the_gap_bounds_what_is_missing() -> None:
    rng = np.random.default_rng(0)
    factors = rng.standard_normal((12, 20))
    gram, linear, block = factors @ factors.T, rng.standard_normal(12), np.zeros(12, dtype=np.int64)

    def value(w: np.ndarray) -> float:
        return float(linear @ w - 0.5 * w @ gram @ w)

    optimum = np.eye(12)[0]
    ascend_pairwise(gram, linear, block, 1, optimum, 1e-13, 1_000_000)
    early = np.eye(12)[0]
    gap = ascend_pairwise(gram, linear, block, 1, early, 0.0, 3)
    slopes = linear - gram @ early
    remaining = slopes.max() - slopes @ early
    assert 0 < value(optimum) - value(early) <= remaining
    assert gap >= 0
