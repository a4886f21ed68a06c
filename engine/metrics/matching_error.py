"""Errors of a set of pairs against the true pairs."""

import numpy as np

from engine.core.arguments import IntArray
from engine.core.errors import InvalidProblemError


def hamming_error(predicted_partner: IntArray, true_partner: IntArray) -> float:
    """Return the share of nodes whose predicted partner is wrong.

    Parameters
    ----------
    predicted_partner, true_partner : ndarray, shape (n,), -1 for nobody.

    Returns
    -------
    float
        Between 0 and 1.

    Raises
    ------
    InvalidProblemError
        If the lengths differ or are 0.

    Examples
    --------
    >>> hamming_error(np.array([1, 0, 3, 2]), np.array([1, 0, -1, -1]))
    0.5
    """
    if predicted_partner.shape != true_partner.shape or not len(true_partner):
        raise InvalidProblemError(
            f"partners: expected two arrays of one length above 0, received "
            f"{predicted_partner.shape} and {true_partner.shape}."
        )
    return float(np.mean(predicted_partner != true_partner))
