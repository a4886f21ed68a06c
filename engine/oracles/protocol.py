"""What an oracle is: one method that maximises a linear function over a polytope."""

from dataclasses import dataclass
from typing import Any, Protocol

from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class ExtremePoint:
    """A vertex of a polytope that maximises a linear function, and the proof of how well.

    ``vertex`` is in whatever layout the polytope uses (partners for perfect matchings, columns
    for assignments, tables for pairwise models). ``value`` is <vertex, scores> and
    ``upper_bound`` a certified upper bound on the maximum, so that
    ``upper_bound - value`` bounds the suboptimality (both in the unit of the scores, nats).
    """

    vertex: NDArray[Any]
    value: float
    upper_bound: float

    @property
    def gap(self) -> float:
        """Certified bound on how far ``value`` lies below the maximum; never negative."""
        return max(0.0, self.upper_bound - self.value)


class LinearMinimizationOracle(Protocol):
    """Anything that can return ``argmax_v <v, scores>`` over its polytope.

    The name is the field's: solvers minimise, and with scores = -gradient the maximiser of the
    scores is the minimiser of the linear model. The flip of the sign happens in objectives only.
    """

    def compute_extreme_point(self, scores: Any) -> ExtremePoint:
        """Return a vertex with the largest inner product with ``scores``."""
