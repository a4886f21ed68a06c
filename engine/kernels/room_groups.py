"""Groups of atoms with positive reduced value: positive pairs, extended one atom at a time.

The reduced value of a group of m atoms is a sum over its pairs once node prices are spread over
them, a_ij = P_ij - (price_i + price_j) / (m - 1) - w / (m (m - 1) / 2). A group whose sum exceeds d
contains a subset of k atoms whose sum exceeds d k (k - 1) / (m (m - 1)): the group without the atom
that contributes least. So every such group is reached from a pair by adding, at each step, an atom
that contributes least to the new set, and each group along one path only.
"""

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from engine.core.arguments import FloatArray, IntArray
from engine.kernels.compiling import inner, step
from engine.kernels.room_sets import (
    SET,
    add_pairs,
    append_atom,
    can_complete,
    is_least,
    make_levels,
    weigh_joining,
)

KEPT = 4  # best groups remembered per atom; more enter the master in later rounds

NEXT_ROOT, WRITTEN, WORK, CUT_OFF = 0, 1, 2, 3  # indices of ``progress``
WEIGHING = 8  # cost of weighing one extension, in entries read

EXTENSION = np.dtype([("atom", np.int64), ("room", np.int64), ("value", np.float64)])
"""Extension of a set: an atom, the room in which the new set stays, and its value."""


@njit(cache=True, nogil=True)
def extend_pairs(
    scores: FloatArray,
    bonus: FloatArray,
    sizes: IntArray,
    full_price: FloatArray,
    scale: float,
    base: float,
    slack: float,
    n_members: int,
    n_people: int,
    least: float,
    roots: IntArray,
    stay_start: IntArray,
    stay_room: IntArray,
    stay_refund: FloatArray,
    room_start: IntArray,
    room_atom: IntArray,
    room_refund: FloatArray,
    room_base: FloatArray,
    keeps_all: bool,
    budget: int,
    root_budget: int,
    top: FloatArray,
    groups: IntArray,
    values: FloatArray,
    progress: IntArray,
) -> None:
    """Reach every group of ``n_members`` atoms and ``n_people`` people worth more than ``least``.

    Parameters
    ----------
    scores, bonus : (n, n) pair scores, and the sum added to scale * scores; bonus may be (0, 0).
    sizes : (n,) people of each atom; full_price : (n,) inf for atoms that are not allowed.
    base : price of the room; room_base : extra price of a room in which atoms may stay.
    slack : allowance for rounding errors.
    roots : (r, 3) pairs and the room in which they stay, -1 for any room of the kind.
    stay_start, stay_room, stay_refund : rooms in which an atom may stay, and its gain there;
        room_start, room_atom, room_refund : the same by room. All empty for none.
    keeps_all : whether every group is written, or only those among the best few of an atom.
    budget : work of one call, in entries read; another call continues with the next root.
    root_budget : work below one root; roots cut off are counted, and end the search.
    top : (n, KEPT) best values per atom, ascending; updated.
    groups : (g, n_members + 1) the groups found and their room; values : (g,).
    progress : (4,) next root, groups written, work, roots cut off. Groups without space are still
        recorded in ``top``.
    """
    n, m = len(full_price), n_members
    price, stays = full_price.copy(), (stay_start, stay_room, stay_refund, room_base)
    end = progress[WORK] + budget
    levels, sets = make_levels(m, least, slack), np.zeros(m, dtype=SET)
    extensions = np.empty((m, n + len(stay_room)), dtype=EXTENSION)
    # Row k: pair sums with the first k members, of each of these members and of any atom.
    within, sums = np.zeros((m, m)), np.zeros((m, n))
    members, joins = np.full(m, -1, dtype=np.int64), np.zeros(m)
    sets[0].room, sets[0].people = -1, n_people
    while progress[NEXT_ROOT] < len(roots) and progress[WORK] < end and progress[CUT_OFF] == 0:
        root = progress[NEXT_ROOT]
        first, fixed = roots[root, 0], roots[root, 2]
        progress[NEXT_ROOT] += 1
        root_end = progress[WORK] + root_budget
        if members[0] != first:  # roots with the same first atom are consecutive
            add_pairs(first, scores, bonus, scale, sums[0], sums[1])
        _enter(fixed, price, full_price, room_start, room_atom, room_refund)
        for k in range(2):
            append_atom(
                *(k, roots[root, k], fixed, scores, bonus, scale, sizes, price),
                *(members, joins, within, sets),
            )
        depth, is_new = 2, True
        while depth >= 2:
            room = sets[depth].room
            if is_new:
                progress[WORK] += n
                add_pairs(members[depth - 1], scores, bonus, scale, sums[depth - 1], sums[depth])
                cost = base + (room_base[room] if room >= 0 else 0.0)
                charge = levels[depth + 1].per_node * sets[depth].price
                sets[depth].rest = sets[depth].worth - charge - levels[depth + 1].part * cost
                progress[WORK] += WEIGHING * _list_atoms(
                    *(depth, levels, slack, scores, bonus, scale, sizes, price),
                    *(members, joins, within, sums, sets, extensions[depth]),
                )
                if room < 0 and len(stay_room) > 0:
                    progress[WORK] += WEIGHING * _list_stays(
                        *(depth, levels, slack, scores, bonus, scale, sizes, price, full_price),
                        *(stays, members, joins, within, sums, sets, extensions[depth]),
                    )
                if depth + 1 == m:
                    whole = extensions[depth, : sets[depth].count]
                    _note_groups(whole, keeps_all, members, top, groups, values, progress)
                    sets[depth].count = 0
                is_new = False
            following = sets[depth].following
            if following < sets[depth].count and progress[WORK] < root_end:
                sets[depth].following += 1
                new, fixed = extensions[depth, following].atom, extensions[depth, following].room
                if fixed != room:
                    _enter(fixed, price, full_price, room_start, room_atom, room_refund)
                append_atom(
                    *(depth, new, fixed, scores, bonus, scale, sizes, price),
                    *(members, joins, within, sets),
                )
                depth, is_new = depth + 1, True
            else:
                if following < sets[depth].count:
                    progress[CUT_OFF] += 1
                # Nothing left below this set; its fixed room is free again.
                if depth == 2 or room != sets[depth - 1].room:
                    _leave(room, price, full_price, room_start, room_atom)
                depth -= 1


@step
def _list_atoms(
    depth: int,
    levels: NDArray[Any],
    slack: float,
    scores: FloatArray,
    bonus: FloatArray,
    scale: float,
    sizes: IntArray,
    price: FloatArray,
    members: IntArray,
    joins: FloatArray,
    within: FloatArray,
    sums: FloatArray,
    sets: NDArray[Any],
    out: NDArray[Any],
) -> int:
    """List the atoms that may extend a set in its room, or in any.

    Return the number of atoms weighed.
    """
    m, rest, room, people = len(members), sets[depth].rest, sets[depth].room, sets[depth].people
    per_node, uneven = levels[depth + 1].per_node, levels[depth + 1].uneven
    bar = levels[depth + 1].need - rest
    row, own, count, weighed = sums[depth], within[depth], 0, 0
    for v in range(len(row)):
        gain = row[v] - per_node * price[v]
        if gain <= bar or not can_complete(people - sizes[v], m - depth - 1):
            continue
        weighed += 1
        if weigh_joining(members, depth, v, scores, bonus, scale, joins) and is_least(
            own, members, depth, joins, row[v], v, price, uneven, slack
        ):
            out[count].atom, out[count].room, out[count].value = v, room, gain + rest
            count += 1
    sets[depth].count, sets[depth].following = count, 0
    return weighed


@step
def _list_stays(
    depth: int,
    levels: NDArray[Any],
    slack: float,
    scores: FloatArray,
    bonus: FloatArray,
    scale: float,
    sizes: IntArray,
    price: FloatArray,
    full_price: FloatArray,
    stays: tuple[IntArray, IntArray, FloatArray, FloatArray],
    members: IntArray,
    joins: FloatArray,
    within: FloatArray,
    sums: FloatArray,
    sets: NDArray[Any],
    out: NDArray[Any],
) -> int:
    """Add to the list the extensions of a set without fixed room by atoms that may stay in a room.

    ``stays``: first index of each atom, the rooms and refunds there, and the rooms' extra prices.
    Return the number of extensions weighed.
    """
    stay_start, stay_room, stay_refund, room_base = stays
    m, rest, people = len(members), sets[depth].rest, sets[depth].people
    per_node, uneven = levels[depth + 1].per_node, levels[depth + 1].uneven
    bar = levels[depth + 1].need - rest
    row, own, count, weighed = sums[depth], within[depth], sets[depth].count, 0
    for v in range(len(row)):
        if price[v] == np.inf or not can_complete(people - sizes[v], m - depth - 1):
            continue
        for e in range(stay_start[v], stay_start[v + 1]):
            fixed = stay_room[e]
            gain = row[v] - per_node * (price[v] - stay_refund[e])
            gain -= levels[depth + 1].part * room_base[fixed]
            if gain <= bar or _holds(members, depth, fixed, stay_start, stay_room):
                continue
            weighed += 1
            price[v] = full_price[v] - stay_refund[e]
            if weigh_joining(members, depth, v, scores, bonus, scale, joins) and is_least(
                own, members, depth, joins, row[v], v, price, uneven, slack
            ):
                out[count].atom, out[count].room, out[count].value = v, fixed, gain + rest
                count += 1
            price[v] = full_price[v]
    sets[depth].count = count
    return weighed


@inner
def _note_groups(
    extensions: NDArray[Any],
    keeps_all: bool,
    members: IntArray,
    top: FloatArray,
    groups: IntArray,
    values: FloatArray,
    progress: IntArray,
) -> None:
    """Write the complete groups made by extensions of a set with one atom less."""
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
def _enter(
    room: int,
    price: FloatArray,
    full_price: FloatArray,
    room_start: IntArray,
    room_atom: IntArray,
    room_refund: FloatArray,
) -> None:
    """Lower the prices of atoms that may stay in the room."""
    if room >= 0:
        for e in range(room_start[room], room_start[room + 1]):
            price[room_atom[e]] = full_price[room_atom[e]] - room_refund[e]


@inner
def _leave(
    room: int, price: FloatArray, full_price: FloatArray, room_start: IntArray, room_atom: IntArray
) -> None:
    """Restore the prices of atoms that may stay in the room."""
    if room >= 0:
        for e in range(room_start[room], room_start[room + 1]):
            price[room_atom[e]] = full_price[room_atom[e]]


@inner
def _holds(
    members: IntArray, count: int, room: int, stay_start: IntArray, stay_room: IntArray
) -> bool:
    """Return True if a member may stay in the room: such sets are reached with it fixed."""
    for k in range(count):
        for e in range(stay_start[members[k]], stay_start[members[k] + 1]):
            if stay_room[e] == room:
                return True
    return False
