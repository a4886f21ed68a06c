"""The network alone: its scores times one number, without trees and without edges."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

LEAST_SLOPE, MOST_SLOPE = 0.05, 5.0
"""Bounds of the factor on the scores."""

MOST_PIXELS = 200_000
"""Largest number of known pixels that the factor is fitted to."""


def fit_slope(pictures: Iterable[tuple[NDArray[np.floating[Any]], NDArray[Any]]]) -> float:
    """Return the factor on scores with the least log loss of the known labels.

    It changes how sure the network is, never which label is the most probable one.

    Parameters
    ----------
    pictures : pairs of scores, shape (rows, columns, L), nats, and labels, shape (rows, columns);
        labels of L and more are unknown.

    Examples
    --------
    >>> scores = np.array([[[0.0, 4.0]] * 4])
    >>> round(fit_slope([(scores, np.array([[1, 1, 1, 0]]))]), 3)
    0.275
    """
    known = []
    for scores, labels in pictures:
        is_known = labels < scores.shape[2]
        known.append((scores[is_known].astype(np.float64), labels[is_known].astype(np.intp)))
    scores = np.concatenate([one for one, _ in known])
    labels = np.concatenate([one for _, one in known])
    if not len(labels):
        return 1.0
    step = -(-len(labels) // MOST_PIXELS)
    scores, labels = scores[::step], labels[::step]
    scores -= scores.max(axis=1, keepdims=True)
    own = scores[np.arange(len(labels)), labels]

    def loss(logarithm: float) -> float:
        slope = float(np.exp(logarithm))
        return float(np.mean(np.log(np.exp(slope * scores).sum(axis=1)) - slope * own))

    bounds = (np.log(LEAST_SLOPE), np.log(MOST_SLOPE))
    return float(np.exp(minimize_scalar(loss, bounds=bounds, method="bounded").x))
