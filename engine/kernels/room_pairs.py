"""Pairs that begin a group, in any room or one where an atom may stay; bounds from pairs."""

import numpy as np
from numba import njit

from engine.core.arguments import FloatArray, IntArray
from engine.kernels.room_tables import PairValues, StayTables


@njit(cache=True, nogil=True)
def positive_pairs(
    scores: FloatArray,
    bonus: FloatArray,
    price: FloatArray,
    scale: float,
    threshold: float,
    out: IntArray,
) -> int:
    """List pairs i < j with scale scores_ij + bonus_ij - price_i - price_j > threshold.

    ``bonus`` is (n, n), or (0, 0) for none. ``out`` (k, 2) is filled up to its length. Return the
    number of pairs, which may be larger.
    """
    n = len(price)
    count = 0
    has_bonus = len(bonus) > 0
    for i in range(n):
        if price[i] == np.inf:
            continue
        least = threshold + price[i]
        row = scores[i]
        for j in range(i + 1, n):
            value = scale * row[j] - price[j]
            if has_bonus:
                value += bonus[i, j]
            if value > least:
                if count < len(out):
                    out[count, 0], out[count, 1] = i, j
                count += 1
    return count


@njit(cache=True, nogil=True)
def largest_sums(
    scores: FloatArray,
    bonus: FloatArray,
    price: FloatArray,
    scale: float,
    n_others: int,
    out: FloatArray,
) -> None:
    """Write half the sum of the ``n_others`` largest a_ij of every atom i, at least 0.

    Summed over the atoms of a group, it bounds the group's reduced value, for any group.
    """
    n = len(price)
    has_bonus = len(bonus) > 0
    best = np.empty(n_others)
    for i in range(n):
        if price[i] == np.inf:
            out[i] = 0.0
            continue
        best[:] = -np.inf
        for j in range(n):
            if j == i:
                continue
            value = scale * scores[i, j] - price[j]
            if has_bonus:
                value += bonus[i, j]
            if value > best[0]:
                k = 1
                while k < n_others and best[k] < value:
                    best[k - 1] = best[k]
                    k += 1
                best[k - 1] = value
        total = 0.0
        for k in range(n_others):
            total += best[k] - price[i]
        out[i] = max(0.0, total / 2.0)


@njit(cache=True, nogil=True)
def positive_stays(
    pairs: PairValues,
    cost: FloatArray,
    per_node: float,
    stays: StayTables,
    room_cost: FloatArray,
    bar: float,
    roots: IntArray,
    values: FloatArray,
) -> int:
    """List pairs with a room in which one of them may stay, worth more than ``bar`` there.

    A pair has the value scale scores_ij + bonus_ij - per_node (cost_i + cost_j) - room_cost of the
    room; atoms that may stay in it cost their refund less. ``roots`` (k, 3): first, second, room;
    and ``values`` (k,) are filled up to their length. Return the number of pairs, which may be
    larger.
    """
    scores, bonus, scale = pairs
    _, _, _, room_start, room_atom, room_refund = stays
    n, count = len(cost), 0
    price = cost.copy()
    has_bonus = len(bonus) > 0
    place = np.full(n, -1, dtype=np.int64)  # the atom itself if it may stay in this room
    for room in range(len(room_start) - 1):
        first, end = room_start[room], room_start[room + 1]
        for e in range(first, end):
            price[room_atom[e]] = cost[room_atom[e]] - room_refund[e]
            place[room_atom[e]] = room_atom[e]
        for e in range(first, end):
            a = room_atom[e]
            least = bar + per_node * price[a] + room_cost[room]
            for v in range(n):
                if v == a or (place[v] >= 0 and v < a):  # two that may stay are listed once
                    continue
                value = scale * scores[a, v] - per_node * price[v]
                if has_bonus:
                    value += bonus[a, v]
                if value > least:
                    if count < len(roots):
                        roots[count, 0], roots[count, 1], roots[count, 2] = a, v, room
                        values[count] = value - least + bar
                    count += 1
        for e in range(first, end):
            price[room_atom[e]] = cost[room_atom[e]]
            place[room_atom[e]] = -1
    return count
