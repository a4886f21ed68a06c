"""Belief propagation for matchings on dense graphs, in logarithms, at any reweighting.

With rho = 1 these are Huang and Jebara's messages (Tang 2015, appendix F). In general

    nu_ij = (1 - t_ij)^(1 - rho_i) / sum_{k != j} exp(W_ik) nu_ki (1 - t_ik)^(1 - rho_i)
    t_ij = x / (1 + x),   x = exp(W_ij) nu_ij nu_ji

Fixed points are the optimum over the degree constraints, marginals above 1/2 included.
"""

import math

import numpy as np
from numba import njit

from engine.core.arguments import FloatArray


@njit(cache=True, nogil=True)
def update_messages(
    scores: FloatArray,
    messages: FloatArray,
    tau: FloatArray,
    rho: FloatArray,
    damping: float,
    largest: float,
    first: int,
    last: int,
    out: FloatArray,
) -> None:
    """Write the damped messages of rows first .. last into ``out``; all arrays (n, n).

    ``messages[i, j]`` = log nu_ij, clipped to -largest .. largest: infinite for a forced edge.
    The sum without j comes from the sum of the others if j is the largest term, and otherwise by
    subtraction, which then loses nothing.
    """
    n = len(scores)
    terms = np.empty(n)
    for i in range(first, last):
        top, place = -np.inf, -1
        for k in range(n):
            terms[k] = -np.inf
            if k != i and scores[i, k] > -np.inf:
                terms[k] = scores[i, k] + messages[k, i]
                if rho[i] != 1.0:
                    terms[k] += (1.0 - rho[i]) * math.log1p(-min(tau[i, k], 1.0 - 1e-15))
                if terms[k] > top:
                    top, place = terms[k], k
        total, others, second = 0.0, 0.0, -np.inf
        for k in range(n):
            if k != place and terms[k] > second:
                second = terms[k]
        for k in range(n):
            total += math.exp(terms[k] - top) if terms[k] > -np.inf else 0.0
            if k != place and terms[k] > -np.inf:
                others += math.exp(terms[k] - second)
        for j in range(n):
            if terms[j] == -np.inf:
                out[i, j] = 0.0
                continue
            if j == place:
                rest = second + math.log(others) if others > 0.0 else -np.inf
            else:
                rest = top + math.log(total - math.exp(terms[j] - top))
            new = -rest
            if rho[i] != 1.0:
                new += (1.0 - rho[i]) * math.log1p(-min(tau[i, j], 1.0 - 1e-15))
            new = min(max(new, -largest), largest)
            out[i, j] = damping * messages[i, j] + (1.0 - damping) * new


@njit(cache=True, nogil=True)
def read_marginals(
    scores: FloatArray, messages: FloatArray, first: int, last: int, tau: FloatArray
) -> float:
    """Write t = x / (1 + x) of rows first .. last into ``tau``; return the largest change."""
    change = 0.0
    n = len(scores)
    for i in range(first, last):
        for j in range(n):
            t = 0.0
            if i != j and scores[i, j] > -np.inf:
                log_x = scores[i, j] + messages[i, j] + messages[j, i]
                if log_x > 0.0:
                    t = 1.0 / (1.0 + math.exp(-log_x))
                else:
                    t = math.exp(log_x) / (1.0 + math.exp(log_x))
            change = max(change, abs(t - tau[i, j]))
            tau[i, j] = t
    return change
