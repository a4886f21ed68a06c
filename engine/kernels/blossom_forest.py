"""Blossoms: shrink, expand, rotate. The data structure under the weighted blossom search.

Nodes 0..n-1 are the graph's vertices, higher ones blossoms: odd rings of nodes, shrunk, nested to
any depth. An outermost node has no parent. While it is labelled in a search, its duals are
stored as of search time zero, so that a step in time changes nothing:

    outer: true dual = stored + time        inner: true dual = stored - time

Vertex duals ``dual`` include the duals of all blossoms around the vertex. The reduced cost of an
edge between different outermost nodes is therefore cost - dual_i - dual_j.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from engine.core.arguments import IntArray
from engine.kernels.blossom_heap import variable

NONE = -1
UNLABELLED = 0
OUTER = 1
INNER = 2


NODE = np.dtype(
    [
        ("blossom_dual", np.int64),  # at least 0 for blossoms, meaningless for vertices
        ("parent", np.int64),  # the blossom around the node, NONE outermost
        ("first_child", np.int64),  # where the ring of children starts
        ("sibling", np.int64),  # the next in the ring; the edge that joins the two runs from
        ("link_here", np.int64),  # this vertex of the node
        ("link_there", np.int64),  # to this one of the sibling
        ("match_here", np.int64),  # the matched edge that leaves an outermost node, NONE if free;
        ("match_there", np.int64),  # below it is stale until the blossom is opened
        ("group", np.int64),  # the group of its vertices while it was last outermost
        ("size", np.int64),  # how many vertices it has
        ("mark", np.int64),  # the last meeting search that came by
        ("label", np.int64),  # of an outermost node in this search
        ("tree_here", np.int64),  # the edge by which an inner node was reached
        ("tree_there", np.int64),
    ]
)
VERTEX = np.dtype(
    [
        ("group", np.int64),  # vertices of one outermost node have one group
        ("top", np.int64),  # the outermost node of the group of this number
        ("shift", np.int64),  # to be added to the stored duals of the group of this number
        ("reach_time", np.int64),  # when it can be reached at the earliest while unlabelled,
        ("reach_search", np.int64),  # valid in the search of this number
    ]
)


class BlossomForest(NamedTuple):
    """Arrays of the structure; n vertices, N = n + n // 2 + 1 nodes, 2m directed edges.

    ``start`` (n + 1), ``neighbour`` (2m), ``cost`` (2m, even): the graph in compressed rows;
    ``owner`` (2m): the row of each directed edge. ``dual`` (n): see above. ``vertices`` (n) and
    ``nodes`` (N): records. ``touched`` (4N): outermost nodes labelled in this search. ``stack``,
    ``members`` (N): work. ``spare`` (N - n): unused blossom numbers. ``counts`` (7): spare
    blossoms, touched nodes, queued events, number of this search, the earliest time at which it
    can end and the directed edge by which, number of meetings sought.
    """

    start: IntArray
    owner: IntArray
    neighbour: IntArray
    cost: IntArray
    dual: IntArray
    vertices: NDArray[Any]
    nodes: NDArray[Any]
    touched: IntArray
    stack: IntArray
    members: IntArray
    spare: IntArray
    counts: IntArray


SPARE, TOUCHED, QUEUED, SEARCH, END_TIME, END_EDGE, MEETING = 0, 1, 2, 3, 4, 5, 6


@njit(cache=True, nogil=True)
def new_forest(
    start: IntArray, neighbour: IntArray, cost: IntArray, dual: IntArray
) -> BlossomForest:
    """A forest of single free vertices; ``dual`` is used in place."""
    n = len(dual)
    size = n + n // 2 + 1
    owner = np.empty(len(neighbour), dtype=np.int64)
    vertices = np.empty(n, dtype=VERTEX)
    nodes = np.empty(size, dtype=NODE)
    for i in range(n):
        for e in range(start[i], start[i + 1]):
            owner[e] = i
        vertices[i].group = i
        vertices[i].top = i
        vertices[i].shift = 0
        vertices[i].reach_search = 0
    for i in range(size):
        nodes[i].blossom_dual = 0
        nodes[i].parent = NONE
        nodes[i].first_child = NONE
        nodes[i].sibling = NONE
        nodes[i].match_here = NONE
        nodes[i].match_there = NONE
        nodes[i].group = i
        nodes[i].size = 1
        nodes[i].mark = 0
        nodes[i].label = UNLABELLED
        nodes[i].tree_there = NONE
    counts = np.zeros(7, dtype=np.int64)
    counts[SPARE] = size - n
    return BlossomForest(
        start,
        owner,
        neighbour,
        cost,
        dual,
        vertices,
        nodes,
        np.empty(4 * size, dtype=np.int64),
        np.empty(size, dtype=np.int64),
        np.empty(size, dtype=np.int64),
        np.arange(size - 1, n - 1, -1),
        counts,
    )


@njit(cache=True, nogil=True)
def collect_vertices(f: BlossomForest, node: int) -> int:
    """Write the vertices of ``node`` to ``members``; return how many."""
    return append_vertices(f, node, variable(0))


@njit(cache=True, nogil=True)
def append_vertices(f: BlossomForest, node: int, offset: int) -> int:
    """Write the vertices of ``node`` to ``members[offset:]``; return where they end."""
    n = len(f.dual)
    if node < n:
        f.members[offset] = node
        return offset + 1
    f.stack[0] = node
    height = 1
    while height > 0:
        height -= 1
        child = f.nodes[f.stack[height]].first_child
        first = child
        while True:
            if child < n:
                f.members[offset] = child
                offset += 1
            else:
                f.stack[height] = child
                height += 1
            child = f.nodes[child].sibling
            if child == first:
                break
    return offset


@njit(cache=True, nogil=True)
def child_around(f: BlossomForest, blossom: int, vertex: int) -> int:
    """The child of ``blossom`` that contains ``vertex``; O(nesting)."""
    node = vertex
    while f.nodes[node].parent != blossom:
        node = f.nodes[node].parent
    return node


@njit(cache=True, nogil=True)
def rotate_matching(f: BlossomForest, blossom: int, base: int) -> None:
    """Set the matched edges of the children from that of ``blossom``.

    ``base``, the child that the outside edge enters, takes that edge; the rest of the ring, an
    even path, is paired along its links.
    """
    f.nodes[base].match_here = f.nodes[blossom].match_here
    f.nodes[base].match_there = f.nodes[blossom].match_there
    child = f.nodes[base].sibling
    while child != base:
        after = f.nodes[child].sibling
        f.nodes[child].match_here = f.nodes[child].link_here
        f.nodes[child].match_there = f.nodes[child].link_there
        f.nodes[after].match_here = f.nodes[child].link_there
        f.nodes[after].match_there = f.nodes[child].link_here
        child = f.nodes[after].sibling


@njit(cache=True, nogil=True)
def outermost(f: BlossomForest, vertex: int) -> int:
    """The outermost node around a vertex."""
    return int(f.vertices[f.vertices[vertex].group].top)


@njit(cache=True, nogil=True)
def dual_of(f: BlossomForest, vertex: int) -> int:
    """The dual of a vertex as of search time zero, the blossoms around it included."""
    return int(f.dual[vertex] + f.vertices[f.vertices[vertex].group].shift)


@njit(cache=True, nogil=True)
def adopt_ring(f: BlossomForest, first: int) -> int:
    """Make a blossom of the ring that starts at ``first``; its base is ``first``. Its number.

    Siblings and links of the ring are set by the caller. The vertices of the largest child keep
    their group, the others join it: O(n log n) in all while blossoms only grow. Duals and
    labels are the caller's business.
    """
    f.counts[SPARE] -= 1
    blossom = f.spare[f.counts[SPARE]]
    f.nodes[blossom].first_child = first
    f.nodes[blossom].parent = NONE
    f.nodes[blossom].blossom_dual = 0
    f.nodes[blossom].match_here = f.nodes[first].match_here
    f.nodes[blossom].match_there = f.nodes[first].match_there
    child = first
    largest = first
    size = 0
    while True:
        f.nodes[child].parent = blossom
        size += f.nodes[child].size
        if f.nodes[child].size > f.nodes[largest].size:
            largest = child
        child = f.nodes[child].sibling
        if child == first:
            break
    group = f.nodes[largest].group
    f.nodes[blossom].group = group
    f.nodes[blossom].size = size
    f.vertices[group].top = blossom
    child = f.nodes[largest].sibling
    while child != largest:
        change = f.vertices[f.nodes[child].group].shift - f.vertices[group].shift
        for k in range(collect_vertices(f, child)):
            f.vertices[f.members[k]].group = group
            f.dual[f.members[k]] += change
        child = f.nodes[child].sibling
    return int(blossom)


@njit(cache=True, nogil=True)
def tree_parent(f: BlossomForest, node: int) -> int:
    """The outermost node above ``node`` in the search tree, NONE at the root."""
    there = f.nodes[node].match_there if f.nodes[node].label == OUTER else f.nodes[node].tree_there
    return NONE if there == NONE else int(outermost(f, there))


@njit(cache=True, nogil=True)
def link_ring(f: BlossomForest, i: int, j: int, meeting: int) -> None:
    """Link the two tree paths from ``meeting`` to the ends of edge (i, j) into a ring."""
    # Down from the meeting point to i, written from the bottom, then across the edge ...
    node = outermost(f, i)
    f.nodes[node].link_here = i
    f.nodes[node].link_there = j
    f.nodes[node].sibling = outermost(f, j)
    while node != meeting:
        outer = f.nodes[node].label == OUTER
        here = f.nodes[node].match_here if outer else f.nodes[node].tree_here
        there = f.nodes[node].match_there if outer else f.nodes[node].tree_there
        above = outermost(f, there)
        f.nodes[above].sibling = node
        f.nodes[above].link_here = there
        f.nodes[above].link_there = here
        node = above
    # ... and from j up to it.
    node = outermost(f, j)
    while node != meeting:
        outer = f.nodes[node].label == OUTER
        f.nodes[node].link_here = f.nodes[node].match_here if outer else f.nodes[node].tree_here
        f.nodes[node].link_there = f.nodes[node].match_there if outer else f.nodes[node].tree_there
        f.nodes[node].sibling = outermost(f, f.nodes[node].link_there)
        node = f.nodes[node].sibling


@njit(cache=True, nogil=True)
def release_children(f: BlossomForest, blossom: int) -> None:
    """Make the children of ``blossom`` outermost and its number spare; labels are the caller's.

    The child whose group the blossom had keeps it untouched: O(size of the others).
    """
    child = f.nodes[blossom].first_child
    first = child
    while True:
        f.nodes[child].parent = NONE
        group = f.nodes[child].group
        if group != f.nodes[blossom].group:
            f.vertices[group].shift = f.vertices[f.nodes[blossom].group].shift
            for k in range(collect_vertices(f, child)):
                f.vertices[f.members[k]].group = group
        f.vertices[group].top = child
        child = f.nodes[child].sibling
        if child == first:
            break
    f.nodes[blossom].label = UNLABELLED
    f.nodes[blossom].blossom_dual = 0
    f.nodes[blossom].first_child = NONE
    f.spare[f.counts[SPARE]] = blossom
    f.counts[SPARE] += 1


@njit(cache=True, nogil=True)
def find_meeting(f: BlossomForest, i: int, j: int) -> int:
    """Where the tree paths of the outer vertices ``i`` and ``j`` meet; O(length of the ring)."""
    f.counts[MEETING] += 1
    node = outermost(f, i)
    other = outermost(f, j)
    while True:
        if node != NONE:
            if f.nodes[node].mark == f.counts[MEETING]:
                return int(node)
            f.nodes[node].mark = f.counts[MEETING]
            node = tree_parent(f, node)
        node, other = other, node
