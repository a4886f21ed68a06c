"""Decisions about refits of trees with messages as offsets (see `tree_learning`)."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from engine.learning.segmentation.clock import Clock

REFIT_PAYS = 0.02
"""Relative decrease of the held-out error that a refit must reach: its trees cost time in every
later prediction."""

LEAST_SLOPE = 0.05
"""Smallest slope of node scores in the scores of the trees; smaller slopes are raised to it."""

REFIT_SHARE = 0.25
"""Estimated time of a refit, as a share of the time before it."""


def is_refit_tried(errors: Mapping[str, float], loss: str, clock: Clock) -> bool:
    """Return True if there are held-out errors, messages and time for a refit.

    With the likelihood no refit is tried: its certificate takes longer than everything else.
    """
    has_time = clock.left is None or clock.left > REFIT_SHARE * clock.seconds
    return bool(errors) and loss in {"univariate", "clique"} and has_time


def slope_of(said: Sequence[NDArray[np.floating]], scores: Sequence[NDArray[np.floating]]) -> float:
    """Return the least-squares slope of node scores in the scores of the trees."""
    x = np.concatenate([one.ravel() for one in said]).astype(np.float64)
    y = np.concatenate([one.ravel() for one in scores]).astype(np.float64)
    x -= x.mean()
    return max(float(x @ y) / max(float(x @ x), 1e-12), LEAST_SLOPE)


def has_fallen(before: float, after: float) -> bool:
    """Return True if an error fell by enough to accept a refit."""
    return after <= (1 - REFIT_PAYS) * before and after < before
