"""Exact sums over bipartite perfect matchings: permanents and edge marginals.

Two independent methods. Ryser's formula needs no memory but subtracts large numbers.
The subset programme stores 2^n logarithms and only adds positive numbers, so it is exact to
rounding at every scale of the scores, and its backward table yields marginals.
"""

import numpy as np
from numba import njit

from engine.core.arguments import FloatArray, IntArray


@njit(cache=True, nogil=True)
def ryser_permanent(matrix: FloatArray) -> tuple[float, float]:
    """Return the permanent of ``matrix`` (n, n) by Ryser's formula, columns in Gray-code order.

    perm A = sum_S (-1)^(n - |S|) prod_i sum_{j in S} A_ij; one column changes per step, so that a
    step costs n additions and n products. Also returns the sum of the terms' absolute values,
    whose rounding bounds the error of the permanent.
    """
    n = matrix.shape[0]
    row_sums = np.zeros(n)
    inside = np.zeros(n, dtype=np.bool_)
    total, magnitude = 0.0, 0.0
    sign = 1.0 if n % 2 == 0 else -1.0  # of the empty set
    for step in range(1, 1 << n):
        column = 0
        while not (step >> column) & 1:  # the bit that the Gray code flips at this step
            column += 1
        inside[column] = not inside[column]
        change = 1.0 if inside[column] else -1.0
        sign = -sign
        product = 1.0
        for i in range(n):
            row_sums[i] += change * matrix[i, column]
            product *= row_sums[i]
        total += sign * product
        magnitude += abs(product)
    return total, magnitude


@njit(cache=True, nogil=True)
def ryser_derivatives(matrix: FloatArray) -> FloatArray:
    """Return the permanents of all minors: entry (i, j) is d perm / d A_ij, shape (n, n).

    Differentiates Ryser's formula: the product over rows loses its factor i (prefix and suffix
    products, never a division), and counts for every column j of the subset.
    """
    n = matrix.shape[0]
    derivatives = np.zeros((n, n))
    row_sums = np.zeros(n)
    without = np.empty(n)
    inside = np.zeros(n, dtype=np.bool_)
    sign = 1.0 if n % 2 == 0 else -1.0
    for step in range(1, 1 << n):
        column = 0
        while not (step >> column) & 1:
            column += 1
        inside[column] = not inside[column]
        change = 1.0 if inside[column] else -1.0
        sign = -sign
        product = 1.0
        for i in range(n):
            row_sums[i] += change * matrix[i, column]
            without[i] = product
            product *= row_sums[i]
        product = 1.0
        for i in range(n - 1, -1, -1):
            without[i] *= product
            product *= row_sums[i]
        for i in range(n):
            for j in range(n):
                if inside[j]:
                    derivatives[i, j] += sign * without[i]
    return derivatives


@njit(cache=True, nogil=True)
def count_bits(n: int) -> IntArray:
    """Return the number of ones in the binary form of 0 .. 2^n - 1, shape (2^n,)."""
    bits = np.zeros(1 << n, dtype=np.int64)
    for s in range(1, 1 << n):
        bits[s] = bits[s >> 1] + (s & 1)
    return bits


@njit(cache=True, nogil=True)
def complete_rows(scores: FloatArray) -> FloatArray:
    """Return the log weight of the completions by the last rows, per set of used columns.

    Entry s (bit j: column j is taken) is log sum of exp(score) over the matchings of rows
    |s| .. n-1 to the columns outside s; -inf if there is none. Entry 0 is log perm exp(scores).
    """
    n = scores.shape[0]
    full = (1 << n) - 1
    bits = count_bits(n)
    table = np.empty(full + 1)
    table[full] = 0.0
    for s in range(full - 1, -1, -1):
        i = bits[s]
        top = -np.inf
        for j in range(n):
            if not (s >> j) & 1:
                top = max(top, scores[i, j] + table[s | (1 << j)])
        if top == -np.inf:
            table[s] = top
            continue
        total = 0.0
        for j in range(n):
            if not (s >> j) & 1:
                total += np.exp(scores[i, j] + table[s | (1 << j)] - top)
        table[s] = top + np.log(total)
    return table


@njit(cache=True, nogil=True)
def bipartite_marginals(scores: FloatArray, table: FloatArray) -> FloatArray:
    """Return edge marginals (n, n) from ``table = complete_rows(scores)`` with table[0] finite.

    Propagates the probability that rows 0 .. i-1 use exactly the columns s through the sets;
    every set passes its mass on by the conditional probability of its row's partner.
    """
    n = scores.shape[0]
    bits = count_bits(n)
    mass = np.zeros(1 << n)
    mass[0] = 1.0
    marginals = np.zeros((n, n))
    for s in range((1 << n) - 1):
        if mass[s] == 0.0:
            continue
        i = bits[s]
        for j in range(n):
            t = s | (1 << j)
            if t != s and table[t] > -np.inf and scores[i, j] > -np.inf:
                part = mass[s] * np.exp(scores[i, j] + table[t] - table[s])
                marginals[i, j] += part
                mass[t] += part
    return marginals
