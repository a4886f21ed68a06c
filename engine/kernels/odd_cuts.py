"""Cuts of dense graphs that separate two terminals, by merging nodes that no light cut separates.

Scans in the order of attachment (Nagamochi and Ibaraki 1992) merge without a flow; maximum flows
decide the rest.
"""

import numpy as np
from numba import njit

from engine.core.arguments import BoolArray, FloatArray, IntArray

SPENT = 1e-16  # residual capacity below this counts as 0


@njit(cache=True, nogil=True)
def merge_or_cut(
    w: FloatArray,
    odd: BoolArray,
    terminal: BoolArray,
    group: IntArray,
    m: int,
    enough: float,
    most_flows: int,
    side: BoolArray,
) -> tuple[int, float, bool]:
    """Merge nodes that no cut below ``enough`` separates, until one separates two terminals.

    Parameters
    ----------
    w : ndarray, shape (k, k), weights among the first m nodes; changed, as are the next three.
    odd, terminal : ndarray, shape (k,), nodes that represent an odd number, and nodes for which
        cuts are sought.
    group : ndarray, shape (n,), the current node of each original one.
    most_flows : int, maximum flows after which to return in any case.
    side : ndarray, shape (k,), receives the source side of a cut below ``enough``.

    Returns
    -------
    tuple of int, float, bool
        Remaining nodes; weight of the cut, ``enough`` without one; whether flows remain to do.
    """
    for _ in range(most_flows):
        m = _merge_by_scans(w, odd, terminal, group, m, enough)
        if not odd[:m].any() or terminal[:m].sum() < 2:
            return m, enough, False
        source, sink = _choose_terminals(w, terminal, odd, m)
        value = _bounded_flow(w[:m, :m], source, sink, enough, side)
        if value < enough:
            return m, value, False
        m = _merge(w, odd, terminal, group, m, source, sink)
    return m, enough, True


@njit(cache=True, nogil=True)
def contract(
    w: FloatArray, odd: BoolArray, terminal: BoolArray, group: IntArray, m: int, which: BoolArray
) -> int:
    """Merge those of the first m nodes in ``which``, in place, to a non-terminal; return m."""
    first = -1
    for a in range(m):
        if which[a]:
            first = a
            break
    for b in range(m - 1, first, -1):
        if which[b]:
            m = _merge(w, odd, terminal, group, m, first, b)
    terminal[first] = False
    return m


@njit(cache=True, nogil=True)
def _merge(
    w: FloatArray,
    odd: BoolArray,
    terminal: BoolArray,
    group: IntArray,
    m: int,
    first: int,
    second: int,
) -> int:
    """Merge two of the first m nodes in place, and put the last in the free place; return m - 1."""
    a, b = min(first, second), max(first, second)
    w[a, :m] += w[b, :m]
    w[:m, a] += w[:m, b]
    w[a, a] = 0.0
    odd[a] ^= odd[b]
    terminal[a] |= terminal[b]
    last = m - 1
    if b != last:
        w[b, :m] = w[last, :m]
        w[:m, b] = w[:m, last]
        w[b, b] = 0.0
        odd[b], terminal[b] = odd[last], terminal[last]
    for i in range(len(group)):
        if group[i] == b:
            group[i] = a
        elif group[i] == last:
            group[i] = b
    return last


@njit(cache=True, nogil=True)
def _merge_by_scans(
    w: FloatArray, odd: BoolArray, terminal: BoolArray, group: IntArray, m: int, enough: float
) -> int:
    """Merge neighbours in orders of attachment while that merges any; return the remaining number.

    A node attached by at least ``enough`` to those before it in the order is not separated by less
    from the one before it.
    """
    into = np.empty(len(terminal), dtype=np.int64)
    attached = np.empty(len(terminal))
    order = np.empty(len(terminal), dtype=np.int64)
    while m > 1:
        attached[:m] = 0.0
        node, top, merged = 0, 0.0, 0
        for k in range(m):
            order[k], into[k] = node, -1
            if k > 0 and top >= enough:
                into[k] = k - 1
                merged += 1
            # One pass along the row updates all attachments and finds the next node.
            attached[node] = -np.inf
            row, top = w[node], -np.inf
            for a in range(m):
                attached[a] += row[a]
                if attached[a] > top:
                    node, top = a, attached[a]
        if merged == 0:
            return m
        m = _merge_runs(w, odd, terminal, group, m, order, into)
    return m


@njit(cache=True, nogil=True)
def _merge_runs(
    w: FloatArray,
    odd: BoolArray,
    terminal: BoolArray,
    group: IntArray,
    m: int,
    order: IntArray,
    into: IntArray,
) -> int:
    """Merge every node with the one before it in ``order`` if ``into`` is set, all at once."""
    label = np.empty(m, dtype=np.int64)
    count = 0
    for k in range(m):
        if into[k] < 0:
            count += 1
        label[order[k]] = count - 1
    fresh = np.zeros((count, count))
    fresh_odd = np.zeros(count, dtype=np.bool_)
    fresh_terminal = np.zeros(count, dtype=np.bool_)
    for a in range(m):
        fresh_odd[label[a]] ^= odd[a]
        fresh_terminal[label[a]] |= terminal[a]
        for b in range(m):
            fresh[label[a], label[b]] += w[a, b]
    for a in range(count):
        fresh[a, a] = 0.0
    w[:count, :count] = fresh
    odd[:count] = fresh_odd
    terminal[:count] = fresh_terminal
    for i in range(len(group)):
        group[i] = label[group[i]]
    return count


@njit(cache=True, nogil=True)
def _choose_terminals(
    w: FloatArray, terminal: BoolArray, odd: BoolArray, m: int
) -> tuple[int, int]:
    """Return a terminal, odd if there is one, and the terminal most attached to it."""
    source = -1
    for a in range(m):
        if terminal[a] and (source < 0 or (odd[a] and not odd[source])):
            source = a
    sink = -1
    for a in range(m):
        if terminal[a] and a != source and (sink < 0 or w[source, a] > w[source, sink]):
            sink = a
    return source, sink


@njit(cache=True, nogil=True)
def _bounded_flow(w: FloatArray, source: int, sink: int, enough: float, side: BoolArray) -> float:
    """Return the value of a minimum cut, or ``enough`` if it is at least that (Dinic 1970).

    ``side`` (m,) is True on the source's side if the cut is less.
    """
    m = len(w)
    capacity = w.copy()
    level = np.empty(m, dtype=np.int64)
    at = np.empty(m, dtype=np.int64)
    queue = np.empty(m, dtype=np.int64)
    path = np.empty(m, dtype=np.int64)
    value = 0.0
    while value < enough:
        level[:] = -1
        level[source] = 0
        queue[0] = source
        head, tail = 0, 1
        while head < tail and level[sink] < 0:
            node = queue[head]
            head += 1
            for other in range(m):
                if level[other] < 0 and capacity[node, other] > SPENT:
                    level[other] = level[node] + 1
                    queue[tail] = other
                    tail += 1
        if level[sink] < 0:
            for node in range(m):
                side[node] = level[node] >= 0
            return value
        at[:] = 0
        path[0] = source
        depth = 0
        while depth >= 0 and value < enough:
            node = path[depth]
            if node == sink:
                amount = enough - value
                for k in range(depth):
                    amount = min(amount, capacity[path[k], path[k + 1]])
                amount = max(amount, SPENT)
                value += amount
                back = depth
                for k in range(depth - 1, -1, -1):
                    capacity[path[k], path[k + 1]] -= amount
                    capacity[path[k + 1], path[k]] += amount
                    if capacity[path[k], path[k + 1]] <= SPENT:
                        back = k
                depth = back
                continue
            while at[node] < m and not (
                level[at[node]] == level[node] + 1 and capacity[node, at[node]] > SPENT
            ):
                at[node] += 1
            if at[node] < m:
                depth += 1
                path[depth] = at[node]
            else:
                depth -= 1
                if depth >= 0:
                    at[path[depth]] += 1
    return enough
