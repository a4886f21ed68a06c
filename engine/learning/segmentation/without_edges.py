"""Weights without edges beside a network: the network alone, and the mean of trees and network.

The scores of each are multiplied by one number, which makes its probabilities right; so are the
sums of both, which are surer of themselves where both agree.
"""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from engine.core.arguments import FloatArray

LEAST_SLOPE, MOST_SLOPE = 0.05, 5.0
"""Bounds of the factor on the scores."""

MOST_PIXELS = 200_000
"""Largest number of known pixels that the factor is fitted to."""


Picture = tuple[NDArray[np.floating[Any]], NDArray[np.floating[Any]], NDArray[np.integer[Any]]]


def fit_without_edges(
    loss: str,
    trees: FloatArray,
    network: FloatArray,
    pictures: Callable[[], Iterable[Picture]],
) -> FloatArray:
    """Return the weights of the network alone, or of the mean of trees and network.

    Parameters
    ----------
    loss : "network" or "mean"
    trees, network : ndarray, shape (K,), weights with which scores are those of one of the two
    pictures : function that returns all pictures, one at a time: scores of the trees and of the
        network, each (rows, columns, L), nats, and labels
    """
    of_network = fit_slope((own, labels) for _, own, labels in pictures())
    if loss == "network":
        return of_network * network
    of_trees = fit_slope((own, labels) for own, _, labels in pictures())
    both = fit_slope((of_trees * a + of_network * b, labels) for a, b, labels in pictures())
    return both * (of_trees * trees + of_network * network)


def fit_slope(pictures: Iterable[tuple[NDArray[np.floating[Any]], NDArray[Any]]]) -> float:
    """Return the factor on scores with the least log loss of the known labels.

    It changes how sure a method is, never which label is the most probable one.

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
