"""Compiled passes over edge lists: compressed rows, capped additions, slacks."""

import numpy as np
from numba import njit

from engine.core.arguments import IntArray
from engine.kernels.laminar import LaminarFamily, shared_blossom_dual


def symmetric_rows(n: int, heads: IntArray, tails: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Return compressed rows of the simple graph of these edges, both directions, without repeats.

    Entries with a negative tail are skipped. Returns ``start`` (n + 1), ``owner`` and
    ``neighbour`` (2m).
    """
    start = np.zeros(n + 1, dtype=np.int64)
    loose, owner, neighbour = np.empty((3, 2 * len(heads)), dtype=np.int64)
    fill, seen = np.zeros(n + 1, dtype=np.int64), np.full(n, -1, dtype=np.int64)
    size = _write_rows(heads, tails, loose, fill, seen, start, owner, neighbour)
    return start, owner[:size].copy(), neighbour[:size].copy()


@njit(cache=True, nogil=True)
def _write_rows(
    heads: IntArray,
    tails: IntArray,
    loose: IntArray,
    fill: IntArray,
    seen: IntArray,
    start: IntArray,
    owner: IntArray,
    neighbour: IntArray,
) -> int:
    """Write ``start`` to ``neighbour``; return the number of entries.

    ``loose`` (2m), ``fill`` (n + 1 zeros) and ``seen`` (n times -1) are work space.
    """
    n = len(seen)
    for k in range(len(heads)):
        if tails[k] >= 0:
            fill[heads[k] + 1] += 1
            fill[tails[k] + 1] += 1
    for i in range(n):
        fill[i + 1] += fill[i]
    for k in range(len(heads)):
        if tails[k] >= 0:
            loose[fill[heads[k]]] = tails[k]
            fill[heads[k]] += 1
            loose[fill[tails[k]]] = heads[k]
            fill[tails[k]] += 1
    size = 0
    first = 0
    for i in range(n):
        for k in range(first, fill[i]):
            j = loose[k]
            if seen[j] != i:
                seen[j] = i
                owner[size] = i
                neighbour[size] = j
                size += 1
        first = fill[i]  # the row was filled up to the beginning of the next
        start[i + 1] = size
    return size


def cap_additions(n: int, order: IntArray, heads: IntArray, tails: IntArray, cap: int) -> IntArray:
    """Take edges in ``order`` while one of their ends has received fewer than ``cap``."""
    given, taken = np.zeros(n, dtype=np.int64), np.empty(len(order), dtype=np.int64)
    size = _take_additions(order, heads, tails, cap, given, taken)
    return taken[:size].copy()


@njit(cache=True, nogil=True)
def _take_additions(
    order: IntArray, heads: IntArray, tails: IntArray, cap: int, given: IntArray, taken: IntArray
) -> int:
    """Write the edges to ``taken``; return their number. ``given`` (n zeros) is work space."""
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
    return size


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
