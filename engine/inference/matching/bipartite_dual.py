"""Reweighted marginals of sharp bipartite matchings, by Newton's method in the multipliers.

    log Z_rho = min over u, v of sum_i u_i + sum_j v_j + sum_ij h*_ij(W_ij - u_i - v_j)
    h*(s) = max over tau of s tau + c (1 - tau) log(1 - tau) - tau log tau

Where every c = rho_i + rho_j - 1 is at most 0 each h is concave by itself, and the right side is a
bound of log Z_rho at any u and v. Its curvature does not grow with the scores, as that of the
objective in tau does, whose Newton steps end at the boundary when scores have a deviation of
hundreds of nats. Scores are divided by a temperature that falls to 1, since at large scores the
bound is flat nearly everywhere.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, log_expit

from engine.core.arguments import FloatArray
from engine.inference.matching.newton_path import inverse_curvature

STEPS, WARM_STEPS = 100, 15
"""At the scores themselves, and at each higher temperature."""

NEAR = 1e-2
"""Error of row and column sums at which the temperature may fall."""

SMALLEST_ERROR = 1e-13
"""Error of row and column sums below which steps change nothing but rounding."""

ARMIJO = 1e-4
"""Share of the promised fall that a step must deliver."""

NOISE = 1e-14
"""Relative rounding of the bound, which a step is forgiven."""

LEAST_DAMPING, MOST_DAMPING = 1e-14, 1e6
"""Added to the diagonal of the Hessian, which is flat where a pair is sure."""

LARGEST = 20.0
"""Log tau, where c = 0, beyond which the bound goes on by straight lines, far from its minimum."""

ROUNDS = 60
"""Of Newton's method for one entry, in its log odds; they converge in ten."""


@dataclass(frozen=True, slots=True)
class Dual:
    """The bound at some multipliers, and the marginals that attain it.

    ``value`` nats; ``tau`` and ``rest`` = 1 - tau, shape (n, n), whose sums need not be 1; ``size``
    is the sum of all that the value adds up, without signs.
    """

    rows: FloatArray
    columns: FloatArray
    value: float
    size: float
    tau: FloatArray
    rest: FloatArray

    @property
    def gradient(self) -> FloatArray:
        """Return 1 minus the sums of rows and columns, shape (2n,)."""
        return 1.0 - np.concatenate([self.tau.sum(axis=1), self.tau.sum(axis=0)])


def minimise_bound(scores: FloatArray, counts: FloatArray) -> tuple[Dual, int]:
    """Return the multipliers of the least bound, and how many steps that took.

    Parameters
    ----------
    scores : ndarray, shape (n, n), nats, finite
    counts : ndarray, shape (n, n), c, each from -1 to 0

    Notes
    -----
    O(n^3) a step, some 10 to 20 a halving of the scores' deviation.
    """
    steps, n = 0, len(scores)
    rows, columns = np.zeros(n), np.zeros(n)
    halvings = int(np.ceil(np.log2(max(float(np.std(scores)), 1.0))))
    for warmth in 2.0 ** np.arange(halvings, -1, -1.0):
        is_last = warmth == 1.0
        now = evaluate_bound(scores / warmth, counts, rows / warmth, columns / warmth)
        now, taken = _descend(
            now,
            scores / warmth,
            counts,
            SMALLEST_ERROR if is_last else NEAR,
            STEPS if is_last else WARM_STEPS,
        )
        rows, columns, steps = warmth * now.rows, warmth * now.columns, steps + taken
    return now, steps


def evaluate_bound(
    scores: FloatArray, counts: FloatArray, rows: FloatArray, columns: FloatArray
) -> Dual:
    """Return the bound at multipliers of rows and columns, each shape (n,)."""
    tau, rest, best = _best_entries(scores - rows[:, None] - columns, counts)
    size = float(np.abs(rows).sum() + np.abs(columns).sum() + np.abs(best).sum())
    value = float(rows.sum() + columns.sum() + best.sum())
    return Dual(rows, columns, value, size, tau, rest)


def _best_entries(
    scores: FloatArray, counts: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return tau, 1 - tau and h*(s) of every entry.

    The derivative vanishes where log tau + c log(1 - tau) = s - 1 - c: Newton's method in the log
    odds. Where c = 0 that is tau = exp(s - 1), which may exceed 1: the bound is then one of a
    larger set, which its minimum does not reach, and curves beyond 1 too.
    """
    target = scores - 1.0 - counts
    odds = np.where(target < 0.0, target, target / np.maximum(-counts, 0.1))
    is_free = counts == 0.0
    odds[is_free] = 0.0
    for _ in range(ROUNDS):
        error = _slope_missing(odds, counts, target)
        error[is_free] = 0.0
        step = error / (expit(-odds) - counts * expit(odds))
        odds -= step
        if np.abs(step).max() <= 1e-13 * (1.0 + np.abs(odds).max()):
            break
    tau, rest = expit(odds), expit(-odds)
    best = scores * tau + counts * rest * log_expit(-odds) - tau * log_expit(odds)
    # The tangent's largest value: a bound whether the odds have converged or not.
    best += np.abs(_slope_missing(odds, counts, target)) * np.maximum(tau, rest)
    free = np.exp(np.minimum(target, LARGEST))
    return (
        np.where(is_free, free, tau),
        np.where(is_free, 1.0 - free, rest),
        np.where(is_free, free * (1.0 + np.maximum(target - LARGEST, 0.0)), best),
    )


def _slope_missing(odds: FloatArray, counts: FloatArray, target: FloatArray) -> FloatArray:
    """Return minus the derivative at the odds of what an entry's best value maximises."""
    return np.asarray(log_expit(odds) + counts * log_expit(-odds) - target)


def _descend(
    now: Dual, scores: FloatArray, counts: FloatArray, error: float, most: int
) -> tuple[Dual, int]:
    """Take damped Newton steps until the sums are right or nothing falls any more."""
    damping, n = LEAST_DAMPING, len(scores)
    for taken in range(most):
        gradient = now.gradient
        if np.abs(gradient).max() <= error:
            return now, taken
        hessian = _hessian(now, counts)
        following = None
        while following is None and damping <= MOST_DAMPING:
            step = _damped_step(hessian, damping, gradient)
            tried = evaluate_bound(scores, counts, now.rows + step[:n], now.columns + step[n:])
            allowed = ARMIJO * float(gradient @ step) + NOISE * now.size
            if tried.value <= now.value + allowed:  # not if NaN, from a singular system
                following = tried
            else:
                damping = max(10.0 * damping, 1e-6)
        if following is None:
            return now, taken
        now, damping = following, max(damping / 10.0, LEAST_DAMPING)
    return now, most


def _hessian(now: Dual, counts: FloatArray) -> FloatArray:
    is_free = counts == 0.0
    tau, rest = np.where(is_free, 0.5, now.tau), np.where(is_free, 0.5, now.rest)
    rates = np.where(is_free, now.tau, inverse_curvature(tau, rest, counts))
    total = np.diag(np.concatenate([rates.sum(axis=1), rates.sum(axis=0)]))
    total[: len(rates), len(rates) :] = rates
    total[len(rates) :, : len(rates)] = rates.T
    return np.asarray(total)


def _damped_step(hessian: FloatArray, damping: float, gradient: FloatArray) -> FloatArray:
    """Return the Newton step, NaN where the system is singular in floating point."""
    try:
        return np.asarray(-np.linalg.solve(hessian + damping * np.eye(len(hessian)), gradient))
    except np.linalg.LinAlgError:
        return np.full(len(hessian), np.nan)
