"""Tree-reweighted inference on a binary grid whose edges have equal weight rho <= 1/2.

The rows and the columns of a grid are two spanning forests. With theta = rho (theta_rows +
theta_columns) + (1 - 2 rho) theta_nodes, any such split gives the upper bound

    log Z_rho <= rho log Z(theta_rows) + rho log Z(theta_columns) + (1 - 2 rho) log Z(theta_nodes)

whose minimum is log Z_rho. Messages hold the split implicitly: with node odds
B_i = exp(s_i) (product of the four messages)^rho, the rows get B_i without the horizontal
messages, the columns B_i without the vertical ones, and the single nodes B_i.

Conventions: s_i = theta_i(1) - theta_i(0). A message is the ratio (label 1 over label 0) sent to
a node; ``messages[d]`` has the grid's shape and holds what comes from the left (0), the right
(1), above (2) and below (3); it stays 1 at the border. An edge stores a code; ``tables[code]``
is exp(theta_ij / rho) at (00, 01, 10, 11), scaled to a largest entry of 1.

Beside `engine.kernels.trw_grid`: these kernels are for learning from pictures, whose edges have few
distinct tables. An edge is a byte, statistics are summed by code without storing a table, scores
of any size are clipped at a known cost to the bound, which exact passes over whole rows and columns
give, and `engine.kernels.backpropagation` differentiates through the messages as they lie here. A
table an edge, rho above 1/2, damping and other orders are left to the kernels of inference.

References: Wainwright, Jaakkola and Willsky 2005; Meltzer, Globerson and Weiss 2009 (sequential
order); Kolmogorov 2006 (monotonic chains); Domke 2013, equation 18.
"""

from math import exp, log, sqrt

import numpy as np
from numba import njit

SCORE_LIMIT = 200.0
"""Scores beyond this are clipped; the bound stays a bound.

With table entries of exp(-150) at least, messages lie in exp(+-150), node odds without the
messages of one direction in exp(+-500), and chain odds in exp(+-650): below 709, where exp ends.
"""


@njit(cache=True, nogil=True)
def exponentiate(scores, odds):  # type: ignore[no-untyped-def]
    """Write exp(scores), clipped; return by how much clipping can raise log Z (nats)."""
    excess = 0.0
    for row in range(scores.shape[0]):
        for column in range(scores.shape[1]):
            score = scores[row, column]
            if score > SCORE_LIMIT:
                excess += score - SCORE_LIMIT
                score = SCORE_LIMIT
            elif score < -SCORE_LIMIT:
                score = -SCORE_LIMIT
            odds[row, column] = exp(score)
    return excess


@njit(cache=True, nogil=True, inline="always")
def _raise(product, rho):  # type: ignore[no-untyped-def]
    return sqrt(product) if rho == 0.5 else product**rho


@njit(cache=True, nogil=True, error_model="numpy")
def sweep(odds, horizontal, vertical, h_tables, v_tables, rho, messages):  # type: ignore[no-untyped-def]
    """One forward and one backward pass over the pixels; return the largest change of odds.

    The result is that of raster order; four rows advance together, each one column behind the
    row above, so that their divisions overlap in the processor.
    """
    height, width = odds.shape
    left, right, up, down = messages[0], messages[1], messages[2], messages[3]
    change = 0.0
    for first in range(0, height, 4):
        rows = min(4, height - first)
        for time in range(width + rows - 1):
            for k in range(rows):
                j = time - k
                if j < 0 or j >= width:
                    continue
                i = first + k
                r, d = right[i, j], down[i, j]
                belief = odds[i, j] * _raise((left[i, j] * r) * (up[i, j] * d), rho)
                if j + 1 < width:
                    t = h_tables[horizontal[i, j]]
                    left[i, j + 1] = (t[1] * r + t[3] * belief) / (t[0] * r + t[2] * belief)
                if i + 1 < height:
                    t = v_tables[vertical[i, j]]
                    up[i + 1, j] = (t[1] * d + t[3] * belief) / (t[0] * d + t[2] * belief)
    for last in range(height - 1, -1, -4):
        rows = min(4, last + 1)
        for time in range(width + rows - 1):
            for k in range(rows):
                j = width - 1 - (time - k)
                if j < 0 or j >= width:
                    continue
                i = last - k
                a, u = left[i, j], up[i, j]
                belief = odds[i, j] * _raise((a * right[i, j]) * (u * down[i, j]), rho)
                if j > 0:
                    t = h_tables[horizontal[i, j - 1]]
                    new = (t[2] * a + t[3] * belief) / (t[0] * a + t[1] * belief)
                    old = right[i, j - 1]
                    change = max(change, abs(new - old) / (new + old))
                    right[i, j - 1] = new
                if i > 0:
                    t = v_tables[vertical[i - 1, j]]
                    new = (t[2] * u + t[3] * belief) / (t[0] * u + t[1] * belief)
                    old = down[i - 1, j]
                    change = max(change, abs(new - old) / (new + old))
                    down[i - 1, j] = new
    return change


@njit(cache=True, nogil=True)
def bound_log_partition(odds, horizontal, vertical, h_tables, v_tables, rho, messages):  # type: ignore[no-untyped-def]
    """Return the upper bound of log Z_rho that the messages stand for (nats).

    Exact forward passes over every row and every column. Add to it: sum theta_i(0), what
    ``exponentiate`` returned, and rho times the logarithms that were divided out of the tables.
    """
    height, width = odds.shape
    left, right, up, down = messages[0], messages[1], messages[2], messages[3]
    rows_total, columns_total, nodes_total = 0.0, 0.0, 0.0
    column_odds = np.empty(width)
    for i in range(height):
        row_odds = 0.0
        for j in range(width):
            h, v = left[i, j] * right[i, j], up[i, j] * down[i, j]
            belief = odds[i, j] * _raise(h * v, rho)
            if rho != 0.5:
                nodes_total += log(1.0 + belief)
            if j == 0:
                row_odds = belief / h
            else:
                t = h_tables[horizontal[i, j - 1]]
                none = t[0] + t[2] * row_odds
                rows_total += log(none)
                row_odds = (t[1] + t[3] * row_odds) / none * (belief / h)
            if i == 0:
                column_odds[j] = belief / v
            else:
                t = v_tables[vertical[i - 1, j]]
                none = t[0] + t[2] * column_odds[j]
                columns_total += log(none)
                column_odds[j] = (t[1] + t[3] * column_odds[j]) / none * (belief / v)
        rows_total += log(1.0 + row_odds)
    for j in range(width):
        columns_total += log(1.0 + column_odds[j])
    return rho * (rows_total + columns_total) + (1.0 - 2.0 * rho) * nodes_total


@njit(cache=True, nogil=True)
def node_marginals(odds, rho, messages, nodes):  # type: ignore[no-untyped-def]
    """Write tau_i(1) = B_i / (1 + B_i), shape (H, W)."""
    for i in range(odds.shape[0]):
        for j in range(odds.shape[1]):
            product = (messages[0, i, j] * messages[1, i, j]) * (
                messages[2, i, j] * messages[3, i, j]
            )
            belief = odds[i, j] * _raise(product, rho)
            nodes[i, j] = belief / (1.0 + belief)


@njit(cache=True, nogil=True)
def joint_probability(p, q, ratio):  # type: ignore[no-untyped-def]
    """Return tau(1, 1) of the table with margins p and q and the given odds ratio.

    The root in [max(0, p + q - 1), min(p, q)] of (r-1) t^2 - ((r-1)(p+q) + 1) t + r p q = 0, in
    the form that does not cancel. Among all tables with these margins it maximises
    <theta, tau> + rho H(tau) when log r is the interaction over rho.
    """
    more = ratio - 1.0
    b = more * (p + q) + 1.0
    root = sqrt(max(b * b - 4.0 * more * ratio * p * q, 0.0))
    t = 2.0 * ratio * p * q / (b + root) if b + root > 0.0 else p + q - 1.0
    return min(max(t, p + q - 1.0, 0.0), p, q)


@njit(cache=True, nogil=True, inline="always")
def _xlogx(x):  # type: ignore[no-untyped-def]
    return x * log(x) if x > 0.0 else 0.0


@njit(cache=True, nogil=True)
def summarise(nodes, horizontal, vertical, h_ratios, v_ratios, rho, h_histogram, v_histogram):  # type: ignore[no-untyped-def]
    """Complete node marginals by their best edge tables; return H_rho of that point (nats).

    The point lies in the local polytope by construction.

    Parameters
    ----------
    nodes : (H, W) float64, tau_i(1)
    h_ratios, v_ratios : (n_codes,) float64, odds ratio t00 t11 / (t01 t10) of the tables
    h_histogram, v_histogram : (n_codes, 4) float64, added to: sums of edge tables by code
    """
    height, width = nodes.shape
    entropy = 0.0
    for i in range(height):
        for j in range(width):
            p = nodes[i, j]
            degree = (i > 0) + (i + 1 < height) + (j > 0) + (j + 1 < width)
            entropy -= (1.0 - rho * degree) * (_xlogx(p) + _xlogx(1.0 - p))
            for direction in range(2):
                if direction == 0:
                    if j + 1 == width:
                        continue
                    code, q = horizontal[i, j], nodes[i, j + 1]
                    t11 = joint_probability(p, q, h_ratios[code])
                    entry = h_histogram[code]
                else:
                    if i + 1 == height:
                        continue
                    code, q = vertical[i, j], nodes[i + 1, j]
                    t11 = joint_probability(p, q, v_ratios[code])
                    entry = v_histogram[code]
                t10 = max(p - t11, 0.0)
                t01 = max(q - t11, 0.0)
                t00 = max(1.0 - p - t01, 0.0)
                entry[0] += t00
                entry[1] += t01
                entry[2] += t10
                entry[3] += t11
                entropy -= rho * (_xlogx(t00) + _xlogx(t01) + _xlogx(t10) + _xlogx(t11))
    return entropy


@njit(cache=True, nogil=True)
def fill_edge_tables(nodes, codes, ratios, is_vertical, tables):  # type: ignore[no-untyped-def]
    """Write the edge tables, (R, C, 2, 2), of one direction that ``summarise`` only sums."""
    for i in range(codes.shape[0]):
        for j in range(codes.shape[1]):
            p = nodes[i, j]
            q = nodes[i + 1, j] if is_vertical else nodes[i, j + 1]
            t11 = joint_probability(p, q, ratios[codes[i, j]])
            tables[i, j, 1, 1] = t11
            tables[i, j, 1, 0] = max(p - t11, 0.0)
            tables[i, j, 0, 1] = max(q - t11, 0.0)
            tables[i, j, 0, 0] = max(1.0 - p - tables[i, j, 0, 1], 0.0)
