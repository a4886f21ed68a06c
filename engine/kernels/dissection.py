"""Nested dissection of graphs of matchings: parts of faces are halved until they are small."""

import numpy as np
from numba import njit

from engine.core.arguments import IntArray
from engine.kernels.compiling import inner

LEAST_SHARE = 0.3  # least share of a part in either half; the smallest such cut is used


@njit(cache=True, nogil=True)
def dissect_faces(mate: IntArray, first: IntArray, leaf: int) -> tuple[IntArray, IntArray]:
    """Return each node's part, (n_nodes,), and each part's two halves, (n_parts, 2) or -1.

    Faces are cliques of nodes, and each node is joined to one node of another face, its mate. If a
    part is cut, one node of each separated pair belongs to the part itself, and all other nodes to
    parts of at most ``leaf`` faces. Parts are numbered before their halves. O(n log n).

    Parameters
    ----------
    mate : (n_nodes,)
    first : (n_faces + 1,), the first node of each face
    leaf : int
    """
    n_faces = len(first) - 1
    face_of = np.empty(len(mate), dtype=np.int64)
    for f in range(n_faces):
        face_of[first[f] : first[f + 1]] = f
    owner = np.full(len(mate), -1, dtype=np.int64)
    part = np.zeros(n_faces, dtype=np.int64)  # changes when a face's part is halved
    faces = np.arange(n_faces)  # each part is a range
    order = np.empty(n_faces, dtype=np.int64)
    seen = np.full(n_faces, -1, dtype=np.int64)
    halves = np.full((2 * n_faces, 2), -1, dtype=np.int64)
    waiting = np.empty((n_faces + 1, 3), dtype=np.int64)  # part, first and last of its faces
    waiting[0, 0], waiting[0, 1], waiting[0, 2] = 0, 0, n_faces
    high, count, search = 1, 1, 0
    while high > 0:
        high -= 1
        own, low, end = waiting[high]
        if end - low <= leaf:
            for k in range(low, end):
                for node in range(first[faces[k]], first[faces[k] + 1]):
                    if owner[node] < 0:
                        owner[node] = own
            continue
        start = faces[low]
        for _ in range(3):  # the last search starts from a distant face
            _search(mate, first, face_of, part, faces[low:end], start, order, seen, search)
            search += 1
            start = order[end - low - 1]
        middle = low + _smallest_cut(mate, first, face_of, part, order[: end - low], seen, search)
        search += 1
        faces[low:end] = order[: end - low]
        halves[own, 0], halves[own, 1] = count, count + 1
        for k in range(low, end):
            part[faces[k]] = count if k < middle else count + 1
        for k in range(low, middle):
            for node in range(first[faces[k]], first[faces[k] + 1]):
                if owner[node] < 0 and part[face_of[mate[node]]] == count + 1:
                    owner[node] = own
        waiting[high, 0], waiting[high, 1], waiting[high, 2] = count, low, middle
        waiting[high + 1, 0], waiting[high + 1, 1] = count + 1, middle
        waiting[high + 1, 2] = end
        high, count = high + 2, count + 2
    return owner, halves[:count].copy()


@inner
def _search(
    mate: IntArray,
    first: IntArray,
    face_of: IntArray,
    part: IntArray,
    faces: IntArray,
    start: int,
    order: IntArray,
    seen: IntArray,
    search: int,
) -> None:
    """Write a part's faces, breadth first from ``start``, to ``order``, with all its components."""
    order[0], seen[start] = start, search
    low, high, k = 0, 1, 0
    while high < len(faces) or low < high:
        if low == high:
            while seen[faces[k]] == search:
                k += 1
            order[high], seen[faces[k]] = faces[k], search
            high += 1
        f = order[low]
        low += 1
        for node in range(first[f], first[f + 1]):
            g = face_of[mate[node]]
            if part[g] == part[f] and seen[g] != search:
                seen[g] = search
                order[high] = g
                high += 1


@inner
def _smallest_cut(
    mate: IntArray,
    first: IntArray,
    face_of: IntArray,
    part: IntArray,
    order: IntArray,
    seen: IntArray,
    search: int,
) -> int:
    """Return the number of first faces of ``order`` that separates the fewest pairs."""
    least = max(1, int(LEAST_SHARE * len(order)))
    cut, best, best_cut = 0, len(order) // 2, 4 * len(order)
    for k in range(len(order) - least):
        f = order[k]
        seen[f] = search
        for node in range(first[f], first[f + 1]):
            g = face_of[mate[node]]
            if g != f and part[g] == part[f]:
                cut += -1 if seen[g] == search else 1
        if k + 1 >= least and cut < best_cut:
            best, best_cut = k + 1, cut
    return best
