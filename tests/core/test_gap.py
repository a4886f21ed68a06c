"""One relative gap for every certificate in nats."""

import doctest
import math

import numpy as np
import pytest

import engine.core.gap as module
from engine.core.gap import relative_gap
from engine.core.status import Status
from engine.objectives.learning_dual import Bounds
from engine.solvers.control import Callbacks, Limits, Run
from engine.solvers.result import LearningResult, TrajectoryPoint


@pytest.mark.parametrize(
    ("upper", "lower", "expected"),
    [
        (-90.0, -100.0, 0.1),
        (110.0, 100.0, 0.1),
        (0.3, -0.1, 0.4),  # below a nat the size counts as one
        (-1.0, -1.0 + 1e-12, 0.0),  # bounds that rounding made cross
        (math.inf, -5.0, math.inf),
        (math.inf, -math.inf, math.inf),
        (-5.0, -math.inf, math.inf),
    ],
)
def test_results_histories_bounds_and_runs_mean_the_same(upper, lower, expected):
    result = LearningResult(np.zeros(1), upper, lower, True, 1, 1, 0.0, Status.CONVERGED, ())
    run = Run(Limits(), Callbacks())
    run.upper, run.lower = upper, lower
    told = [
        relative_gap(upper, lower),
        result.relative_gap,
        TrajectoryPoint(1, 0.0, 1, upper, lower).relative_gap,
        Bounds(upper, lower).relative_gap,
        run.relative_gap,
    ]
    assert told == [pytest.approx(expected)] * 5


def test_docstring_examples_hold():
    assert doctest.testmod(module).failed == 0
