"""The smallest cut that splits a graph into two odd parts (Padberg and Rao 1982), dense graphs."""

import numpy as np
from numba import njit

from engine.core.arguments import BoolArray, FloatArray, IntArray

ROUNDING = 1e-13  # residual capacity below this is spent


@njit(cache=True, nogil=True)
def _find_path(
    capacity: FloatArray, source: int, sink: int, before: IntArray, queue: IntArray
) -> bool:
    """Breadth-first search for a path with spare capacity; fills ``before`` (n,), -1 unseen."""
    n = len(capacity)
    before[:] = -1
    before[source] = source
    queue[0] = source
    head, tail = 0, 1
    while head < tail:
        node = queue[head]
        head += 1
        for other in range(n):
            if before[other] < 0 and capacity[node, other] > ROUNDING:
                before[other] = node
                if other == sink:
                    return True
                queue[tail] = other
                tail += 1
    return False


@njit(cache=True, nogil=True)
def _minimum_cut(
    weights: FloatArray, source: int, sink: int, capacity: FloatArray, side: BoolArray
) -> float:
    """Return the value of a minimum cut; ``side`` (n,) gets True on the source's side."""
    n = len(weights)
    capacity[:] = weights
    before = np.empty(n, dtype=np.int64)
    queue = np.empty(n, dtype=np.int64)
    value = 0.0
    while _find_path(capacity, source, sink, before, queue):
        amount = np.inf
        node = sink
        while node != source:
            amount = min(amount, capacity[before[node], node])
            node = before[node]
        node = sink
        while node != source:
            capacity[before[node], node] -= amount
            capacity[node, before[node]] += amount
            node = before[node]
        value += amount
    for node in range(n):
        side[node] = before[node] >= 0
    return value


@njit(cache=True, nogil=True)
def smallest_odd_cut(weights: FloatArray, best: BoolArray) -> float:
    """Return the value of a smallest cut with an odd number of nodes on either side.

    ``weights`` (n, n) symmetric, non-negative, n even; ``best`` (n,) gets one side. The cut is one
    of the n - 1 cuts of a cut tree (Gomory and Hu 1961), built without contractions (Gusfield
    1990): n - 1 maximum flows, O(n^2) a path.
    """
    n = len(weights)
    parent = np.zeros(n, dtype=np.int64)
    side = np.zeros(n, dtype=np.bool_)
    capacity = np.empty_like(weights)
    smallest = np.inf
    cuts = np.zeros(n)
    for s in range(1, n):
        t = parent[s]
        cuts[s] = _minimum_cut(weights, s, t, capacity, side)
        for node in range(n):
            if node != s and side[node] and parent[node] == t:
                parent[node] = s
        if side[parent[t]]:
            parent[s] = parent[t]
            parent[t] = s
            cuts[s], cuts[t] = cuts[t], cuts[s]
    below = np.zeros(n, dtype=np.bool_)
    for s in range(1, n):
        count = 0
        for node in range(n):
            walk = node
            while walk != s and walk != parent[walk]:
                walk = parent[walk]
            below[node] = walk == s
            count += below[node]
        if count % 2 == 1 and cuts[s] < smallest:
            smallest = cuts[s]
            best[:] = below
    return smallest
