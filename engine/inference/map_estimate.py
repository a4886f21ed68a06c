"""What every method for the best labelling returns, with what it guarantees."""

import math
from dataclasses import dataclass

from engine.core.arguments import IntArray
from engine.core.status import Status

# A bound within this share of the value counts as met: above the rounding of long sums, far
# below any difference that a model with six-digit tables can express.
EXACT_TOLERANCE = 1e-8
# What a method guarantees that returns a labelling of score -inf.
IMPOSSIBLE = "None: no labelling of probability above zero was found."


@dataclass(frozen=True, slots=True)
class MapEstimate:
    """A labelling, its score, and a proven upper bound of the best score.

    Parameters
    ----------
    labels : ndarray, shape (n,), int64
    value : float
        Score of the labels, nats.
    upper_bound : float
        Of the best score, nats.
    status : Status
    iterations : int
    guarantee : str
        What the method proves about the labelling, in a sentence.
    method : str
        Which of several methods found it.

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
        """Certified bound on how far the labelling is from the best one; inf if impossible."""
        return max(0.0, self.upper_bound - self.value)

    @property
    def is_exact(self) -> bool:
        """Whether the bound proves the labelling optimal (up to relative rounding of 1e-8)."""
        return meets_bound(self.value, self.upper_bound)


def meets_bound(value: float, bound: float, tolerance: float = EXACT_TOLERANCE) -> bool:
    """Return whether a score meets its bound relatively; an impossible labelling never does."""
    return value > -math.inf and bound - value <= tolerance * max(1.0, abs(value))
