"""Groups of atoms with positive reduced value: positive pairs, extended one atom at a time.

The reduced value of a group of m atoms is a sum over its pairs once node prices are spread over
them, a_ij = P_ij - (price_i + price_j) / (m - 1) - w / (m (m - 1) / 2). A group whose sum exceeds d
holds a subset of k atoms whose sum exceeds d k (k - 1) / (m (m - 1)): the one without the atom that
contributes least. So every such group is reached from a pair by adding, at each step, an atom that
contributes least to the new set, and each group along one path only.
"""

import numpy as np
from numba import njit

from engine.core.arguments import FloatArray, IntArray
from engine.kernels.compiling import inner

KEPT = 4  # best groups remembered an atom; more enter the master in later rounds


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

    ``bonus`` is (n, n), or (0, 0) for none. ``out`` (k, 2) is filled as far as it goes; the number
    of pairs is returned, which may be larger.
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

    Summed over the atoms of a group it bounds the group's reduced value, whatever the group.
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
def _is_least(
    within: FloatArray,
    members: IntArray,
    count: int,
    joins: FloatArray,
    total: float,
    new: int,
    price: FloatArray,
    share: float,
    slack: float,
) -> bool:
    """Whether the new atom contributes least to the set.

    Of those within ``slack`` of the least, so that rounding decides nothing, the one with the
    largest index counts. ``within[k]`` sums the pairs of member k inside the old set, ``joins`` are
    the pair values of the new atom with the members, ``total`` their sum.
    """
    own = total - share * price[new]
    least = own
    for k in range(count):
        least = min(least, within[k] + joins[k] - share * price[members[k]])
    if own > least + slack:
        return False
    for k in range(count):
        other = within[k] + joins[k] - share * price[members[k]]
        if members[k] > new and other <= least + slack:
            return False
    return True


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
    budget : sets looked at in one call; another call goes on with the next root.
    root_budget : sets looked at below one root; what is cut off is counted.
    top : (n, KEPT) best values an atom, ascending; updated.
    groups : (g, n_members + 1) the groups found and their room; values : (g,).
    progress : (4,) next root, groups written, sets looked at, roots cut off. Groups that no longer
        fit are noted in ``top`` all the same.
    """
    # One long function on purpose: with its steps in functions of their own a search takes a
    # quarter longer, and more than twice as long where these are handed their arrays in tuples.
    n, m = len(full_price), n_members
    price = full_price.copy()
    end = progress[2] + budget
    pairs_of_all = m * (m - 1) / 2.0
    acc = np.zeros((m, n))
    within = np.zeros((m + 1, m + 1))
    members = np.full(m + 1, -1, dtype=np.int64)
    joins = np.zeros(m + 1)
    room_at = np.full(m + 1, -1, dtype=np.int64)
    psum, nsum, people = np.zeros(m + 1), np.zeros(m + 1), np.zeros(m + 1, dtype=np.int64)
    child = np.empty((m, n + len(stay_room) + 1), dtype=np.int64)
    child_room = np.empty((m, n + len(stay_room) + 1), dtype=np.int64)
    child_value = np.empty((m, n + len(stay_room) + 1))
    n_child, next_child = np.zeros(m, dtype=np.int64), np.zeros(m, dtype=np.int64)
    has_bonus, has_stays = len(bonus) > 0, len(stay_room) > 0
    while progress[0] < len(roots):
        if progress[2] >= end:
            return
        root_end = progress[2] + root_budget
        # The pair that everything below it extends.
        i, j, room = roots[progress[0], 0], roots[progress[0], 1], roots[progress[0], 2]
        progress[0] += 1
        _enter(room, price, full_price, room_start, room_atom, room_refund)
        value = scale * scores[i, j]
        if has_bonus:
            value += bonus[i, j]
        members[0], members[1] = i, j
        within[2, 0] = within[2, 1] = value
        psum[2], nsum[2], people[2], room_at[2] = (
            value,
            price[i] + price[j],
            sizes[i] + sizes[j],
            room,
        )
        for v in range(n):
            acc[1, v] = scale * scores[i, v]
            if has_bonus:
                acc[1, v] += bonus[i, v]
        depth = 2
        n_child[0] = 0
        fresh = True
        while depth >= 2:
            room = room_at[depth]
            cost = base + (room_base[room] if room >= 0 else 0.0)
            if fresh:
                # A set that was just reached: which atoms it may be extended by.
                progress[2] += 1
                last = members[depth - 1]
                row = acc[depth - 1]
                before = acc[depth - 2] if depth > 2 else acc[1]
                if depth > 2:
                    for v in range(n):
                        row[v] = before[v] + scale * scores[last, v]
                        if has_bonus:
                            row[v] += bonus[last, v]
                else:
                    for v in range(n):
                        row[v] += scale * scores[last, v]
                        if has_bonus:
                            row[v] += bonus[last, v]
                k = depth + 1
                need = least * k * (k - 1) / (m * (m - 1.0)) - slack
                per_node = (k - 1.0) / (m - 1.0)
                part = k * (k - 1) / 2.0 / pairs_of_all
                uneven = (k - 2.0) / (m - 1.0)
                rest = psum[depth] - per_node * nsum[depth] - part * cost
                bar = need - rest
                count = 0
                remaining = m - k
                for v in range(n):
                    if row[v] - per_node * price[v] > bar:
                        left = n_people - people[depth] - sizes[v]
                        if left < remaining or (remaining == 0 and left != 0):
                            continue
                        if _joins(members, depth, v, scores, bonus, scale, joins) and _is_least(
                            within[depth],
                            members,
                            depth,
                            joins,
                            row[v],
                            v,
                            price,
                            uneven,
                            slack,
                        ):
                            child[depth - 1, count] = v
                            child_room[depth - 1, count] = room
                            child_value[depth - 1, count] = row[v] - per_node * price[v] + rest
                            count += 1
                if has_stays and room < 0:
                    for v in range(n):
                        if stay_start[v] == stay_start[v + 1] or price[v] == np.inf:
                            continue
                        left = n_people - people[depth] - sizes[v]
                        if left < remaining or (remaining == 0 and left != 0):
                            continue
                        for e in range(stay_start[v], stay_start[v + 1]):
                            fixed = stay_room[e]
                            gain = row[v] - per_node * (price[v] - stay_refund[e])
                            gain -= part * room_base[fixed]
                            if gain <= bar:
                                continue
                            if _holds(members, depth, fixed, stay_start, stay_room):
                                continue
                            price[v] = full_price[v] - stay_refund[e]
                            if _joins(members, depth, v, scores, bonus, scale, joins) and _is_least(
                                within[depth],
                                members,
                                depth,
                                joins,
                                row[v],
                                v,
                                price,
                                uneven,
                                slack,
                            ):
                                child[depth - 1, count] = v
                                child_room[depth - 1, count] = fixed
                                child_value[depth - 1, count] = gain + rest
                                count += 1
                            price[v] = full_price[v]
                if count > width:
                    _put_best_first(
                        child[depth - 1],
                        child_room[depth - 1],
                        child_value[depth - 1],
                        count,
                        width,
                    )
                    count = width
                if k == m:
                    # Whole groups: noted, not followed.
                    for c in range(count):
                        members[depth] = child[depth - 1, c]
                        is_kept = _remember(members, m, child_value[depth - 1, c], top)
                        if (is_kept or keeps_all) and progress[1] < len(groups):
                            g = progress[1]
                            for x in range(m):
                                groups[g, x] = members[x]
                            groups[g, m] = child_room[depth - 1, c]
                            values[g] = child_value[depth - 1, c]
                            progress[1] += 1
                        elif keeps_all:
                            progress[3] += 1
                    count = 0
                n_child[depth - 1], next_child[depth - 1] = count, 0
                fresh = False
            if next_child[depth - 1] < n_child[depth - 1] and progress[2] >= root_end:
                progress[3] += 1
                next_child[depth - 1] = n_child[depth - 1]
            if next_child[depth - 1] < n_child[depth - 1]:
                c = next_child[depth - 1]
                next_child[depth - 1] += 1
                v, fixed = child[depth - 1, c], child_room[depth - 1, c]
                if fixed != room:
                    _enter(fixed, price, full_price, room_start, room_atom, room_refund)
                _joins(members, depth, v, scores, bonus, scale, joins)
                total = 0.0
                for x in range(depth):
                    within[depth + 1, x] = within[depth, x] + joins[x]
                    total += joins[x]
                within[depth + 1, depth] = total
                members[depth] = v
                psum[depth + 1] = psum[depth] + total
                nsum[depth + 1] = nsum[depth] + price[v]
                people[depth + 1] = people[depth] + sizes[v]
                room_at[depth + 1] = fixed
                depth += 1
                fresh = True
            else:
                # Nothing left below this set; the room that it fixed is free again.
                parent = room_at[depth - 1] if depth > 2 else -1
                if room != parent:
                    _leave(room, price, full_price, room_start, room_atom)
                depth -= 1


@inner
def _put_best_first(
    child: IntArray, room: IntArray, value: FloatArray, count: int, width: int
) -> None:
    """Bring the best ``width`` extensions to the front."""
    for k in range(width):
        best = k
        for c in range(k + 1, count):
            if value[c] > value[best]:
                best = c
        child[k], child[best] = child[best], child[k]
        room[k], room[best] = room[best], room[k]
        value[k], value[best] = value[best], value[k]


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


@inner
def _joins(
    members: IntArray,
    count: int,
    new: int,
    scores: FloatArray,
    bonus: FloatArray,
    scale: float,
    out: FloatArray,
) -> bool:
    """Write the pair values of a new atom with the members; False if it is one of them."""
    for k in range(count):
        if members[k] == new:
            return False
        value = scale * scores[members[k], new]
        if len(bonus) > 0:
            value += bonus[members[k], new]
        out[k] = value
    return True
