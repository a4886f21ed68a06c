"""Node problem of the Bethe entropy of matchings: one maximum over the simplex per row."""

import numpy as np
from numba import njit

from engine.core.arguments import FloatArray

WIDEST = 40.0
"""Range of multipliers above the smallest, nats: exp(-2 * 40) is far below rounding."""

MAX_ROOT_STEPS = 60
"""Limit of root steps: Newton needs about six; bisection alone would need this many."""

ROOT_TOLERANCE = 1e-12
"""Relative error of the amount that the others take from the largest entry."""


@njit(cache=True, nogil=True)
def lower_branch(log_product: float) -> float:
    """Return the x <= 1/2 with x (1 - x) = exp(log_product), log_product <= log 1/4."""
    product = np.exp(log_product)
    return float(2.0 * product / (1.0 + np.sqrt(max(1.0 - 4.0 * product, 0.0))))


@njit(cache=True, nogil=True)
def surplus(scores: FloatArray, top: int, is_upper: bool, multiplier: float) -> tuple[float, float]:
    """Return sum_j x_j - 1 with x_j (1 - x_j) = exp(2 (scores_j - multiplier)), and its slope.

    All are on the lower branch, except entry ``top`` if ``is_upper``: then x_top = 1 - y, and both
    ones cancel exactly, which keeps a small remainder precise.
    """
    total = 0.0 if is_upper else -1.0
    slope = 0.0
    for j in range(len(scores)):
        x = lower_branch(2.0 * (scores[j] - multiplier))
        change = -2.0 * x * (1.0 - x) / max(1.0 - 2.0 * x, 1e-12)
        if j == top and is_upper:
            total -= x
            slope -= change
        else:
            total += x
            slope += change
    return total, slope


@njit(cache=True, nogil=True)
def maximum_over_simplex(scores: FloatArray) -> float:
    """Maximise <scores, x> + 1/2 sum_j (1 - x_j) log(1 - x_j) - x_j log x_j over the simplex.

    The entropy is concave on the simplex, though not off it. Stationary points have
    x_j (1 - x_j) = exp(2 (scores_j - u)) with at most one x_j above 1/2. If the top exp(2 score)
    is at least the sum of the others, the vertex is the maximum: a row of the Bethe permanent then
    stays there. Otherwise u is found by Newton steps inside a shrinking bracket; the returned value
    is an upper bound for any final u. O(n) per step.
    """
    n = len(scores)
    top = 0
    for j in range(1, n):
        if scores[j] > scores[top]:
            top = j
    best = scores[top]
    others = 0.0
    for j in range(n):
        if j != top and scores[j] > -np.inf:
            others += np.exp(2.0 * (scores[j] - best))
    if others <= 1.0:
        return float(best)
    low = best + np.log(2.0)  # x_top (1 - x_top) <= 1/4
    is_upper = surplus(scores, top, False, low)[0] < 0.0
    high = low + WIDEST
    if is_upper and surplus(scores, top, True, high)[0] <= 0.0:
        return float(best)  # better than the vertex by less than rounding
    point = low + 0.5 * np.log(1.0 + others)
    for _ in range(MAX_ROOT_STEPS):
        total, slope = surplus(scores, top, is_upper, point)
        scale = lower_branch(2.0 * (best - point)) if is_upper else 1.0
        if abs(total) <= ROOT_TOLERANCE * scale:  # near the vertex both sides are tiny
            break
        if (total > 0.0) != is_upper:
            low = point
        else:
            high = point
        newton = point - total / slope if slope != 0.0 else high
        point = newton if low < newton < high else 0.5 * (low + high)
    return bounded_value(scores, top, is_upper, point)


@njit(cache=True, nogil=True)
def bounded_value(scores: FloatArray, top: int, is_upper: bool, multiplier: float) -> float:
    """Return the objective at the point of ``multiplier`` plus a bound on the gap, by concavity.

    The point is first moved to the simplex, with x_top as 1 minus the others, so that the sum is an
    upper bound for every multiplier.
    """
    n = len(scores)
    points = np.zeros(n)
    others = 0.0
    for j in range(n):
        points[j] = lower_branch(2.0 * (scores[j] - multiplier))
        if j != top:
            others += points[j]
    total = 1.0 if is_upper and others < 1.0 else others + points[top]
    value, mean, largest = 0.0, 0.0, -np.inf
    for j in range(n):
        x, rest = points[j] / total, 1.0 - points[j] / total
        if j == top:
            x, rest = 1.0 - others / total, others / total
        if x > 0.0:
            value += scores[j] * x + 0.5 * (rest * np.log(rest) - x * np.log(x))
            slope = scores[j] - 0.5 * (np.log(x) + np.log(rest))
            mean += x * slope
            largest = max(largest, slope)
    return value + max(largest - mean, 0.0)


@njit(cache=True, nogil=True)
def sum_of_maxima(scores: FloatArray) -> float:
    """Return the sum over the rows of ``scores`` (n, m) of the maximum over the simplex."""
    total = 0.0
    for i in range(scores.shape[0]):
        total += maximum_over_simplex(scores[i])
    return total
