"""Mean field on a binary grid, one pass at a time, and back mean field.

q_i(1) = sigma( b_i + sum_j J_ij q_j(1) ), in raster order and back, where

    J_ij = theta_ij(1, 1) - theta_ij(1, 0) - theta_ij(0, 1) + theta_ij(0, 0),
    b_i = s_i + sum_j theta_ij(1, 0) - theta_ij(0, 0)        (i's label first).

Derivatives are taken in b and J while passes are reversed, and in s and the tables at the end.
Tables are listed by edge code with entries (00, 01, 10, 11), nats; so are couplings, one per code.

References: Domke 2013, section 3.2 and algorithm 2.
"""

from math import exp, isnan, log

from numba import njit

from engine.kernels.backpropagation import (
    CLIQUE_LOGISTIC,
    FLOOR,
    SURROGATE_LIKELIHOOD,
    univariate_loss,
)


@njit(cache=True, nogil=True)
def add_edge_bases(codes, tables, down, bases):  # type: ignore[no-untyped-def]
    """Add theta(1, 0) - theta(0, 0), own label first, to both ends of the edges of one direction.

    Parameters
    ----------
    codes : (R, C) uint8
    tables : (n_codes, 4) float64
    down : int, 1 for edges to the pixel below, 0 for edges to the right
    bases : (H, W) float64, incremented
    """
    for i in range(codes.shape[0]):
        for j in range(codes.shape[1]):
            t = tables[codes[i, j]]
            bases[i, j] += t[2] - t[0]
            bases[i + down, j + 1 - down] += t[1] - t[0]


@njit(cache=True, nogil=True)
def pull_edge_bases(codes, down, b_adj, j_adj, t_adj):  # type: ignore[no-untyped-def]
    """Add to the adjoints of the tables those derived from b, (H, W), and J, (n_codes,)."""
    for i in range(codes.shape[0]):
        for j in range(codes.shape[1]):
            first, second = b_adj[i, j], b_adj[i + down, j + 1 - down]
            entry = t_adj[codes[i, j]]
            entry[0] -= first + second
            entry[1] += second
            entry[2] += first
    for code in range(j_adj.shape[0]):
        t_adj[code, 0] += j_adj[code]
        t_adj[code, 1] -= j_adj[code]
        t_adj[code, 2] -= j_adj[code]
        t_adj[code, 3] += j_adj[code]


@njit(cache=True, nogil=True, error_model="numpy")
def mean_field_pass(bases, h_codes, v_codes, h_coupling, v_coupling, forward, q):  # type: ignore[no-untyped-def]
    """Update every pixel once in place; return the largest change of a marginal, NaN if one is.

    The result is that of raster order (or of its reverse); four rows advance together, each one
    column behind the row before, so that their exponentials overlap in the processor.
    """
    height, width = bases.shape
    change = 0.0
    for first in range(0, height, 4):
        rows = min(4, height - first)
        for time in range(width + rows - 1):
            for k in range(rows):
                j = time - k
                if j < 0 or j >= width:
                    continue
                i = first + k
                if not forward:
                    i, j = height - 1 - i, width - 1 - j
                logit = bases[i, j]
                if j > 0:
                    logit += h_coupling[h_codes[i, j - 1]] * q[i, j - 1]
                if j + 1 < width:
                    logit += h_coupling[h_codes[i, j]] * q[i, j + 1]
                if i > 0:
                    logit += v_coupling[v_codes[i - 1, j]] * q[i - 1, j]
                if i + 1 < height:
                    logit += v_coupling[v_codes[i, j]] * q[i + 1, j]
                new = 0.0 if logit <= -700.0 else 1.0 / (1.0 + exp(-logit))
                change = max(change, abs(new - q[i, j]))
                q[i, j] = new
    last = q[height - 1, width - 1] if forward else q[0, 0]  # a NaN anywhere has reached this pixel
    return last if isnan(last) else change


@njit(cache=True, nogil=True)
def fill_logits(bases, h_codes, v_codes, h_coupling, v_coupling, before, after, logits):  # type: ignore[no-untyped-def]
    """Write the log odds, (H, W), of the marginals after a backward pass.

    They distinguish the marginals that round to 1. The pass read new values to the right and below,
    and old values to the left and above. The sum is also in ``mean_field_pass``: shared as
    a function, it made passes 2.6 times slower.
    """
    height, width = bases.shape
    for i in range(height):
        for j in range(width):
            logit = bases[i, j]
            if j > 0:
                logit += h_coupling[h_codes[i, j - 1]] * before[i, j - 1]
            if j + 1 < width:
                logit += h_coupling[h_codes[i, j]] * after[i, j + 1]
            if i > 0:
                logit += v_coupling[v_codes[i - 1, j]] * before[i - 1, j]
            if i + 1 < height:
                logit += v_coupling[v_codes[i, j]] * after[i + 1, j]
            logits[i, j] = logit


@njit(cache=True, nogil=True)
def reverse_mean_field_pass(  # type: ignore[no-untyped-def]
    h_codes,
    v_codes,
    h_coupling,
    v_coupling,
    forward,
    before,
    after,
    logit_adj,
    adjoint,
    b_adj,
    h_adj,
    v_adj,
):
    """Reverse one pass: adjoints of the new marginals become those of the old ones.

    Parameters
    ----------
    before, after : (H, W) float64, marginals before and after the pass
    logit_adj : (H, W) float64, adjoint of the new log odds, in addition to ``adjoint``; or (0, 0)
    adjoint : (H, W) float64, changed in place
    b_adj : (H, W), h_adj, v_adj : (n_codes,) float64, incremented: adjoints of b and of J
    """
    height, width = before.shape
    has_logit_adjoint = logit_adj.shape[0] > 0
    earlier, later = (after, before) if forward else (before, after)
    start, end, move = (height - 1, -1, -1) if forward else (0, height, 1)
    for i in range(start, end, move):
        for column in range(width):
            j = width - 1 - column if forward else column
            p = after[i, j]
            weight = adjoint[i, j] * p * (1.0 - p)
            if has_logit_adjoint:
                weight += logit_adj[i, j]
            adjoint[i, j] = 0.0
            b_adj[i, j] += weight
            if j > 0:
                code = h_codes[i, j - 1]
                adjoint[i, j - 1] += weight * h_coupling[code]
                h_adj[code] += weight * earlier[i, j - 1]
            if j + 1 < width:
                code = h_codes[i, j]
                adjoint[i, j + 1] += weight * h_coupling[code]
                h_adj[code] += weight * later[i, j + 1]
            if i > 0:
                code = v_codes[i - 1, j]
                adjoint[i - 1, j] += weight * v_coupling[code]
                v_adj[code] += weight * earlier[i - 1, j]
            if i + 1 < height:
                code = v_codes[i, j]
                adjoint[i + 1, j] += weight * v_coupling[code]
                v_adj[code] += weight * later[i + 1, j]


@njit(cache=True, nogil=True, inline="always")
def _edge_energy(seen, x, y, tables, t_adj, code):  # type: ignore[no-untyped-def]
    """Return <theta, tau - observed> of one edge, tau a product, and its slopes in x and y.

    The derivative in theta is added to the row of the code.
    """
    t0, t1, t2, t3 = tables[code, 0], tables[code, 1], tables[code, 2], tables[code, 3]
    t_adj[code, 0] += (1.0 - x) * (1.0 - y)
    t_adj[code, 1] += (1.0 - x) * y
    t_adj[code, 2] += x * (1.0 - y)
    t_adj[code, 3] += x * y
    t_adj[code, seen] -= 1.0
    low, high = (1.0 - y) * t0 + y * t1, (1.0 - y) * t2 + y * t3
    value = (1.0 - x) * low + x * high - tables[code, seen]
    return value, high - low, (1.0 - x) * (t1 - t0) + x * (t3 - t2)


@njit(cache=True, nogil=True, error_model="numpy")
def begin_mean_field_adjoint(  # type: ignore[no-untyped-def]
    kind,
    sharpness,
    labels,
    scores,
    h_codes,
    v_codes,
    h_theta,
    v_theta,
    logits,
    q,
    logit_adj,
    adjoint,
    s_adj,
    h_adj,
    v_adj,
):
    """Return the loss of the last marginals and initialise the adjoints; edges are products.

    Terms of single pixels are differentiated in ``logits``, terms of edges in ``q``.
    """
    height, width = q.shape
    total = 0.0
    for i in range(height):
        for j in range(width):
            p, not_p = q[i, j], 1.0 / (1.0 + exp(logits[i, j]))
            sign = 1.0 if labels[i, j] else -1.0
            true, false = (p, not_p) if labels[i, j] else (not_p, p)
            if kind == SURROGATE_LIKELIHOOD:
                a, b = log(max(p, FLOOR)), log(max(not_p, FLOOR))
                observed = 1.0 if labels[i, j] else 0.0
                total += scores[i, j] * (p - observed) - p * a - not_p * b
                logit_adj[i, j] = (scores[i, j] - a + b) * p * not_p
                s_adj[i, j] += p - observed
            elif kind == CLIQUE_LOGISTIC:
                degree = (i > 0) + (i + 1 < height) + (j > 0) + (j + 1 < width)
                total -= degree * log(max(true, FLOOR))
                logit_adj[i, j] = -sign * degree * false
            else:
                value, slope = univariate_loss(kind, sharpness, true, false)
                total += value
                logit_adj[i, j] = sign * slope
            if kind != SURROGATE_LIKELIHOOD:
                continue
            first = 1 if labels[i, j] else 0
            if j + 1 < width:
                seen = 2 * first + (1 if labels[i, j + 1] else 0)
                value, x_adj, y_adj = _edge_energy(
                    seen, p, q[i, j + 1], h_theta, h_adj, h_codes[i, j]
                )
                total += value
                adjoint[i, j] += x_adj
                adjoint[i, j + 1] += y_adj
            if i + 1 < height:
                seen = 2 * first + (1 if labels[i + 1, j] else 0)
                value, x_adj, y_adj = _edge_energy(
                    seen, p, q[i + 1, j], v_theta, v_adj, v_codes[i, j]
                )
                total += value
                adjoint[i, j] += x_adj
                adjoint[i + 1, j] += y_adj
    return total
