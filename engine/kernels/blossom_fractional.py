"""Half-integral perfect matching of a sparse graph by shortest augmenting paths.

Minimises sum c_e x_e over x >= 0 with x(delta(v)) = 1. An optimum takes values 0, 1/2 and 1:
matched pairs and odd cycles of halves. All costs are even integers, so that every dual stays an
integer: the nodes of one search tree are joined by tight edges, hence have duals of one parity.

Duals u: u_i + u_j <= c_ij on every edge, with equality on matched pairs and half cycles.
"""

import numpy as np
from numba import njit

from engine.core.arguments import IntArray
from engine.kernels.blossom_heap import heap_pop, heap_push
from engine.kernels.compiling import inner, variable

FREE = -1
ON_HALF_CYCLE = -2
NEVER = np.int64(1) << 62

OUTER = 1
INNER = 2


@inner
def _repair_duals(start: IntArray, neighbour: IntArray, cost: IntArray, dual: IntArray) -> None:
    """Lower ``dual`` where an edge is violated, each endpoint by at least half; in place.

    An edge is violated at both of its ends, so halves suffice; other nodes keep their duals and
    with them their tight edges.
    """
    n = len(dual)
    lowered = dual.copy()
    for i in range(n):
        least = NEVER
        for e in range(start[i], start[i + 1]):
            least = min(least, cost[e] - dual[neighbour[e]])
        if least < dual[i]:
            lowered[i] = (dual[i] + least) >> 1
    for i in range(n):
        dual[i] = lowered[i]


@inner
def _match_greedily(
    start: IntArray, neighbour: IntArray, cost: IntArray, dual: IntArray, mate: IntArray
) -> None:
    """Keep the pairs of ``mate`` that are tight, then raise free duals and match tight pairs."""
    n = len(dual)
    kept = np.empty(n, dtype=np.int64)
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
    start: IntArray,
    neighbour: IntArray,
    cost: IntArray,
    dual: IntArray,
    mate: IntArray,
    cycle_next: IntArray,
    label: IntArray,
    heap: IntArray,
) -> int:
    """Turn ``mate`` into an optimal half-integral perfect matching; all arrays in place.

    Any ``dual`` will do: it is repaired where it violates an edge, and pairs of ``mate`` that are
    tight are kept. ``mate[v]`` ends as a partner or ON_HALF_CYCLE, where ``cycle_next`` walks the
    odd cycle. Returns -1, or the node whose search failed: then ``label`` (all zero otherwise)
    shows its tree, whose INNER nodes are a deficient set. ``heap`` has room for 2m + n + 1 rows.
    """
    n = len(dual)
    _repair_duals(start, neighbour, cost, dual)
    _match_greedily(start, neighbour, cost, dual, mate)
    before = np.empty(n, dtype=np.int64)
    distance = np.empty(n, dtype=np.int64)
    distance[:] = NEVER
    touched = np.empty(2 * n, dtype=np.int64)
    reached = np.empty(n, dtype=np.int64)
    for root in range(n):
        if mate[root] != FREE:
            continue
        size = variable(0)
        n_touched, n_reached = 0, 0
        end_time = NEVER
        end_from = variable(-1)
        end_at = variable(-1)
        grown = root
        time = variable(0)
        while True:
            # Scan the newest outer node. While labelled, duals are stored as of time zero:
            # an outer dual is dual + time, an inner one dual - time.
            i = grown
            label[i] = OUTER
            dual[i] -= time
            touched[n_touched] = i
            n_touched += 1
            for e in range(start[i], start[i + 1]):
                j = neighbour[e]
                if label[j] == INNER:
                    continue
                when = cost[e] - dual[i] - dual[j]
                if label[j] == OUTER:
                    when >>= 1
                if when >= end_time:
                    continue
                if label[j] == OUTER or mate[j] < 0:
                    end_time = when
                    end_from = i
                    end_at = j
                elif when < distance[j]:
                    if distance[j] == NEVER:
                        reached[n_reached] = j
                        n_reached += 1
                    distance[j] = when
                    before[j] = i
                    size = heap_push(heap, size, when, j)
            # The next event: a matched node becomes inner and its partner outer, or the end.
            grown = variable(-1)
            while size > 0 and heap[0, 0] < end_time:
                when = heap[0, 0]
                j = heap[0, 1]
                size = heap_pop(heap, size)
                if label[j] == 0 and when == distance[j]:
                    label[j] = INNER
                    time = when
                    dual[j] += time
                    touched[n_touched] = j
                    n_touched += 1
                    grown = mate[j]
                    break
            if grown < 0:
                break
        if end_time == NEVER:
            return root
        _augment(mate, cycle_next, label, before, end_from, end_at)
        for k in range(n_touched):
            i = touched[k]
            dual[i] += end_time if label[i] == OUTER else -end_time
            label[i] = 0
        for k in range(n_reached):
            distance[reached[k]] = NEVER
    return -1


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
        cycle_next[k] = -2  # a mark: on the path of i
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
    """Swap matched and tree edges from the outer node i to the root; i is left to be matched."""
    inner = mate[i]
    while inner >= 0:
        outer = before[inner]
        following = mate[outer]
        mate[inner] = outer
        mate[outer] = inner
        inner = following
