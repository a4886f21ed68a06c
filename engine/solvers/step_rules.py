"""Rules that choose the step length along a direction, one class for each.

Along the direction the objective is h(g) = f(phi + g phi_d) - H(tau + g d), f at most quadratic in
g. f is computed once, the entropy at each trial.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np

from engine.core.options import check_flag
from engine.objectives.protocol import EntropyAlong

SEARCH_STEPS = 40
SEARCH_TOLERANCE = 1e-7  # relative width at which the step of a line search is exact enough
NEAR_VERTEX = 1.0 - 1e-9  # the entropy's slope is infinite at a vertex: steps stay below


S = TypeVar("S")
T = TypeVar("T")


class Mapper(Protocol):
    """Function like ``map``, possibly of a pool of threads."""

    def __call__(self, work: Callable[[S], T], items: Iterable[S], /) -> Iterable[T]:
        """Return work(item) of every item, in the order of the items."""


@dataclass(frozen=True, slots=True)
class Line:
    """Objective along one direction that moves some structures at once, 0 <= g < 1.

    Parameters
    ----------
    slope, curvature : float, of f in g: its derivative at g = 0 and its second derivative.
    entropies : sequence of functions of g, one per structure that moves.
    n_structures : int, number of structures of the problem, moving or not.
    mapper : ``map``, or a pool's.

    Examples
    --------
    >>> flat = [lambda step: (0.0, 0.0, 0.0)]
    >>> Line(slope=-1.0, curvature=4.0, entropies=flat, n_structures=1).derivatives(0.25)
    (0.0, 4.0)
    """

    slope: float
    curvature: float
    entropies: Sequence[EntropyAlong]
    n_structures: int
    mapper: Mapper = map

    def derivatives(self, step: float) -> tuple[float, float]:
        """Return h'(g) and h''(g)."""
        first, second = self.slope + step * self.curvature, self.curvature
        for _, slope, curvature in self.mapper(lambda entropy: entropy(step), self.entropies):
            first -= slope
            second -= curvature
        return first, second


class StepRule(Protocol):
    """Rule that chooses the step length.

    Examples
    --------
    >>> class Half:
    ...     def choose(self, iteration: int, line: Line) -> float:
    ...         return 0.5
    >>> rule: StepRule = Half()
    """

    def choose(self, iteration: int, line: Line) -> float:
        """Return the step of iteration t = 1, 2, ... in (0, 1)."""


class OpenLoop:
    """Step 2 M / (2 M + t) if one of M groups moves (Lacoste-Julien 2013), 2 / (t + 2) if all move.

    Examples
    --------
    >>> flat = [lambda step: (0.0, 0.0, 0.0)]
    >>> OpenLoop().choose(2, Line(-1.0, 4.0, flat, 1))
    0.5
    """

    def choose(self, iteration: int, line: Line) -> float:
        """Return the step length, a function of the iteration number alone."""
        groups = line.n_structures / len(line.entropies)
        return 2.0 * groups / (2.0 * groups + iteration)


@dataclass(frozen=True, slots=True)
class LineSearch:
    """Exact line search: Newton steps on the convex h, kept inside a shrinking bracket.

    If lambda is far below 1, no step length makes a single direction fast: the quadratic allows a
    move of about lambda. ``FullyCorrectiveFrankWolfe`` moves along many directions at once
    (compared in ``benchmarks/figures/matchings.md``).

    Parameters
    ----------
    is_capped : bool
        Never go beyond 2 / (t + 2): entropies that have no barrier at a vertex, such as Bethe's,
        do not bring back iterates that jumped next to one.

    Examples
    --------
    >>> flat = [lambda step: (0.0, 0.0, 0.0)]
    >>> round(LineSearch().choose(5, Line(-1.0, 4.0, flat, 1)), 6)
    0.25
    """

    is_capped: bool = False

    def __post_init__(self) -> None:
        """Raise InvalidProblemError for an option out of range."""
        check_flag("is_capped", self.is_capped)

    def choose(self, iteration: int, line: Line) -> float:
        """Return the minimiser of h, to a relative width of 1e-7."""
        open_loop = 2.0 / (iteration + 2.0)
        low, high = 0.0, open_loop if self.is_capped else NEAR_VERTEX
        longest = high
        step = longest if self.is_capped else min(open_loop, 0.5 * longest)
        for _ in range(SEARCH_STEPS):
            first, second = line.derivatives(step)
            if first > 0.0 or not np.isfinite(first):
                high = step
            elif step == longest:
                return step
            else:
                low = step
            new = step - first / second if second > 0.0 and np.isfinite(second) else -1.0
            if not low < new < high:
                new = 0.5 * (low + high)
            if abs(new - step) <= SEARCH_TOLERANCE * step or high - low <= SEARCH_TOLERANCE * high:
                return new
            step = new
        return step
