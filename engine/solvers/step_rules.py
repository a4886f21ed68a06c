"""How far to go along a direction: one method per rule.

The line search minimises h(g) = ||r - g phi_d||^2 / (2 lambda) - H(tau + g d), where phi_d is the
change of the statistics: the quadratic is computed once, the entropy per trial.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from engine.core.arguments import FloatArray
from engine.objectives.protocol import Segment

SEARCH_STEPS = 40
SEARCH_TOLERANCE = 1e-7  # relative width at which the step of a line search is exact enough
NEAR_VERTEX = 1.0 - 1e-9  # the entropy's slope is infinite at a vertex: steps stay below


@dataclass(frozen=True, slots=True)
class LineProblem:
    """The objective along one direction that moves some blocks at once.

    Parameters
    ----------
    residual : ndarray, shape (K,), r(tau) = observed - statistics.
    change : ndarray, shape (K,), phi(d), summed over the blocks that move.
    ridge : float
    segments : sequence of Segment, one per block that moves.
    """

    residual: FloatArray
    change: FloatArray
    ridge: float
    segments: Sequence[Segment]

    @property
    def longest(self) -> float:
        """The largest step that keeps every block in its polytope."""
        return min(segment.longest for segment in self.segments)

    def slope(self, step: float) -> tuple[float, float]:
        """Return h'(g) and h''(g)."""
        linear = float(self.residual @ self.change)
        square = float(self.change @ self.change)
        first = (step * square - linear) / self.ridge
        second = square / self.ridge
        for segment in self.segments:
            _, slope, curvature = segment.entropy(step)
            first -= slope
            second -= curvature
        return first, second


class StepRule(Protocol):
    """One choice of step."""

    def choose(self, iteration: int, n_blocks: int, line: LineProblem) -> float:
        """Return the step of iteration t = 1, 2, ... in (0, longest)."""


class OpenLoop:
    """2 / (t + 2) for all blocks at once, 2 M / (2 M + t) for one of M (Lacoste-Julien 2013)."""

    def choose(self, iteration: int, n_blocks: int, line: LineProblem) -> float:
        """Return the step that the iteration number alone decides."""
        moved = len(line.segments)
        if moved == n_blocks:
            return min(2.0 / (iteration + 2.0), NEAR_VERTEX * line.longest)
        return min(2.0 * n_blocks / (2.0 * n_blocks + iteration), NEAR_VERTEX * line.longest)


class LineSearch:
    """Exact minimisation of the convex h by Newton steps kept inside a shrinking bracket.

    Where lambda is far below 1 no choice of step makes a single direction fast: the quadratic
    allows a move of about lambda. ``FullyCorrectiveFrankWolfe`` moves along many directions at once
    (``benchmarks/README.md`` compares).
    """

    def choose(self, iteration: int, n_blocks: int, line: LineProblem) -> float:
        """Return the minimiser of h, to a relative width of 1e-7."""
        low, high = 0.0, NEAR_VERTEX * line.longest
        step = min(2.0 / (iteration + 2.0), 0.5 * high)
        for _ in range(SEARCH_STEPS):
            first, second = line.slope(step)
            if first > 0.0 or not np.isfinite(first):
                high = step
            else:
                low = step
            new = step - first / second if second > 0.0 and np.isfinite(second) else -1.0
            if not low < new < high:
                new = 0.5 * (low + high)
            if abs(new - step) <= SEARCH_TOLERANCE * step or high - low <= SEARCH_TOLERANCE * high:
                return new
            step = new
        return step
