"""Exchanges between rooms: one atom against another, or into free beds, while the total rises."""

from numba import njit

from engine.core.arguments import FloatArray, IntArray
from engine.kernels.compiling import inner


@inner
def _worth(scored: float, liked: float, people: int) -> float:
    """Value of a room; nobody is scored alone."""
    return liked + (scored / (people - 1) if people > 1 else 0.0)


@njit(cache=True, nogil=True)
def fill_tables(
    scores: FloatArray,
    bonus: FloatArray,
    own_score: FloatArray,
    sizes: IntArray,
    likes: FloatArray,
    room_of: IntArray,
    outside: int,
    sums: FloatArray,
    wishes: FloatArray,
    scored: FloatArray,
    liked: FloatArray,
    people: IntArray,
) -> None:
    """Write what swaps need: sums (n, rooms) over the members of each room, and room totals.

    ``wishes`` is (n, rooms), or (0, 0) without bonuses. Room ``outside`` scores nobody.
    """
    n = len(sizes)
    sums[:] = 0.0
    wishes[:] = 0.0
    scored[:] = 0.0
    liked[:] = 0.0
    people[:] = 0
    for b in range(n):
        room = room_of[b]
        people[room] += sizes[b]
        liked[room] += likes[b, room]
        if room == outside:
            continue
        scored[room] += own_score[b] + sums[b, room]
        for a in range(n):
            sums[a, room] += scores[a, b]
        if len(bonus) > 0:
            liked[room] += wishes[b, room]
            for a in range(n):
                wishes[a, room] += bonus[a, b]


@njit(cache=True, nogil=True)
def swap_while_better(
    scores: FloatArray,
    bonus: FloatArray,
    own_score: FloatArray,
    sizes: IntArray,
    likes: FloatArray,
    capacity: IntArray,
    order: IntArray,
    outside: int,
    must_fill: bool,
    least: float,
    room_of: IntArray,
    sums: FloatArray,
    wishes: FloatArray,
    scored: FloatArray,
    liked: FloatArray,
    people: IntArray,
) -> float:
    """For each atom of ``order`` make its best exchange that gains more than ``least``.

    ``likes`` (n, rooms) is what an atom adds to a room by itself, very low where it may not live;
    the tables are those of ``fill_tables``, kept up to date. Returns the total gain.
    """
    n, gained = len(sizes), 0.0
    has_bonus = len(bonus) > 0
    for a in order:
        g = room_of[a]
        best, partner, target = least, -1, -1
        away = _worth(
            scored[g] - sums[a, g] - own_score[a] if g != outside else 0.0,
            liked[g] - likes[a, g] - (wishes[a, g] if has_bonus else 0.0),
            people[g] - sizes[a],
        )
        now_g = _worth(scored[g], liked[g], people[g])
        if not must_fill:
            for h in range(len(capacity)):
                if h == g or people[h] + sizes[a] > capacity[h]:
                    continue
                moved = _worth(
                    scored[h] + sums[a, h] + own_score[a] if h != outside else 0.0,
                    liked[h] + likes[a, h] + (wishes[a, h] if has_bonus else 0.0),
                    people[h] + sizes[a],
                )
                gain = away + moved - now_g - _worth(scored[h], liked[h], people[h])
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
            link = scores[a, b]
            wish = bonus[a, b] if has_bonus else 0.0
            new_g = _worth(
                scored[g] - sums[a, g] - own_score[a] + sums[b, g] + own_score[b] - link
                if g != outside
                else 0.0,
                liked[g]
                - likes[a, g]
                + likes[b, g]
                + (wishes[b, g] - wishes[a, g] - wish if has_bonus and g != outside else 0.0),
                people_g,
            )
            new_h = _worth(
                scored[h] - sums[b, h] - own_score[b] + sums[a, h] + own_score[a] - link
                if h != outside
                else 0.0,
                liked[h]
                - likes[b, h]
                + likes[a, h]
                + (wishes[a, h] - wishes[b, h] - wish if has_bonus and h != outside else 0.0),
                people_h,
            )
            gain = new_g + new_h - now_g - _worth(scored[h], liked[h], people[h])
            if gain > best:
                best, partner, target = gain, b, h
        if target < 0:
            continue
        gained += best
        _move(
            a, target, scores, bonus, own_score, sizes, likes, outside,
            room_of, sums, wishes, scored, liked, people,
        )  # fmt: skip
        if partner >= 0:
            _move(
                partner, g, scores, bonus, own_score, sizes, likes, outside,
                room_of, sums, wishes, scored, liked, people,
            )  # fmt: skip
    return gained


@njit(cache=True, nogil=True)
def move_atoms(
    atoms: IntArray,
    targets: IntArray,
    scores: FloatArray,
    bonus: FloatArray,
    own_score: FloatArray,
    sizes: IntArray,
    likes: FloatArray,
    outside: int,
    room_of: IntArray,
    sums: FloatArray,
    wishes: FloatArray,
    scored: FloatArray,
    liked: FloatArray,
    people: IntArray,
) -> None:
    """Move atoms to rooms, keeping the tables up to date; limits are the caller's."""
    for k in range(len(atoms)):
        _move(
            atoms[k], targets[k], scores, bonus, own_score, sizes, likes, outside,
            room_of, sums, wishes, scored, liked, people,
        )  # fmt: skip


@inner
def _move(
    a: int,
    target: int,
    scores: FloatArray,
    bonus: FloatArray,
    own_score: FloatArray,
    sizes: IntArray,
    likes: FloatArray,
    outside: int,
    room_of: IntArray,
    sums: FloatArray,
    wishes: FloatArray,
    scored: FloatArray,
    liked: FloatArray,
    people: IntArray,
) -> None:
    n, g = len(sizes), room_of[a]
    people[g] -= sizes[a]
    liked[g] -= likes[a, g]
    if g != outside:
        # The diagonal of the scores is 0: an atom is in its own sums with nothing.
        scored[g] -= sums[a, g] + own_score[a]
        for x in range(n):
            sums[x, g] -= scores[x, a]
        if len(bonus) > 0:
            liked[g] -= wishes[a, g]
            for x in range(n):
                wishes[x, g] -= bonus[x, a]
    room_of[a] = target
    people[target] += sizes[a]
    liked[target] += likes[a, target]
    if target != outside:
        scored[target] += sums[a, target] + own_score[a]
        for x in range(n):
            sums[x, target] += scores[x, a]
        if len(bonus) > 0:
            liked[target] += wishes[a, target]
            for x in range(n):
                wishes[x, target] += bonus[x, a]
