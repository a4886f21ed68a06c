"""Maximum flow by Boykov and Kolmogorov's search trees on graphs with four arcs per node.

The graph is implicit: arc ``d`` of node ``p`` leads to ``neighbour[p, d]`` and its reverse is arc
``d ^ 1`` there, so a grid needs no arc lists, and the doubled grid of roof duality only another
neighbour table. Absent arcs lead to one extra node at the end, which has no capacity.

References: Boykov and Kolmogorov 2004, "An experimental comparison of min-cut/max-flow algorithms".
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from engine.core.arguments import FloatArray

Int32Array = NDArray[np.int32]
Int8Array = NDArray[np.int8]
# Unsigned indices skip a test for negative ones at each look-up: a sixth of the time.
IndexArray = NDArray[np.uint32]
ArcArray = NDArray[np.uint8]
Index = int | np.uint32

FREE, SOURCE, SINK = 0, 1, 2
TERMINAL, ORPHAN, NO_PARENT = 4, 5, 6
FAR = 1 << 30


@njit(cache=True, nogil=True)
def _find_parent(
    node: Index,
    side: int,
    time: int,
    neighbour: IndexArray,
    residual: FloatArray,
    tree: Int8Array,
    parent: ArcArray,
    stamp: Int32Array,
    distance: Int32Array,
) -> tuple[int, int]:
    """Return the arc to the nearest rooted tree neighbour and its distance, or (-1, FAR)."""
    best = -1
    nearest = FAR
    for d in range(4):
        q = neighbour[node, d]
        if tree[q] != side:
            continue
        capacity = residual[q, d ^ 1] if side == SOURCE else residual[node, d]
        if capacity <= 0.0:
            continue
        steps = 0
        walk = q
        while True:
            if stamp[walk] == time:
                steps += distance[walk]
                break
            up = parent[walk]
            steps += 1
            if up == TERMINAL:
                stamp[walk] = time
                distance[walk] = 1
                break
            if up >= ORPHAN:
                steps = FAR
                break
            walk = neighbour[walk, up]
        if steps >= FAR:
            continue
        if steps < nearest:
            nearest = steps
            best = d
        # Record for the nodes on this path that they are rooted, and their depth.
        walk = q
        while stamp[walk] != time:
            stamp[walk] = time
            distance[walk] = steps
            steps -= 1
            walk = neighbour[walk, parent[walk]]
    return best, nearest


@njit(cache=True, nogil=True)
def _push_path(
    start: Index,
    arc: int,
    neighbour: IndexArray,
    residual: FloatArray,
    excess: FloatArray,
    parent: ArcArray,
    orphans: IndexArray,
) -> tuple[float, int]:
    """Push all that fits from source to sink through ``arc``; return (flow, number of orphans).

    ``start`` is in the source tree and the arc's head in the sink tree.
    """
    end = neighbour[start, arc]
    flow = residual[start, arc]
    p = start
    while parent[p] != TERMINAL:
        d = parent[p]
        p = neighbour[p, d]
        flow = min(flow, residual[p, d ^ 1])
    flow = min(flow, excess[p])
    p = end
    while parent[p] != TERMINAL:
        flow = min(flow, residual[p, parent[p]])
        p = neighbour[p, parent[p]]
    flow = min(flow, -excess[p])

    residual[start, arc] -= flow
    residual[end, arc ^ 1] += flow
    count = 0
    p = start
    while parent[p] != TERMINAL:
        d = parent[p]
        q = neighbour[p, d]
        residual[p, d] += flow
        residual[q, d ^ 1] -= flow
        if residual[q, d ^ 1] <= 0.0:
            parent[p] = ORPHAN
            orphans[count] = p
            count += 1
        p = q
    excess[p] -= flow
    if excess[p] <= 0.0:
        parent[p] = ORPHAN
        orphans[count] = p
        count += 1
    p = end
    while parent[p] != TERMINAL:
        d = parent[p]
        q = neighbour[p, d]
        residual[q, d ^ 1] += flow
        residual[p, d] -= flow
        if residual[p, d] <= 0.0:
            parent[p] = ORPHAN
            orphans[count] = p
            count += 1
        p = q
    excess[p] += flow
    if excess[p] >= 0.0:
        parent[p] = ORPHAN
        orphans[count] = p
        count += 1
    return flow, count


@njit(cache=True, nogil=True)
def _free_orphan(
    node: Index,
    side: int,
    neighbour: IndexArray,
    residual: FloatArray,
    tree: Int8Array,
    parent: ArcArray,
    queued: Int8Array,
    active: IndexArray,
    freed: IndexArray,
) -> tuple[int, int]:
    """Remove a node from its tree; return the numbers of new active neighbours and of orphans.

    Neighbours that could reach it again go to ``active`` (4,), its children to ``freed`` (4,).
    """
    n_active = 0
    n_freed = 0
    for d in range(4):
        q = neighbour[node, d]
        if tree[q] != side:
            continue
        capacity = residual[q, d ^ 1] if side == SOURCE else residual[node, d]
        if capacity > 0.0 and queued[q] == 0:
            queued[q] = 1
            active[n_active] = q
            n_active += 1
        if parent[q] == d ^ 1:
            parent[q] = ORPHAN
            freed[n_freed] = q
            n_freed += 1
    tree[node] = FREE
    parent[node] = NO_PARENT
    return n_active, n_freed


@njit(cache=True, nogil=True)
def _plant_trees(
    excess: FloatArray,
    tree: Int8Array,
    parent: ArcArray,
    stamp: Int32Array,
    distance: Int32Array,
    queue: IndexArray,
    queued: Int8Array,
) -> int:
    """Make every node with excess the root of a tree, active; return the number of roots."""
    n = excess.shape[0] - 1
    waiting = 0
    for node in range(n + 1):
        stamp[node] = 0
        queued[node] = 0
        tree[node] = FREE
        parent[node] = NO_PARENT
        if node < n and excess[node] != 0.0:
            tree[node] = SOURCE if excess[node] > 0.0 else SINK
            parent[node] = TERMINAL
            distance[node] = 1
            queue[waiting] = node
            queued[node] = 1
            waiting += 1
    return waiting


@njit(cache=True, nogil=True)
def max_flow_four_arcs(
    neighbour: IndexArray,
    residual: FloatArray,
    excess: FloatArray,
    tree: Int8Array,
    parent: ArcArray,
    stamp: Int32Array,
    distance: Int32Array,
    queue: IndexArray,
    queued: Int8Array,
    orphans: IndexArray,
    around: IndexArray,
) -> float:
    """Turn ``residual`` and ``excess`` into those of a maximum flow; return its value.

    Parameters
    ----------
    neighbour : uint32 (n + 1, 4); residual : float64 (n + 1, 4) capacities, changed in place;
    excess : float64 (n + 1,) capacity from the source if positive, to the sink if negative,
    changed in place; the others are work space: tree and queued int8, parent uint8, stamp and
    distance int32, queue and orphans uint32, all (n + 1,), and around uint32 (2, 4).
    On return ``tree`` is SOURCE exactly on the source side of the smallest minimum cut.
    """
    # One long function on purpose: with adoption in a separate function, inlined or not, a cut of
    # 200 x 200 pixels takes from a seventh to two fifths longer.
    n = excess.shape[0] - 1
    size = n + 1
    head = 0
    waiting = _plant_trees(excess, tree, parent, stamp, distance, queue, queued)
    active, freed = around[0], around[1]
    total = 0.0
    time = 0
    current = np.uint32(0)
    busy = False
    while True:
        # Take the next active node; a node that just gave a path stays active.
        if not busy:
            while waiting > 0:
                p = queue[head]
                head = head + 1 if head + 1 < size else 0
                waiting -= 1
                queued[p] = 0
                if tree[p] != FREE:
                    current = p
                    busy = True
                    break
            if not busy:
                return total
        # Grow the trees from it until they touch.
        p = current
        side = tree[p]
        start = p
        arc = 0
        found = False
        for d in range(4):
            q = neighbour[p, d]
            capacity = residual[p, d] if side == SOURCE else residual[q, d ^ 1]
            if capacity <= 0.0:
                continue
            if tree[q] == FREE:
                tree[q] = side
                parent[q] = d ^ 1
                stamp[q] = stamp[p]
                distance[q] = distance[p] + 1
                if queued[q] == 0:
                    queued[q] = 1
                    tail = head + waiting
                    queue[tail if tail < size else tail - size] = q
                    waiting += 1
            elif tree[q] != side:
                found = True
                if side == SOURCE:
                    start = p
                    arc = d
                else:
                    start = q
                    arc = d ^ 1
                break
            elif stamp[q] <= stamp[p] and distance[q] > distance[p] + 1:
                parent[q] = d ^ 1
                stamp[q] = stamp[p]
                distance[q] = distance[p] + 1
        time += 1
        if not found:
            busy = False
            continue
        flow, count = _push_path(start, arc, neighbour, residual, excess, parent, orphans)
        total += flow
        # Adopt the orphans: nodes next to the path first, then their children.
        first = 0
        while count > 0:
            p = orphans[first]
            first = first + 1 if first + 1 < size else 0
            count -= 1
            side = tree[p]
            best, nearest = _find_parent(
                p, side, time, neighbour, residual, tree, parent, stamp, distance
            )
            if best >= 0:
                parent[p] = best
                stamp[p] = time
                distance[p] = nearest + 1
                continue
            n_active, n_freed = _free_orphan(
                p, side, neighbour, residual, tree, parent, queued, active, freed
            )
            for k in range(n_active):
                tail = head + waiting
                queue[tail if tail < size else tail - size] = active[k]
                waiting += 1
            for k in range(n_freed):
                last = first + count
                orphans[last if last < size else last - size] = freed[k]
                count += 1
        if tree[current] == FREE:
            busy = False
