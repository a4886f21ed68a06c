"""Bounds on the rounding error of sums, for use in proven bounds."""

import numpy as np

UNIT_ROUNDOFF = float(np.finfo(np.float64).eps)


def sum_allowance(terms: int, magnitude: float) -> float:
    """Return a bound on the rounding error of a sum, with a factor of 4 to spare.

    Parameters
    ----------
    terms : the most roundings that one term passes through: its own, and one per addition; a
        compensated sum, however long, counts as two.
    magnitude : sum of the absolute values of the terms.

    References
    ----------
    Higham 2002, section 4.2.
    """
    return 2.0 * terms * UNIT_ROUNDOFF * magnitude
