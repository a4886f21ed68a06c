"""Groups found greedily: every atom looks for roommates among its best candidates.

A heuristic for many kinds of rooms: its time does not grow with the number of pairs, and it looks
only at the rooms that are cheapest for each atom.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from engine.core.arguments import FloatArray, IntArray
from engine.kernels.compiling import inner
from engine.kernels.room_tables import PairValues, StayTables

STARTS = 3  # first roommates tried, the best first
KEPT = 4  # groups kept of each atom


@njit(cache=True, nogil=True)
def best_candidates(pairs: PairValues, price: FloatArray, near: IntArray) -> None:
    """Write the best roommates of every atom at given prices into ``near`` (n, k), -1 for none."""
    scores, bonus, scale = pairs
    n, width = near.shape
    value = np.empty(width)
    for i in range(n):
        count, lowest = 0, 0
        for j in range(n):
            worth = scale * scores[i, j] - price[j]
            if len(bonus) > 0:
                worth += bonus[i, j]
            if j == i or worth == -np.inf:
                continue
            if count < width:
                near[i, count], value[count] = j, worth
                if worth < value[lowest]:
                    lowest = count
                count += 1
            elif worth > value[lowest]:
                near[i, lowest], value[lowest] = j, worth
                for k in range(width):
                    if value[k] < value[lowest]:
                        lowest = k
        near[i, count:] = -1


class Market(NamedTuple):
    """Values of pairs and prices of atoms for groups of one number of people."""

    pairs: PairValues
    sizes: IntArray  # (n,) people
    cost: FloatArray  # (V, n) prices of atoms in every view, inf where not allowed
    base: FloatArray  # (V,) prices of the rooms
    near: IntArray  # (n, k) candidates of every atom, -1 for none


@njit(cache=True, nogil=True)
def find_greedily(
    market: Market,
    stays: StayTables,
    row_view: IntArray,
    row_base: FloatArray,
    n_people: int,
    least: float,
    n_views: int,
    groups: IntArray,
    values: FloatArray,
) -> None:
    """Find groups of m atoms and ``n_people`` people worth more than ``least``.

    Parameters
    ----------
    market : Market; its ``cost`` is changed meanwhile.
    stays : StayTables; its rooms are rows.
    row_view, row_base : (rows,) view of each room, -1 for rooms that do not fit, and its price.
    n_views : number of views tried for each atom, those cheapest for it first.
    groups : (n, KEPT, m + 2) written: members, view, row or -1; values : (n, KEPT) theirs, -inf for
        none.
    """
    sizes, cost, base = market.sizes, market.cost, market.base
    n, n_members = len(sizes), groups.shape[2] - 2
    worth, joined = np.empty(market.near.shape[1]), np.empty(market.near.shape[1])
    members, dear = np.empty(n_members, dtype=np.int64), np.empty(len(base))
    values[:] = -np.inf
    for i in range(n):
        if n_people - sizes[i] < n_members - 1:
            continue
        for v in range(len(base)):
            dear[v] = cost[v, i] + base[v]
        for _ in range(min(n_views, len(base))):
            v = int(np.argmin(dear))
            if dear[v] == np.inf:
                break
            dear[v] = np.inf
            _complete(
                *(market, i, v, -1, base[v], n_people, least),
                *(worth, joined, members, groups, values),
            )
        for e in range(stays.start[i], stays.start[i + 1]):
            row = stays.room[e]
            v = row_view[row]
            if v < 0 or cost[v, i] == np.inf:
                continue
            for k in range(stays.room_start[row], stays.room_start[row + 1]):
                cost[v, stays.room_atom[k]] -= stays.room_refund[k]
            _complete(
                *(market, i, v, row, row_base[row], n_people, least),
                *(worth, joined, members, groups, values),
            )
            for k in range(stays.room_start[row], stays.room_start[row + 1]):
                cost[v, stays.room_atom[k]] += stays.room_refund[k]


@inner
def _complete(
    market: Market,
    i: int,
    view: int,
    row: int,
    base: float,
    n_people: int,
    least: float,
    worth: FloatArray,
    joined: FloatArray,
    members: IntArray,
    groups: IntArray,
    values: FloatArray,
) -> None:
    """Complete an atom to groups in one view, from each of its best roommates there."""
    pairs, sizes, cost, _, near = market
    scores, bonus, scale = pairs
    m, width = len(members), near.shape[1]
    if m == 1:
        if sizes[i] == n_people and -base - cost[view, i] > least:
            members[0] = i
            _remember(i, view, row, -base - cost[view, i], members, groups, values)
        return
    for k in range(width):
        j = near[i, k]
        worth[k] = -np.inf
        if j >= 0 and cost[view, j] < np.inf:
            worth[k] = scale * scores[i, j] - cost[view, j]
            if len(bonus) > 0:
                worth[k] += bonus[i, j]
    for _ in range(STARTS):
        members[0], people, total = i, sizes[i], -base - cost[view, i]
        joined[:] = worth
        first = -1
        for depth in range(1, m):
            best, chosen = -np.inf, -1
            for k in range(width):
                if joined[k] > best:
                    left = n_people - people - sizes[near[i, k]]
                    if left == 0 if depth + 1 == m else left >= m - depth - 1:
                        best, chosen = joined[k], k
            if chosen < 0:
                total = -np.inf
                break
            if depth == 1:
                first = chosen
            j = near[i, chosen]
            members[depth] = j
            people, total = people + sizes[j], total + best
            joined[chosen] = -np.inf
            if depth + 1 < m:
                for k in range(width):
                    if joined[k] > -np.inf:
                        joined[k] += scale * scores[j, near[i, k]]
                        if len(bonus) > 0:
                            joined[k] += bonus[j, near[i, k]]
        if first < 0:
            return
        worth[first] = -np.inf  # the next group starts with another roommate
        if total > least:
            _remember(i, view, row, total, members, groups, values)


@inner
def _remember(
    i: int,
    view: int,
    row: int,
    total: float,
    members: IntArray,
    groups: IntArray,
    values: FloatArray,
) -> None:
    """Keep a group if it is among the best of the atom that it was found from, and new."""
    lowest, m = 0, len(members)
    for k in range(values.shape[1]):
        if values[i, k] < values[i, lowest]:
            lowest = k
    if total <= values[i, lowest]:
        return
    for k in range(values.shape[1]):
        if values[i, k] == -np.inf or groups[i, k, m] != view or groups[i, k, m + 1] != row:
            continue
        shared = 0
        for a in range(m):
            for b in range(m):
                shared += groups[i, k, a] == members[b]
        if shared == m:
            return
    values[i, lowest] = total
    groups[i, lowest, :m] = members
    groups[i, lowest, m], groups[i, lowest, m + 1] = view, row
