"""Newton's method for Bethe and reweighted marginals of bipartite perfect matchings.

    max over doubly stochastic tau of <W, tau> + sum_ij c_ij (1 - tau) log(1 - tau) - tau log tau

with c_ij = rho_i + rho_j - 1. The Hessian is diagonal, h = -1/tau + c/(1 - tau), so that a Newton
step costs one linear system in the multipliers of columns. An h may be positive (tau above
1/(1 + c)); the objective is still concave on the constraints (Tang et al. 2015, theorem 4.1), which
is all that the step needs. An interior optimum takes about ten steps and is proved by one
assignment. Towards the boundary a step gains at most a factor of 20, so that scores of a deviation
of 30 nats or more take too many: they are solved with a barrier (``bipartite_interior``).
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from engine.core.arguments import FloatArray, as_finite_array, check_shape, read_only
from engine.core.errors import InvalidProblemError
from engine.core.options import check_callables, check_number, check_whole
from engine.core.progress import StopCallback, never_stop
from engine.core.status import Status
from engine.core.tolerances import TOLERANCES
from engine.inference.matching.bipartite_interior import maximise_inside
from engine.inference.matching.bipartite_margins import Margins
from engine.inference.matching.bipartite_points import (
    bracket_value,
    complement,
    counting_numbers,
    round_to_doubly_stochastic,
)
from engine.inference.matching.newton_ascent import (
    Ascent,
    NewtonStep,
    ascend,
    inverse_curvature,
)
from engine.kernels.threads import one_blas_thread

MAX_STEPS = 30
"""Maximum number of steps: clearly interior optima take ten, others fewer with a barrier."""

MARGIN_ERROR = 1e-9
"""Largest error of a row or column sum in a Newton step; more indicates a singular system."""


@dataclass(frozen=True, slots=True)
class BipartiteSolution:
    """Pseudomarginals of bipartite matchings with their certificate.

    ``marginals`` (n, n), doubly stochastic, read-only; ``value`` <W, tau> + H_rho(tau) in nats, a
    lower bound of log Z_rho, and ``upper_bound`` a certified upper bound; ``iterations`` Newton
    steps; ``status`` converged if the bounds are as close as requested.
    """

    marginals: FloatArray
    value: float
    upper_bound: float
    iterations: int
    status: Status

    @property
    def gap(self) -> float:
        """Certified bound on the shortfall of ``value``, nats."""
        return max(self.upper_bound - self.value, 0.0)


def compute_bipartite_pseudomarginals(
    scores: Any,
    rho: float | FloatArray = 1.0,
    *,
    tolerance: float = 1e-9,
    start: FloatArray | None = None,
    max_iterations: int = MAX_STEPS,
    should_stop: StopCallback = never_stop,
) -> BipartiteSolution:
    """Maximise <W, tau> + H_rho(tau) over the doubly stochastic matrices.

    rho = 1 gives the Bethe marginals (log Z_rho <= log perm exp W), 1/2 the reweighted ones (>=).

    Parameters
    ----------
    scores : ndarray, shape (n, n), float64, nats, finite
    rho : float, or ndarray (2n,) with rows before columns; each in [0, 1]
    tolerance : float, nats, target certified gap
    start : ndarray, shape (n, n), optional, doubly stochastic: a solution for nearby scores
    max_iterations : int
        Newton steps before the problem is solved again with a barrier.
    should_stop : callable
        Called before every step; True raises StoppedError.

    Returns
    -------
    BipartiteSolution

    Raises
    ------
    InvalidProblemError
        If the scores are empty or not square and finite, or a rho leaves [0, 1] or is missing.

    Notes
    -----
    O(n^3) a step; about ten steps, or ``max_iterations`` and some 15 to 40 more at sharp scores;
    one linear assignment for the certificate.

    References
    ----------
    Vontobel (2013), The Bethe permanent of a nonnegative matrix; Tang et al. (2015), appendix D.

    Examples
    --------
    >>> solution = compute_bipartite_pseudomarginals([[1.0, 0.0], [0.0, 1.0]])
    >>> solution.marginals.round(6).tolist(), round(solution.value, 6)
    ([[1.0, 0.0], [0.0, 1.0]], 2.0)
    """
    check_number("rho", rho, at_least=0.0, at_most=1.0, or_array=True)
    check_number("tolerance", tolerance, at_least=0.0)
    check_whole("max_iterations", max_iterations)
    check_callables(should_stop=should_stop)
    scores = as_finite_array("scores", scores, shape=(None, None))
    n = len(scores)
    check_shape("scores", scores, (n, n))
    if n == 0:
        raise InvalidProblemError("scores: expected at least one row.")
    counts = counting_numbers(rho, n)
    if n == 1:  # only one matching exists
        only = float(scores[0, 0])
        return BipartiteSolution(read_only(np.ones((1, 1))), only, only, 0, Status.CONVERGED)
    inside = np.full((n, n), 1.0 / n) if start is None else _inside(start, n)
    with one_blas_thread():
        found = ascend(_Problem(scores, counts), inside, tolerance, max_iterations, should_stop)
        if not found.status.is_converged:
            found = _better(found, maximise_inside(scores, counts, tolerance, should_stop))
    tau = round_to_doubly_stochastic(found.point)
    value, _ = bracket_value(scores, counts, tau)
    status = found.status
    if found.upper_bound - value <= tolerance:
        status = Status.CONVERGED
    elif status.is_converged:
        status = Status.STALLED
    return BipartiteSolution(read_only(tau), value, found.upper_bound, found.steps, status)


def _better(first: Ascent, second: Ascent) -> Ascent:
    """Return the better point and the better bound."""
    inner = first if first.value >= second.value else second
    bound = min(first.upper_bound, second.upper_bound)
    return replace(second, point=inner.point, value=inner.value, upper_bound=bound)


def _inside(start: FloatArray, n: int) -> FloatArray:
    """Return ``start`` moved a little towards the centre so that no entry is zero."""
    check_shape("start", start, (n, n))
    return np.asarray((1.0 - TOLERANCES.pull) * start + TOLERANCES.pull / n)


@dataclass(frozen=True, slots=True)
class _Problem:
    """Objective at fixed scores: ``scores`` W and ``counts`` c, both (n, n)."""

    scores: FloatArray
    counts: FloatArray

    def value(self, tau: FloatArray) -> float:
        """Return <W, tau> + H(tau), nats."""
        lower, upper = bracket_value(self.scores, self.counts, tau)
        return (lower + upper) / 2.0

    def gradient(self, tau: FloatArray) -> FloatArray:
        """Return W + dH/dtau, (n, n), up to a constant that doubly stochastic points share."""
        return np.asarray(self.scores - self.counts * (1.0 + np.log(complement(tau))) - np.log(tau))

    def newton(self, tau: FloatArray) -> NewtonStep:
        """Return the Newton step, which also repairs row and column sums."""
        gradient = self.gradient(tau)
        inverse = inverse_curvature(tau, complement(tau), self.counts)
        try:
            margins = Margins(tau, inverse)
        except np.linalg.LinAlgError:
            return NewtonStep(np.zeros(tau.shape), -np.inf, gradient, np.zeros(2 * len(tau)))
        multipliers = margins.solve(margins.targets(inverse * gradient))
        reduced = gradient - margins.spread(multipliers)
        direction = inverse * reduced
        sums = np.concatenate([(tau + direction).sum(axis=1), (tau + direction).sum(axis=0)])
        is_sound = np.abs(sums - 1.0).max() <= MARGIN_ERROR  # False if singular, NaN included
        slope = float((inverse * reduced**2).sum()) if is_sound else -np.inf
        return NewtonStep(direction, slope, gradient, margins.by_node(multipliers))

    def gap(self, tau: FloatArray, newton: NewtonStep, wanted: float) -> float:
        """Return max over s of <s - tau, gradient>, which bounds the suboptimality, nats.

        It costs an assignment, which is skipped if the step still promises more than ``wanted``.
        """
        if newton.slope > wanted:
            return np.inf
        direction, slope = self.fallback(tau, newton)
        return max(slope, 0.0) + TOLERANCES.rounding * self._size(tau, direction)

    def _size(self, tau: FloatArray, direction: FloatArray) -> float:
        """Return the sum of the absolute terms of value and slope."""
        rest = complement(tau)
        slopes = np.abs(self.scores) + np.abs(self.counts) * (1.0 - np.log(rest)) - np.log(tau)
        return float((slopes * (np.abs(direction) + tau)).sum())

    def fallback(self, tau: FloatArray, newton: NewtonStep) -> tuple[FloatArray, float]:
        """Return s - tau for the assignment s that maximises the slope, and the slope.

        This is a Frank-Wolfe step, which needs no linear system.
        """
        rows, columns = linear_sum_assignment(newton.gradient, maximize=True)
        direction = -tau
        direction[rows, columns] += 1.0
        return direction, float((newton.gradient * direction).sum())

    def room(self, tau: FloatArray, direction: FloatArray) -> float:
        """Return the largest step that keeps every entry between 0 and 1."""
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            room = np.where(direction < 0.0, tau, complement(tau)) / np.abs(direction)
        return float(np.nanmin(room))

    def move(self, tau: FloatArray, step: FloatArray) -> FloatArray:
        """Return the moved point with every entry clipped so that its logarithm is finite."""
        return np.maximum(tau + step, TOLERANCES.smallest_entry)
