"""Bethe and reweighted marginals of bipartite perfect matchings, by Newton's method.

    max over doubly stochastic tau of <W, tau> + sum_ij c_ij (1 - tau) log(1 - tau) - tau log tau

with c_ij = rho_i + rho_j - 1. The Hessian is diagonal, h = -1/tau + c/(1 - tau), so that a Newton
step costs one linear system in the 2n multipliers of rows and columns. An h may be positive (tau
above 1/(1 + c)); the objective is concave on the constraints all the same (Tang et al. 2015,
theorem 4.1), which is all that the step needs. Where messages crawl, or never stop growing because
the optimum is a vertex, this takes tens of steps and proves its answer by one assignment. Scores of
a deviation above 30 nats or so may use up all steps before the gap is closed: with every rho at
most 1/2 the multipliers are solved for instead (``bipartite_dual``), otherwise the status tells.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg.lapack import dsysv
from scipy.optimize import linear_sum_assignment
from scipy.special import xlogy

from engine.core.arguments import FloatArray, as_finite_array, check_shape, read_only
from engine.core.errors import InvalidProblemError
from engine.core.status import Status
from engine.entropies.matching import node_weights
from engine.inference.matching.bipartite_dual import minimise_bound
from engine.inference.matching.newton_path import (
    Ascent,
    NewtonStep,
    ascend,
    inverse_curvature,
    maximise,
)
from engine.kernels.threads import one_blas_thread

MAX_STEPS = 100
"""Optima inside the polytope take about ten steps, sharp scores hundreds, since a step gains at
most a factor of 20 towards the boundary; thousands did not close their gap reliably either."""

MARGIN_ERROR = 1e-9
"""A Newton step that misses a row or column sum by more comes from a singular system."""

TINY = 1e-300
"""Entries stay above it, so that every logarithm is finite."""

PULL = 1e-3
"""Share of the centre that a warm start is mixed with."""

ROUNDING = 4e-16
"""Of everything that a value or a bound adds up: what may be rounding in it."""


@dataclass(frozen=True, slots=True)
class BipartiteSolution:
    """Pseudomarginals with their certificate.

    ``marginals`` (n, n), doubly stochastic, read-only; ``value`` <W, tau> + H_rho(tau) in nats, a
    lower bound of log Z_rho, and ``upper_bound`` a certified upper bound; ``iterations`` Newton
    steps; ``status`` converged if the bounds are as close as asked for.
    """

    marginals: FloatArray
    value: float
    upper_bound: float
    iterations: int
    status: Status

    @property
    def gap(self) -> float:
        """Certified bound of what ``value`` lacks, nats."""
        return max(self.upper_bound - self.value, 0.0)


def compute_bipartite_pseudomarginals(
    scores: Any,
    rho: Any = 1.0,
    *,
    tolerance: float = 1e-9,
    start: FloatArray | None = None,
    max_iterations: int = MAX_STEPS,
) -> BipartiteSolution:
    """Maximise <W, tau> + H_rho(tau) over the doubly stochastic matrices.

    rho = 1 gives the Bethe marginals (log Z_rho <= log perm exp W), 1/2 the reweighted ones (>=).

    Parameters
    ----------
    scores : ndarray, shape (n, n), float64, nats, finite
    rho : float, or ndarray (2n,) with rows before columns; each in [0, 1]
    tolerance : float, nats, wanted certified gap
    start : ndarray, shape (n, n), optional, doubly stochastic: a solution for scores nearby
    max_iterations : int
        Newton steps before the boundary is approached more carefully.

    Returns
    -------
    BipartiteSolution

    Raises
    ------
    InvalidProblemError
        If the scores are empty or not square and finite, or a rho leaves [0, 1] or is missing.

    Notes
    -----
    O(n^3) a step, about ten steps, tens where scores have a deviation of 10 nats, and up to
    21 times ``max_iterations`` at sharper ones; one linear assignment for the certificate.

    References
    ----------
    Vontobel (2013), The Bethe permanent of a nonnegative matrix; Tang et al. (2015), appendix D.

    Examples
    --------
    >>> solution = compute_bipartite_pseudomarginals([[1.0, 0.0], [0.0, 1.0]])
    >>> solution.marginals.round(6).tolist(), round(solution.value, 6)
    ([[1.0, 0.0], [0.0, 1.0]], 2.0)
    """
    scores = as_finite_array("scores", scores, shape=(None, None))
    n = len(scores)
    check_shape("scores", scores, (n, n))
    if n == 0:
        raise InvalidProblemError("scores: expected at least one row.")
    counts = counting_numbers(rho, n)
    if n == 1:  # no room for a step: the only matching
        only = float(scores[0, 0])
        return BipartiteSolution(read_only(np.ones((1, 1))), only, only, 0, Status.CONVERGED)
    problem = _Problem(scores, counts)
    centre = np.full((n, n), 1.0 / n)
    with one_blas_thread():
        if counts.max() <= 0.0:
            found = ascend(problem, _inside(start, centre), tolerance, max_iterations)
            if not found.status.is_converged:
                found = _by_multipliers(problem, found)
        else:
            found = maximise(problem, _inside(start, centre), centre, tolerance, max_iterations)
    tau = round_to_doubly_stochastic(found.point)
    value, _ = bracket_value(scores, counts, tau)
    status = found.status
    if found.upper_bound - value <= tolerance:
        status = Status.CONVERGED
    elif status.is_converged:
        status = Status.STALLED
    return BipartiteSolution(read_only(tau), value, found.upper_bound, found.steps, status)


def _by_multipliers(problem: "_Problem", ascent: Ascent) -> Ascent:
    """Return the better point and the better bound of an ascent and of the dual problem."""
    dual, steps = minimise_bound(problem.scores, problem.counts)
    bound = min(ascent.upper_bound, dual.value + ROUNDING * dual.size)
    point = np.maximum(round_to_doubly_stochastic(dual.tau), TINY)
    better = replace(ascent, upper_bound=bound, steps=ascent.steps + steps, status=Status.STALLED)
    value = problem.value(point)
    return replace(better, point=point, value=value) if value > ascent.value else better


def counting_numbers(rho: Any, n: int) -> FloatArray:
    """Return c_ij = rho_i + rho_j - 1, shape (n, n), after checking rho."""
    weights = node_weights(rho, 2 * n)
    return np.asarray(weights[:n, None] + weights[None, n:] - 1.0)


def _inside(start: FloatArray | None, centre: FloatArray) -> FloatArray:
    """Return the centre, or ``start`` pulled a little towards it so that no entry is zero."""
    if start is None:
        return centre
    check_shape("start", start, centre.shape)
    return np.asarray((1.0 - PULL) * start + PULL * centre)


@dataclass(frozen=True, slots=True)
class _Problem:
    """The objective at fixed scores: ``scores`` W and ``counts`` c, both (n, n)."""

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
        n, gradient = len(tau), self.gradient(tau)
        inverse = inverse_curvature(tau, complement(tau), self.counts)
        product = inverse * gradient
        targets = np.concatenate([product.sum(axis=1), product.sum(axis=0)]) + excess(tau)
        multipliers = solve_margins(inverse, targets[:, None])[:, 0]
        reduced = gradient - multipliers[:n, None] - multipliers[None, n:]
        direction = inverse * reduced
        sums = np.concatenate([(tau + direction).sum(axis=1), (tau + direction).sum(axis=0)])
        is_sound = np.abs(sums - 1.0).max() <= MARGIN_ERROR  # not if singular, NaN included
        slope = float((inverse * reduced**2).sum()) if is_sound else -np.inf
        return NewtonStep(direction, slope, gradient, multipliers)

    def gap(self, tau: FloatArray, newton: NewtonStep, wanted: float) -> float:
        """Return max over s of <s - tau, gradient>, which bounds the suboptimality, nats.

        It costs an assignment, which a step that still promises more than ``wanted`` is spared.
        """
        if newton.slope > wanted:
            return np.inf
        direction, slope = self.fallback(tau, newton)
        return max(slope, 0.0) + ROUNDING * self._size(tau, direction)

    def _size(self, tau: FloatArray, direction: FloatArray) -> float:
        """Return the sum of all that value and slope are made of, without signs."""
        rest = complement(tau)
        slopes = np.abs(self.scores) + np.abs(self.counts) * (1.0 - np.log(rest)) - np.log(tau)
        return float((slopes * (np.abs(direction) + tau)).sum())

    def fallback(self, tau: FloatArray, newton: NewtonStep) -> tuple[FloatArray, float]:
        """Return s - tau for the assignment s that maximises the slope, and the slope.

        This is a Frank-Wolfe step, which needs no system that rounding could spoil.
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
        """Keep every entry where its logarithm is finite."""
        return np.maximum(tau + step, TINY)

    def eased(self, cut: float) -> "_Problem":
        """Return the problem with smaller counting numbers."""
        return replace(self, counts=self.counts - cut)


def round_to_doubly_stochastic(marginals: FloatArray) -> FloatArray:
    """Return a doubly stochastic matrix near ``marginals``, at most twice their error away in l1.

    References
    ----------
    Altschuler, Weed and Rigollet (2017), Near-linear time approximation algorithms for optimal
    transport via Sinkhorn iteration, algorithm 2.
    """
    tau = marginals / np.maximum(marginals.sum(axis=1, keepdims=True), 1.0)
    tau /= np.maximum(tau.sum(axis=0), 1.0)
    missing_rows, missing_columns = 1.0 - tau.sum(axis=1), 1.0 - tau.sum(axis=0)
    total = float(np.abs(missing_rows).sum())
    if total > 0.0:
        tau += np.maximum(np.outer(missing_rows, missing_columns) / total, 0.0)
    return np.asarray(tau)


def bracket_value(scores: FloatArray, counts: FloatArray, tau: FloatArray) -> tuple[float, float]:
    """Return <W, tau> + H(tau), nats, less and more what may be rounding in it."""
    rest = complement(tau)
    parts = np.stack([scores * tau, counts * xlogy(rest, rest), -xlogy(tau, tau)])
    value, allowed = float(parts.sum()), ROUNDING * float(np.abs(parts).sum())
    return value - allowed, value + allowed


def complement(tau: FloatArray) -> FloatArray:
    """Return 1 - tau, from the sum of the others in the row where tau is near 1."""
    rest = 1.0 - tau
    rows, columns = np.nonzero(tau > 0.5)  # at most one a row
    others = tau[rows]
    others[np.arange(len(rows)), columns] = 0.0
    rest[rows, columns] = others.sum(axis=1)
    return rest


def excess(tau: FloatArray) -> FloatArray:
    """Return row sums minus 1, then column sums minus 1, shape (2n,).

    Where an entry is near 1 its row is exact by definition of ``complement``, and its column
    compares the small entries alone: 1 + 1e-20 would hide them.
    """
    rest = complement(tau)
    rows, columns = tau.sum(axis=1) - 1.0, tau.sum(axis=0) - 1.0
    i, j = np.nonzero(tau > 0.5)
    others = tau[:, j]
    others[i, np.arange(len(j))] = 0.0
    rows[i] = 0.0
    columns[j] = others.sum(axis=0) - rest[i, j]
    return np.concatenate([rows, columns])


def solve_margins(inverse: FloatArray, targets: FloatArray) -> FloatArray:
    """Solve for multipliers y, z with sum_j inverse_ij (y_i + z_j) and the column sums as given.

    ``inverse`` (n, n), ``targets`` (2n, k), rows before columns; returns (2n, k). The last
    multiplier is 0: adding a constant to y and taking it from z changes nothing. The system is
    scaled first, since near a vertex its rows differ by many orders of magnitude.
    """
    n = len(inverse)
    matrix = np.zeros((2 * n, 2 * n))
    matrix[:n, n:] = inverse
    matrix[n:, :n] = inverse.T
    matrix[np.arange(2 * n), np.arange(2 * n)] = np.concatenate(
        [inverse.sum(axis=1), inverse.sum(axis=0)]
    )
    matrix = matrix[:-1, :-1]
    scale = 1.0 / np.sqrt(np.maximum(np.abs(matrix).max(axis=1), 1e-300))
    scaled = matrix * scale[:, None] * scale
    right = targets[:-1] * scale[:, None]
    solution = np.zeros(targets.shape)
    _, _, solution[:-1], info = dsysv(scaled, right)
    if info != 0:  # singular at a vertex: the caller sees that the sums are wrong
        return np.full(targets.shape, np.nan)
    solution[:-1] *= scale[:, None]
    return solution
