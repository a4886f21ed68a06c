"""Negative log-pseudolikelihood of a labelled binary grid and its derivatives (Besag 1975)."""

from math import exp, log1p

from numba import njit


@njit(cache=True, nogil=True)
def pseudolikelihood(labels, scores, h_codes, v_codes, h_theta, v_theta, s_adj, h_adj, v_adj):  # type: ignore[no-untyped-def]
    """Return -sum_i log p(y_i | neighbours) and add the derivatives.

    Parameters
    ----------
    labels : (H, W) bool
    scores : (H, W) float64
    h_theta, v_theta : (n_codes, 4) float64
    s_adj : (H, W), h_adj, v_adj : (n_codes, 4) float64, added to
    """
    height, width = scores.shape
    total = 0.0
    for i in range(height):
        for j in range(width):
            logit = scores[i, j]
            for d in range(4):
                first, table, entry, other = _neighbour(
                    i, j, d, labels, h_codes, v_codes, h_theta, v_theta, h_adj, v_adj
                )
                if other >= 0:
                    logit += (
                        table[2 + other] - table[other]
                        if first
                        else table[2 * other + 1] - table[2 * other]
                    )
            signed = logit if labels[i, j] else -logit
            total += log1p(exp(-signed)) if signed > -30.0 else -signed
            p = 1.0 / (1.0 + exp(-logit)) if logit > -700.0 else 0.0
            weight = p - (1.0 if labels[i, j] else 0.0)
            s_adj[i, j] += weight
            for d in range(4):
                first, table, entry, other = _neighbour(
                    i, j, d, labels, h_codes, v_codes, h_theta, v_theta, h_adj, v_adj
                )
                if other >= 0 and first:
                    entry[2 + other] += weight
                    entry[other] -= weight
                elif other >= 0:
                    entry[2 * other + 1] += weight
                    entry[2 * other] -= weight
    return total


@njit(cache=True, nogil=True, inline="always")
def _neighbour(i, j, d, labels, h_codes, v_codes, h_theta, v_theta, h_adj, v_adj):  # type: ignore[no-untyped-def]
    """Edge in direction right, left, down, up: whether this pixel is its first end, its table,
    the adjoint of the table, and the other end's label (-1: there is no such edge)."""
    height, width = labels.shape
    if d == 0 and j + 1 < width:
        code = h_codes[i, j]
        return True, h_theta[code], h_adj[code], 1 if labels[i, j + 1] else 0
    if d == 1 and j > 0:
        code = h_codes[i, j - 1]
        return False, h_theta[code], h_adj[code], 1 if labels[i, j - 1] else 0
    if d == 2 and i + 1 < height:
        code = v_codes[i, j]
        return True, v_theta[code], v_adj[code], 1 if labels[i + 1, j] else 0
    if d == 3 and i > 0:
        code = v_codes[i - 1, j]
        return False, v_theta[code], v_adj[code], 1 if labels[i - 1, j] else 0
    return False, h_theta[0], h_adj[0], -1
