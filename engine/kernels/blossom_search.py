"""Weighted blossom search: one shortest augmenting path per free node, with shrunk odd rings.

Grows one alternating tree at a time from a free outermost node. Time is the dual change since the
start of the search. Events wait in a queue and are checked against the current state when popped:

    edge (outer, unlabelled) becomes tight at   cost - dual_i - dual_j
    edge (outer, outer)      becomes tight at  (cost - dual_i - dual_j) / 2
    the dual of an inner blossom reaches 0 at   its stored dual

All costs are even and the nodes of a tree are joined by tight edges, so all times are integers
and every comparison here is exact.
"""

import numpy as np

from engine.core.arguments import IntArray
from engine.kernels.blossom_forest import (
    END_EDGE,
    END_TIME,
    INNER,
    NONE,
    OUTER,
    QUEUED,
    SEARCH,
    TOUCHED,
    UNLABELLED,
    BlossomForest,
    adopt_ring,
    append_vertices,
    dual_of,
    find_meeting,
    link_ring,
    outermost,
    release_children,
    rotate_matching,
)
from engine.kernels.blossom_heap import heap_pop, heap_push, heap_reserve
from engine.kernels.compiling import inner, variable

NEVER = np.int64(1) << 62


@inner
def grow_tree(f: BlossomForest, root: int, heap: IntArray, limit: int) -> bool:
    """Search from the free outermost node ``root`` and augment, or stop at time ``limit``.

    A stopped search keeps its changed duals and blossoms, and the next one starts from them. Return
    False if the tree cannot grow: no perfect matching exists, the labels stay in place, and
    the inner vertices are a deficient set. Costs O(edges seen * log) for the tree.
    """
    f.counts[TOUCHED] = 0
    f.counts[QUEUED] = 0
    f.counts[SEARCH] += 1
    f.counts[END_TIME] = NEVER
    # Each directed edge and each node is queued at most once between two events.
    room = len(f.edges) + len(f.nodes)
    heap = heap_reserve(heap, variable(0), room)
    _label_outer(f, root, variable(0))
    _scan_node(f, root, heap)
    while f.counts[QUEUED] > 0 and heap[0, 0] < min(f.counts[END_TIME], limit):
        heap = heap_reserve(heap, f.counts[QUEUED], room)
        time = heap[0, 0]
        event = heap[0, 1]
        f.counts[QUEUED] = heap_pop(heap, f.counts[QUEUED])
        if event < 0:
            blossom = -event - 1
            if f.nodes[blossom].label == INNER and f.nodes[blossom].blossom_dual == time:
                _expand(f, blossom, time, heap)
            continue
        i = f.edges[event].owner
        j = f.edges[event].neighbour
        slack = f.edges[event].cost - dual_of(f, i) - dual_of(f, j)
        if f.nodes[outermost(f, i)].label != OUTER:
            i, j = j, i
        node = outermost(f, j)
        if f.nodes[node].label == UNLABELLED and slack == time:
            f.nodes[node].tree_here = j
            f.nodes[node].tree_there = i
            _label_inner(f, node, time, heap)
            partner = outermost(f, f.nodes[node].match_there)
            _label_outer(f, partner, time)
            _scan_node(f, partner, heap)
        elif f.nodes[node].label == OUTER and slack == 2 * time and node != outermost(f, i):
            _shrink(f, i, j, time, heap)
    if f.counts[END_TIME] > limit and f.counts[QUEUED] > 0:
        _settle(f, limit)
        return True
    if f.counts[END_TIME] == NEVER:
        return False
    _augment(f, f.edges[f.counts[END_EDGE]].owner, f.edges[f.counts[END_EDGE]].neighbour)
    _settle(f, f.counts[END_TIME])
    return True


@inner
def _label_outer(f: BlossomForest, node: int, time: int) -> None:
    """Make an unlabelled outermost node outer; the caller scans it."""
    f.nodes[node].label = OUTER
    if node >= len(f.vertices):
        f.nodes[node].blossom_dual -= time
    f.touched[f.counts[TOUCHED]] = node
    f.counts[TOUCHED] += 1
    f.vertices[f.nodes[node].group].shift -= time


@inner
def _label_inner(f: BlossomForest, node: int, time: int, heap: IntArray) -> None:
    """Make an unlabelled outermost node inner; for a blossom, queue the time its dual reaches 0."""
    f.nodes[node].label = INNER
    f.touched[f.counts[TOUCHED]] = node
    f.counts[TOUCHED] += 1
    f.vertices[f.nodes[node].group].shift += time
    if node >= len(f.vertices):
        f.nodes[node].blossom_dual += time
        f.counts[QUEUED] = heap_push(heap, f.counts[QUEUED], f.nodes[node].blossom_dual, -node - 1)


@inner
def _scan_node(f: BlossomForest, node: int, heap: IntArray) -> None:
    for k in range(append_vertices(f, node, variable(0))):
        _scan(f, f.members[k], heap)


@inner
def _scan(f: BlossomForest, i: int, heap: IntArray) -> None:
    """Queue the edges of the new outer vertex ``i``, or record the search's earliest end."""
    own = outermost(f, i)
    dual = dual_of(f, i)
    end_time = f.counts[END_TIME]
    for e in range(f.vertices[i].first_edge, f.vertices[i].end_edge):
        j = f.edges[e].neighbour
        node = outermost(f, j)
        label = f.nodes[node].label
        if node == own or label == INNER:
            continue
        time = f.edges[e].cost - dual - dual_of(f, j)
        if label == OUTER:
            time >>= 1
        if time >= end_time:
            continue
        if label == UNLABELLED:
            if f.nodes[node].match_here == NONE:
                end_time = time
                f.counts[END_TIME] = time
                f.counts[END_EDGE] = e
                continue
            if f.vertices[j].reach_search == f.counts[SEARCH] and time >= f.vertices[j].reach_time:
                continue
            f.vertices[j].reach_search = f.counts[SEARCH]
            f.vertices[j].reach_time = time
        f.counts[QUEUED] = heap_push(heap, f.counts[QUEUED], time, e)


@inner
def _find_reach(f: BlossomForest, j: int, heap: IntArray) -> None:
    """Queue the earliest edge from an outer vertex to ``j``, which has just left the tree."""
    dual = dual_of(f, j)
    earliest = f.counts[END_TIME]
    edge = variable(-1)
    for e in range(f.vertices[j].first_edge, f.vertices[j].end_edge):
        i = f.edges[e].neighbour
        if f.nodes[outermost(f, i)].label == OUTER:
            time = f.edges[e].cost - dual_of(f, i) - dual
            if time < earliest:
                earliest = time
                edge = e
    f.vertices[j].reach_search = f.counts[SEARCH]
    f.vertices[j].reach_time = earliest
    if edge >= 0:
        f.counts[QUEUED] = heap_push(heap, f.counts[QUEUED], earliest, edge)


@inner
def _shrink(f: BlossomForest, i: int, j: int, time: int, heap: IntArray) -> None:
    """Make one outer blossom of the ring that the tight outer-outer edge (i, j) closes."""
    meeting = find_meeting(f, i, j)
    link_ring(f, i, j, meeting)
    # Freeze the children's blossom duals; inner vertices become outer ones.
    child = meeting
    n_turned = variable(0)
    while True:
        if f.nodes[child].label == INNER:
            f.nodes[child].blossom_dual -= time
            f.vertices[f.nodes[child].group].shift -= 2 * time
            n_turned = append_vertices(f, child, n_turned)
        else:
            f.nodes[child].blossom_dual += time
        f.nodes[child].label = UNLABELLED
        child = f.nodes[child].sibling
        if child == meeting:
            break
    turned = f.members[:n_turned].copy()
    blossom = adopt_ring(f, meeting)
    f.nodes[blossom].label = OUTER
    f.nodes[blossom].blossom_dual = -time
    f.touched[f.counts[TOUCHED]] = blossom
    f.counts[TOUCHED] += 1
    for k in range(n_turned):
        _scan(f, turned[k], heap)


@inner
def _expand(f: BlossomForest, blossom: int, time: int, heap: IntArray) -> None:
    """Replace an inner blossom whose dual reached zero by its children.

    The even path around the ring from the child where the tree enters to the base child stays in
    the tree, inner and outer in turn; the other children leave it, matched in pairs.
    """
    entry_here = f.nodes[blossom].tree_here
    entry_there = f.nodes[blossom].tree_there
    f.vertices[f.nodes[blossom].group].shift -= time
    release_children(f, blossom)
    entry = outermost(f, entry_here)
    base = outermost(f, f.nodes[blossom].match_here)
    rotate_matching(f, blossom, base)
    # The even direction: forward from entry to base, or forward from base to entry.
    steps = 0
    child = base
    while child != entry:
        child = f.nodes[child].sibling
        steps += 1
    from_entry = steps % 2 == 1
    child = entry if from_entry else base
    last = base if from_entry else entry
    f.nodes[entry].tree_here = entry_here
    f.nodes[entry].tree_there = entry_there
    first_touched = f.counts[TOUCHED]
    while True:
        if not from_entry and child != entry:
            # This inner node hangs below the outer one that follows it.
            f.nodes[child].tree_here = f.nodes[child].link_here
            f.nodes[child].tree_there = f.nodes[child].link_there
        _label_inner(f, child, time, heap)
        if child == last:
            break
        outer = f.nodes[child].sibling
        _label_outer(f, outer, time)
        child = f.nodes[outer].sibling
        if from_entry:
            # The next inner node hangs below this outer one.
            f.nodes[child].tree_here = f.nodes[outer].link_there
            f.nodes[child].tree_there = f.nodes[outer].link_here
    # Vertices that left the tree search for the outer vertices that can reach them again.
    last_touched = f.counts[TOUCHED]
    child = f.nodes[base].sibling
    while child != base:
        if f.nodes[child].label == UNLABELLED:
            for k in range(append_vertices(f, child, variable(0))):
                _find_reach(f, f.members[k], heap)
        child = f.nodes[child].sibling
    for k in range(first_touched, last_touched):
        if f.nodes[f.touched[k]].label == OUTER:
            _scan_node(f, f.touched[k], heap)


@inner
def _augment(f: BlossomForest, i: int, j: int) -> None:
    """Match the free outermost node of ``j`` and swap the edges from ``i`` up to the root."""
    node = outermost(f, j)
    f.nodes[node].match_here = j
    f.nodes[node].match_there = i
    here = i
    there = j
    while True:
        node = outermost(f, here)
        above = f.nodes[node].match_there
        f.nodes[node].match_here = here
        f.nodes[node].match_there = there
        if above == NONE:
            break
        inner = outermost(f, above)
        there = f.nodes[inner].tree_here
        here = f.nodes[inner].tree_there
        f.nodes[inner].match_here = there
        f.nodes[inner].match_there = here


@inner
def _settle(f: BlossomForest, time: int) -> None:
    """End a search: store true duals and drop the labels."""
    for k in range(f.counts[TOUCHED]):
        node = f.touched[k]
        if f.nodes[node].label == UNLABELLED:
            continue
        change = time if f.nodes[node].label == OUTER else -time
        f.nodes[node].label = UNLABELLED
        if node >= len(f.vertices):
            f.nodes[node].blossom_dual += change
        f.vertices[f.nodes[node].group].shift += change
