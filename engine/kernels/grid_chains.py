"""Tree-reweighted inference on a binary grid whose edges have equal weight rho, mostly <= 1/2.

The rows and the columns of a grid are two spanning forests. With theta = rho (theta_rows +
theta_columns) + (1 - 2 rho) theta_nodes, any such split gives the upper bound

    log Z_rho <= rho log Z(theta_rows) + rho log Z(theta_columns) + (1 - 2 rho) log Z(theta_nodes)

whose minimum is log Z_rho. Messages hold the split implicitly: with node odds
B_i = exp(s_i) (product of the four messages)^rho, the rows get B_i without the horizontal
messages, the columns B_i without the vertical ones, and the single nodes B_i.

Conventions: s_i = theta_i(1) - theta_i(0). A message is the ratio (label 1 over label 0) sent to
a node; ``messages[d]`` has the grid's shape and holds messages from the left (0), the right
(1), above (2) and below (3); it stays 1 at the border. An edge stores a code; ``tables[code]``
is exp(theta_ij / rho) at (00, 01, 10, 11), scaled to a largest entry of 1.

Pictures have few distinct tables: a code is then a byte, and statistics are summed by code without
storing a table. A grid of arbitrary tables has a separate code for each edge. Scores of any size
are clipped at a known cost to the bound; `engine.kernels.backpropagation` differentiates through
these messages. The sweep takes any rho up to 1; the bound takes 1/2 at most.

References: Wainwright, Jaakkola and Willsky 2005; Meltzer, Globerson and Weiss 2009 (sequential
order); Kolmogorov 2006 (monotonic chains); Domke 2013, equation 18.
"""

from math import exp, log, sqrt

import numpy as np
from llvmlite.ir import DoubleType, IntType  # type: ignore[import-untyped]
from numba import float64, int64, njit
from numba.extending import intrinsic
from numpy.typing import NDArray

from engine.core.arguments import FloatArray
from engine.kernels.compiling import inner

SCORE_LIMIT = 200.0
"""Largest score; larger ones are clipped, and the bound stays a bound.

With table entries of at least exp(-150), messages are in exp(+-150), node odds without the
messages of one direction in exp(+-500), and chain odds in exp(+-650): below 709, the limit of exp.
"""

CHAIN_LIMIT = 50.0
"""Sums over a chain stay in exp(+-this); a step multiplies them by at most exp(500)."""

BAND = 6
"""Number of rows that a sweep advances together; 5 to 8 are equally fast."""

LOG_2 = 0.6931471805599453
ROOT_HALF = 0x3FE6A09E667F3BCD
"""Bits of sqrt(1/2)."""


@njit(cache=True, nogil=True)
def sum_over_edges(codes, values):  # type: ignore[no-untyped-def]
    """Return the sum over edges of the value, (n_codes,), of their code."""
    total = 0.0
    for i in range(codes.shape[0]):
        part = 0.0
        for j in range(codes.shape[1]):
            part += values[codes[i, j]]
        total += part
    return total


@njit(cache=True, nogil=True, inline="always")
def raise_to(product, rho):  # type: ignore[no-untyped-def]
    """Return product^rho, by a root at the usual rho of 1/2 and without an operation at 1."""
    if rho == 0.5:
        return sqrt(product)
    return product if rho == 1.0 else product**rho


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def sweep(odds, horizontal, vertical, h_tables, v_tables, rho, messages):  # type: ignore[no-untyped-def]
    """Run one forward and one backward pass over the pixels; return the largest relative change.

    The change is |new - old| / (new + old), at most 1, of the messages to the left and up, from
    which the next forward pass computes all others. NaN counts as no change.

    The result is that of raster order; `BAND` rows advance together, each one column behind the
    row above, so that their divisions overlap in the processor. Flat arrays and unsigned indices,
    which are not tested for counting from the end, halve the instructions.
    """
    height, width = odds.shape
    size = height * width
    left, right = messages[0].reshape(size), messages[1].reshape(size)
    up, down = messages[2].reshape(size), messages[3].reshape(size)
    node_odds, ht, vt = odds.reshape(size), h_tables.reshape(-1), v_tables.reshape(-1)
    h_codes, v_codes = horizontal.reshape(size - height), vertical.reshape(size - width)
    change = 0.0
    for first in range(0, height, BAND):
        rows = min(BAND, height - first)
        for time in range(width + rows - 1):
            for k in range(rows):
                j = time - k
                if j < 0 or j >= width:
                    continue
                i = first + k
                here = np.uint64(i * width + j)
                r, d = right[here], down[here]
                belief = node_odds[here] * raise_to((left[here] * r) * (up[here] * d), rho)
                if j + 1 < width:
                    t = 4 * np.intp(h_codes[np.uint64(i * (width - 1) + j)])
                    upper = ht[t + 1] * r + ht[t + 3] * belief
                    lower = ht[t] * r + ht[t + 2] * belief
                    left[np.uint64(i * width + j + 1)] = upper / lower
                if i + 1 < height:
                    t = 4 * np.intp(v_codes[here])
                    upper = vt[t + 1] * d + vt[t + 3] * belief
                    lower = vt[t] * d + vt[t + 2] * belief
                    up[np.uint64(i * width + j + width)] = upper / lower
    for last in range(height - 1, -1, -BAND):
        rows = min(BAND, last + 1)
        for time in range(width + rows - 1):
            for k in range(rows):
                j = width - 1 - (time - k)
                if j < 0 or j >= width:
                    continue
                i = last - k
                here = np.uint64(i * width + j)
                a, u = left[here], up[here]
                belief = node_odds[here] * raise_to((a * right[here]) * (u * down[here]), rho)
                if j > 0:
                    t = 4 * np.intp(h_codes[np.uint64(i * (width - 1) + j - 1)])
                    upper = ht[t + 2] * a + ht[t + 3] * belief
                    lower = ht[t] * a + ht[t + 1] * belief
                    before = np.uint64(i * width + j - 1)
                    new, old = upper / lower, right[before]
                    if abs(new - old) > change * (new + old):
                        change = abs(new - old) / (new + old)
                    right[before] = new
                if i > 0:
                    above = np.uint64(i * width + j - width)
                    t = 4 * np.intp(v_codes[above])
                    upper = vt[t + 2] * u + vt[t + 3] * belief
                    lower = vt[t] * u + vt[t + 1] * belief
                    new, old = upper / lower, down[above]
                    if abs(new - old) > change * (new + old):
                        change = abs(new - old) / (new + old)
                    down[above] = new
    return change


@njit(cache=True, nogil=True, error_model="numpy")
def bound_log_partition(odds, horizontal, vertical, h_tables, v_tables, rho, messages):  # type: ignore[no-untyped-def]
    """Return the upper bound of log Z_rho given by the messages (nats).

    Exact forward passes over every row and every column. Add to it: sum theta_i(0), the excess
    of scores over `SCORE_LIMIT`, and rho times the logarithms divided out of the tables.

    A chain is two sums, over the states of its pixels so far that end in label 0 and in label 1,
    which are divided by their total once that leaves exp(+-CHAIN_LIMIT): there is no division
    and no logarithm between two pixels, and every logarithm is that of an exact product.
    """
    height, width = odds.shape
    nodes_total, rows_total, columns_total = 0.0, 0.0, 0.0
    low, high = exp(-CHAIN_LIMIT), exp(CHAIN_LIMIT)
    row_odds, column_odds = np.empty(width), np.empty(width)
    column_zero, column_one = np.ones(width), np.ones(width)
    for i in range(height):
        nodes_total += _chain_odds(odds[i], rho, messages[:, i], row_odds, column_odds)
        zero, one = 1.0, 1.0
        row, columns = 0.0, 0.0  # summed separately, so that each number takes part in few sums
        for j in range(width):
            if j > 0:
                t = h_tables[horizontal[i, j - 1]]
                zero, one = t[0] * zero + t[2] * one, t[1] * zero + t[3] * one
            one *= row_odds[j]
            total = zero + one
            if total < low or total > high:
                row += log(total)
                zero, one = zero / total, one / total
            a, b = column_zero[j], column_one[j]
            if i > 0:
                t = v_tables[vertical[i - 1, j]]
                a, b = t[0] * a + t[2] * b, t[1] * a + t[3] * b
            b *= column_odds[j]
            total = a + b
            if total < low or total > high:
                columns += log(total)
                a, b = a / total, b / total
            column_zero[j], column_one[j] = a, b
        rows_total += row + log(zero + one)
        columns_total += columns
    for j in range(width):
        columns_total += log(column_zero[j] + column_one[j])
    return rho * (rows_total + columns_total) + (1.0 - 2.0 * rho) * nodes_total


@inner
def _chain_odds(
    odds: FloatArray,
    rho: float,
    messages: FloatArray,
    row_odds: FloatArray,
    column_odds: FloatArray,
) -> float:
    """Write one row's odds for its row chain and column chains; return the nodes' logarithms."""
    total = 0.0
    for j in range(odds.size):
        h, v = messages[0, j] * messages[1, j], messages[2, j] * messages[3, j]
        belief = odds[j] * raise_to(h * v, rho)
        if rho != 0.5:
            total += log(1.0 + belief)
        row_odds[j], column_odds[j] = belief / h, belief / v
    return total


@njit(cache=True, nogil=True)
def node_marginals(odds, rho, messages, nodes):  # type: ignore[no-untyped-def]
    """Write tau_i(1) = B_i / (1 + B_i), shape (H, W)."""
    for i in range(odds.shape[0]):
        for j in range(odds.shape[1]):
            product = (messages[0, i, j] * messages[1, i, j]) * (
                messages[2, i, j] * messages[3, i, j]
            )
            belief = odds[i, j] * raise_to(product, rho)
            nodes[i, j] = belief / (1.0 + belief)


@inner
def joint_probability(p: float, q: float, ratio: float) -> float:
    """Return tau(1, 1) of the table with margins p and q and the given odds ratio.

    The root (b - root) / (2 (r-1)) = 2 r p q / (b + root) in [max(0, p + q - 1), min(p, q)] of
    (r-1) t^2 - b t + r p q = 0, b = (r-1)(p+q) + 1, each part in the form whose terms do not
    cancel. Among all tables with these margins it maximises <theta, tau> + rho H(tau) if log r
    is the interaction over rho.
    """
    more = ratio - 1.0
    b = more * (p + q) + 1.0
    product = 2.0 * ratio * (p * q)
    if more > 0.0:
        apart = more * (p - q)
        square = apart * apart + 2.0 * more * (p * (1.0 - q) + q * (1.0 - p)) + 1.0
    else:
        square = b * b - 2.0 * more * product
    root = sqrt(square)
    above, below = (product, b + root) if b > 0.0 else (b - root, 2.0 * more)
    return min(max(above / below, p + q - 1.0, 0.0), p, q)


@intrinsic
def _bits_of(_context, _number):  # type: ignore[no-untyped-def]
    """Return the 64 bits of a double as an integer."""
    return int64(float64), lambda _, builder, __, values: builder.bitcast(values[0], IntType(64))


@intrinsic
def _double_of(_context, _bits):  # type: ignore[no-untyped-def]
    """Return the double with the 64 bits of an integer."""
    return float64(int64), lambda _, builder, __, values: builder.bitcast(values[0], DoubleType())


@inner
def xlogx(x: float) -> float:
    """Return x log x of 0 <= x <= 1 to a relative error of 1e-15; 0 at x = 0.

    The compiler has no logarithm of several numbers at once; this one has no branch and no call.
    x = 2^k m with m in [sqrt(1/2), sqrt(2)), so that k = 0 near x = 1, where the logarithm
    vanishes; log m = 2 artanh(s), s = (m - 1) / (m + 1), |s| < 0.172: the series ends where
    s^20 / 21 is below 1e-16. Below 2^-1022, where doubles lose their leading bit, the logarithm
    is wrong by a few per cent and the product below 1e-304.
    """
    k = (_bits_of(x) - ROOT_HALF) >> 52  # type: ignore[call-arg]
    m = _double_of(_bits_of(x) - (k << 52))
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    tail = 1 / 13 + z * (1 / 15 + z * (1 / 17 + z * (1 / 19)))
    tail = 1 / 3 + z * (1 / 5 + z * (1 / 7 + z * (1 / 9 + z * (1 / 11 + z * tail))))
    return x * (k * LOG_2 + 2.0 * (s + s * z * tail))


@inner
def _add_entropies(probabilities: FloatArray, entropies: FloatArray) -> None:
    """Add -x log x of each number."""
    for j in range(probabilities.size):
        entropies[j] -= xlogx(probabilities[j])


@inner
def _complete_row(
    p: FloatArray,
    q: FloatArray,
    codes: NDArray[np.uint8],
    ratios: FloatArray,
    tables: FloatArray,
    entropies: FloatArray,
    histogram: FloatArray,
) -> None:
    """Complete the margins, (n,) each, of the edges of one row by their best tables.

    ``tables``, shape (4, n) or wider, is overwritten; the edges' entropies, shape (n,) or longer,
    and the tables' sums by code are incremented. All but these sums runs on several edges at once.
    """
    t00, t01, t10, t11 = tables[0], tables[1], tables[2], tables[3]
    for j in range(codes.size):
        t11[j] = ratios[codes[j]]
    for j in range(codes.size):
        t = joint_probability(p[j], q[j], t11[j])
        t11[j] = t
        t10[j] = max(p[j] - t, 0.0)
        t01[j] = max(q[j] - t, 0.0)
        t00[j] = max(1.0 - p[j] - t01[j], 0.0)
    for k in range(4):
        _add_entropies(tables[k, : codes.size], entropies)
    for j in range(codes.size):
        entry = histogram[codes[j]]
        entry[0] += t00[j]
        entry[1] += t01[j]
        entry[2] += t10[j]
        entry[3] += t11[j]


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def summarise(nodes, horizontal, vertical, h_ratios, v_ratios, rho, h_histogram, v_histogram):  # type: ignore[no-untyped-def]
    """Complete node marginals by their best edge tables; return H_rho of that point (nats).

    The point is in the local polytope by construction. The sums over nodes and over edges each
    have a relative error below 1e-15 + 2e-16 (H + W), since columns are summed separately.

    Parameters
    ----------
    nodes : (H, W) float64, tau_i(1)
    h_ratios, v_ratios : (n_codes,) float64, odds ratio t00 t11 / (t01 t10) of the tables
    h_histogram, v_histogram : (n_codes, 4) float64, incremented: sums of edge tables by code
    """
    height, width = nodes.shape
    tables = np.empty((4, width))
    alone, edges, single = np.zeros(width), np.zeros(width), np.empty(width)
    for i in range(height):
        p, others = nodes[i], tables[0]
        for j in range(width):
            others[j] = 1.0 - p[j]
        single[:] = 0.0
        _add_entropies(p, single)
        _add_entropies(others, single)
        # Counting number 1 - rho degree; the two ends of the row have one neighbour less.
        weight = 1.0 - rho * (2 + (i > 0) + (i + 1 < height))
        for j in range(width):
            alone[j] += weight * single[j]
        alone[0] += rho * single[0]
        alone[width - 1] += rho * single[width - 1]
        _complete_row(p[:-1], p[1:], horizontal[i], h_ratios, tables, edges, h_histogram)
        if i + 1 < height:
            _complete_row(p, nodes[i + 1], vertical[i], v_ratios, tables, edges, v_histogram)
    return alone.sum() + rho * edges.sum()


@njit(cache=True, nogil=True, error_model="numpy")
def fill_edge_tables(nodes, codes, ratios, is_vertical, tables):  # type: ignore[no-untyped-def]
    """Write the edge tables, (R, C, 2, 2), of one direction, which ``summarise`` only sums."""
    for i in range(codes.shape[0]):
        for j in range(codes.shape[1]):
            p = nodes[i, j]
            q = nodes[i + 1, j] if is_vertical else nodes[i, j + 1]
            t11 = joint_probability(p, q, ratios[codes[i, j]])
            tables[i, j, 1, 1] = t11
            tables[i, j, 1, 0] = max(p - t11, 0.0)
            tables[i, j, 0, 1] = max(q - t11, 0.0)
            tables[i, j, 0, 0] = max(1.0 - p - tables[i, j, 0, 1], 0.0)
