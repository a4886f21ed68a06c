"""Errors of masks."""

import numpy as np
import pytest

from engine.core.errors import InvalidProblemError
from engine.metrics.segmentation import (
    binary_entropy,
    intersection_over_union,
    log_loss,
    pixel_error,
)

TRUTH = np.array([[True, True], [False, False]])
GUESS = np.array([[True, False], [False, True]])


def test_errors_by_hand() -> None:
    assert pixel_error(GUESS, TRUTH) == 0.5
    assert intersection_over_union(GUESS, TRUTH) == pytest.approx(1 / 3)
    assert log_loss(np.array([[0.5, 0.25], [0.5, 0.5]]), TRUTH) == pytest.approx(
        (3 * np.log(2) + np.log(4)) / 4
    )


def test_empty_masks_agree() -> None:
    nothing = np.zeros((2, 2), dtype=bool)
    assert intersection_over_union(nothing, nothing) == 1.0
    assert intersection_over_union(nothing, TRUTH) == 0.0


def test_certainty_has_no_entropy_and_a_sure_error_a_finite_loss() -> None:
    sure = np.array([[0.0, 1.0]], dtype=np.float32)
    assert binary_entropy(sure).max() < 1e-5
    assert binary_entropy(np.array([[0.5]])) == pytest.approx(np.log(2))
    assert 10 < log_loss(sure, np.array([[True, False]])) < 20


def test_sizes_must_agree() -> None:
    with pytest.raises(InvalidProblemError, match="differ in size"):
        pixel_error(np.zeros((2, 3), dtype=bool), TRUTH)
