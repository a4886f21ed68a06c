"""Result of every MAP method, with its guarantee."""

import math
from dataclasses import dataclass

from engine.core.arguments import IntArray
from engine.core.status import Status

MAX_ITERATIONS = 2000  # default limit of one method, for best configurations and marginals alike
# Relative difference at which a value counts as equal to its bound: above the rounding of long
# sums, far below any difference that a model with six-digit tables can express.
EXACT_TOLERANCE = 1e-8
# Guarantee of a method that returns a labelling of score -inf.
IMPOSSIBLE = "None: no labelling of probability above zero was found."


@dataclass(frozen=True, slots=True)
class MapEstimate:
    """Labelling with its score, and a proved upper bound of the best score.

    Parameters
    ----------
    labels : ndarray, shape (n,), int64
    value : float
        Score of the labels, nats.
    upper_bound : float
        Upper bound of the best score, nats.
    status : Status
    iterations : int
    guarantee : str
        A sentence that states what the method proves about the labelling.
    method : str
        The method that found it, if there are several.

    Examples
    --------
    >>> import numpy as np
    >>> from engine.core.status import Status
    >>> found = MapEstimate(np.array([1, 0]), 2.0, 2.5, Status.ITERATION_LIMIT, 9, "within the gap")
    >>> found.gap, found.is_exact
    (0.5, False)
    """

    labels: IntArray
    value: float
    upper_bound: float
    status: Status
    iterations: int
    guarantee: str
    method: str = ""

    @property
    def gap(self) -> float:
        """Certified bound on the score missing to the best labelling; inf if impossible."""
        return max(0.0, self.upper_bound - self.value)

    @property
    def is_exact(self) -> bool:
        """True if the bound proves the labelling optimal (up to relative rounding of 1e-8)."""
        return meets_bound(self.value, self.upper_bound)


def meets_bound(value: float, bound: float, tolerance: float = EXACT_TOLERANCE) -> bool:
    """Return True if a score equals its bound up to ``tolerance``; -inf never does."""
    return value > -math.inf and bound - value <= tolerance * max(1.0, abs(value))
