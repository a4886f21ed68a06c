"""The inner problem of several classes, and learning by the likelihood with its certificate."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from engine.core.progress import never_stop
from engine.crf.class_features import ClassExample
from engine.learning.segmentation.class_weights import (
    estimate_curvature,
    expected_statistics,
    fit_likelihood,
)
from engine.objectives.grid_inner import GridSetInnerProblem
from tests.objectives.test_class_messages import all_scores, example, parameters


def whole(rows: int, columns: int) -> ClassExample:
    one = example(rows, columns, 3)
    return ClassExample(one.features, (one.labels % 3).astype(np.uint8))


def test_observed_statistics_give_the_score_of_the_labelling() -> None:
    one = whole(2, 3)
    theta = parameters(one, is_potts=False)
    labellings, values = all_scores(one, theta)
    place = (labellings == one.labels).all(axis=(1, 2)).argmax()
    assert float(theta @ one.observed_statistics()) == pytest.approx(values[place], abs=1e-4)


def test_bounds_enclose_and_meet() -> None:
    one = whole(6, 5)
    problem = GridSetInnerProblem([one], 0.5, curvature=estimate_curvature([one], 1.0))
    theta = parameters(one, is_potts=False, size=0.2)
    problem.maximise(theta, None, 1e-3)
    answer = problem.maximise(theta, None, 1e-3)
    value = float(theta @ answer.statistics) + answer.entropy
    assert value <= answer.log_partition <= value + 2e-3


def test_learning_ends_with_a_certificate() -> None:
    one = whole(12, 12)
    result = fit_likelihood([one], ridge=1.0, relative_gap=1e-3, should_stop=never_stop)
    assert result.is_certified
    assert result.lower_bound <= result.objective
    assert result.objective - result.lower_bound <= 1.01e-3 * abs(result.lower_bound)


def test_hidden_pixels_are_expected_from_the_known() -> None:
    one = example(6, 6, 3)
    theta = parameters(one, is_potts=True, size=0.1)
    expected = expected_statistics(one, theta)
    counts = expected[: 3 * one.features.layout.n_node].reshape(3, -1)[:, 0]
    known = np.bincount(one.labels[one.labels < 3], minlength=3)
    assert counts.sum() == pytest.approx(36, abs=1e-3)
    assert (counts >= known - 1e-4).all()
    full = whole(6, 6)
    assert_allclose(expected_statistics(full, theta), full.observed_statistics())
    result = fit_likelihood([one], ridge=1.0, relative_gap=1e-2, should_stop=never_stop)
    assert np.isfinite(result.theta).all()
