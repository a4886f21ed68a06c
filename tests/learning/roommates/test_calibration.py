"""Probabilities of pairs keep their promise better once they are recalibrated."""

from dataclasses import replace

import numpy as np
import pytest

from engine.core.status import Status
from engine.crf.survey_features import make_survey_features
from engine.learning.roommates import calibration
from engine.learning.roommates.calibration import LARGEST_GAP, fit_calibration
from engine.learning.roommates.evaluation import evaluate_roommates
from engine.learning.roommates.training import train_roommates
from tests.learning.roommates.cohorts import simulated_years

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


@pytest.fixture
def fit(monkeypatch):
    """Calibrate one year with the results of its folds altered."""
    years, _ = simulated_years(80, 1)
    solve = calibration.solve_roommates

    def run(change, **options):
        monkeypatch.setattr(calibration, "solve_roommates", lambda *a, **k: change(solve(*a, **k)))
        features = make_survey_features([years[0][0]])
        return fit_calibration(years, features, 100.0, 1.0, **options)

    return run


def ended(status, gap):
    """Alter a result so that it ended with this status, at this relative gap."""

    def change(result):
        objective = result.lower_bound + gap * max(abs(result.lower_bound), 1.0)
        return replace(result, status=status, objective=objective, is_certified=True)

    return change


def test_folds_that_were_not_solved_give_no_factor(fit):
    """Weights that were still on their way used to be taken for those of a fold."""
    assert fit(lambda result: result) is not None
    assert fit(ended(Status.CANCELLED, 0.0)) is None
    assert fit(ended(Status.TIME_LIMIT, 2.0 * LARGEST_GAP)) is None
    assert fit(ended(Status.TIME_LIMIT, 0.5 * LARGEST_GAP)) is not None
    assert fit(lambda r: replace(ended(Status.TIME_LIMIT, 0.0)(r), is_certified=False)) is None


def test_a_stop_while_the_folds_are_judged_gives_no_factor(fit):
    is_solved = False

    def note(result):
        nonlocal is_solved
        is_solved = True
        return result

    assert fit(note, should_stop=lambda: is_solved) is None


def test_calibration_keeps_to_the_seconds_that_learning_left(fit, monkeypatch):
    assert fit(lambda result: result, max_seconds=0.0) is None
    allowed = []

    def calibrate(*_, max_seconds, **__):
        allowed.append(max_seconds)

    monkeypatch.setattr("engine.learning.roommates.training.fit_calibration", calibrate)
    years, _ = simulated_years(40, 2)
    trained = train_roommates(years, max_seconds=100.0)
    train_roommates(years)
    assert allowed == [100.0 - trained.result.seconds, np.inf]
