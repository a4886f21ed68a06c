"""Simulated annealing over rooms of up to 8 people, by differences that read only two rooms.

A step takes time that depends on the residents of two rooms alone, not on the number of atoms.
"""

import numpy as np
from numba import njit

from engine.core.arguments import FloatArray, IntArray
from engine.kernels.compiling import inner, step
from engine.kernels.room_tables import Occupancy, RoomObjective, room_worth

FRIEND, ANYWHERE = 0.6, 0.9  # shares of moves into the room of a good roommate, and into any room
# The others exchange the rooms of two whole groups.


@step
def _draw(state: IntArray) -> int:
    """Return 62 random bits and advance the generator (xorshift, Marsaglia 2003)."""
    x = state[0]
    x ^= x << 13
    x ^= (x >> 7) & 0x1FFFFFFFFFFFFFF
    x ^= x << 17
    state[0] = x
    return int(x & 0x3FFFFFFFFFFFFFFF)


@step
def _below(state: IntArray, n: int) -> int:
    return (_draw(state) >> 20) % n


@step
def _uniform(state: IntArray) -> float:
    return ((_draw(state) >> 10) + 1) * (1.0 / (1 << 52))


@step
def _score_with(
    atom: int,
    without: int,
    room: int,
    scores: FloatArray,
    members: IntArray,
    count: IntArray,
) -> float:
    """Return the sum of an atom's scores with a room's members except one."""
    total = 0.0
    for k in range(count[room]):
        other = members[room, k]
        if other not in (atom, without):
            total += scores[atom, other]
    return total


@inner
def _put(
    atom: int,
    slot: int,
    room: int,
    members: IntArray,
    slot_of: IntArray,
    room_of: IntArray,
) -> None:
    members[room, slot], slot_of[atom], room_of[atom] = atom, slot, room


@njit(cache=True, nogil=True)
def anneal_rooms(
    objective: RoomObjective,
    occupancy: Occupancy,
    n_moves: int,
    hot: float,
    cold: float,
    near: IntArray,
    seed: IntArray,
) -> float:
    """Make moves that lose little more than the temperature, which falls from ``hot`` to ``cold``.

    Parameters
    ----------
    objective : RoomObjective
    occupancy : Occupancy; updated, but for ``sums`` and ``wishes``, which must be filled again.
    near : (n, k) good roommates of every atom; seed : (1,) state of the generator, not 0; updated.

    Returns
    -------
    float : the change of the total. Atoms outside stay outside, and nobody leaves a room for it.
    """
    scores, bonus, own_score, sizes, likes, capacity, normal, extra_price, outside, must_fill = (
        objective
    )
    room_of, _, _, scored, liked, people = occupancy
    n, rooms, largest = len(sizes), outside, 0
    has_bonus = len(bonus) > 0
    for h in range(rooms):
        largest = max(largest, capacity[h])
    members, count = np.empty((rooms, largest), dtype=np.int64), np.zeros(rooms, dtype=np.int64)
    slot_of = np.zeros(n, dtype=np.int64)
    for a in range(n):
        if room_of[a] != outside:
            _put(a, count[room_of[a]], room_of[a], members, slot_of, room_of)
            count[room_of[a]] += 1
    cooling = np.log(cold / hot) / max(n_moves, 1)
    warmth, changed = hot, 0.0
    for k in range(n_moves):
        if k % 256 == 0:
            warmth = hot * np.exp(cooling * k)
        kind = _uniform(seed)
        a = _below(seed, n)
        g = room_of[a]
        if g == outside:
            continue
        toll = warmth * np.log(_uniform(seed))  # largest loss accepted now
        if kind >= ANYWHERE:
            h = _below(seed, rooms)
            if h == g or people[h] > capacity[g] or people[g] > capacity[h]:
                continue
            if must_fill and capacity[h] != capacity[g]:
                continue
            gain = 0.0
            for j in range(count[g]):
                gain += likes[h, members[g, j]] - likes[g, members[g, j]]
            for j in range(count[h]):
                gain += likes[g, members[h, j]] - likes[h, members[h, j]]
            if extra_price > 0.0:
                extra = max(people[g] - normal[h], 0) + max(people[h] - normal[g], 0)
                extra -= max(people[g] - normal[g], 0) + max(people[h] - normal[h], 0)
                gain -= extra_price * extra
            if gain < toll:
                continue
            changed += gain
            _exchange_groups(g, h, likes, members, count, slot_of, room_of, scored, liked, people)
            continue
        b = -1
        if kind < FRIEND:
            b = near[a, _below(seed, near.shape[1])]
            h = room_of[b]
        else:
            h = _below(seed, rooms)
        if h in (g, outside):
            continue
        slot = _below(seed, capacity[h])
        c = members[h, slot] if slot < count[h] else -1
        if c >= 0 and c == b:
            slot = (slot + 1) % capacity[h]
            c = members[h, slot] if slot < count[h] else -1
            if c == b:
                continue
        size_c = sizes[c] if c >= 0 else 0
        people_g, people_h = people[g] - sizes[a] + size_c, people[h] + sizes[a] - size_c
        if people_g > capacity[g] or people_h > capacity[h]:
            continue
        if must_fill and size_c != sizes[a]:
            continue
        like_g, like_h = liked[g] - likes[g, a], liked[h] + likes[h, a]
        score_g = scored[g] - own_score[a] - _score_with(a, a, g, scores, members, count)
        score_h = scored[h] + own_score[a] + _score_with(a, c, h, scores, members, count)
        if has_bonus:
            like_g -= _score_with(a, a, g, bonus, members, count)
            like_h += _score_with(a, c, h, bonus, members, count)
        if c >= 0:
            like_g += likes[g, c]
            like_h -= likes[h, c]
            score_g += own_score[c] + _score_with(c, a, g, scores, members, count)
            score_h -= own_score[c] + _score_with(c, c, h, scores, members, count)
            if has_bonus:
                like_g += _score_with(c, a, g, bonus, members, count)
                like_h -= _score_with(c, c, h, bonus, members, count)
        gain = room_worth(score_g, like_g, people_g, normal[g], extra_price)
        gain += room_worth(score_h, like_h, people_h, normal[h], extra_price)
        gain -= room_worth(scored[g], liked[g], people[g], normal[g], extra_price)
        gain -= room_worth(scored[h], liked[h], people[h], normal[h], extra_price)
        if gain < toll:
            continue
        changed += gain
        scored[g], liked[g], people[g] = score_g, like_g, people_g
        scored[h], liked[h], people[h] = score_h, like_h, people_h
        place = slot_of[a]
        if c >= 0:
            _put(c, place, g, members, slot_of, room_of)
        else:
            slot = count[h]
            count[h] += 1
            count[g] -= 1
            last = members[g, count[g]]
            _put(last, place, g, members, slot_of, room_of)
        _put(a, slot, h, members, slot_of, room_of)
    return changed


@inner
def _exchange_groups(
    g: int,
    h: int,
    likes: FloatArray,
    members: IntArray,
    count: IntArray,
    slot_of: IntArray,
    room_of: IntArray,
    scored: FloatArray,
    liked: FloatArray,
    people: IntArray,
) -> None:
    """Exchange the residents of two rooms."""
    like_g, like_h = liked[g], liked[h]
    for k in range(max(count[g], count[h])):
        a = members[g, k] if k < count[g] else -1
        b = members[h, k] if k < count[h] else -1
        if a >= 0:
            like_g -= likes[g, a]
            like_h += likes[h, a]
            _put(a, k, h, members, slot_of, room_of)
        if b >= 0:
            like_h -= likes[h, b]
            like_g += likes[g, b]
            _put(b, k, g, members, slot_of, room_of)
    liked[g], liked[h] = like_g, like_h
    count[g], count[h] = count[h], count[g]
    people[g], people[h] = people[h], people[g]
    scored[g], scored[h] = scored[h], scored[g]
