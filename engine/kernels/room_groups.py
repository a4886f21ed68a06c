"""Groups of atoms with positive reduced value: positive pairs, extended one atom at a time.

The reduced value of a group of m atoms is a sum over its pairs once node prices are spread over
them, a_ij = P_ij - (price_i + price_j) / (m - 1) - w / (m (m - 1) / 2). A group whose sum exceeds d
holds a subset of k atoms whose sum exceeds d k (k - 1) / (m (m - 1)): the one without the atom that
contributes least. So every such group is reached from a pair by adding, at each step, an atom that
contributes least to the new set, and each group along one path only.
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

KEPT = 4  # best groups remembered an atom; more enter the master in later rounds

NEXT_ROOT, WRITTEN, WORK, CUT_OFF = 0, 1, 2, 3  # what ``progress`` counts
WEIGHING = 8  # entries that weighing one extension takes as long as

EXTENSION = np.dtype([("atom", np.int64), ("room", np.int64), ("value", np.float64)])
"""What a set may be extended by: an atom, the room that the new set stays in, and its value."""


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
    width: int,
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
    scores, bonus : (n, n) pair scores, and what is added to scale * scores; bonus may be (0, 0).
    sizes : (n,) people of each atom; full_price : (n,) inf for atoms that are not allowed.
    base : price of the room; room_base : what more a room costs that atoms may stay in.
    slack : differences that rounding may have made.
    roots : (r, 3) pairs and the room that they stay in, -1 for any room of the kind.
    stay_start, stay_room, stay_refund : rooms that an atom may stay in, and what it then gains;
        room_start, room_atom, room_refund : the same by room. All empty for none.
    width : extensions followed from a set, best first; n for an exact search.
    keeps_all : whether every group is written, or only those among the best few of an atom.
    budget : work of one call, in entries read; another call goes on with the next root.
    root_budget : work below one root; what is cut off is counted, and nothing follows it.
    top : (n, KEPT) best values an atom, ascending; updated.
    groups : (g, n_members + 1) the groups found and their room; values : (g,).
    progress : (4,) next root, groups written, work, roots cut off. Groups that no longer fit are
        noted in ``top`` all the same.
    """
    n, m = len(full_price), n_members
    price, stays = full_price.copy(), (stay_start, stay_room, stay_refund, room_base)
    end = progress[WORK] + budget
    levels, sets = make_levels(m, least, slack), np.zeros(m, dtype=SET)
    extensions = np.empty((m, n + len(stay_room)), dtype=EXTENSION)
    # In row k: sums of the pairs of each of the first k members, and of any atom, with all of them.
    within, sums = np.zeros((m, m)), np.zeros((m, n))
    members, joins = np.full(m, -1, dtype=np.int64), np.zeros(m)
    sets[0].room, sets[0].people = -1, n_people
    while progress[NEXT_ROOT] < len(roots) and progress[WORK] < end and progress[CUT_OFF] == 0:
        root = progress[NEXT_ROOT]
        first, fixed = roots[root, 0], roots[root, 2]
        progress[NEXT_ROOT] += 1
        root_end = progress[WORK] + root_budget
        if members[0] != first:  # roots that begin alike follow one another
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
                if sets[depth].count > width:
                    _put_best_first(extensions[depth], sets[depth].count, width)
                    sets[depth].count = width
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
                # Nothing left below this set; the room that it fixed is free again.
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
    """List the atoms that a set may be extended by in the room that it is in, or in any.

    Returns how many were weighed.
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
    """List besides the atoms that a set in any room may be extended by where they may stay.

    ``stays``: the first place of each atom, the rooms and refunds there, and what rooms cost more.
    Returns how many were weighed.
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
def _put_best_first(extensions: NDArray[Any], count: int, width: int) -> None:
    """Bring the best ``width`` extensions to the front."""
    for k in range(width):
        best = k
        for c in range(k + 1, count):
            if extensions[c].value > extensions[best].value:
                best = c
        front, other = extensions[k], extensions[best]
        front.atom, other.atom = other.atom, front.atom
        front.room, other.room = other.room, front.room
        front.value, other.value = other.value, front.value


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
    """Write the whole groups that extensions make of a set of one atom less."""
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
    """Note a group's value with its atoms; whether it is among the best few of one of them."""
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
    """Lower the prices of those who may stay in the room."""
    if room >= 0:
        for e in range(room_start[room], room_start[room + 1]):
            price[room_atom[e]] = full_price[room_atom[e]] - room_refund[e]


@inner
def _leave(
    room: int, price: FloatArray, full_price: FloatArray, room_start: IntArray, room_atom: IntArray
) -> None:
    """Restore the prices of those who may stay in the room."""
    if room >= 0:
        for e in range(room_start[room], room_start[room + 1]):
            price[room_atom[e]] = full_price[room_atom[e]]


@inner
def _holds(
    members: IntArray, count: int, room: int, stay_start: IntArray, stay_room: IntArray
) -> bool:
    """Whether one of the members may stay in the room: such sets are reached with it fixed."""
    for k in range(count):
        for e in range(stay_start[members[k]], stay_start[members[k] + 1]):
            if stay_room[e] == room:
                return True
    return False
