"""Negative log-pseudolikelihood of a labelled binary grid and its derivatives (Besag 1975)."""

from math import exp, log1p

from numba import njit


@njit(cache=True, nogil=True, error_model="numpy")
def pseudolikelihood(labels, scores, h_codes, v_codes, h_theta, v_theta, s_adj, h_adj, v_adj):  # type: ignore[no-untyped-def]
    """Return -sum_i log p(y_i | neighbours) and add its derivatives to the adjoints.

    Parameters
    ----------
    labels : (H, W) bool
    scores : (H, W) float64
    h_theta, v_theta : (n_codes, 4) float64
    s_adj : (H, W), h_adj, v_adj : (n_codes, 4) float64, incremented
    """
    height, width = scores.shape
    total = 0.0
    for i in range(height):
        for j in range(width):
            # A table's entries for both labels of this pixel, given the neighbour's: ``a`` and
            # ``a + 2`` if this pixel is first in the table, ``b`` and ``b + 1`` if it is second.
            logit = scores[i, j]
            if j + 1 < width:
                a, code = 1 if labels[i, j + 1] else 0, h_codes[i, j]
                logit += h_theta[code, a + 2] - h_theta[code, a]
            if j > 0:
                b, code = 2 if labels[i, j - 1] else 0, h_codes[i, j - 1]
                logit += h_theta[code, b + 1] - h_theta[code, b]
            if i + 1 < height:
                a, code = 1 if labels[i + 1, j] else 0, v_codes[i, j]
                logit += v_theta[code, a + 2] - v_theta[code, a]
            if i > 0:
                b, code = 2 if labels[i - 1, j] else 0, v_codes[i - 1, j]
                logit += v_theta[code, b + 1] - v_theta[code, b]
            signed = logit if labels[i, j] else -logit
            total += log1p(exp(-signed)) if signed > -30.0 else -signed
            p = 1.0 / (1.0 + exp(-logit)) if logit > -700.0 else 0.0
            weight = p - (1.0 if labels[i, j] else 0.0)
            s_adj[i, j] += weight
            if j + 1 < width:
                a, code = 1 if labels[i, j + 1] else 0, h_codes[i, j]
                h_adj[code, a + 2] += weight
                h_adj[code, a] -= weight
            if j > 0:
                b, code = 2 if labels[i, j - 1] else 0, h_codes[i, j - 1]
                h_adj[code, b + 1] += weight
                h_adj[code, b] -= weight
            if i + 1 < height:
                a, code = 1 if labels[i + 1, j] else 0, v_codes[i, j]
                v_adj[code, a + 2] += weight
                v_adj[code, a] -= weight
            if i > 0:
                b, code = 2 if labels[i - 1, j] else 0, v_codes[i - 1, j]
                v_adj[code, b + 1] += weight
                v_adj[code, b] -= weight
    return total
