"""Exchanges between rooms: one atom against another, or into free beds, while the total rises."""

import numpy as np
from numba import njit

from engine.core.arguments import FloatArray, IntArray
from engine.kernels.compiling import inner
from engine.kernels.room_tables import Occupancy, RoomObjective, room_worth


@njit(cache=True, nogil=True)
def fill_tables(objective: RoomObjective, occupancy: Occupancy) -> None:
    """Write the sums of an occupancy from its ``room_of``."""
    scores, bonus, own_score, sizes, likes, _, _, _, outside, _ = objective
    room_of, sums, wishes, scored, liked, people = occupancy
    n = len(sizes)
    sums[:] = 0.0
    wishes[:] = 0.0
    scored[:] = 0.0
    liked[:] = 0.0
    people[:] = 0
    for b in range(n):
        room = room_of[b]
        people[room] += sizes[b]
        liked[room] += likes[room, b]
        if room == outside:
            continue
        scored[room] += own_score[b] + sums[room, b]
        for a in range(n):
            sums[room, a] += scores[b, a]
        if len(bonus) > 0:
            liked[room] += wishes[room, b]
            for a in range(n):
                wishes[room, a] += bonus[b, a]


@njit(cache=True, nogil=True)
def swap_while_better(
    objective: RoomObjective, occupancy: Occupancy, order: IntArray, least: float
) -> float:
    """Make the best exchange of each atom of ``order`` if it gains more than ``least``.

    Returns the total gain.
    """
    scores, bonus, own_score, sizes, likes, capacity, normal, extra_price, outside, must_fill = (
        objective
    )
    room_of, sums, wishes, scored, liked, people = occupancy
    n, rooms, gained = len(sizes), len(capacity), 0.0
    has_bonus = len(bonus) > 0
    # Contribution of each atom to its own room, and of one atom to every room: read in order below.
    score_at_home, like_at_home = np.empty(n), np.empty(n)
    for b in range(n):
        _look_home(b, objective, occupancy, score_at_home, like_at_home)
    score_there, like_there, worth = np.empty(rooms), np.empty(rooms), np.empty(rooms)
    for h in range(rooms):
        worth[h] = room_worth(scored[h], liked[h], people[h], normal[h], extra_price)
    for a in order:
        g = room_of[a]
        best, partner, target = least, -1, -1
        for h in range(rooms):
            score_there[h] = sums[h, a] + own_score[a] if h != outside else 0.0
            like_there[h] = likes[h, a]
            if has_bonus and h != outside:
                like_there[h] += wishes[h, a]
        scored_g, liked_g = scored[g] - score_at_home[a], liked[g] - like_at_home[a]
        if not must_fill:
            fewer = people[g] - sizes[a]
            away = room_worth(scored_g, liked_g, fewer, normal[g], extra_price) - worth[g]
            for h in range(rooms):
                if h == g or people[h] + sizes[a] > capacity[h]:
                    continue
                moved = room_worth(
                    scored[h] + score_there[h], liked[h] + like_there[h], people[h] + sizes[a],
                    normal[h], extra_price,
                )  # fmt: skip
                gain = away + moved - worth[h]
                if gain > best:
                    best, partner, target = gain, -1, h
        for b in range(n):
            h = room_of[b]
            if h == g:
                continue
            people_g, people_h = people[g] + sizes[b] - sizes[a], people[h] + sizes[a] - sizes[b]
            if people_g > capacity[g] or people_h > capacity[h]:
                continue
            if must_fill and sizes[a] != sizes[b]:
                continue
            like_g, like_h = liked_g + likes[g, b], liked[h] - like_at_home[b] + like_there[h]
            if has_bonus:
                like_g += wishes[g, b] - bonus[a, b] if g != outside else 0.0
                like_h -= bonus[a, b] if h != outside else 0.0
            gain = -worth[g] - worth[h]
            score_g, score_h = 0.0, 0.0
            if g != outside:
                score_g = scored_g + sums[g, b] + own_score[b] - scores[a, b]
            if h != outside:
                score_h = scored[h] - score_at_home[b] + score_there[h] - scores[a, b]
            gain += room_worth(score_g, like_g, people_g, normal[g], extra_price)
            gain += room_worth(score_h, like_h, people_h, normal[h], extra_price)
            if gain > best:
                best, partner, target = gain, b, h
        if target < 0:
            continue
        gained += best
        _move(a, target, objective, occupancy)
        if partner >= 0:
            _move(partner, g, objective, occupancy)
        for h in (g, target):
            worth[h] = room_worth(scored[h], liked[h], people[h], normal[h], extra_price)
        for b in range(n):
            if room_of[b] == g or room_of[b] == target:
                _look_home(b, objective, occupancy, score_at_home, like_at_home)
    return gained


@inner
def _look_home(
    b: int,
    objective: RoomObjective,
    occupancy: Occupancy,
    score_at_home: FloatArray,
    like_at_home: FloatArray,
) -> None:
    """Write an atom's contribution to its current room."""
    h, outside, wishes = occupancy.room_of[b], objective.outside, occupancy.wishes
    score_at_home[b] = occupancy.sums[h, b] + objective.own_score[b] if h != outside else 0.0
    like_at_home[b] = objective.likes[h, b]
    if len(wishes) > 0 and h != outside:
        like_at_home[b] += wishes[h, b]


@njit(cache=True, nogil=True)
def move_atoms(
    objective: RoomObjective, occupancy: Occupancy, atoms: IntArray, targets: IntArray
) -> None:
    """Move atoms to rooms and update the tables; the caller checks the limits."""
    for k in range(len(atoms)):
        _move(atoms[k], targets[k], objective, occupancy)


@inner
def _move(a: int, target: int, objective: RoomObjective, occupancy: Occupancy) -> None:
    scores, bonus, own_score, sizes, likes, _, _, _, outside, _ = objective
    room_of, sums, wishes, scored, liked, people = occupancy
    n, g = len(sizes), room_of[a]
    people[g] -= sizes[a]
    liked[g] -= likes[g, a]
    if g != outside:
        # The diagonal of the scores is 0: an atom contributes nothing to its own sums.
        scored[g] -= sums[g, a] + own_score[a]
        for x in range(n):
            sums[g, x] -= scores[a, x]
        if len(bonus) > 0:
            liked[g] -= wishes[g, a]
            for x in range(n):
                wishes[g, x] -= bonus[a, x]
    room_of[a] = target
    people[target] += sizes[a]
    liked[target] += likes[target, a]
    if target != outside:
        scored[target] += sums[target, a] + own_score[a]
        for x in range(n):
            sums[target, x] += scores[a, x]
        if len(bonus) > 0:
            liked[target] += wishes[target, a]
            for x in range(n):
                wishes[target, x] += bonus[a, x]
