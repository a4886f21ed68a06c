"""Whether trees are learned again with what the messages say (`tree_learning`), and how it pays."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from engine.learning.segmentation.clock import Clock

REFIT_PAYS = 0.02
"""By this share the error on pictures kept from it must fall for a refit to be taken: the trees of
a refit are asked ever after."""

LEAST_SLOPE = 0.05
"""Node scores that grow less with what the trees say are taken to grow by this."""

REFIT_SHARE = 0.25
"""A refit may take about this share of the time before it."""


def is_refit_tried(errors: Mapping[str, float], loss: str, clock: Clock) -> bool:
    """Whether there are pictures to judge a refit on, messages to go on from, and time.

    By the likelihood, whose certificate takes longer than all else, nothing is learned twice.
    """
    has_time = clock.left is None or clock.left > REFIT_SHARE * clock.seconds
    return bool(errors) and loss in {"univariate", "clique"} and has_time


def slope_of(said: Sequence[NDArray[np.floating]], scores: Sequence[NDArray[np.floating]]) -> float:
    """Return the slope of node scores in what the trees say, by least squares over all pictures."""
    x = np.concatenate([one.ravel() for one in said]).astype(np.float64)
    y = np.concatenate([one.ravel() for one in scores]).astype(np.float64)
    x -= x.mean()
    return max(float(x @ y) / max(float(x @ x), 1e-12), LEAST_SLOPE)


def has_fallen(before: float, after: float) -> bool:
    """Whether an error fell by enough for a refit to be taken."""
    return after <= (1 - REFIT_PAYS) * before and after < before
