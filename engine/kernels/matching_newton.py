"""Passes over all pairs for Newton's method on potentials (``inference/matching/newton_steps``).

Arrays (n, n) are symmetric; every function covers the rows first .. last. Pairs with a score of
-inf and pairs on the diagonal are excluded.
"""

import math

import numpy as np
from numba import njit

from engine.core.arguments import FloatArray
from engine.kernels.matching_potentials import invert_edge

SURE = 0.75  # two pairs of a node may both exceed 1/2 by a rounding error


@njit(cache=True, nogil=True)
def fill_rows(
    scores: FloatArray,
    u: FloatArray,
    rho: FloatArray,
    largest: float,
    first: int,
    last: int,
    tau: FloatArray,
    rate: FloatArray,
) -> None:
    """Write tau(u) on the lower branch and ``rate`` = -d tau / d u_i, tau at most ``largest``.

    tau (1 - tau)^c = exp(W_ij - u_i - u_j);  rate = tau (1 - tau) / (1 - (1 + c) tau).
    """
    n = len(u)
    for i in range(first, last):
        for j in range(n):
            c = rho[i] + rho[j] - 1.0
            t = 0.0
            if i != j and scores[i, j] > -np.inf:
                exponent = scores[i, j] - u[i] - u[j]
                t = min(invert_edge(math.exp(min(exponent, 700.0)), c), largest)
            tau[i, j] = t
            rate[i, j] = t * (1.0 - t) / (1.0 - (1.0 + c) * t)


@njit(cache=True, nogil=True)
def bound_rows(
    scores: FloatArray,
    tau: FloatArray,
    nu: FloatArray,
    rho: FloatArray,
    spare: FloatArray,
    least: float,
    first: int,
    last: int,
    out: FloatArray,
) -> None:
    """Write each row's contribution to the value and to its bound into ``out`` (n, 4).

    Columns: sum_j of W tau + the entropy's terms; the largest reduced gradient R_ij; sum_j tau R;
    the sum of the absolute values in these three.
    R = W + grad H(tau) - nu_i - nu_j, with tau at least ``least`` in the logarithms. ``spare`` (n,)
    is the sum of a node's entries up to ``SURE``: next to an entry above it, this is 1 - tau, by
    the first node of the two, where the difference has no digits left.
    """
    n = len(nu)
    for i in range(first, last):
        value, top, mean, size, size_of_top = 0.0, -np.inf, 0.0, 0.0, 0.0
        for j in range(n):
            if i == j or scores[i, j] == -np.inf:
                continue
            c = rho[i] + rho[j] - 1.0
            t = tau[i, j]
            low = math.log(max(t, least))
            rest = 1.0 - t if t <= SURE else max(spare[min(i, j)], least)
            high = math.log(rest) if t > 1e-3 else math.log1p(-t)
            value += scores[i, j] * t + c * rest * high - t * low
            reduced = scores[i, j] - c * (1.0 + high) - 1.0 - low - nu[i] - nu[j]
            own = abs(scores[i, j]) + abs(c) * (1.0 - high) + 1.0 - low + abs(nu[i]) + abs(nu[j])
            if reduced > top:
                top, size_of_top = reduced, own
            mean += t * reduced
            size += 2.0 * t * own + abs(c * rest * high)
        out[i, 0] = value
        out[i, 1] = top
        out[i, 2] = mean
        out[i, 3] = size + size_of_top
