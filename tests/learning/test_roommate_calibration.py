"""Probabilities of pairs keep their promise better once they are recalibrated."""

from dataclasses import replace

import numpy as np
import pytest

from engine.learning.roommate_evaluation import evaluate_roommates
from engine.learning.roommates import train_roommates
from tests.learning.roommate_cohorts import simulated_years

BINS = 10


def calibration_error(years):
    """Pairs promised too many or too few, bin by bin over all years, as a share of all pairs."""
    missed = np.zeros(BINS)
    for bins in years:
        missed[: len(bins)] += [b.count * (b.predicted - b.observed) for b in bins]
    return np.abs(missed).sum() / sum(b.count * b.observed for bins in years for b in bins)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_recalibration_lowers_the_error_on_years_that_nothing_was_learned_from(seed):
    """A small ridge fits two years too closely: a third or more of what it promises fails.

    Six years have 480 pairs, 48 a bin: chance alone makes the error of true probabilities about
    0.12, so that a fall to 0.6 of the raw error can be asked for, not one to zero.
    """
    years, _ = simulated_years(160, 8, seed, strength=4.0)
    model = train_roommates(years[:2], ridge=5.0).model
    evaluations = [evaluate_roommates(model, *year) for year in years[2:]]
    raw = calibration_error([e.raw_reliability for e in evaluations])
    calibrated = calibration_error([e.reliability for e in evaluations])
    assert model.calibration < 1.0
    assert raw > 0.25
    assert calibrated < 0.6 * raw


def test_without_a_factor_both_are_the_raw_probabilities():
    years, _ = simulated_years(40, 3)
    model = replace(train_roommates(years[:2]).model, calibration=None)
    evaluation = evaluate_roommates(model, *years[2])
    assert evaluation.reliability == evaluation.raw_reliability
