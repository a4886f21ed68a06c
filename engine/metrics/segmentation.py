"""Errors of a predicted mask against the true mask."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from engine.core.arguments import BoolArray
from engine.core.errors import InvalidProblemError

PROBABILITY_FLOOR = 1e-7
"""Smallest probability in a log loss: float32 cannot distinguish smaller ones from 0 or 1."""


def pixel_error(predicted: BoolArray, truth: BoolArray) -> float:
    """Return the share of pixels whose predicted label is wrong (mean Hamming loss)."""
    _check_same_shape(predicted, truth)
    return float(np.mean(predicted != truth))


def intersection_over_union(predicted: BoolArray, truth: BoolArray) -> float:
    """Return |A and B| / |A or B| of two foregrounds; 1 if both are empty.

    Parameters
    ----------
    predicted, truth : ndarray of bool, same shape

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> intersection_over_union(np.array([True, True]), np.array([True, False]))
    0.5
    """
    _check_same_shape(predicted, truth)
    union = int(np.count_nonzero(predicted | truth))
    return 1.0 if union == 0 else float(np.count_nonzero(predicted & truth) / union)


def log_loss(marginals: NDArray[np.floating], truth: BoolArray) -> float:
    """Return the mean over pixels of -log tau_i(y_i), nats, with tau clipped at 1e-7.

    Parameters
    ----------
    marginals : ndarray, shape (H, W)
        Probabilities of the foreground.
    truth : ndarray, shape (H, W), bool

    Returns
    -------
    float
        Nats a pixel.

    Examples
    --------
    >>> round(log_loss(np.array([[0.5, 0.5]]), np.array([[True, False]])), 6)
    0.693147
    """
    _check_same_shape(marginals, truth)
    total = 0.0
    for rows in _slices(marginals):
        correct = np.where(truth[rows], marginals[rows], 1.0 - marginals[rows])
        total -= float(np.log(np.clip(correct, PROBABILITY_FLOOR, 1.0)).sum(dtype=np.float64))
    return total / marginals.size


def binary_entropy(marginals: NDArray[np.floating]) -> NDArray[np.float32]:
    """Return the entropy -p log p - (1-p) log(1-p) of every pixel, nats, float32.

    Parameters
    ----------
    marginals : ndarray, shape (H, W)
        Probabilities.

    Returns
    -------
    ndarray, shape (H, W), float32
        Nats, at most log 2.

    Examples
    --------
    >>> binary_entropy(np.array([[0.0, 0.5]])).round(3).tolist()
    [[0.0, 0.6930000185966492]]
    """
    entropy = np.empty(marginals.shape, dtype=np.float32)
    for rows in _slices(marginals):
        p = np.clip(marginals[rows], PROBABILITY_FLOOR, 1 - PROBABILITY_FLOOR)
        entropy[rows] = -p * np.log(p) - (1 - p) * np.log1p(-p)
    return entropy


def _slices(values: NDArray[np.generic]) -> Iterator[slice]:
    """Return row ranges of about a million pixels, so that temporary arrays stay small."""
    step = max(1, 2**20 // max(values.shape[1], 1))
    return (slice(start, start + step) for start in range(0, values.shape[0], step))


def _check_same_shape(first: NDArray[np.generic], second: NDArray[np.generic]) -> None:
    if first.shape != second.shape:
        raise InvalidProblemError(
            f"prediction and truth differ in size: {first.shape} and {second.shape}."
        )
