"""ROC, reliability and errors against scikit-learn and by hand."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score, roc_curve

from engine.core.errors import InvalidProblemError
from engine.metrics.calibration import fit_platt_slope, reliability_bins, wilson_range
from engine.metrics.matching_error import hamming_error
from engine.metrics.roc import compute_roc


@pytest.mark.parametrize("ties", [False, True])
def test_roc_agrees_with_scikit_learn(ties):
    rng = np.random.default_rng(0)
    positives, negatives = rng.normal(0.7, 1, 60), rng.normal(0, 1, 500)
    if ties:
        positives, negatives = np.round(positives), np.round(negatives)
    curve = compute_roc(positives, negatives)
    labels = np.repeat([1, 0], [60, 500])
    scores = np.concatenate([positives, negatives])
    assert curve.auc == pytest.approx(roc_auc_score(labels, scores))
    fpr, tpr, _ = roc_curve(labels, scores, drop_intermediate=False)
    area = np.trapezoid(curve.true_positive_rate, curve.false_positive_rate)
    assert area == pytest.approx(curve.auc)
    points = set(zip(fpr.round(9), tpr.round(9), strict=True))
    ours = zip(curve.false_positive_rate.round(9), curve.true_positive_rate.round(9), strict=True)
    assert set(ours) <= points
    assert (np.diff(curve.false_positive_rate) >= 0).all()


def test_roc_needs_both_kinds():
    with pytest.raises(InvalidProblemError):
        compute_roc(np.array([]), np.array([1.0]))


def test_hamming_error_counts_students():
    assert hamming_error(np.array([1, 0, 3, 2]), np.array([1, 0, -1, -1])) == 0.5
    with pytest.raises(InvalidProblemError):
        hamming_error(np.array([1, 0]), np.array([1]))


def test_reliability_of_true_probabilities_covers_the_diagonal():
    rng = np.random.default_rng(1)
    p = rng.beta(0.5, 20, 20_000)
    bins = reliability_bins(p, (rng.random(20_000) < p).astype(float))
    assert sum(b.count for b in bins) == 20_000
    inside = [b.low <= b.predicted <= b.high for b in bins]
    assert sum(inside) >= len(bins) - 1


def test_wilson_range_by_hand():
    low, high = wilson_range(5, 10)
    assert (low, high) == (pytest.approx(0.2366, abs=1e-4), pytest.approx(0.7634, abs=1e-4))
    assert wilson_range(0, 10)[0] == 0.0


@pytest.mark.parametrize("slope", [0.5, 1.0, 2.0])
def test_platt_slope_is_recovered(slope):
    rng = np.random.default_rng(2)
    odds = rng.normal(size=30_000) * 1.5
    outcomes = (rng.random(30_000) < 1 / (1 + np.exp(2 - slope * odds))).astype(float)
    assert fit_platt_slope(odds, outcomes) == pytest.approx(slope, rel=0.08)


def test_platt_slope_without_information_is_one():
    assert fit_platt_slope(np.zeros(10), np.ones(10)) == 1.0


@pytest.mark.parametrize(("spread", "shift"), [(0.1, 0.0), (1.0, -6.0), (30.0, 5.0)])
def test_platt_slope_agrees_with_scikit_learn(spread, shift):
    rng = np.random.default_rng(3)
    odds = spread * rng.normal(size=20_000) + shift
    outcomes = (rng.random(len(odds)) < 1 / (1 + np.exp(-0.4 * odds))).astype(float)
    fit = LogisticRegression(C=np.inf, max_iter=200, tol=1e-9).fit(odds[:, None], outcomes)
    assert fit_platt_slope(odds, outcomes) == pytest.approx(fit.coef_[0, 0], rel=1e-5)


def test_platt_slope_of_separated_outcomes_is_finite():
    odds = np.linspace(-1.0, 1.0, 50)
    assert 1.0 < fit_platt_slope(odds, (odds > 0.0).astype(float)) < np.inf
