"""Passes over rows of pseudomarginals that are given by one potential per node.

At the maximum of <W, tau> + H_rho(tau) over the degree constraints, with c = rho_i + rho_j - 1,

    tau (1 - tau)^c = x,    x_ij = exp(W_ij - u_i - u_j),                    tau <= 1/2

Arrays: ``x`` (n, n) float64, symmetric, zero for excluded pairs (including the diagonal);
``scale`` (n,) multiplies rows and columns; every function covers the rows first .. last.
Pairs with a score of -inf are excluded.
"""

import math

import numpy as np
from numba import njit

from engine.core.arguments import FloatArray

SMALL = 1e-3  # below this x, the seventh term of the series, at most (4 x)^6, is rounding

# Reassociation lets sums run in vector registers; infinities and NaN keep their meaning.
_SUMS = {"reassoc", "contract"}

SURE = 0.75  # two pairs of a node may both exceed 1/2 by a rounding error


@njit(cache=True, nogil=True, inline="always")
def invert_edge(x: float, c: float) -> float:
    """Return the smaller tau with tau (1 - tau)^c = x; 1 / (1 + c) if there is none (c > 0)."""
    if x <= 0.0:
        return 0.0
    if c == 1.0:
        return 2.0 * x / (1.0 + math.sqrt(max(1.0 - 4.0 * x, 0.0)))
    if c == 0.0:
        return min(x, 1.0 - 1e-15)
    if c == -1.0:
        return x / (1.0 + x)
    if x < SMALL:
        return _invert_small_edge(x, c)
    return _invert_edge_by_newton(x, c)


@njit(cache=True, nogil=True, inline="always")
def _invert_small_edge(x: float, c: float) -> float:
    """Return tau = x (1 - tau)^-c by six terms of Lagrange's series: exact below ``SMALL``."""
    fifth = c * (5 * c + 1) * (5 * c + 2) * (5 * c + 3) / 24
    sixth = c * (6 * c + 1) * (6 * c + 2) * (6 * c + 3) * (6 * c + 4) / 120
    fourth = c * (4 * c + 1) * (4 * c + 2) / 6
    third = c * (3 * c + 1) / 2
    return x * (1.0 + x * (c + x * (third + x * (fourth + x * (fifth + x * sixth)))))


@njit(cache=True, nogil=True)
def _invert_edge_by_newton(x: float, c: float) -> float:
    """Solve log tau + c log(1 - tau) = log x by Newton from the root of its quadratic part."""
    top = 1.0 / (1.0 + c) if c > 0.0 else 1.0 - 1e-15
    target = math.log(x)
    if c > 0.0 and target >= math.log(top) + c * math.log1p(-top):
        return top
    low, high = 0.0, top
    t = min(2.0 * x / (1.0 + math.sqrt(max(1.0 - 4.0 * c * x, 0.0))), 0.999 * top)
    for _ in range(60):
        error = math.log(t) + c * math.log1p(-t) - target
        if error > 0.0:
            high = t
        else:
            low = t
        slope = 1.0 / t - c / (1.0 - t)
        new = t - error / slope
        if not low < new < high:
            new = 0.5 * (low + high)
        if abs(new - t) <= 1e-16 + 1e-15 * t:
            return new
        t = new
    return t


@njit(cache=True, nogil=True, fastmath=_SUMS)
def sum_rows_bethe(
    x: FloatArray, scale: FloatArray, first: int, last: int, sums: FloatArray, largest: FloatArray
) -> None:
    """Write row sums of tau for c = 1 to ``sums``, and the row's largest scaled x ``largest``."""
    n = x.shape[1]
    for i in range(first, last):
        row = x[i]
        a = scale[i]
        total = 0.0
        top = 0.0
        for j in range(n):
            y = a * row[j] * scale[j]
            top = max(top, y)
            total += 2.0 * y / (1.0 + np.sqrt(max(1.0 - 4.0 * y, 0.0)))
        sums[i] = total
        largest[i] = top


@njit(cache=True, nogil=True)
def sum_rows_general(
    x: FloatArray,
    scale: FloatArray,
    rho: FloatArray,
    first: int,
    last: int,
    sums: FloatArray,
    largest: FloatArray,
) -> None:
    """Write row sums of tau for any rho (n,), and the row's ``largest`` tau (1 + c) / 2."""
    n = x.shape[1]
    for i in range(first, last):
        total = 0.0
        top = 0.0
        for j in range(n):
            c = rho[i] + rho[j] - 1.0
            t = invert_edge(scale[i] * x[i, j] * scale[j], c)
            top = max(top, t * (1.0 + c) / 2.0)
            total += t
        sums[i] = total
        largest[i] = top


@njit(cache=True, nogil=True)
def write_marginals(
    x: FloatArray,
    scale: FloatArray,
    rho: FloatArray,
    first: int,
    last: int,
    out: FloatArray,
    logs: FloatArray,
    squares: FloatArray,
    tops: FloatArray,
) -> None:
    """Write marginals of rows first .. last to ``out`` (last - first, n), with per-row sums.

    ``logs[i]``, ``squares[i]``, ``tops[i]``: sum_j c log(1 - tau), sum_j tau^2 and max_j tau.
    Logarithms are of products of up to 32 factors, each at least 1e-9 or used alone.
    """
    n = x.shape[1]
    for i in range(first, last):
        row = out[i - first]
        total = 0.0
        square = 0.0
        top = 0.0
        for j in range(n):
            t = invert_edge(scale[i] * x[i, j] * scale[j], rho[i] + rho[j] - 1.0)
            row[j] = t
            square += t * t
            top = max(top, t)
        uniform = True
        for j in range(1, n):
            if rho[j] != rho[0]:
                uniform = False
        if uniform:
            product = 1.0
            for j in range(n):
                product *= 1.0 - row[j]
                if product < 1e-9 or j % 32 == 31:
                    total += math.log(product)
                    product = 1.0
            total = (rho[i] + rho[0] - 1.0) * (total + math.log(product))
        else:
            for j in range(n):
                total += (rho[i] + rho[j] - 1.0) * math.log1p(-row[j])
        logs[i] = total
        squares[i] = square
        tops[i] = top


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
