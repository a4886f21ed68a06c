"""Maximum flow on any sparse graph by Dinic's blocking flows, float64, arrays only.

Arc ``2 e`` leads from the first to the second node of edge e and ``2 e + 1`` back, so the reverse
of arc a is ``a ^ 1``. Terminals are implicit: ``excess`` is the capacity from the source if
positive, to the sink if negative.

References: Dinic 1970; Boykov and Kolmogorov 2004 for the reading of cuts.
"""

import numpy as np
from numba import njit

from engine.core.arguments import FloatArray, IntArray


@njit(cache=True, nogil=True)
def arc_lists(n_nodes: int, first: IntArray, second: IntArray) -> tuple[IntArray, IntArray]:
    """Return (start, arcs): the arcs that leave node p are arcs[start[p]:start[p + 1]]."""
    m = first.shape[0]
    start = np.zeros(n_nodes + 1, dtype=np.int64)
    for e in range(m):
        start[first[e] + 1] += 1
        start[second[e] + 1] += 1
    for p in range(n_nodes):
        start[p + 1] += start[p]
    arcs = np.empty(2 * m, dtype=np.int64)
    place = start[:-1].copy()
    for e in range(m):
        arcs[place[first[e]]] = 2 * e
        place[first[e]] += 1
        arcs[place[second[e]]] = 2 * e + 1
        place[second[e]] += 1
    return start, arcs


@njit(cache=True, nogil=True)
def _label_levels(
    start: IntArray,
    arcs: IntArray,
    head: IntArray,
    residual: FloatArray,
    excess: FloatArray,
    level: IntArray,
    queue: IntArray,
) -> bool:
    """Breadth-first levels from the source; return whether the sink is reached."""
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
        for k in range(start[p], start[p + 1]):
            a = arcs[k]
            if residual[a] > 0.0 and level[head[a]] < 0:
                level[head[a]] = level[p] + 1
                queue[count] = head[a]
                count += 1
    return reached


@njit(cache=True, nogil=True)
def max_flow_sparse(
    start: IntArray,
    arcs: IntArray,
    head: IntArray,
    residual: FloatArray,
    excess: FloatArray,
    level: IntArray,
) -> float:
    """Turn ``residual`` (2 m,) and ``excess`` (n,) into those of a maximum flow; return its value.

    ``head`` (2 m,) is the node an arc leads to. On return level >= 0 exactly on the source side
    of the smallest minimum cut.
    """
    n = excess.shape[0]
    queue = np.empty(n, dtype=np.int64)
    current = np.empty(n, dtype=np.int64)
    path = np.empty(n + 1, dtype=np.int64)
    total = 0.0
    while _label_levels(start, arcs, head, residual, excess, level, queue):
        current[:] = start[:-1]
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
                        residual[path[k] ^ 1] += flow
                        if residual[path[k]] <= 0.0:
                            full = k
                    if full < depth:
                        depth = full
                        p = head[path[depth] ^ 1]
                    continue
                # Advance along an admissible arc, or retreat and close the arc that led here.
                found = False
                while current[p] < start[p + 1]:
                    a = arcs[current[p]]
                    if residual[a] > 0.0 and level[head[a]] == level[p] + 1:
                        found = True
                        break
                    current[p] += 1
                if found:
                    path[depth] = arcs[current[p]]
                    depth += 1
                    p = head[path[depth - 1]]
                elif depth > 0:
                    depth -= 1
                    p = head[path[depth] ^ 1]
                    current[p] += 1
                else:
                    break
    return total


@njit(cache=True, nogil=True)
def push_over_edges(
    first: IntArray, second: IntArray, coupling: FloatArray, field: FloatArray, flow: FloatArray
) -> None:
    """Push between neighbours that pull an edge in conflicting directions, in Ising form.

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
