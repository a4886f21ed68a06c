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
from numpy.typing import NDArray

from engine.core.arguments import IntArray
from engine.kernels.compiling import inner, variable

NONE = -1
UNLABELLED = 0
OUTER = 1
INNER = 2


EDGE = np.dtype(
    [
        ("owner", np.int64),  # the row of a directed edge
        ("neighbour", np.int64),
        ("cost", np.int64),  # even
    ]
)
VERTEX = np.dtype(
    [
        ("first_edge", np.int64),  # first edge in the row of the vertex
        ("end_edge", np.int64),  # end of the row
        ("dual", np.int64),
        ("group", np.int64),  # vertices of one outermost node have one group
        ("top", np.int64),  # the outermost node of the group with this number
        ("shift", np.int64),  # added to the stored duals of the group with this number
        ("reach_time", np.int64),  # earliest time at which an unlabelled vertex can be reached,
        ("reach_search", np.int64),  # valid in the search with this number
    ]
)
NODE = np.dtype(
    [
        ("blossom_dual", np.int64),  # at least 0 for blossoms, meaningless for vertices
        ("parent", np.int64),  # the blossom around the node, NONE outermost
        ("first_child", np.int64),  # the first node in the ring of children
        ("sibling", np.int64),  # the next node in the ring; for a spare number, the next spare one
        ("link_here", np.int64),  # the edge to the sibling: its end in this node,
        ("link_there", np.int64),  # and its end in the sibling
        ("match_here", np.int64),  # the matched edge that leaves an outermost node, NONE if free;
        ("match_there", np.int64),  # inside a blossom it is outdated until the blossom is opened
        ("group", np.int64),  # the group of its vertices when it was last outermost
        ("size", np.int64),  # number of its vertices
        ("mark", np.int64),  # the last meeting search that visited it
        ("label", np.int64),  # of an outermost node in this search
        ("tree_here", np.int64),  # the edge by which an inner node was reached
        ("tree_there", np.int64),
    ]
)


class BlossomForest(NamedTuple):
    """Arrays of the structure; n vertices, N = n + n // 2 + 1 nodes, 2m directed edges.

    ``edges`` (2m), ``vertices`` (n) and ``nodes`` (N) are records: few arrays, because each kernel
    argument costs compile time. ``touched`` (4N): outermost nodes labelled in this search.
    ``members`` (N): work space. ``counts`` (7): first spare blossom number, touched nodes, queued
    events, number of this search, its earliest end time and the directed edge that ends it, number
    of meeting searches.
    """

    edges: NDArray[Any]
    vertices: NDArray[Any]
    nodes: NDArray[Any]
    touched: IntArray
    members: IntArray
    counts: IntArray


SPARE, TOUCHED, QUEUED, SEARCH, END_TIME, END_EDGE, MEETING = 0, 1, 2, 3, 4, 5, 6


def new_forest(
    start: IntArray, neighbour: IntArray, cost: IntArray, dual: IntArray, mate: IntArray
) -> BlossomForest:
    """Return a forest of vertices without blossoms, matched as in ``mate`` (negative if free)."""
    n = len(dual)
    size = n + n // 2 + 1
    edges = np.empty(len(neighbour), dtype=EDGE)
    edges["owner"] = np.repeat(np.arange(n), np.diff(start))
    edges["neighbour"] = neighbour
    edges["cost"] = cost
    vertices = np.zeros(n, dtype=VERTEX)
    vertices["first_edge"] = start[:-1]
    vertices["end_edge"] = start[1:]
    vertices["dual"] = dual
    vertices["group"] = vertices["top"] = np.arange(n)
    nodes = np.zeros(size, dtype=NODE)
    for name in ("parent", "first_child", "match_here", "match_there", "tree_there"):
        nodes[name] = NONE
    nodes["group"] = np.arange(size)
    nodes["sibling"] = nodes["group"] + 1
    nodes["size"] = 1
    matched = np.flatnonzero(mate >= 0)
    nodes["match_here"][matched] = matched
    nodes["match_there"][matched] = mate[matched]
    counts = np.zeros(7, dtype=np.int64)
    counts[SPARE] = n
    touched = np.empty(4 * size, dtype=np.int64)
    members = np.empty(size, dtype=np.int64)
    return BlossomForest(edges, vertices, nodes, touched, members, counts)


@inner
def append_vertices(f: BlossomForest, node: int, offset: int) -> int:
    """Write the vertices of ``node`` to ``members[offset:]``; return the end of the list."""
    inside = node
    while True:
        while inside >= len(f.vertices):
            inside = f.nodes[inside].first_child
        f.members[offset] = inside
        offset += 1
        # Leave the completed rings.
        while inside != node:
            after = f.nodes[inside].sibling
            around = f.nodes[inside].parent
            if after != f.nodes[around].first_child:
                inside = after
                break
            inside = around
        if inside == node:
            return offset


@inner
def child_around(f: BlossomForest, blossom: int, vertex: int) -> int:
    """Return the child of ``blossom`` that contains ``vertex``; O(nesting)."""
    node = vertex
    while f.nodes[node].parent != blossom:
        node = f.nodes[node].parent
    return node


@inner
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


@inner
def outermost(f: BlossomForest, vertex: int) -> int:
    """Return the outermost node around a vertex."""
    node: int = f.vertices[f.vertices[vertex].group].top
    return node


@inner
def dual_of(f: BlossomForest, vertex: int) -> int:
    """Return the dual of a vertex as of search time zero, including the blossoms around it."""
    dual: int = f.vertices[vertex].dual + f.vertices[f.vertices[vertex].group].shift
    return dual


@inner
def adopt_ring(f: BlossomForest, first: int) -> int:
    """Make a blossom of the ring that starts at its base ``first``; return the blossom's number.

    The caller sets siblings and links of the ring, and all duals and labels. The vertices of the
    largest child keep their group, the others join it: O(n log n) while blossoms only grow.
    """
    blossom: int = f.counts[SPARE]
    f.counts[SPARE] = f.nodes[blossom].sibling
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
        for k in range(append_vertices(f, child, variable(0))):
            f.vertices[f.members[k]].group = group
            f.vertices[f.members[k]].dual += change
        child = f.nodes[child].sibling
    return blossom


@inner
def tree_parent(f: BlossomForest, node: int) -> int:
    """Return the outermost node above ``node`` in the search tree, NONE at the root."""
    there = f.nodes[node].match_there if f.nodes[node].label == OUTER else f.nodes[node].tree_there
    return NONE if there == NONE else outermost(f, there)


@inner
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


@inner
def release_children(f: BlossomForest, blossom: int) -> None:
    """Make the children of ``blossom`` outermost and its number spare; the caller sets labels.

    The child with the blossom's group keeps it: O(size of the other children).
    """
    child = f.nodes[blossom].first_child
    first = child
    while True:
        f.nodes[child].parent = NONE
        group = f.nodes[child].group
        if group != f.nodes[blossom].group:
            f.vertices[group].shift = f.vertices[f.nodes[blossom].group].shift
            for k in range(append_vertices(f, child, variable(0))):
                f.vertices[f.members[k]].group = group
        f.vertices[group].top = child
        child = f.nodes[child].sibling
        if child == first:
            break
    f.nodes[blossom].label = UNLABELLED
    f.nodes[blossom].blossom_dual = 0
    f.nodes[blossom].first_child = NONE
    f.nodes[blossom].sibling = f.counts[SPARE]
    f.counts[SPARE] = blossom


@inner
def find_meeting(f: BlossomForest, i: int, j: int) -> int:
    """Return the node where the tree paths of outer ``i`` and ``j`` meet; O(length of ring)."""
    f.counts[MEETING] += 1
    node = outermost(f, i)
    other = outermost(f, j)
    while True:
        if node != NONE:
            if f.nodes[node].mark == f.counts[MEETING]:
                return node
            f.nodes[node].mark = f.counts[MEETING]
            node = tree_parent(f, node)
        node, other = other, node
