"""Exchanges of beds: a Markov chain on placements, and the cost of every exchange."""

import numpy as np
from numba import njit

from engine.core.arguments import FloatArray, IntArray
from engine.kernels.compiling import inner
from engine.kernels.room_tables import Occupancy, RoomObjective


@inner
def _room_worth(
    scores: FloatArray,
    bonus: FloatArray,
    likes: FloatArray,
    bed: IntArray,
    first: int,
    last: int,
    room: int,
) -> float:
    """Return the value of the people in beds first .. last; -1 is an empty bed."""
    people, scored, liked = 0, 0.0, 0.0
    for k in range(first, last):
        a = bed[k]
        if a < 0:
            continue
        people += 1
        liked += likes[room, a]
        for m in range(first, k):
            b = bed[m]
            if b >= 0:
                scored += scores[a, b]
                if len(bonus) > 0:
                    liked += bonus[a, b]
    return liked + (scored / (people - 1) if people > 1 else 0.0)


@njit(cache=True, nogil=True)
def sweep_beds(
    scores: FloatArray,
    bonus: FloatArray,
    likes: FloatArray,
    start: IntArray,
    room_of_bed: IntArray,
    bed: IntArray,
    movable: IntArray,
    choices: IntArray,
    bars: FloatArray,
) -> float:
    """Propose exchanges of two beds, in place; return the change of the total.

    Step t takes beds movable[choices[t, 0]] and movable[choices[t, 1]]. If they are in different
    rooms, their people change places if the total changes by at least bars[t]. With logarithms of
    uniform numbers as bars, P(placement) ~ exp(value), each assignment of beds counted: the
    proposal is symmetric (Metropolis 1953).

    ``start`` (rooms + 1,) first bed of each room; ``bed`` (beds,) the person or -1; ``likes``
    (rooms, n), very low in rooms that are not allowed.
    """
    total = 0.0
    for t in range(len(choices)):
        x, y = movable[choices[t, 0]], movable[choices[t, 1]]
        g, h = room_of_bed[x], room_of_bed[y]
        if g == h or (bed[x] < 0 and bed[y] < 0):
            continue
        before = _room_worth(scores, bonus, likes, bed, start[g], start[g + 1], g)
        before += _room_worth(scores, bonus, likes, bed, start[h], start[h + 1], h)
        bed[x], bed[y] = bed[y], bed[x]
        after = _room_worth(scores, bonus, likes, bed, start[g], start[g + 1], g)
        after += _room_worth(scores, bonus, likes, bed, start[h], start[h + 1], h)
        if after - before >= bars[t]:
            total += after - before
        else:
            bed[x], bed[y] = bed[y], bed[x]
    return total


@njit(cache=True, nogil=True)
def weigh_exchanges(objective: RoomObjective, occupancy: Occupancy, atom: int) -> FloatArray:
    """Return the changes of every exchange of one atom: (other or -1, room, change, here, there).

    Exchanges that do not fit are left out; exchanges that rules forbid have a change of about -1e7.
    The price of extra beds is not in the changes.
    """
    scores, bonus, own_score, sizes, likes, capacity, _, _, outside, _ = objective
    room_of, sums, wishes, scored, liked, people = occupancy
    n, rooms = len(sizes), len(capacity)
    out = np.empty((n + rooms, 5))
    count, g = 0, room_of[atom]
    has_bonus = len(bonus) > 0
    for k in range(n + rooms):
        b = k if k < n else -1
        h = room_of[b] if b >= 0 else k - n
        size_b = sizes[b] if b >= 0 else 0
        if h == g or (b < 0 and h == outside):
            continue
        people_g = people[g] - sizes[atom] + size_b
        people_h = people[h] + sizes[atom] - size_b
        if people_g > capacity[g] or people_h > capacity[h]:
            continue
        scored_g, scored_h = scored[g] - sums[g, atom] - own_score[atom], scored[h]
        scored_h += sums[h, atom] + own_score[atom]
        liked_g, liked_h = liked[g] - likes[g, atom], liked[h] + likes[h, atom]
        if has_bonus:
            liked_g -= wishes[g, atom]
            liked_h += wishes[h, atom]
        if b >= 0:
            scored_g += sums[g, b] + own_score[b] - scores[atom, b]
            scored_h -= sums[h, b] + own_score[b] + scores[atom, b]
            liked_g += likes[g, b]
            liked_h -= likes[h, b]
            if has_bonus:
                liked_g += wishes[g, b] - bonus[atom, b]
                liked_h -= wishes[h, b] + bonus[atom, b]
        here = _total(scored_g, liked_g, people_g, g == outside)
        here -= _total(scored[g], liked[g], people[g], g == outside)
        there = _total(scored_h, liked_h, people_h, h == outside)
        there -= _total(scored[h], liked[h], people[h], h == outside)
        out[count, 0], out[count, 1], out[count, 2] = b, h, here + there
        out[count, 3], out[count, 4] = here, there
        count += 1
    return out[:count]


@inner
def _total(scored: float, liked: float, people: int, is_outside: bool) -> float:
    """Return the value of a room; nobody is scored alone or outside."""
    return liked + (scored / (people - 1) if people > 1 and not is_outside else 0.0)
