"""Half-integral perfect matching of a sparse graph by shortest augmenting paths.

Minimises sum c_e x_e over x >= 0 with x(delta(v)) = 1. An optimum takes values 0, 1/2 and 1:
matched pairs and odd cycles of halves. All costs are even integers, so that every dual stays an
integer: the nodes of one search tree are joined by tight edges, hence have duals of one parity.

Duals u: u_i + u_j <= c_ij on every edge, with equality on matched pairs and half cycles.

One alternating tree at a time grows from a free node. Time is the dual change since the search
began: duals of outer nodes rise with it, those of inner nodes fall. An edge from an outer node

    to a matched node without a label    is tight at   cost - dual_i - dual_j  and makes it inner,
    to a free or half-matched node       is tight at   cost - dual_i - dual_j  and ends the search,
    to another outer node                is tight at  (cost - dual_i - dual_j) / 2  and ends it too.

The dual of a labelled node is stored as of time zero, so that a step in time changes nothing.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from engine.core.arguments import IntArray
from engine.kernels.blossom_heap import heap_pop, heap_push
from engine.kernels.compiling import inner, variable

FREE = -1
ON_HALF_CYCLE = -2
NEVER = 1 << 62

UNLABELLED = 0
OUTER = 1
INNER = 2

_End = tuple[int, int, int]
"""Earliest end time of a search, and the edge that ends it, outer node first."""


class FractionalGraph(NamedTuple):
    """Graph in compressed rows: the edges of node i are ``start[i]`` to ``start[i + 1]``."""

    start: IntArray
    neighbour: IntArray
    cost: IntArray


class SearchTree(NamedTuple):
    """State of the nodes in one search, each array (n,).

    ``label``: UNLABELLED, OUTER or INNER. ``distance``: when a matched node can become inner, NEVER
    if no edge leads there; ``before``: the outer end of that edge. ``labelled`` and
    ``reached`` list the nodes with a label and those with a distance.
    """

    label: IntArray
    distance: IntArray
    before: IntArray
    labelled: IntArray
    reached: IntArray


def new_tree(n: int) -> SearchTree:
    """Return a state without labels."""
    before, labelled, reached = np.empty((3, n), dtype=np.int64)
    distance = np.full(n, NEVER, dtype=np.int64)
    return SearchTree(np.zeros(n, dtype=np.int64), distance, before, labelled, reached)


@inner
def _repair_duals(graph: FractionalGraph, dual: IntArray, lowered: IntArray) -> None:
    """Lower ``dual`` where an edge is violated, each end by at least half, in place.

    An edge is violated at both of its ends, so halves suffice; other nodes keep their duals and
    their tight edges. ``lowered`` (n,) is work space.
    """
    start, neighbour, cost = graph
    n = len(dual)
    for i in range(n):
        lowered[i] = dual[i]
        least = NEVER
        for e in range(start[i], start[i + 1]):
            least = min(least, cost[e] - dual[neighbour[e]])
        if least < dual[i]:
            lowered[i] = (dual[i] + least) >> 1
    for i in range(n):
        dual[i] = lowered[i]


@inner
def _match_greedily(graph: FractionalGraph, dual: IntArray, mate: IntArray, kept: IntArray) -> None:
    """Keep the pairs of ``mate`` that are tight, then raise free duals and match tight pairs.

    ``kept`` (n,) is work space.
    """
    start, neighbour, cost = graph
    n = len(dual)
    for i in range(n):
        kept[i] = FREE
        for e in range(start[i], start[i + 1]):
            j = neighbour[e]
            if mate[i] == j and mate[j] == i and cost[e] == dual[i] + dual[j]:
                kept[i] = j
    for i in range(n):
        mate[i] = kept[i]
    for i in range(n):
        if mate[i] != FREE:
            continue
        least = NEVER
        partner = -1
        for e in range(start[i], start[i + 1]):
            j = neighbour[e]
            slack = cost[e] - dual[j]
            if slack < least or (slack == least and mate[partner] != FREE and mate[j] == FREE):
                least = slack
                partner = j
        if partner >= 0:
            dual[i] = least
            if mate[partner] == FREE:
                mate[i] = partner
                mate[partner] = i


@njit(cache=True, nogil=True)
def match_fractionally(
    graph: FractionalGraph,
    tree: SearchTree,
    dual: IntArray,
    mate: IntArray,
    cycle_next: IntArray,
    heap: IntArray,
) -> int:
    """Turn ``mate`` into an optimal half-integral perfect matching; all arrays in place.

    Any ``dual`` is allowed: violated edges are repaired, and tight pairs of ``mate`` are kept.
    ``mate[v]`` ends as a partner or ON_HALF_CYCLE, with the odd cycle in ``cycle_next``. Returns
    -1, or the node whose search failed: then ``tree.label`` (otherwise all zero) shows its tree,
    whose INNER nodes are a deficient set. ``heap`` needs 2m + n + 1 rows.
    """
    n = len(dual)
    _repair_duals(graph, dual, tree.labelled)
    _match_greedily(graph, dual, mate, tree.labelled)
    for root in range(n):
        if mate[root] != FREE:
            continue
        end, n_labelled, n_reached = _grow_tree(root, graph, dual, mate, tree, heap)
        time, i, j = end
        if time == NEVER:
            return root
        _augment(mate, cycle_next, tree.label, tree.before, i, j)
        _settle(dual, tree, n_labelled, n_reached, time)
    return -1


@inner
def _grow_tree(
    root: int,
    graph: FractionalGraph,
    dual: IntArray,
    mate: IntArray,
    tree: SearchTree,
    heap: IntArray,
) -> tuple[_End, int, int]:
    """Search from a free node until an edge ends it, or none is left and the end is at NEVER.

    Returns the end and the numbers of ``labelled`` and ``reached`` nodes.
    """
    label, distance, _, labelled, _ = tree
    end = (variable(NEVER), variable(-1), variable(-1))
    n_labelled, n_reached, n_queued = variable(0), variable(0), variable(0)
    time = variable(0)
    outer = root
    while True:
        label[outer] = OUTER
        dual[outer] -= time
        labelled[n_labelled] = outer
        end, n_reached, n_queued = _scan(
            outer, graph, dual, mate, tree, heap, end, n_reached, n_queued
        )
        below, n_queued = _pop_reached(heap, n_queued, label, distance, end[0])
        if below < 0:
            return end, n_labelled + 1, n_reached
        time = distance[below]
        label[below] = INNER
        dual[below] += time
        labelled[n_labelled + 1] = below
        n_labelled += 2
        outer = mate[below]


@inner
def _scan(
    i: int,
    graph: FractionalGraph,
    dual: IntArray,
    mate: IntArray,
    tree: SearchTree,
    heap: IntArray,
    end: _End,
    n_reached: int,
    n_queued: int,
) -> tuple[_End, int, int]:
    """Queue the nodes reached from the new outer ``i``; return the earliest end and both counts.

    Numbers are passed and returned: an array of them would cost a third of the speed.
    """
    start, neighbour, cost = graph
    label, distance, before, _, reached = tree
    end_time, end_from, end_at = end
    for e in range(start[i], start[i + 1]):
        j = neighbour[e]
        if label[j] == INNER:
            continue
        time = cost[e] - dual[i] - dual[j]
        if label[j] == OUTER:
            time >>= 1
        if time >= end_time:
            continue
        if label[j] == OUTER or mate[j] < 0:
            end_time = time
            end_from = i
            end_at = j
        elif time < distance[j]:
            if distance[j] == NEVER:
                reached[n_reached] = j
                n_reached += 1
            distance[j] = time
            before[j] = i
            n_queued = heap_push(heap, n_queued, time, j)
    return (end_time, end_from, end_at), n_reached, n_queued


@inner
def _pop_reached(
    heap: IntArray, n_queued: int, label: IntArray, distance: IntArray, end_time: int
) -> tuple[int, int]:
    """Pop the next reached unlabelled node, -1 if the end comes first; return it and rows left."""
    while n_queued > 0 and heap[0, 0] < end_time:
        time = heap[0, 0]
        j = heap[0, 1]
        n_queued = heap_pop(heap, n_queued)
        if label[j] == UNLABELLED and time == distance[j]:
            return j, n_queued
    return -1, n_queued


@inner
def _settle(dual: IntArray, tree: SearchTree, n_labelled: int, n_reached: int, time: int) -> None:
    """End a search: store true duals, reset labels and distances."""
    label, distance, _, labelled, reached = tree
    for k in range(n_labelled):
        i = labelled[k]
        dual[i] += time if label[i] == OUTER else -time
        label[i] = UNLABELLED
    for k in range(n_reached):
        distance[reached[k]] = NEVER


@inner
def _augment(
    mate: IntArray, cycle_next: IntArray, label: IntArray, before: IntArray, i: int, j: int
) -> None:
    """Use the tight edge (i, j) that ends a search: i is outer; j is free, halved or outer."""
    if label[j] != OUTER:
        if mate[j] == ON_HALF_CYCLE:
            # The rest of the cycle is an even path: pair it up.
            k = cycle_next[j]
            while k != j:
                after = cycle_next[k]
                following = cycle_next[after]
                mate[k] = after
                mate[after] = k
                k = following
        _flip_to_root(mate, before, i)
        mate[i] = j
        mate[j] = i
        return
    # The paths of i and j to the root meet in an outer node; together they are an odd cycle.
    k = i
    while k >= 0:
        cycle_next[k] = -2  # mark the path of i
        k = before[mate[k]] if mate[k] >= 0 else -1
    meeting = j
    while cycle_next[meeting] != -2:
        meeting = before[mate[meeting]]
    k = i
    while k >= 0:
        cycle_next[k] = -1
        k = before[mate[k]] if mate[k] >= 0 else -1
    _flip_to_root(mate, before, meeting)
    # From the meeting point down to i, across to j, and up again.
    k = i
    last = j
    while True:
        cycle_next[k] = last
        if k == meeting:
            break
        inner = mate[k]
        cycle_next[inner] = k
        last = inner
        mate[k] = ON_HALF_CYCLE
        mate[inner] = ON_HALF_CYCLE
        k = before[inner]
    k = j
    while k != meeting:
        inner = mate[k]
        cycle_next[k] = inner
        cycle_next[inner] = before[inner]
        mate[k] = ON_HALF_CYCLE
        mate[inner] = ON_HALF_CYCLE
        k = before[inner]
    mate[meeting] = ON_HALF_CYCLE


@inner
def _flip_to_root(mate: IntArray, before: IntArray, i: int) -> None:
    """Swap matched and tree edges from the outer node i to the root, so that i can be matched."""
    inner = mate[i]
    while inner >= 0:
        outer = before[inner]
        following = mate[outer]
        mate[inner] = outer
        mate[outer] = inner
        inner = following
