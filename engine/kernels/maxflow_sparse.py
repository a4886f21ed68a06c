"""Maximum flow on any sparse graph by Dinic's blocking flows, float64, arrays only.

Arcs are stored node by node: arcs from p are ``start[p]`` to ``start[p + 1]``, arc a leads
to ``head[a]``, and ``mate[a]`` is its reverse. Terminals are implicit: ``excess`` is the capacity
from the source if positive, to the sink if negative.

References: Dinic 1970; Boykov and Kolmogorov 2004 for the reading of cuts.
"""

import numpy as np
from numba import njit

from engine.core.arguments import FloatArray, IntArray


@njit(cache=True, nogil=True)
def arc_lists(
    n_nodes: int, first: IntArray, second: IntArray
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Return (start, head, mate, place) of a graph given by its edges.

    ``place[e, 0]`` is the arc from the first to the second node of edge e, ``place[e, 1]`` the
    one back.
    """
    m = first.shape[0]
    start = np.zeros(n_nodes + 1, dtype=np.int64)
    for e in range(m):
        start[first[e] + 1] += 1
        start[second[e] + 1] += 1
    for p in range(n_nodes):
        start[p + 1] += start[p]
    head = np.empty(2 * m, dtype=np.int64)
    mate = np.empty(2 * m, dtype=np.int64)
    place = np.empty((m, 2), dtype=np.int64)
    free = start[:-1].copy()
    for e in range(m):
        there, back = free[first[e]], free[second[e]]
        free[first[e]] += 1
        free[second[e]] += 1
        place[e, 0], place[e, 1] = there, back
        head[there], head[back] = second[e], first[e]
        mate[there], mate[back] = back, there
    return start, head, mate, place


@njit(cache=True, nogil=True)
def _label_levels(
    start: IntArray,
    head: IntArray,
    residual: FloatArray,
    excess: FloatArray,
    level: IntArray,
    queue: IntArray,
) -> bool:
    """Write breadth-first levels from the source; return whether the sink is reached."""
    n = excess.shape[0]
    count = 0
    for p in range(n):
        level[p] = -1
        if excess[p] > 0.0:
            level[p] = 0
            queue[count] = p
            count += 1
    reached = False
    at = 0
    while at < count:
        p = queue[at]
        at += 1
        reached = reached or excess[p] < 0.0
        for a in range(start[p], start[p + 1]):
            q = head[a]
            if residual[a] > 0.0 and level[q] < 0:
                level[q] = level[p] + 1
                queue[count] = q
                count += 1
    return reached


@njit(cache=True, nogil=True)
def max_flow_sparse(
    start: IntArray,
    head: IntArray,
    mate: IntArray,
    residual: FloatArray,
    excess: FloatArray,
    level: IntArray,
    work: IntArray,
) -> float:
    """Turn ``residual`` (arcs,) and ``excess`` (n,) into those of a maximum flow; return its value.

    On return level >= 0 exactly on the source side of the smallest minimum cut. ``work`` is work
    space for (3, n + 1) numbers.
    """
    n = excess.shape[0]
    queue, current, path = work[0], work[1], work[2]
    total = 0.0
    while _label_levels(start, head, residual, excess, level, queue):
        current[:n] = start[:n]
        for root in range(n):
            depth = 0
            p = root
            while excess[root] > 0.0:
                if excess[p] < 0.0:
                    # A path to the sink: push what fits and step back to the first full arc.
                    flow = min(excess[root], -excess[p])
                    for k in range(depth):
                        flow = min(flow, residual[path[k]])
                    excess[root] -= flow
                    excess[p] += flow
                    total += flow
                    full = depth
                    for k in range(depth - 1, -1, -1):
                        residual[path[k]] -= flow
                        residual[mate[path[k]]] += flow
                        if residual[path[k]] <= 0.0:
                            full = k
                    if full < depth:
                        depth = full
                        p = head[mate[path[depth]]]
                    continue
                # Advance along an admissible arc, or retreat and close the arc that led here.
                found = False
                while current[p] < start[p + 1]:
                    a = current[p]
                    if residual[a] > 0.0 and level[head[a]] == level[p] + 1:
                        found = True
                        break
                    current[p] += 1
                if found:
                    path[depth] = current[p]
                    depth += 1
                    p = head[path[depth - 1]]
                elif depth > 0:
                    depth -= 1
                    p = head[mate[path[depth]]]
                    current[p] += 1
                else:
                    break
    return total


@njit(cache=True, nogil=True)
def fill_copies(
    start: IntArray,
    head: IntArray,
    mate: IntArray,
    place: IntArray,
    coupling: FloatArray,
    pushed: FloatArray,
    copies: int,
    all_start: IntArray,
    all_head: IntArray,
    all_mate: IntArray,
    residual: FloatArray,
) -> None:
    """Write the arcs of one or two copies of a graph, with the rest of |coupling| after ``pushed``.

    With two copies, edges of negative coupling lead from one copy to the other, and the second copy
    has the mirrored flow.
    """
    n, m = start.shape[0] - 1, coupling.shape[0]
    for copy in range(copies):
        for p in range(n + 1):
            all_start[copy * n + p] = start[p] + copy * 2 * m
        for e in range(m):
            size = abs(coupling[e])
            flow = pushed[e] if copy == 0 else -pushed[e]
            other = 1 - copy if coupling[e] < 0.0 else copy
            there, back = place[e, 0] + copy * 2 * m, place[e, 1] + other * 2 * m
            all_head[there], all_head[back] = (
                head[place[e, 0]] + other * n,
                head[place[e, 1]] + copy * n,
            )
            all_mate[there], all_mate[back] = back, there
            residual[there], residual[back] = size - flow, size + flow


@njit(cache=True, nogil=True)
def push_over_edges(
    first: IntArray, second: IntArray, coupling: FloatArray, field: FloatArray, flow: FloatArray
) -> None:
    """Push between neighbours that pull an edge in opposite directions, in Ising form.

    Lowers ``field`` (n,) in place and writes the flow over each edge (positive out of the first
    node), at most |coupling|. Most of a maximum flow is found here, before any search.
    """
    for e in range(first.shape[0]):
        here = field[first[e]]
        there = field[second[e]]
        flow[e] = 0.0
        if here * there * coupling[e] < 0.0:
            size = min(abs(here), abs(there), abs(coupling[e]))
            flow[e] = size if here > 0.0 else -size
            field[first[e]] = here - flow[e]
            field[second[e]] = there + (flow[e] if coupling[e] > 0.0 else -flow[e])
