"""Calibration of predicted probabilities: reliability bins and Platt's slope."""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, log_expit

from engine.core.arguments import BoolArray, FloatArray
from engine.core.options import check_number, check_whole

MAX_NEGATIVES = 200_000  # sampling one class of outcomes changes the intercept, not the slope

MAX_NEWTON_STEPS = 50  # 5 to 8 are usual; perfectly separated outcomes have no finite slope
FLAT = 1e-12  # share of the loss by which the last step may lower it


@dataclass(frozen=True, slots=True)
class ReliabilityBin:
    """Bin of pairs with similar predicted probability.

    Parameters
    ----------
    predicted : float, mean predicted probability.
    observed : float, share of pairs that really occurred.
    low, high : float, 95 % Wilson interval of the observed share.
    count : int, number of pairs.

    Examples
    --------
    >>> ReliabilityBin(0.2, 0.25, 0.1, 0.4, 20).observed
    0.25
    """

    predicted: float
    observed: float
    low: float
    high: float
    count: int


def reliability_bins(
    probabilities: FloatArray, outcomes: FloatArray, n_bins: int = 10
) -> tuple[ReliabilityBin, ...]:
    """Split predictions into bins of equal total probability and compare them with outcomes.

    Parameters
    ----------
    probabilities, outcomes : ndarray, shape (p,), outcomes 0 or 1.
    n_bins : int

    Returns
    -------
    tuple of ReliabilityBin
        From the smallest probabilities to the largest.

    Notes
    -----
    Bins have equal total probability, not equal counts: most pairs have a probability near zero.

    Examples
    --------
    >>> bins = reliability_bins(np.full(10, 0.2), np.array([1.0, 1] + [0] * 8), 1)
    >>> bins[0].predicted.__round__(6), bins[0].observed, bins[0].count
    (0.2, 0.2, 10)
    """
    check_whole("n_bins", n_bins, at_least=1)
    order = np.argsort(probabilities, kind="stable")
    sorted_p, sorted_y = probabilities[order], outcomes[order]
    mass = np.cumsum(sorted_p)
    if not len(mass) or mass[-1] <= 0.0:
        return ()
    cuts = np.searchsorted(mass, np.linspace(0.0, mass[-1], n_bins + 1)[1:-1])
    bins = []
    for p, y in zip(np.split(sorted_p, cuts), np.split(sorted_y, cuts), strict=True):
        if len(p):
            low, high = wilson_range(float(y.sum()), len(y))
            bins.append(ReliabilityBin(float(p.mean()), float(y.mean()), low, high, len(p)))
    return tuple(bins)


def wilson_range(successes: float, trials: int, z: float = 1.96) -> tuple[float, float]:
    """Return the score interval of a share (Wilson 1927), 95 % by default.

    Parameters
    ----------
    successes : float
        From 0 to ``trials``.
    trials : int
    z : float
        Standard errors: 1.96 for 95 %.

    Returns
    -------
    tuple of float
        Lower and upper end, between 0 and 1.

    Examples
    --------
    >>> [round(end, 3) for end in wilson_range(5, 10)]
    [0.237, 0.763]
    """
    check_number("successes", successes, at_least=0.0)
    check_whole("trials", trials)
    check_number("z", z, above=0.0)
    share = successes / trials
    centre = share + z * z / (2 * trials)
    spread = z * np.sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
    scale = 1 + z * z / trials
    return max(float((centre - spread) / scale), 0.0), min(float((centre + spread) / scale), 1.0)


def fit_platt_slope(log_odds: FloatArray, outcomes: FloatArray) -> float:
    """Return the slope of a logistic regression of outcomes on log-odds (Platt 1999).

    Negatives are subsampled, which changes only the intercept of a logistic regression.

    Parameters
    ----------
    log_odds : ndarray, shape (p,), nats
    outcomes : ndarray, shape (p,), 0 or 1

    Returns
    -------
    float
        1 if the log-odds are calibrated, less than 1 if they are overconfident.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> odds = rng.normal(size=4000)
    >>> happened = (rng.random(4000) < 1 / (1 + np.exp(-odds))).astype(float)
    >>> bool(abs(fit_platt_slope(3 * odds, happened) - 1 / 3) < 0.03)
    True
    """
    positive = outcomes > 0.5
    negatives = np.flatnonzero(~positive)
    if len(negatives) > MAX_NEGATIVES:
        rng = np.random.default_rng(0)
        negatives = rng.choice(negatives, MAX_NEGATIVES, replace=False)
    rows = np.concatenate([np.flatnonzero(positive), negatives])
    if not positive.any() or float(np.ptp(log_odds[rows])) < 1e-9:
        return 1.0
    return _fit_line(log_odds[rows], positive[rows])


def _fit_line(log_odds: FloatArray, happened: BoolArray) -> float:
    """Return the slope of the line through the log-odds that makes the outcomes most likely.

    Newton's method for two numbers: scikit-learn would need more time to load than everything else
    that training does with a small cohort.
    """
    signs = np.where(happened, 1.0, -1.0)
    columns = np.stack([np.ones(len(log_odds)), log_odds])
    line = np.zeros(2)
    loss = len(signs) * np.log(2.0)
    for _ in range(MAX_NEWTON_STEPS):
        doubt = expit(-signs * (line @ columns))
        gradient = columns @ (signs * doubt)
        step = np.linalg.lstsq((columns * doubt * (1.0 - doubt)) @ columns.T, gradient)[0]
        while (tried := -log_expit(signs * ((line + step) @ columns)).sum()) > loss:
            step /= 2.0
        line = line + step
        if loss - tried <= FLAT * loss:
            break
        loss = tried
    return float(line[1])
