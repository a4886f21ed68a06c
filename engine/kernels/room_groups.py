"""Groups of atoms with positive reduced value: positive pairs, extended one atom at a time.

The reduced value of a group of m atoms is a sum over its pairs once node prices are spread over
them, a_ij = P_ij - (price_i + price_j) / (m - 1) - w / (m (m - 1) / 2). A group whose sum exceeds d
contains a subset of k atoms whose sum exceeds d k (k - 1) / (m (m - 1)): the group without the atom
that contributes least. So every such group is reached from a pair by adding, at each step, an atom
that contributes least to the new set, and each group along one path only.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from engine.core.arguments import FloatArray, IntArray
from engine.kernels.compiling import inner, step
from engine.kernels.room_sets import (
    SET,
    SetPath,
    add_pairs,
    append_atom,
    can_complete,
    is_least,
    make_levels,
    weigh_joining,
)
from engine.kernels.room_tables import PairValues, StayTables

KEPT = 4  # best groups remembered per atom; more enter the master in later rounds

NEXT_ROOT, WRITTEN, WORK, CUT_OFF = 0, 1, 2, 3  # indices of ``progress``
WEIGHING = 8  # cost of weighing one extension, in entries read

EXTENSION = np.dtype([("atom", np.int64), ("room", np.int64), ("value", np.float64)])
"""Extension of a set: an atom, the room in which the new set stays, and its value."""


class GroupShape(NamedTuple):
    """Size of the groups searched for, and the least value of one."""

    n_members: int
    n_people: int
    least: float
    base: float  # price of the room
    slack: float  # allowance for rounding errors


class Effort(NamedTuple):
    """Limits of a search."""

    keeps_all: bool  # whether every group is written, or only those among the best few of an atom
    budget: int  # work of one call, in entries read; another call continues with the next root
    root_budget: int  # work below one root; roots cut off are counted, and end the search


class FoundGroups(NamedTuple):
    """Groups found by all calls of a search."""

    top: FloatArray  # (n, KEPT) best values per atom, ascending; also of groups without space
    groups: IntArray  # (g, at least n_members + 1) the groups and their room
    values: FloatArray  # (g,)
    progress: IntArray  # (4,) next root, groups written, work, roots cut off


@njit(cache=True, nogil=True)
def extend_pairs(
    pairs: PairValues,
    sizes: IntArray,
    full_price: FloatArray,
    stays: StayTables,
    room_base: FloatArray,
    shape: GroupShape,
    roots: IntArray,
    effort: Effort,
    found: FoundGroups,
) -> None:
    """Reach every group of a shape worth more than its least value, from pairs.

    Parameters
    ----------
    sizes : (n,) people of each atom; full_price : (n,) inf for atoms that are not allowed.
    stays : rooms in which atoms may stay, empty for none; room_base : (rooms,) their extra prices.
    roots : (r, 3) pairs and the room in which they stay, -1 for any room of the kind.
    found : FoundGroups; updated.
    """
    m, n_people, least, base, slack = shape
    progress, n = found.progress, len(full_price)
    price = full_price.copy()
    end = progress[WORK] + effort.budget
    levels, sets = make_levels(m, least, slack), np.zeros(m, dtype=SET)
    extensions = np.empty((m, n + len(stays.room)), dtype=EXTENSION)
    members, sums = np.full(m, -1, dtype=np.int64), np.zeros((m, n))
    path = SetPath(members, np.zeros(m), np.zeros((m, m)), sums, sets)
    sets[0].room, sets[0].people = -1, n_people
    while progress[NEXT_ROOT] < len(roots) and progress[WORK] < end and progress[CUT_OFF] == 0:
        root = progress[NEXT_ROOT]
        first, fixed = roots[root, 0], roots[root, 2]
        progress[NEXT_ROOT] += 1
        root_end = progress[WORK] + effort.root_budget
        if members[0] != first:  # roots with the same first atom are consecutive
            add_pairs(first, pairs, sums[0], sums[1])
        _enter(fixed, price, full_price, stays)
        for k in range(2):
            append_atom(path, k, roots[root, k], fixed, pairs, sizes, price)
        depth, is_new = 2, True
        while depth >= 2:
            room = sets[depth].room
            if is_new:
                progress[WORK] += n
                add_pairs(members[depth - 1], pairs, sums[depth - 1], sums[depth])
                cost = base + (room_base[room] if room >= 0 else 0.0)
                charge = levels[depth + 1].per_node * sets[depth].price
                sets[depth].rest = sets[depth].worth - charge - levels[depth + 1].part * cost
                progress[WORK] += WEIGHING * _list_atoms(
                    path, depth, levels, slack, pairs, sizes, price, extensions[depth]
                )
                if room < 0 and len(stays.room) > 0:
                    progress[WORK] += WEIGHING * _list_stays(
                        path,
                        depth,
                        levels,
                        slack,
                        pairs,
                        sizes,
                        price,
                        full_price,
                        stays,
                        room_base,
                        extensions[depth],
                    )
                if depth + 1 == m:
                    whole = extensions[depth, : sets[depth].count]
                    _note_groups(whole, effort.keeps_all, members, found)
                    sets[depth].count = 0
                is_new = False
            following = sets[depth].following
            if following < sets[depth].count and progress[WORK] < root_end:
                sets[depth].following += 1
                new, fixed = extensions[depth, following].atom, extensions[depth, following].room
                if fixed != room:
                    _enter(fixed, price, full_price, stays)
                append_atom(path, depth, new, fixed, pairs, sizes, price)
                depth, is_new = depth + 1, True
            else:
                if following < sets[depth].count:
                    progress[CUT_OFF] += 1
                # Nothing left below this set; its fixed room is free again.
                if depth == 2 or room != sets[depth - 1].room:
                    _leave(room, price, full_price, stays)
                depth -= 1


@step
def _list_atoms(
    path: SetPath,
    depth: int,
    levels: NDArray[Any],
    slack: float,
    pairs: PairValues,
    sizes: IntArray,
    price: FloatArray,
    out: NDArray[Any],
) -> int:
    """List the atoms that may extend a set in its room, or in any.

    Return the number of atoms weighed.
    """
    members, joins, within, sums, sets = path
    m, rest, room, people = len(members), sets[depth].rest, sets[depth].room, sets[depth].people
    per_node, uneven = levels[depth + 1].per_node, levels[depth + 1].uneven
    bar = levels[depth + 1].need - rest
    row, own, count, weighed = sums[depth], within[depth], 0, 0
    for v in range(len(row)):
        gain = row[v] - per_node * price[v]
        if gain <= bar or not can_complete(people - sizes[v], m - depth - 1):
            continue
        weighed += 1
        if weigh_joining(members, depth, v, pairs, joins) and is_least(
            own, members, depth, joins, row[v], v, price, uneven, slack
        ):
            out[count].atom, out[count].room, out[count].value = v, room, gain + rest
            count += 1
    sets[depth].count, sets[depth].following = count, 0
    return weighed


@step
def _list_stays(
    path: SetPath,
    depth: int,
    levels: NDArray[Any],
    slack: float,
    pairs: PairValues,
    sizes: IntArray,
    price: FloatArray,
    full_price: FloatArray,
    stays: StayTables,
    room_base: FloatArray,
    out: NDArray[Any],
) -> int:
    """Add to the list the extensions of a set without fixed room by atoms that may stay in a room.

    Return the number of extensions weighed.
    """
    members, joins, within, sums, sets = path
    m, rest, people = len(members), sets[depth].rest, sets[depth].people
    per_node, uneven = levels[depth + 1].per_node, levels[depth + 1].uneven
    bar = levels[depth + 1].need - rest
    row, own, count, weighed = sums[depth], within[depth], sets[depth].count, 0
    for v in range(len(row)):
        if price[v] == np.inf or not can_complete(people - sizes[v], m - depth - 1):
            continue
        for e in range(stays.start[v], stays.start[v + 1]):
            fixed = stays.room[e]
            gain = row[v] - per_node * (price[v] - stays.refund[e])
            gain -= levels[depth + 1].part * room_base[fixed]
            if gain <= bar or _holds(members, depth, fixed, stays):
                continue
            weighed += 1
            price[v] = full_price[v] - stays.refund[e]
            if weigh_joining(members, depth, v, pairs, joins) and is_least(
                own, members, depth, joins, row[v], v, price, uneven, slack
            ):
                out[count].atom, out[count].room, out[count].value = v, fixed, gain + rest
                count += 1
            price[v] = full_price[v]
    sets[depth].count = count
    return weighed


@inner
def _note_groups(
    extensions: NDArray[Any], keeps_all: bool, members: IntArray, found: FoundGroups
) -> None:
    """Write the complete groups made by extensions of a set with one atom less."""
    top, groups, values, progress = found
    m = len(members)
    for c in range(len(extensions)):
        last = extensions[c]
        members[m - 1] = last.atom
        is_kept = _remember(members, m, last.value, top)
        if (is_kept or keeps_all) and progress[WRITTEN] < len(groups):
            for k in range(m):
                groups[progress[WRITTEN], k] = members[k]
            groups[progress[WRITTEN], m] = last.room
            values[progress[WRITTEN]] = last.value
            progress[WRITTEN] += 1
        elif keeps_all:
            progress[CUT_OFF] += 1


@inner
def _remember(
    members: IntArray,
    count: int,
    value: float,
    top: FloatArray,
) -> bool:
    """Record a group's value for its atoms; return True if it is among the best few of one."""
    is_kept = False
    for k in range(count):
        row = top[members[k]]
        if value > row[0]:
            is_kept = True
            place = 1
            while place < len(row) and row[place] < value:
                row[place - 1] = row[place]
                place += 1
            row[place - 1] = value
    return is_kept


@inner
def _enter(room: int, price: FloatArray, full_price: FloatArray, stays: StayTables) -> None:
    """Lower the prices of atoms that may stay in the room."""
    if room >= 0:
        for e in range(stays.room_start[room], stays.room_start[room + 1]):
            atom = stays.room_atom[e]
            price[atom] = full_price[atom] - stays.room_refund[e]


@inner
def _leave(room: int, price: FloatArray, full_price: FloatArray, stays: StayTables) -> None:
    """Restore the prices of atoms that may stay in the room."""
    if room >= 0:
        for e in range(stays.room_start[room], stays.room_start[room + 1]):
            price[stays.room_atom[e]] = full_price[stays.room_atom[e]]


@inner
def _holds(members: IntArray, count: int, room: int, stays: StayTables) -> bool:
    """Return True if a member may stay in the room: such sets are reached with it fixed."""
    for k in range(count):
        for e in range(stays.start[members[k]], stays.start[members[k] + 1]):
            if stays.room[e] == room:
                return True
    return False
