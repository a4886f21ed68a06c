"""Maxima, sums and expectations over a junction tree, arrays only.

Cliques are numbered children first. ``start`` (n + 1,) is the index of each table in a flat
vector, ``parent`` (n,) the parent or -1. ``up`` (entries,) is the index of an entry's separator
entry in the vector of separators; ``down[down_start[c] + t]`` is that of entry t of c's parent.
The separator of a root has one entry.
"""

import math

import numpy as np
from numba import njit

from engine.core.arguments import FloatArray, IntArray


@njit(cache=True, nogil=True)
def collect(
    start: IntArray,
    parent: IntArray,
    up: IntArray,
    down_start: IntArray,
    down: IntArray,
    is_sum: bool,
    beliefs: FloatArray,
    messages: FloatArray,
) -> None:
    """Add to each clique's scores (nats) the values of its children, in place.

    ``messages`` (separators,) receives the maximum, or the log of the sum, over everything below a
    separator: at the roots, that of the model.
    """
    total = np.empty(messages.shape[0])
    messages[:] = -np.inf
    total[:] = 0.0
    for c in range(parent.shape[0]):
        for k in range(start[c], start[c + 1]):
            messages[up[k]] = max(messages[up[k]], beliefs[k])
        if is_sum:
            for k in range(start[c], start[c + 1]):
                if beliefs[k] > -np.inf:
                    total[up[k]] += math.exp(beliefs[k] - messages[up[k]])
            _finish_sums(start[c], start[c + 1], up, total, messages)
        above = parent[c]
        if above >= 0:
            shift = down_start[c] - start[above]
            for k in range(start[above], start[above + 1]):
                beliefs[k] += messages[down[shift + k]]


@njit(cache=True, nogil=True)
def _finish_sums(
    low: int, high: int, up: IntArray, total: FloatArray, messages: FloatArray
) -> None:
    """Add the logs of the sums to the maxima, once per separator entry."""
    for k in range(low, high):
        if total[up[k]] > 0.0:
            messages[up[k]] += math.log(total[up[k]])
            total[up[k]] = 0.0


@njit(cache=True, nogil=True)
def distribute(
    start: IntArray,
    parent: IntArray,
    up: IntArray,
    down_start: IntArray,
    down: IntArray,
    beliefs: FloatArray,
    messages: FloatArray,
    cliques: FloatArray,
    separators: FloatArray,
) -> None:
    """Write the probabilities of all entries from the output of ``collect`` with ``is_sum``."""
    separators[:] = 0.0
    for c in range(parent.shape[0] - 1, -1, -1):
        above = parent[c]
        if above < 0:
            separators[up[start[c]]] = 1.0
        else:
            shift = down_start[c] - start[above]
            for k in range(start[above], start[above + 1]):
                separators[down[shift + k]] += cliques[k]
        for k in range(start[c], start[c + 1]):
            cliques[k] = 0.0
            if beliefs[k] > -np.inf:
                cliques[k] = separators[up[k]] * math.exp(beliefs[k] - messages[up[k]])


@njit(cache=True, nogil=True)
def read_best(
    start: IntArray,
    parent: IntArray,
    up: IntArray,
    down_start: IntArray,
    down: IntArray,
    beliefs: FloatArray,
    chosen: IntArray,
) -> None:
    """Write each clique's entry in a best configuration, from the output of ``collect``, (n,)."""
    for c in range(parent.shape[0] - 1, -1, -1):
        above = parent[c]
        place = up[start[c]] if above < 0 else down[down_start[c] + chosen[above] - start[above]]
        best = -1
        for k in range(start[c], start[c + 1]):
            if up[k] == place and (best < 0 or beliefs[k] > beliefs[best]):
                best = k
        chosen[c] = best


@njit(cache=True, nogil=True)
def expect_below(
    start: IntArray,
    parent: IntArray,
    up: IntArray,
    down_start: IntArray,
    down: IntArray,
    cliques: FloatArray,
    separators: FloatArray,
    values: FloatArray,
    expected: FloatArray,
) -> None:
    """Add to the vectors of each clique's entries (entries, K) the means of the vectors below.

    ``expected`` (separators, K) receives the mean of all vectors below a separator, by entry.
    """
    expected[:] = 0.0
    width = values.shape[1]
    for c in range(parent.shape[0]):
        for k in range(start[c], start[c + 1]):
            if cliques[k] > 0.0:
                share = cliques[k] / separators[up[k]]
                for f in range(width):
                    expected[up[k], f] += share * values[k, f]
        above = parent[c]
        if above >= 0:
            shift = down_start[c] - start[above]
            for k in range(start[above], start[above + 1]):
                place = down[shift + k]
                for f in range(width):
                    values[k, f] += expected[place, f]
