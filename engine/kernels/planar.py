"""Faces of plane drawings: cycles of a permutation of darts, and orientations of edges."""

import numpy as np
from numba import njit

from engine.core.arguments import IntArray


@njit(cache=True, nogil=True)
def walk_cycles(following: IntArray) -> tuple[IntArray, IntArray]:
    """Return all entries of a permutation cycle by cycle, (n,), and the end of each cycle."""
    n = len(following)
    seen = np.zeros(n, dtype=np.bool_)
    order = np.empty(n, dtype=np.int64)
    ends = np.empty(n, dtype=np.int64)
    count, cycles = 0, 0
    for first in range(n):
        if seen[first]:
            continue
        k = first
        while not seen[k]:
            seen[k] = True
            order[count] = k
            count += 1
            k = following[k]
        ends[cycles] = count
        cycles += 1
    return order, ends[:cycles].copy()


def count_cycles(following: IntArray) -> int:
    """Return the number of cycles of a permutation."""
    return len(walk_cycles(following)[1])


@njit(cache=True, nogil=True)
def direct_edges(edges: IntArray, rotation: IntArray, darts: IntArray, ends: IntArray) -> IntArray:
    """Return 1 for each edge directed as stored, -1 for the others: Kasteleyn's orientation.

    A spanning tree gets any directions; the other edges, a tree of faces, follow from its leaves.

    Parameters
    ----------
    edges : (n_edges, 2), of a connected plane graph; edge e has the darts 2 e and 2 e + 1 (back)
    rotation : (n_nodes, k), the darts of each node, -1 for missing ones
    darts : (2 n_edges,), face by face
    ends : (n_faces,), the end of each face among them
    """
    sign = np.zeros(len(edges), dtype=np.int64)
    seen = np.zeros(len(rotation), dtype=np.bool_)
    waiting = np.empty(max(len(rotation), len(ends)), dtype=np.int64)
    waiting[0], seen[0], low, high = 0, True, 0, 1
    while low < high:
        for dart in rotation[waiting[low]]:
            if dart >= 0:
                other = edges[dart >> 1, 1 - (dart & 1)]
                if not seen[other]:
                    seen[other], sign[dart >> 1] = True, 1
                    waiting[high] = other
                    high += 1
        low += 1
    face, left = np.empty(len(darts), dtype=np.int64), np.zeros(len(ends), dtype=np.int64)
    low, high, start = 0, 0, 0
    for f in range(len(ends)):
        for k in range(start, ends[f]):
            face[darts[k]] = f
            left[f] += sign[darts[k] >> 1] == 0
        start = ends[f]
        if left[f] == 1:
            waiting[high] = f
            high += 1
    while low < high:
        f = waiting[low]
        low += 1
        if left[f] == 0:
            continue  # the last face: its parity follows from the others
        own, clockwise = -1, 0
        for k in range(ends[f - 1] if f > 0 else 0, ends[f]):
            dart = darts[k]
            if sign[dart >> 1] == 0:
                own = dart
            else:
                clockwise += (sign[dart >> 1] == 1) == (dart & 1 == 1)
        wants_clockwise = clockwise % 2 == 0
        sign[own >> 1] = 1 if wants_clockwise == (own & 1 == 1) else -1
        other = face[own ^ 1]
        left[f] -= 1
        left[other] -= 1
        if left[other] == 1:
            waiting[high] = other
            high += 1
    return sign
