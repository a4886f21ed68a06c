"""L-BFGS: the minimum, with or without a metric, and what ends the search."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from engine.core.arguments import FloatArray
from engine.core.errors import InvalidProblemError
from engine.core.status import Status
from engine.solvers.lbfgs import minimise_by_lbfgs

SCALES = np.array([1.0, 100.0, 10_000.0])
CENTRE = np.array([1.0, -2.0, 3.0])


def bowl(theta: FloatArray) -> tuple[float, FloatArray]:
    away = theta - CENTRE
    return 0.5 * float(away @ (SCALES * away)), SCALES * away


def fit(**options):  # type: ignore[no-untyped-def]
    return minimise_by_lbfgs(
        bowl, np.zeros(3), **{"tolerance": 1e-12, "max_iterations": 100, **options}
    )


def test_a_metric_of_the_right_shape_makes_it_quick() -> None:
    plain, shaped = fit(), fit(metric=np.diag(SCALES))
    assert plain.status is shaped.status is Status.CONVERGED
    assert_allclose(plain.theta, CENTRE, atol=1e-4)
    assert_allclose(shaped.theta, CENTRE, atol=1e-9)
    assert shaped.evaluations < plain.evaluations


def test_the_best_point_is_kept_and_the_limit_is_named() -> None:
    seen: list[float] = []
    limited = fit(max_iterations=2, on_evaluation=lambda theta, value, s: seen.append(value))
    assert limited.status is Status.ITERATION_LIMIT
    assert limited.objective == min(seen) == bowl(limited.theta)[0]
    assert fit(should_stop=lambda: True).status is Status.CANCELLED
    late = fit(max_seconds=0.0)
    assert (late.status, late.evaluations) == (Status.TIME_LIMIT, 1)
    assert late.as_result().lower_bound == -late.objective
    assert not late.as_result().is_certified


def test_a_loss_that_is_nowhere_finite_is_refused() -> None:
    with pytest.raises(InvalidProblemError, match="not finite"):
        minimise_by_lbfgs(
            lambda theta: (np.nan, theta), np.zeros(2), tolerance=1e-9, max_iterations=5
        )
