"""Compiled passes over edge lists: compressed rows, capped additions, slacks."""

import numpy as np
from numba import njit

from engine.core.arguments import IntArray
from engine.kernels.laminar import LaminarFamily, shared_blossom_dual


@njit(cache=True, nogil=True)
def symmetric_rows(n: int, heads: IntArray, tails: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Return compressed rows of the simple graph of these edges, both directions, without repeats.

    Entries with a negative tail are skipped. Returns ``start`` (n + 1), ``owner`` and
    ``neighbour`` (2m).
    """
    degree = np.zeros(n + 1, dtype=np.int64)
    for k in range(len(heads)):
        if tails[k] >= 0:
            degree[heads[k] + 1] += 1
            degree[tails[k] + 1] += 1
    fill = degree
    for i in range(n):
        fill[i + 1] += fill[i]
    loose = np.empty(fill[n], dtype=np.int64)
    begin = fill.copy()
    for k in range(len(heads)):
        if tails[k] >= 0:
            loose[fill[heads[k]]] = tails[k]
            fill[heads[k]] += 1
            loose[fill[tails[k]]] = heads[k]
            fill[tails[k]] += 1
    start = np.zeros(n + 1, dtype=np.int64)
    owner = np.empty(len(loose), dtype=np.int64)
    neighbour = np.empty(len(loose), dtype=np.int64)
    seen = np.full(n, -1, dtype=np.int64)
    size = 0
    for i in range(n):
        for k in range(begin[i], begin[i + 1]):
            j = loose[k]
            if seen[j] != i:
                seen[j] = i
                owner[size] = i
                neighbour[size] = j
                size += 1
        start[i + 1] = size
    return start, owner[:size].copy(), neighbour[:size].copy()


@njit(cache=True, nogil=True)
def cap_additions(n: int, order: IntArray, heads: IntArray, tails: IntArray, cap: int) -> IntArray:
    """Take edges in ``order`` while one of their ends has received fewer than ``cap``."""
    given = np.zeros(n, dtype=np.int64)
    taken = np.empty(len(order), dtype=np.int64)
    size = 0
    for position in range(len(order)):
        k = order[position]
        i = heads[k]
        j = tails[k]
        if given[i] < cap or given[j] < cap:
            given[i] += 1
            given[j] += 1
            taken[size] = k
            size += 1
    return taken[:size].copy()


@njit(cache=True, nogil=True)
def edge_slacks(
    heads: IntArray, tails: IntArray, cost: IntArray, dual: IntArray, family: LaminarFamily
) -> IntArray:
    """Return the reduced cost of each edge under vertex and blossom duals; shape (m,)."""
    slack = np.empty(len(heads), dtype=np.int64)
    for k in range(len(heads)):
        i = heads[k]
        j = tails[k]
        slack[k] = cost[k] - dual[i] - dual[j] + 2 * shared_blossom_dual(family, i, j)
    return slack


def compressed_rows(
    n_nodes: int, heads: IntArray, tails: IntArray
) -> tuple[IntArray, IntArray, IntArray]:
    """Return rows of both directions: ``start`` (n + 1), ``neighbour`` (2m), edge index (2m)."""
    owner = np.concatenate((heads, tails))
    order = np.argsort(owner, kind="stable")
    start = np.zeros(n_nodes + 1, dtype=np.int64)
    np.cumsum(np.bincount(owner, minlength=n_nodes), out=start[1:])
    return start, np.concatenate((tails, heads))[order], order % max(len(heads), 1)
