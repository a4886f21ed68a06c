"""Entropy of matchings, entry by entry, on flat arrays of pseudomarginals.

h_c(t) = c (1 - t) log(1 - t) - t log t with h_c(0) = h_c(1) = 0. ``counts`` holds c = rho_i + rho_j
- 1 per entry, or one number for all. Kernels handle the entries first .. last of one segment.
"""

import math

from numba import njit

from engine.core.arguments import FloatArray


@njit(cache=True, nogil=True)
def add_entropy(tau: FloatArray, counts: FloatArray, first: int, last: int) -> float:
    """Return the sum of h_c over the entries."""
    total = 0.0
    one = len(counts) == 1
    for k in range(first, last):
        t = tau[k]
        if t > 0.0:
            total -= t * math.log(t)
            if t < 1.0:
                c = counts[0] if one else counts[k]
                total += c * (1.0 - t) * math.log1p(-t)
    return total


@njit(cache=True, nogil=True)
def write_gradient(
    tau: FloatArray, counts: FloatArray, first: int, last: int, out: FloatArray
) -> None:
    """Write h_c'(t) = -c (1 + log(1 - t)) - (1 + log t); 0 where an entry is clamped to 0 or 1."""
    one = len(counts) == 1
    for k in range(first, last):
        t = tau[k]
        if t <= 0.0 or t >= 1.0:
            out[k] = 0.0
        else:
            c = counts[0] if one else counts[k]
            out[k] = -c * (1.0 + math.log1p(-t)) - 1.0 - math.log(t)


@njit(cache=True, nogil=True)
def entropy_of_multiple(
    tau: FloatArray, counts: FloatArray, scale: float, first: int, last: int
) -> tuple[float, float, float]:
    """Return sums of h_c(s t), t h_c'(s t) and t^2 h_c''(s t), s = ``scale``.

    Along tau + g (v - tau) every entry outside the vertex v is (1 - g) t.
    """
    one = len(counts) == 1
    value = 0.0
    slope = 0.0
    curvature = 0.0
    for k in range(first, last):
        t = tau[k]
        x = scale * t
        if x > 0.0 and x < 1.0:
            c = counts[0] if one else counts[k]
            log_x = math.log(x)
            log_rest = math.log1p(-x)
            value += c * (1.0 - x) * log_rest - x * log_x
            slope += t * (-c * (1.0 + log_rest) - 1.0 - log_x)
            curvature += t * t * (c / (1.0 - x) - 1.0 / x)
    return value, slope, curvature
