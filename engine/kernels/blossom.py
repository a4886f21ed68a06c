"""Minimum-cost perfect matching of a sparse graph: half-integral start, then blossoms.

The whole solve in integers: costs are even, so that no comparison ever needs a tolerance. One
compiled entry serves complete graphs (on candidate edges), sparse graphs and gadget reductions.
"""

import numpy as np
from numba import njit

from engine.core.arguments import IntArray
from engine.kernels.blossom_forest import (
    NONE,
    BlossomForest,
    adopt_ring,
    child_around,
    dual_of,
    new_forest,
    outermost,
    rotate_matching,
)
from engine.kernels.blossom_fractional import (
    ON_HALF_CYCLE,
    match_fractionally,
    match_greedily,
    repair_duals,
)
from engine.kernels.blossom_search import grow_tree


@njit(cache=True, nogil=True)
def solve_perfect_matching(
    start: IntArray, neighbour: IntArray, cost: IntArray, dual: IntArray, mate: IntArray
) -> tuple[bool, IntArray, IntArray, IntArray, IntArray]:
    """Solve from any duals and any partial matching; ``dual`` and ``mate`` in place.

    Parameters
    ----------
    start, neighbour, cost : shape (n + 1,), (2m,), (2m,)
        Symmetric graph in compressed rows; every cost even.
    dual, mate : shape (n,)
        Starting duals, repaired where they violate an edge; partners or -1, kept where tight.

    Returns
    -------
    found : bool
        Whether a perfect matching exists.
    blossom_dual, parent : shape (N,)
        The laminar family: the dual of each blossom and the node around each node (-1 outermost).
        The dual of vertex i alone is ``dual[i]`` minus those of all blossoms around it.
    outermost, label : shape (n,)
        The outermost node around each vertex, and its label: zero if found; else 1 outer, 2 inner
        in the tree that could not grow.
    """
    n = len(dual)
    repair_duals(start, neighbour, cost, dual)
    match_greedily(start, neighbour, cost, dual, mate)
    cycle_next = np.full(n, NONE, dtype=np.int64)
    label = np.zeros(n, dtype=np.int64)
    stuck = match_fractionally(start, neighbour, cost, dual, mate, cycle_next, label)
    f = new_forest(start, neighbour, cost, dual)
    if stuck >= 0:
        return False, *_duals_of(f), label
    for i in range(n):
        if mate[i] >= 0:
            f.nodes[i].match_here = i
            f.nodes[i].match_there = mate[i]
    heap = np.empty((2 * (len(neighbour) + 2 * n), 2), dtype=np.int64)
    found = True
    roots = _adopt_half_cycles(f, mate, cycle_next)
    for k in range(len(roots)):
        if f.nodes[roots[k]].match_here == NONE and f.nodes[roots[k]].parent == NONE:
            found = grow_tree(f, roots[k], heap)
            if not found:
                break
    if found:
        _unfold(f, mate)
    else:
        for i in range(n):
            label[i] = f.nodes[outermost(f, i)].label
    return found, *_duals_of(f), label


@njit(cache=True, nogil=True)
def _duals_of(f: BlossomForest) -> tuple[IntArray, IntArray, IntArray]:
    """Blossom duals and parents of all nodes, the outermost node of each vertex; final duals."""
    blossom_dual = np.empty(len(f.nodes), dtype=np.int64)
    parent = np.empty(len(f.nodes), dtype=np.int64)
    around = np.empty(len(f.vertices), dtype=np.int64)
    for k in range(len(f.nodes)):
        blossom_dual[k] = f.nodes[k].blossom_dual
        parent[k] = f.nodes[k].parent
    for i in range(len(f.vertices)):
        around[i] = outermost(f, i)
        f.dual[i] = dual_of(f, i)
    return blossom_dual, parent, around


@njit(cache=True, nogil=True)
def _adopt_half_cycles(f: BlossomForest, mate: IntArray, cycle_next: IntArray) -> IntArray:
    """Shrink every odd half cycle to a free blossom with dual zero; the blossoms."""
    n = len(mate)
    roots = np.empty(n // 3 + 1, dtype=np.int64)
    n_roots = 0
    for i in range(n):
        if mate[i] != ON_HALF_CYCLE or f.nodes[i].parent != NONE:
            continue
        k = i
        while True:
            f.nodes[k].sibling = cycle_next[k]
            f.nodes[k].link_here = k
            f.nodes[k].link_there = cycle_next[k]
            k = cycle_next[k]
            if k == i:
                break
        roots[n_roots] = adopt_ring(f, i)
        n_roots += 1
    return roots[:n_roots].copy()


@njit(cache=True, nogil=True)
def _unfold(f: BlossomForest, mate: IntArray) -> None:
    """Carry the matched edges of the outermost nodes down to the vertices."""
    n = len(mate)
    todo = np.empty(len(f.nodes), dtype=np.int64)
    size = 0
    for blossom in range(n, len(f.nodes)):
        if f.nodes[blossom].first_child != NONE and f.nodes[blossom].parent == NONE:
            todo[size] = blossom
            size += 1
    while size > 0:
        size -= 1
        blossom = todo[size]
        first = child_around(f, blossom, f.nodes[blossom].match_here)
        rotate_matching(f, blossom, first)
        child = first
        while True:
            if child >= n:
                todo[size] = child
                size += 1
            child = f.nodes[child].sibling
            if child == first:
                break
    for i in range(n):
        mate[i] = f.nodes[i].match_there
