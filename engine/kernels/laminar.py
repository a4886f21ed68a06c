"""Nested blossoms used to price pairs: ranges of vertices and sums of duals.

In the order of the tour the vertices of every blossom are consecutive: "both in the blossom" is a
comparison, and the shared duals of a vertex are written range by range.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from engine.core.arguments import IntArray
from engine.kernels.compiling import inner

NONE = -1


class LaminarFamily(NamedTuple):
    """Family of n vertices, then blossoms: N nodes in all; every array int64 of shape (N,).

    ``parent``: the smallest blossom around the node whose dual is not 0, NONE outermost.
    ``begin``, ``end``: the range of the node's vertices in the tour. ``around``: the sum of the
    duals of the blossoms around the node, including its own for a blossom. ``root``: the outermost
    node around it.
    """

    parent: IntArray
    begin: IntArray
    end: IntArray
    around: IntArray
    root: IntArray


def laminar_family(n: int, parent: IntArray, blossom_dual: IntArray) -> LaminarFamily:
    """Tour the forest given by ``parent``; ``blossom_dual`` of the n vertices is ignored.

    Blossoms whose dual is 0 change nothing and are left out: ties create some that hold almost all
    vertices.
    """
    size = len(parent)
    begin, end, around = np.zeros((3, size), dtype=np.int64)
    root = np.full(size, NONE, dtype=np.int64)
    order, n_vertices = np.zeros((2, size), dtype=np.int64)
    parent = parent.copy()
    _tour(n, parent, blossom_dual, order, n_vertices, begin, end, around, root)
    return LaminarFamily(parent, begin, end, around, root)


@njit(cache=True, nogil=True)
def _tour(
    n: int,
    parent: IntArray,
    blossom_dual: IntArray,
    order: IntArray,
    n_vertices: IntArray,
    begin: IntArray,
    end: IntArray,
    around: IntArray,
    root: IntArray,
) -> None:
    """Write ``begin`` to ``root``, let ``parent`` skip duals of 0; the rest (N zeros) is work."""
    size = len(parent)
    # Order the nodes so that parents come before their children: climb, then unwind.
    path = end  # overwritten below
    count = 0
    for start in range(size):
        length = 0
        node = start
        while node != NONE and root[node] == NONE:
            root[node] = node
            path[length] = node
            length += 1
            node = parent[node]
        while length > 0:
            length -= 1
            node = path[length]
            order[count] = node
            count += 1
            above = parent[node]
            if above != NONE and blossom_dual[above] == 0:
                parent[node] = parent[above]
    for k in range(size - 1, -1, -1):
        node = order[k]
        n_vertices[node] += node < n
        if parent[node] != NONE:
            n_vertices[parent[node]] += n_vertices[node]
    total = 0
    for k in range(size):
        node = order[k]
        above = parent[node]
        if above == NONE:
            begin[node] = total
            total += n_vertices[node]
        else:
            # ``end`` of a blossom increases to its final value as its children are visited.
            begin[node] = end[above]
            end[above] += n_vertices[node]
            around[node] = around[above]
            root[node] = root[above]
        end[node] = begin[node] + (n_vertices[node] if node < n else 0)
        around[node] += blossom_dual[node] if node >= n else 0


@inner
def shared_blossom_dual(family: LaminarFamily, i: int, j: int) -> int:
    """Return the sum of the duals of the blossoms that contain both vertices; O(nesting)."""
    place = family.begin[j]
    node = family.parent[i]
    while node != NONE and not family.begin[node] <= place < family.end[node]:
        node = family.parent[node]
    return int(family.around[node]) if node != NONE else 0


@inner
def fill_shared_duals(family: LaminarFamily, i: int, shared: IntArray) -> None:
    """Write shared_blossom_dual(i, j) to ``shared[begin[j]]`` for all j under i's root."""
    node = family.parent[i]
    if node == NONE:
        return
    left = family.begin[i]
    right = left
    while node != NONE:
        for place in range(family.begin[node], left):
            shared[place] = family.around[node]
        for place in range(right, family.end[node]):
            shared[place] = family.around[node]
        left = family.begin[node]
        right = family.end[node]
        node = family.parent[node]
