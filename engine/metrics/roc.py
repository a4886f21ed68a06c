"""Receiver operating characteristic (ROC) of scores that rank true pairs above the others."""

from dataclasses import dataclass

import numpy as np

from engine.core.arguments import FloatArray, read_only
from engine.core.errors import InvalidProblemError


@dataclass(frozen=True, slots=True)
class RocCurve:
    """Exact ROC curve, with ties drawn as slanted segments.

    Parameters
    ----------
    false_positive_rate, true_positive_rate : ndarray, shape (t,), from 0 to 1, ascending.
    auc : float, probability that a true item scores above another item, ties counted half.

    Examples
    --------
    >>> curve = compute_roc(np.array([2.0]), np.array([1.0]))
    >>> curve.true_positive_rate.tolist(), curve.auc
    ([0.0, 0.0, 1.0, 1.0], 1.0)
    """

    false_positive_rate: FloatArray
    true_positive_rate: FloatArray
    auc: float


def compute_roc(positives: FloatArray, negatives: FloatArray) -> RocCurve:
    """Return the ROC curve of the scores of true (p,) and other (q,) items.

    Parameters
    ----------
    positives : ndarray, shape (p,)
        Scores of the true items; larger is better.
    negatives : ndarray, shape (q,)
        Scores of the others.

    Returns
    -------
    RocCurve
        With the area under it.

    Raises
    ------
    InvalidProblemError
        If either is empty.

    Notes
    -----
    O((p + q) log q); at most 2 p + 2 points, since the curve is straight between true scores.

    References
    ----------
    Fawcett 2006, algorithms 1 and 2; Mann and Whitney 1947 for the area.

    Examples
    --------
    >>> compute_roc(np.array([3.0, 1.0]), np.array([2.0, 0.0])).auc
    0.75
    """
    if not len(positives) or not len(negatives):
        raise InvalidProblemError("A ROC curve needs at least one true and one other pair.")
    others = np.sort(negatives)
    thresholds, counts = np.unique(positives, return_counts=True)
    below = np.searchsorted(others, thresholds, side="left")
    not_above = np.searchsorted(others, thresholds, side="right")
    auc = float(((below + not_above) * counts).sum() / (2.0 * len(others) * len(positives)))
    p, q = len(positives), len(others)
    at_least = np.cumsum(counts[::-1])
    before = at_least - counts[::-1]
    fpr = np.stack([(q - not_above[::-1]) / q, (q - below[::-1]) / q], axis=1).ravel()
    tpr = np.stack([before / p, at_least / p], axis=1).ravel()
    return RocCurve(
        read_only(np.concatenate([[0.0], fpr, [1.0]])),
        read_only(np.concatenate([[0.0], tpr, [1.0]])),
        auc,
    )
