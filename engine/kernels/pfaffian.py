"""Pfaffians of sparse skew-symmetric matrices, and entries of the inverse at the entries of K.

A front is a dense skew-symmetric matrix, stored below the diagonal: the rows of a part of the
graph, and those of greater parts that elimination has joined to them.
"""

import numpy as np
from numba import njit

from engine.core.arguments import FloatArray, IntArray
from engine.kernels.compiling import inner

THRESHOLD = 0.1  # least size of a pivot, relative to the largest entry of its two columns
WALK = 4  # columns visited from each candidate, from large to larger entries


@njit(cache=True, nogil=True)
def eliminate(
    edges: IntArray,
    weights: FloatArray,
    owner: IntArray,
    nodes: IntArray,
    node_ends: IntArray,
    inside: IntArray,
    edge_ends: IntArray,
    halves: IntArray,
) -> tuple[float, IntArray, IntArray, FloatArray]:
    """Return log |Pf K| with the eliminated fronts; -inf if K is singular.

    Pivots are pairs of rows. Rows whose entries within their part are small relative to their
    other entries wait for the next greater part (delayed pivots).

    Parameters
    ----------
    edges : (n_edges, 2), positions of K's entries: weights at (first, second), else minus them
    weights : (n_edges,); weights of parallel edges are added
    owner : (n_nodes,), the part of each node
    nodes, node_ends : (n_nodes,), (n_parts,), nodes part by part, and the end of each part
    inside, edge_ends : (n_edges,), (n_parts,), edges by the lesser part of their ends, likewise
    halves : (n_parts, 2), -1 if a part has none; parts are numbered before their halves

    Returns
    -------
    log_pfaffian : float
    fronts : (n_parts, 4): start in ``members``, start in ``blocks``, number of rows, and number
        of eliminated rows
    members : nodes front by front
    blocks : square matrices front by front: factors, then the rest for the greater part

    References
    ----------
    Duff and Reid 1983 (fronts and delayed pivots); Bunch 1982 (skew-symmetric pivots).
    """
    fronts = np.zeros((len(halves), 4), dtype=np.int64)
    place = np.full(len(nodes), -1, dtype=np.int64)
    members = np.empty(4 * len(nodes), dtype=np.int64)
    blocks = np.empty(64 * len(nodes))
    used, filled, log_pfaffian = 0, 0, 0.0
    for t in range(len(halves) - 1, -1, -1):
        first_node = node_ends[t - 1] if t > 0 else 0
        first_edge = edge_ends[t - 1] if t > 0 else 0
        here = inside[first_edge : edge_ends[t]]
        bound = node_ends[t] - first_node + 2 * len(here)
        for half in halves[t]:
            if half >= 0:
                bound += fronts[half, 2] - fronts[half, 3]
        if used + bound > len(members):
            members = np.concatenate((members, np.empty(len(members) + bound, dtype=np.int64)))
        own = members[used : used + bound]
        count = node_ends[t] - first_node
        own[:count] = nodes[first_node : node_ends[t]]
        place[own[:count]] = np.arange(count)
        count, n = _gather(t, count, own, place, owner, fronts, members, halves[t], edges, here)
        if filled + n * n > len(blocks):
            grown = np.empty(2 * len(blocks) + n * n)
            grown[:filled] = blocks[:filled]
            blocks = grown
        block = blocks[filled : filled + n * n].reshape(n, n)
        block[:] = 0.0
        for e in here:
            _add(block, place[edges[e, 0]], place[edges[e, 1]], weights[e])
        for half in halves[t]:
            if half >= 0:
                _add_front(block, place, fronts[half], members, blocks)
        done, logs = _eliminate_front(block, count, own)
        fronts[t, 0], fronts[t, 1], fronts[t, 2], fronts[t, 3] = used, filled, n, done
        for v in own[:n]:
            place[v] = -1
        used, filled, log_pfaffian = used + n, filled + n * n, log_pfaffian + logs
    if fronts[0, 3] < fronts[0, 2]:
        log_pfaffian = -np.inf
    return log_pfaffian, fronts, members[:used], blocks[:filled]


@inner
def _gather(
    t: int,
    count: int,
    own: IntArray,
    place: IntArray,
    owner: IntArray,
    fronts: IntArray,
    members: IntArray,
    halves: IntArray,
    edges: IntArray,
    here: IntArray,
) -> tuple[int, int]:
    """Write the front's nodes after its own: the delayed ones, then those of greater parts.

    Return the number that can be eliminated, and the total number.
    """
    for half in halves:
        if half >= 0:
            start, size, done = fronts[half, 0], fronts[half, 2], fronts[half, 3]
            for v in members[start + done : start + size]:
                if owner[v] > t:
                    own[count], place[v] = v, count
                    count += 1
    n = count
    for half in halves:
        if half >= 0:
            start, size, done = fronts[half, 0], fronts[half, 2], fronts[half, 3]
            for v in members[start + done : start + size]:
                if place[v] < 0:
                    own[n], place[v] = v, n
                    n += 1
    for e in here:
        for v in edges[e]:
            if place[v] < 0:
                own[n], place[v] = v, n
                n += 1
    return count, n


@inner
def _add(block: FloatArray, i: int, j: int, value: float) -> None:
    """Add ``value`` at (i, j) of a skew-symmetric matrix stored below the diagonal."""
    if i > j:
        block[i, j] += value
    else:
        block[j, i] -= value


@inner
def _add_front(
    block: FloatArray, place: IntArray, front: IntArray, members: IntArray, blocks: FloatArray
) -> None:
    """Add the remaining matrix of a half to the front."""
    start, at, size, done = front
    rest = blocks[at : at + size * size].reshape(size, size)
    for i in range(done, size):
        row = place[members[start + i]]
        for j in range(done, i):
            _add(block, row, place[members[start + j]], rest[i, j])


@inner
def _eliminate_front(block: FloatArray, count: int, own: IntArray) -> tuple[int, float]:
    """Eliminate pairs of the first ``count`` rows in place; return their number and logs.

    Columns k and k + 1 below a pivot keep their values at its elimination.
    """
    n = len(block)
    left, right = np.empty(n), np.empty(n)
    k, logs = 0, 0.0
    while k + 1 < count:
        i, j = _find_pivot(block, k, count)
        if i < 0:
            break
        _swap(block, k, i, own)
        _swap(block, k + 1, i if j == k else j, own)
        pivot = block[k + 1, k]
        logs += np.log(abs(pivot))
        for r in range(k + 2, n):
            left[r], right[r] = block[r, k], block[r, k + 1]
        for r in range(k + 2, n):
            if left[r] != 0.0 or right[r] != 0.0:
                x, y = left[r] / pivot, right[r] / pivot
                row = block[r]
                for s in range(k + 2, r):
                    row[s] += x * right[s] - y * left[s]
        k += 2
    return k, logs


@inner
def _find_pivot(block: FloatArray, k: int, count: int) -> tuple[int, int]:
    """Return two of the rows k .. count whose entry is large in both columns, or -1."""
    for first in range(k, count):
        i = first
        j, value, largest = _look(block, i, k, count)
        for _ in range(WALK):
            if value == 0.0 or value < THRESHOLD * largest:
                break
            other, its_value, its_largest = _look(block, j, k, count)
            if value >= THRESHOLD * its_largest:
                return i, j
            i, j, value, largest = j, other, its_value, its_largest
    return -1, -1


@inner
def _look(block: FloatArray, i: int, k: int, count: int) -> tuple[int, float, float]:
    """Return column i's row of the largest entry before ``count``, its size, and that of all."""
    j, value = -1, 0.0
    for s in range(k, i):
        size = abs(block[i, s])
        if size > value:
            j, value = s, size
    for r in range(i + 1, count):
        size = abs(block[r, i])
        if size > value:
            j, value = r, size
    largest = value
    for r in range(count, len(block)):
        largest = max(largest, abs(block[r, i]))
    return j, value, largest


@inner
def _swap(block: FloatArray, p: int, q: int, own: IntArray) -> None:
    """Swap two rows and columns of a skew-symmetric matrix stored below the diagonal."""
    if p == q:
        return
    if p > q:
        p, q = q, p
    own[p], own[q] = own[q], own[p]
    for s in range(p):
        block[p, s], block[q, s] = block[q, s], block[p, s]
    for m in range(p + 1, q):
        block[m, p], block[q, m] = -block[q, m], -block[m, p]
    block[q, p] = -block[q, p]
    for r in range(q + 1, len(block)):
        block[r, p], block[r, q] = block[r, q], block[r, p]


@njit(cache=True, nogil=True)
def invert_edges(
    edges: IntArray,
    inside: IntArray,
    edge_ends: IntArray,
    halves: IntArray,
    fronts: IntArray,
    members: IntArray,
    blocks: FloatArray,
) -> FloatArray:
    """Return (K^-1) at (second, first) of each edge, (n_edges,), from the output of ``eliminate``.

    Selected inversion: from the last pivot to the first, only within fronts. Overwrites
    ``blocks``.

    References
    ----------
    Takahashi, Fagan and Chen 1973; Erisman and Tinney 1975; Lin et al. 2011.
    """
    inverse = np.empty(len(edges))
    place = np.empty(members.max() + 1, dtype=np.int64)
    for t in range(len(halves)):
        start, at, n, done = fronts[t]
        block = blocks[at : at + n * n].reshape(n, n)
        _invert_front(block, done)
        for k in range(n):
            place[members[start + k]] = k
        for k in range(edge_ends[t - 1] if t > 0 else 0, edge_ends[t]):
            e = inside[k]
            inverse[e] = block[place[edges[e, 1]], place[edges[e, 0]]]
        for half in halves[t]:
            if half >= 0:
                low, at, size, done = fronts[half]
                rest = blocks[at : at + size * size].reshape(size, size)
                for i in range(done, size):
                    row = block[place[members[low + i]]]
                    for j in range(done, size):
                        rest[i, j] = row[place[members[low + j]]]
    return inverse


@inner
def _invert_front(block: FloatArray, done: int) -> None:
    """Write the inverse over a front whose rows from ``done`` on already hold theirs."""
    n = len(block)
    left, right = np.empty(n), np.empty(n)
    by_left, by_right = np.empty(n), np.empty(n)
    for k in range(done - 2, -1, -2):
        pivot = block[k + 1, k]
        for r in range(k + 2, n):
            left[r], right[r] = block[r, k], block[r, k + 1]
        by_left[:], by_right[:] = 0.0, 0.0
        for s in range(k + 2, n):
            x, y, row = left[s], right[s], block[s]
            for r in range(k + 2, n):  # by rows: the inverse is skew-symmetric
                by_left[r] -= x * row[r]
                by_right[r] -= y * row[r]
        cross = 0.0
        for r in range(k + 2, n):
            cross += left[r] * by_right[r]
            block[r, k], block[r, k + 1] = by_right[r] / pivot, -by_left[r] / pivot
            block[k, r], block[k + 1, r] = -block[r, k], -block[r, k + 1]
        block[k, k] = block[k + 1, k + 1] = 0.0
        block[k, k + 1] = (1.0 + cross / pivot) / pivot
        block[k + 1, k] = -block[k, k + 1]
