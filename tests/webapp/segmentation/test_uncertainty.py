"""Means over images with their ranges, and reliability."""

import numpy as np
import pytest

from webapp.segmentation.uncertainty import (
    difference_interval,
    expected_calibration_error,
    mean_interval,
    reliability_bins,
    reliability_counts,
)


def test_the_range_holds_the_true_mean_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(3)
    held = 0
    for _ in range(100):
        interval = mean_interval(rng.normal(0.9, 0.05, 25))
        held += interval.low <= 0.9 <= interval.high
    assert 85 <= held <= 100


def test_one_image_gives_no_range() -> None:
    interval = mean_interval([0.8])
    assert (interval.mean, interval.low, interval.high) == (0.8, None, None)


def test_no_image_gives_nothing() -> None:
    assert mean_interval([]) is None


def test_differences_are_paired() -> None:
    """Both vary much between images, but one is always better by 0.01."""
    first = np.linspace(0.2, 0.9, 20)
    interval = difference_interval(first + 0.01, first)
    assert interval.low > 0
    assert interval.mean == pytest.approx(0.01)


def test_counts_put_every_pixel_into_one_bin() -> None:
    marginals = np.array([[0.0, 0.05, 0.1], [0.95, 1.0, 0.55]], dtype=np.float32)
    mask = np.array([[False, True, False], [True, True, False]])
    counts = reliability_counts(marginals, mask)
    assert sum(counts["pixels"]) == 6
    assert counts["pixels"][9] == 2
    assert sum(counts["observed"]) == 3
    assert sum(counts["predicted"]) == pytest.approx(float(marginals.sum()))


def test_calibrated_probabilities_lie_on_the_line() -> None:
    rng = np.random.default_rng(0)
    counts = []
    for _ in range(8):
        marginals = rng.random((60, 60)).astype(np.float32)
        counts.append(reliability_counts(marginals, rng.random((60, 60)) < marginals))
    bins = reliability_bins(counts)
    assert len(bins) == 10
    assert all(abs(entry.predicted - entry.observed) < 0.03 for entry in bins)
    assert all(entry.low <= entry.observed <= entry.high for entry in bins)
    assert expected_calibration_error(bins) < 0.02


def test_no_counts_give_no_bins() -> None:
    assert reliability_bins([]) == []
    assert expected_calibration_error([]) is None
