"""Exact sums over matchings of a general graph by a dynamic programme over node subsets."""

import numpy as np
from numba import njit

from engine.core.arguments import FloatArray


@njit(cache=True, nogil=True)
def match_subsets(scores: FloatArray, single_scores: FloatArray) -> FloatArray:
    """Return the log of the total weight of the matchings of every node subset, shape (2^n,).

    Entry s is log sum exp(score) over the matchings of the nodes in s: the last node of s is
    matched to another one, scores (n, n) symmetric, or stays single, single_scores (n,), with
    -inf if forbidden. The entry of the full set is the log partition function: with all singles
    forbidden it is log haf exp(scores). Entries without a matching are -inf.
    """
    n = scores.shape[0]
    table = np.empty(1 << n)
    table[0] = 0.0
    last = 0
    for s in range(1, 1 << n):
        if s >> (last + 1):
            last += 1
        rest = s ^ (1 << last)
        top = single_scores[last] + table[rest]
        for j in range(last):
            if (rest >> j) & 1:
                top = max(top, scores[last, j] + table[rest ^ (1 << j)])
        if top == -np.inf:
            table[s] = top
            continue
        total = np.exp(single_scores[last] + table[rest] - top)
        for j in range(last):
            if (rest >> j) & 1:
                total += np.exp(scores[last, j] + table[rest ^ (1 << j)] - top)
        table[s] = top + np.log(total)
    return table


@njit(cache=True, nogil=True)
def matching_marginals(scores: FloatArray, table: FloatArray) -> FloatArray:
    """Return edge marginals (n, n), symmetric, from ``table = match_subsets(...)`` with finite end.

    tau_ij = exp(scores_ij) Z(V without i and j) / Z(V): the table already holds both.
    """
    n = scores.shape[0]
    full = (1 << n) - 1
    marginals = np.zeros((n, n))
    for i in range(n):
        for j in range(i):
            part = scores[i, j] + table[full ^ (1 << i) ^ (1 << j)]
            if part > -np.inf:
                marginals[i, j] = np.exp(part - table[full])
                marginals[j, i] = marginals[i, j]
    return marginals
