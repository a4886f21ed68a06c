"""Shortest paths between the terminals of a sparse graph, in integers.

Compressed rows: the edges of node i are ``start[i]`` to ``start[i + 1]``, with ``neighbour``,
``cost`` (at least 0) and ``edge``, the caller's edge number.
"""

import numpy as np
from numba import njit

from engine.core.arguments import BoolArray, IntArray
from engine.kernels.blossom_heap import heap_pop, heap_push, heap_reserve
from engine.kernels.compiling import inner
from engine.kernels.laminar import LaminarFamily, shared_blossom_dual

NEVER = 1 << 62


@njit(cache=True, nogil=True)
def spread(
    start: IntArray, neighbour: IntArray, cost: IntArray, distance: IntArray, origin: IntArray
) -> None:
    """Lower ``distance`` to the least of distance[v] + d(v, i) over all v, in place.

    ``origin`` receives the v of each node; nodes that are no sources start at NEVER.
    """
    n = len(distance)
    heap = np.empty((2 * (n + len(neighbour)) + 2, 2), dtype=np.int64)
    size = 0
    for i in range(n):
        origin[i] = i if distance[i] < NEVER else -1
        if distance[i] < NEVER:
            size = heap_push(heap, size, distance[i], i)
    while size > 0:
        reach, i = heap[0, 0], heap[0, 1]
        size = heap_pop(heap, size)
        if reach > distance[i]:
            continue
        for e in range(start[i], start[i + 1]):
            j = neighbour[e]
            if reach + cost[e] < distance[j]:
                distance[j] = reach + cost[e]
                origin[j] = origin[i]
                size = heap_push(heap, size, distance[j], j)


@njit(cache=True, nogil=True)
def violated_pairs(
    start: IntArray,
    neighbour: IntArray,
    cost: IntArray,
    number: IntArray,
    dual: IntArray,
    family: LaminarFamily,
    lure: IntArray,
    margin: int,
    most: int,
) -> tuple[IntArray, IntArray, int]:
    """Return pairs of terminals, (p, 2), whose distances, (p,), are below the sum of their duals.

    Pairs less than ``margin`` above it are included; the last result is the number below it.
    ``number`` (n,) is the terminal at a node or -1, ``dual`` those of the terminals, and ``lure``
    (n,) the largest dual less distance of a terminal from here: a search stops where it cannot find
    more pairs. Each terminal has at most ``most`` pairs that are not violated.
    """
    n = len(number)
    distance = np.full(n, NEVER, dtype=np.int64)
    seen = np.empty(n, dtype=np.int64)
    heap = np.empty((256, 2), dtype=np.int64)
    pairs = np.empty((256, 2), dtype=np.int64)
    lengths = np.empty(256, dtype=np.int64)
    found, violated = 0, 0
    for root in range(n):
        u = number[root]
        if u < 0:
            continue
        n_seen, size, own = 1, heap_push(heap, 0, 0, root), 0
        distance[root], seen[0] = 0, root
        while size > 0:
            reach, i = heap[0, 0], heap[0, 1]
            size = heap_pop(heap, size)
            if reach > distance[i] or reach >= dual[u] + lure[i] + margin:
                continue
            v = number[i]
            if v > u:
                slack = reach - dual[u] - dual[v]
                if slack < margin:
                    slack += 2 * shared_blossom_dual(family, u, v)
                if slack < 0 or (slack < margin and own < most):
                    violated += slack < 0
                    if found == len(lengths):
                        pairs = np.concatenate((pairs, np.empty_like(pairs)))
                        lengths = np.concatenate((lengths, np.empty_like(lengths)))
                    pairs[found, 0], pairs[found, 1], lengths[found] = u, v, reach
                    found += 1
                    own += 1
            heap = heap_reserve(heap, size, start[i + 1] - start[i])
            for e in range(start[i], start[i + 1]):
                j = neighbour[e]
                if reach + cost[e] < distance[j]:
                    if distance[j] == NEVER:
                        seen[n_seen] = j
                        n_seen += 1
                    distance[j] = reach + cost[e]
                    size = heap_push(heap, size, distance[j], j)
        for k in range(n_seen):
            distance[seen[k]] = NEVER
    return pairs[:found].copy(), lengths[:found].copy(), violated


@njit(cache=True, nogil=True)
def toggle_paths(
    start: IntArray,
    neighbour: IntArray,
    cost: IntArray,
    edge: IntArray,
    ends: IntArray,
    chosen: BoolArray,
) -> None:
    """Flip the membership of the edges on a shortest path between the ends (p, 2) of each pair."""
    n = len(start) - 1
    distance = np.full(n, NEVER, dtype=np.int64)
    before = np.empty(n, dtype=np.int64)
    through = np.empty(n, dtype=np.int64)
    seen = np.empty(n, dtype=np.int64)
    heap = np.empty((256, 2), dtype=np.int64)
    for p in range(len(ends)):
        n_seen = 1
        seen[0] = ends[p, 0]
        distance[ends[p, 0]] = 0
        size = heap_push(heap, 0, 0, ends[p, 0])
        while heap[0, 1] != ends[p, 1]:
            reach, i = heap[0, 0], heap[0, 1]
            size = heap_pop(heap, size)
            if reach > distance[i]:
                continue
            heap = heap_reserve(heap, size, start[i + 1] - start[i])
            for e in range(start[i], start[i + 1]):
                j = neighbour[e]
                if reach + cost[e] < distance[j]:
                    if distance[j] == NEVER:
                        seen[n_seen] = j
                        n_seen += 1
                    distance[j] = reach + cost[e]
                    before[j], through[j] = i, edge[e]
                    size = heap_push(heap, size, distance[j], j)
        _walk_back(ends[p, 0], ends[p, 1], before, through, chosen)
        for k in range(n_seen):
            distance[seen[k]] = NEVER


@inner
def _walk_back(
    first: int, last: int, before: IntArray, through: IntArray, chosen: BoolArray
) -> None:
    i = last
    while i != first:
        chosen[through[i]] = not chosen[through[i]]
        i = before[i]
