"""Minimum-degree elimination order of a sparse symmetric matrix, until the rest is dense."""

import heapq

import numpy as np
from numba import njit

from engine.core.arguments import FloatArray, IntArray
from engine.kernels.compiling import inner


@njit(cache=True, nogil=True)
def eliminate_least_degrees(
    starts: IntArray, neighbours: IntArray, weights: FloatArray, dense: float, most: float
) -> tuple[IntArray, IntArray, float]:
    """Eliminate nodes of least degree first, until all degrees reach ``dense`` of the rest.

    The rest is nearly a clique, where one dense matrix is faster than lists.

    Parameters
    ----------
    starts : (n + 1,), start of each node's neighbours
    neighbours : of node v from starts[v] to starts[v + 1], in both directions, without v;
        overwritten
    weights : (n,), number of rows that each node represents
    dense : share in (0, 1]
    most : multiplications, including those of the core, at which elimination stops

    Returns
    -------
    order : the eliminated nodes, first to last
    core : the other nodes
    multiplications : of the elimination, predicted

    References
    ----------
    George and Liu 1989: an eliminated node represents the clique of its neighbours.
    """
    n = len(starts) - 1
    counts = starts[1:] - starts[:-1]
    front_start, front_end = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    pool = np.empty(len(neighbours) + n + 1, dtype=np.int64)
    filled = 0
    is_alive = np.ones(n, dtype=np.bool_)
    is_clique = np.zeros(n, dtype=np.bool_)
    stamp = np.full(n, -1, dtype=np.int64)
    degrees = np.empty(n)
    heap = [(0.0, np.int64(-1))]
    for u in range(n):
        degrees[u] = weights[neighbours[starts[u] : starts[u + 1]]].sum()
        heapq.heappush(heap, (degrees[u], np.int64(u)))
    heapq.heappop(heap)
    order = np.empty(n, dtype=np.int64)
    done, mark, left = 0, 0, weights.sum()
    multiplications = 0.0
    while len(heap) > 0:
        degree, v = heapq.heappop(heap)
        if not is_alive[v] or degree != degrees[v]:
            continue
        if degree >= dense * (left - weights[v]) and degree > 0.0:
            break
        if multiplications + degree**3 / 3.0 > most:
            break
        order[done] = v
        done += 1
        left -= weights[v]
        multiplications += weights[v] * (degree + weights[v]) ** 2
        is_alive[v] = False
        if filled + n > len(pool):
            grown = np.empty(2 * len(pool) + n, dtype=np.int64)
            grown[:filled] = pool[:filled]
            pool = grown
        first = filled
        mark += 1
        stamp[v] = mark
        for w in neighbours[starts[v] : starts[v] + counts[v]]:
            if is_alive[w]:
                filled = _add(w, mark, stamp, pool, filled)
            elif is_clique[w]:  # joined to the new clique
                is_clique[w] = False
                for u in pool[front_start[w] : front_end[w]]:
                    if is_alive[u]:
                        filled = _add(u, mark, stamp, pool, filled)
        front_start[v], front_end[v], is_clique[v] = first, filled, True
        front = pool[first:filled]
        for u in front:
            kept = 0  # no more than before: each loses v or a clique joined to v
            own = neighbours[starts[u] : starts[u] + counts[u]]
            for w in own:
                if ((is_alive[w] and stamp[w] != mark) or is_clique[w]) and w != v:
                    own[kept] = w
                    kept += 1
            neighbours[starts[u] + kept] = v
            counts[u] = kept + 1
        for k in range(len(front)):
            u = front[k]
            mark += 1
            stamp[u] = mark
            degrees[u] = 0.0
            for w in neighbours[starts[u] : starts[u] + counts[u]]:
                if is_alive[w]:
                    if stamp[w] != mark:
                        stamp[w] = mark
                        degrees[u] += weights[w]
                    continue
                for x in pool[front_start[w] : front_end[w]]:
                    if is_alive[x] and stamp[x] != mark:
                        stamp[x] = mark
                        degrees[u] += weights[x]
            heapq.heappush(heap, (degrees[u], u))
    return order[:done], np.flatnonzero(is_alive), multiplications


@inner
def _add(u: int, mark: int, stamp: IntArray, pool: IntArray, filled: int) -> int:
    """Write u to the pool unless it is there; return the new length."""
    if stamp[u] == mark:
        return filled
    stamp[u] = mark
    pool[filled] = u
    return filled + 1
