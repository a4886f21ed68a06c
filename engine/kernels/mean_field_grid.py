"""Mean field on a binary grid, one pass at a time, and back mean field.

q_i(1) = sigma( s_i + sum_j sum_y q_j(y) (theta_ij(1, y) - theta_ij(0, y)) ), in raster order and
back. Tables are listed by edge code with entries (00, 01, 10, 11), nats.

References: Domke 2013, section 3.2 and algorithm 2.
"""

from math import exp, log

from numba import njit

from engine.kernels.backpropagation import (
    CLIQUE_LOGISTIC,
    FLOOR,
    SURROGATE_LIKELIHOOD,
    univariate_loss,
)


@njit(cache=True, nogil=True)
def mean_field_pass(scores, h_codes, v_codes, h_theta, v_theta, forward, q):  # type: ignore[no-untyped-def]
    """Update every pixel once in place; return the largest change of a marginal."""
    height, width = scores.shape
    start, end, move = (0, height * width, 1) if forward else (height * width - 1, -1, -1)
    change = 0.0
    for place in range(start, end, move):
        i, j = place // width, place % width
        logit = scores[i, j]
        if j > 0:
            t, p = h_theta[h_codes[i, j - 1]], q[i, j - 1]
            logit += (1.0 - p) * (t[1] - t[0]) + p * (t[3] - t[2])
        if j + 1 < width:
            t, p = h_theta[h_codes[i, j]], q[i, j + 1]
            logit += (1.0 - p) * (t[2] - t[0]) + p * (t[3] - t[1])
        if i > 0:
            t, p = v_theta[v_codes[i - 1, j]], q[i - 1, j]
            logit += (1.0 - p) * (t[1] - t[0]) + p * (t[3] - t[2])
        if i + 1 < height:
            t, p = v_theta[v_codes[i, j]], q[i + 1, j]
            logit += (1.0 - p) * (t[2] - t[0]) + p * (t[3] - t[1])
        new = 1.0 / (1.0 + exp(-logit)) if logit > -700.0 else 0.0
        change = max(change, abs(new - q[i, j]))
        q[i, j] = new
    return change


@njit(cache=True, nogil=True, inline="always")
def _pull_edge(weight, first, p, table, entry):  # type: ignore[no-untyped-def]
    """Add the adjoint of a logit to the table it read; return that of the neighbour's marginal."""
    low, high = (1, 2) if first else (2, 1)  # entries (self 0, other 1), (self 1, other 0)
    entry[high] += weight * (1.0 - p)
    entry[0] -= weight * (1.0 - p)
    entry[3] += weight * p
    entry[low] -= weight * p
    return weight * ((table[3] - table[low]) - (table[high] - table[0]))


@njit(cache=True, nogil=True)
def reverse_mean_field_pass(  # type: ignore[no-untyped-def]
    h_codes, v_codes, h_theta, v_theta, forward, before, after, adjoint, s_adj, h_adj, v_adj
):
    """Undo one pass: adjoints of the new marginals become those of the old ones.

    Parameters
    ----------
    before, after : (H, W) float64, marginals before and after the pass
    adjoint : (H, W) float64, changed in place
    """
    height, width = before.shape
    start, end, move = (height * width - 1, -1, -1) if forward else (0, height * width, 1)
    for place in range(start, end, move):
        i, j = place // width, place % width
        p = after[i, j]
        weight = adjoint[i, j] * p * (1.0 - p)
        adjoint[i, j] = 0.0
        s_adj[i, j] += weight
        earlier, later = (after, before) if forward else (before, after)
        if j > 0:
            code = h_codes[i, j - 1]
            adjoint[i, j - 1] += _pull_edge(
                weight, False, earlier[i, j - 1], h_theta[code], h_adj[code]
            )
        if j + 1 < width:
            code = h_codes[i, j]
            adjoint[i, j + 1] += _pull_edge(
                weight, True, later[i, j + 1], h_theta[code], h_adj[code]
            )
        if i > 0:
            code = v_codes[i - 1, j]
            adjoint[i - 1, j] += _pull_edge(
                weight, False, earlier[i - 1, j], v_theta[code], v_adj[code]
            )
        if i + 1 < height:
            code = v_codes[i, j]
            adjoint[i + 1, j] += _pull_edge(
                weight, True, later[i + 1, j], v_theta[code], v_adj[code]
            )


@njit(cache=True, nogil=True)
def begin_mean_field_adjoint(  # type: ignore[no-untyped-def]
    kind,
    sharpness,
    labels,
    scores,
    h_codes,
    v_codes,
    h_theta,
    v_theta,
    q,
    adjoint,
    s_adj,
    h_adj,
    v_adj,
):
    """Return the loss of the last marginals and begin their adjoint; edges are products."""
    height, width = q.shape
    total = 0.0
    for i in range(height):
        for j in range(width):
            p = q[i, j]
            sign = 1.0 if labels[i, j] else -1.0
            correct = p if labels[i, j] else 1.0 - p
            if kind == SURROGATE_LIKELIHOOD:
                a, b = log(max(p, FLOOR)), log(max(1.0 - p, FLOOR))
                observed = 1.0 if labels[i, j] else 0.0
                total += scores[i, j] * (p - observed) - p * a - (1.0 - p) * b
                adjoint[i, j] += scores[i, j] - a + b
                s_adj[i, j] += p - observed
            elif kind == CLIQUE_LOGISTIC:
                degree = (i > 0) + (i + 1 < height) + (j > 0) + (j + 1 < width)
                safe = max(correct, FLOOR)
                total -= degree * log(safe)
                adjoint[i, j] -= sign * degree / safe
            else:
                value, slope = univariate_loss(kind, sharpness, correct)
                total += value
                adjoint[i, j] += sign * slope
            if kind != SURROGATE_LIKELIHOOD:
                continue
            for direction in range(2):
                ni, nj = i + direction, j + 1 - direction
                if ni >= height or nj >= width:
                    continue
                code = h_codes[i, j] if direction == 0 else v_codes[i, j]
                theta = h_theta[code] if direction == 0 else v_theta[code]
                entry = h_adj[code] if direction == 0 else v_adj[code]
                r = q[ni, nj]
                seen = (2 if labels[i, j] else 0) + (1 if labels[ni, nj] else 0)
                for k in range(4):
                    x, y = p if k >= 2 else 1.0 - p, r if k % 2 == 1 else 1.0 - r
                    product = x * y
                    excess = product - (1.0 if k == seen else 0.0)
                    total += theta[k] * excess
                    entry[k] += excess
                    adjoint[i, j] += (1.0 if k >= 2 else -1.0) * y * theta[k]
                    adjoint[ni, nj] += (1.0 if k % 2 == 1 else -1.0) * x * theta[k]
    return total
