"""Coordinate updates of naive mean field on factor graphs of any arity."""

import math

import numpy as np
from numba import njit

from engine.core.arguments import FloatArray, IntArray
from engine.kernels.factor_search import FactorArrays


@njit(cache=True, nogil=True)
def update_variables(
    arrays: FactorArrays,
    scores: FloatArray,
    marginals: FloatArray,
    labels: IntArray,
    work: FloatArray,
) -> float:
    """Set each variable to its best distribution given the others; return the largest change.

    ``marginals`` has one entry per label of each variable, ``labels`` (largest arity,) and ``work``
    (most labels,) are work space. A variable whose labels are all impossible given the others
    stays unchanged.
    """
    cards, scope_start, scope_variable, _, table_start, variable_start, factors, _, start = arrays
    change = 0.0
    for v in range(cards.shape[0]):
        work[: cards[v]] = 0.0
        for k in range(variable_start[v], variable_start[v + 1]):
            factor = factors[k]
            low, high = scope_start[factor], scope_start[factor + 1]
            labels[: high - low] = 0
            for place in range(table_start[factor], table_start[factor + 1]):
                share, own = 1.0, 0
                for s in range(low, high):
                    u = scope_variable[s]
                    if u == v:
                        own = labels[s - low]
                    else:
                        share *= marginals[start[u] + labels[s - low]]
                if share > 0.0:
                    work[own] += share * scores[place]
                for s in range(high - 1, low - 1, -1):  # the next configuration of the table
                    labels[s - low] += 1
                    if labels[s - low] < cards[scope_variable[s]]:
                        break
                    labels[s - low] = 0
        largest = -np.inf
        for x in range(cards[v]):
            largest = max(largest, work[x])
        if largest == -np.inf:
            continue
        total = 0.0
        for x in range(cards[v]):
            work[x] = math.exp(work[x] - largest)
            total += work[x]
        for x in range(cards[v]):
            new = work[x] / total
            change = max(change, abs(new - marginals[start[v] + x]))
            marginals[start[v] + x] = new
    return change


@njit(cache=True, nogil=True)
def expected_scores(
    arrays: FactorArrays, scores: FloatArray, marginals: FloatArray, out: FloatArray
) -> float:
    """Write the expected entry of each factor; return the sum of the absolute values."""
    cards, scope_start, scope_variable, scope_stride, table_start, _, _, _, start = arrays
    magnitude = 0.0
    for factor in range(out.shape[0]):
        out[factor] = 0.0
        for place in range(table_start[factor], table_start[factor + 1]):
            share = 1.0
            for s in range(scope_start[factor], scope_start[factor + 1]):
                u = scope_variable[s]
                label = (place - table_start[factor]) // scope_stride[s] % cards[u]
                share *= marginals[start[u] + label]
            if share > 0.0:
                out[factor] += share * scores[place]
                magnitude += share * abs(scores[place])
    return magnitude
