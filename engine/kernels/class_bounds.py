"""Bounds from messages on grids of several labels: an upper bound of log Z_rho, and a point.

Conventions of `engine.kernels.class_messages`, in double precision.
"""

from math import exp, log

import numpy as np
from numba import njit

from engine.core.arguments import FloatArray
from engine.kernels.compiling import inner

CLOSE = 1e-9
"""Largest error of an edge table's margins at which scaling ends."""


@njit(cache=True, nogil=True, error_model="numpy")
def bound_log_partition(nodes, codes_right, codes_down, pairs, agreement, messages):  # type: ignore[no-untyped-def]
    """Return the upper bound of log Z_rho given by the messages (nats), in double precision.

    Parameters
    ----------
    nodes : (H, W, L) float32, node scores theta_i(x)
    pairs : (2, L, L) float64, exp(2 theta) of label pairs, right and down
    agreement : (2, n_codes) float64, factors of the tables for equal labels
    messages : (4, H, W, L) float32
    """
    height, width, count = nodes.shape
    total = 0.0
    state, fresh = np.empty(count), np.empty(count)
    columns = np.empty((width, count))
    for i in range(height):
        for j in range(width):
            is_start = j == 0
            for axis in range(2):
                top = -np.inf
                for x in range(count):
                    h = log(messages[0, i, j, x]) + log(messages[1, i, j, x])
                    v = log(messages[2, i, j, x]) + log(messages[3, i, j, x])
                    split = 0.5 * (v - h) if axis == 0 else 0.5 * (h - v)
                    fresh[x] = nodes[i, j, x] + split
                    top = max(top, fresh[x])
                for x in range(count):
                    fresh[x] = exp(fresh[x] - top)
                total += 0.5 * top
                old = state if axis == 0 else columns[j]
                is_first = is_start if axis == 0 else i == 0
                if not is_first:
                    code = codes_right[i, j - 1] if axis == 0 else codes_down[i - 1, j]
                    for y in range(count):
                        arrived = (agreement[axis, code] - 1.0) * pairs[axis, y, y] * old[y]
                        for x in range(count):
                            arrived += pairs[axis, x, y] * old[x]
                        fresh[y] *= arrived
                norm = 0.0
                for x in range(count):
                    norm += fresh[x]
                total += 0.5 * log(norm)
                for x in range(count):
                    old[x] = fresh[x] / norm
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def complete_edges(  # type: ignore[no-untyped-def]
    marginals, codes_right, codes_down, pairs, agreement, rounds, by_code, by_pair
):
    """Return H_rho of node marginals with nearly optimal edge tables, and sum these tables.

    The tables are scaled to either margin in turn, and then corrected exactly: excess in rows and
    columns is cut, and the remaining deficit is filled by the product of the margins' deficits. So
    the point is in the local polytope whatever the number of rounds.

    Parameters
    ----------
    marginals : (H, W, L) float64, summing to 1
    pairs, agreement : see `bound_log_partition`
    rounds : int
    by_code : (2, n_codes) float64, incremented: tau_ij of equal labels
    by_pair : (2, L, L) float64, incremented

    References
    ----------
    Altschuler, Weed and Rigollet 2017, algorithm 2.
    """
    height, width, count = marginals.shape
    entropy = 0.0
    table = np.empty((count, count))
    for i in range(height):
        for j in range(width):
            degree = (i > 0) + (i + 1 < height) + (j > 0) + (j + 1 < width)
            alone = 0.0
            for x in range(count):
                p = marginals[i, j, x]
                if p > 0.0:
                    alone -= p * log(p)
            entropy += (1.0 - 0.5 * degree) * alone
            for axis in range(2):
                if (j + 1 >= width) if axis == 0 else (i + 1 >= height):
                    continue
                p = marginals[i, j]
                q = marginals[i, j + 1] if axis == 0 else marginals[i + 1, j]
                code = codes_right[i, j] if axis == 0 else codes_down[i, j]
                for x in range(count):
                    for y in range(count):
                        table[x, y] = pairs[axis, x, y] * p[x] * q[y]
                    table[x, x] *= agreement[axis, code]
                _fit_margins(table, p, q, rounds)
                for x in range(count):
                    for y in range(count):
                        t = table[x, y]
                        by_pair[axis, x, y] += t
                        if t > 0.0:
                            entropy -= 0.5 * t * log(t)
                    by_code[axis, code] += table[x, x]
    return entropy


@inner
def _fit_margins(table: FloatArray, p: FloatArray, q: FloatArray, rounds: int) -> None:
    """Scale a table to its margins, (L,) each, then correct the rest."""
    count = p.size
    step, away = 0, 1.0
    while step <= rounds:
        is_last = step == rounds  # then only the excess is cut
        away = 0.0
        for x in range(count):
            total = 0.0
            for y in range(count):
                total += table[x, y]
            scale = p[x] / total if total > 0.0 else 0.0
            away = max(away, abs(p[x] - total))
            if is_last:
                scale = min(scale, 1.0)
            for y in range(count):
                table[x, y] *= scale
        for y in range(count):
            total = 0.0
            for x in range(count):
                total += table[x, y]
            scale = q[y] / total if total > 0.0 else 0.0
            if is_last:
                scale = min(scale, 1.0)
            for x in range(count):
                table[x, y] *= scale
        if is_last:
            break
        step = rounds if away < CLOSE else step + 1
    rests = np.empty((2, count))
    lacking = 0.0
    for x in range(count):
        row, column = 0.0, 0.0
        for y in range(count):
            row += table[x, y]
            column += table[y, x]
        rests[0, x], rests[1, x] = max(p[x] - row, 0.0), max(q[x] - column, 0.0)
        lacking += rests[0, x]
    if lacking > 0.0:
        for x in range(count):
            for y in range(count):
                table[x, y] += rests[0, x] * rests[1, y] / lacking
