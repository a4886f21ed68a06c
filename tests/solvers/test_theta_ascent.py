"""The bound from convex combinations of visited points."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.objectives.learning_dual import LearningDual
from engine.solvers.theta_ascent import MAX_BUNDLE_POINTS, DualBundle


@settings(max_examples=30)
@given(seed=st.integers(0, 10_000), points=st.integers(1, 12))
def test_bound_is_never_worse_than_that_of_any_point_and_never_rises(
    seed: int, points: int
) -> None:
    rng = np.random.default_rng(seed)
    observed = rng.normal(size=6)
    dual = LearningDual(observed, 0.3)
    bundle = DualBundle(observed, 0.3)
    best, last = np.inf, np.inf
    for _ in range(points):
        statistics, entropy = observed + rng.normal(size=6), rng.random()
        best = min(best, dual.dual_value(statistics, entropy))
        bound = bundle.add(statistics, entropy)
        assert bound <= best + 1e-9
        assert bound <= last + 1e-9
        last = bound


def test_bound_is_the_value_of_a_combination() -> None:
    """Two opposite residuals cancel: what is left is the mean entropy."""
    observed = np.array([1.0, -2.0])
    bundle = DualBundle(observed, 1e-3)
    bundle.add(observed + [1.0, 1.0], 0.5)
    assert bundle.add(observed - [1.0, 1.0], 0.7) == pytest.approx(-0.6, abs=1e-3)
    assert np.abs(bundle.parameters).max() < 1.0


def test_bound_stays_above_the_optimum_of_a_real_dual() -> None:
    """tau in [0, 1]^n with entropy sum tau (1 - tau): the optimum by a fine solver."""
    rng = np.random.default_rng(3)
    n, ridge = 5, 0.5
    features = rng.normal(size=(n, 3))
    observed = features.T @ (rng.random(n) > 0.5)
    bundle = DualBundle(observed, ridge)
    dual = LearningDual(observed, ridge)
    tau, bounds = np.full(n, 0.5), []
    for _ in range(4000):
        theta = dual.parameters(features.T @ tau)
        tau = np.clip(tau + 0.02 * (features @ theta + 1 - 2 * tau), 0.0, 1.0)
    optimum = dual.dual_value(features.T @ tau, float((tau * (1 - tau)).sum()))
    for _ in range(40):
        guess = np.clip(tau + 0.3 * rng.normal(size=n), 0.0, 1.0)
        bounds.append(bundle.add(features.T @ guess, float((guess * (1 - guess)).sum())))
    assert min(bounds) >= optimum - 1e-6
    assert bounds[-1] < bounds[0]


def test_old_points_give_way() -> None:
    rng = np.random.default_rng(4)
    bundle = DualBundle(np.zeros(3), 1.0)
    last = np.inf
    for _ in range(MAX_BUNDLE_POINTS + 30):
        last = bundle.add(rng.normal(size=3) + 0.2, 0.1)
    assert np.isfinite(last)
    assert last <= -0.1 + 1e-3
