"""Minimum-cost perfect matching of a sparse graph: half-integral start, then blossoms.

All numbers are integers and costs are even, so that no comparison needs a tolerance. One function
serves complete graphs (on candidate edges), sparse graphs and gadget reductions.
"""

import numpy as np
from numba import njit

from engine.core.arguments import IntArray
from engine.kernels.blossom_forest import (
    NONE,
    BlossomForest,
    adopt_ring,
    child_around,
    new_forest,
    outermost,
    rotate_matching,
)
from engine.kernels.blossom_fractional import (
    ON_HALF_CYCLE,
    FractionalGraph,
    match_fractionally,
    new_tree,
)
from engine.kernels.blossom_search import grow_tree
from engine.kernels.compiling import inner

FIRST_LIMIT_BITS = 10
"""First limit of tree growth, 2^-10 of the largest cost; it doubles after each round of all trees.

Near trees meet while they are small: grown to the end one by one, the last would search everything.
"""


def solve_perfect_matching(
    start: IntArray, neighbour: IntArray, cost: IntArray, dual: IntArray, mate: IntArray
) -> tuple[bool, IntArray, IntArray, IntArray, IntArray]:
    """Solve from any duals and any partial matching; ``dual`` and ``mate`` change in place.

    Parameters
    ----------
    start, neighbour, cost : shape (n + 1,), (2m,), (2m,)
        Symmetric graph in compressed rows; every cost even.
    dual, mate : shape (n,)
        Starting duals, repaired at violated edges; partners or -1, kept if tight.

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
    cycle_next = np.full(n, NONE, dtype=np.int64)
    heap = np.empty((2 * (len(neighbour) + 2 * n + 1), 2), dtype=np.int64)
    graph, tree = FractionalGraph(start, neighbour, cost), new_tree(n)
    stuck, label = match_fractionally(graph, tree, dual, mate, cycle_next, heap), tree.label
    f = new_forest(start, neighbour, cost, dual, mate)
    free, limit = np.empty(n // 3 + 1, dtype=np.int64), int(np.abs(cost).max(initial=0))
    found = stuck < 0 and _match_half_cycles(
        f, mate, cycle_next, heap, free, limit >> FIRST_LIMIT_BITS
    )
    groups = f.vertices["group"]
    outermost = f.vertices["top"][groups]
    dual[:] = f.vertices["dual"] + f.vertices["shift"][groups]
    if stuck < 0:
        label = f.nodes["label"][outermost]
    return found, f.nodes["blossom_dual"].copy(), f.nodes["parent"].copy(), outermost, label


@njit(cache=True, nogil=True)
def _match_half_cycles(
    f: BlossomForest,
    mate: IntArray,
    cycle_next: IntArray,
    heap: IntArray,
    free: IntArray,
    limit: int,
) -> bool:
    """Shrink the odd half cycles and match them to each other; return True on success.

    ``mate`` is completed in place; otherwise the labels show the tree that could not grow. ``free``
    (n / 3 + 1) is work space for a vertex of each free node, ``limit`` the first one of growth.
    """
    n_free = _adopt_half_cycles(f, mate, cycle_next, free)
    while n_free > 0:
        left = 0
        for k in range(n_free):
            root = outermost(f, free[k])
            if f.nodes[root].match_here != NONE:
                continue
            if not grow_tree(f, root, heap, limit):
                return False
            if f.nodes[outermost(f, free[k])].match_here == NONE:
                free[left] = free[k]
                left += 1
        n_free = left
        limit = 2 * limit + 1
    _unfold(f, mate)
    return True


@inner
def _adopt_half_cycles(
    f: BlossomForest, mate: IntArray, cycle_next: IntArray, roots: IntArray
) -> int:
    """Shrink every odd half cycle to a free blossom with dual zero; return their number.

    A vertex of each is written to ``roots``.
    """
    n_roots = 0
    for i in range(len(mate)):
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
        adopt_ring(f, i)
        roots[n_roots] = i
        n_roots += 1
    return n_roots


@inner
def _unfold(f: BlossomForest, mate: IntArray) -> None:
    """Pass the matched edges of the outermost nodes down to the vertices."""
    n = len(mate)
    todo = f.members
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
