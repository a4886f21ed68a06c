"""A Markov chain on placements: two beds at a time exchange who sleeps in them."""

from numba import njit

from engine.core.arguments import FloatArray, IntArray
from engine.kernels.compiling import inner


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
    """Value of the people in beds first .. last; -1 is an empty bed."""
    people, scored, liked = 0, 0.0, 0.0
    for k in range(first, last):
        a = bed[k]
        if a < 0:
            continue
        people += 1
        liked += likes[a, room]
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

    Step t takes beds movable[choices[t, 0]] and movable[choices[t, 1]]; if they are in different
    rooms their sleepers change places if the total changes by at least bars[t]. With logarithms of
    uniform numbers as bars, P(placement) ~ exp(value), each way to fill the beds counted: the
    proposal is symmetric (Metropolis 1953).

    ``start`` (rooms + 1,) first bed of each room; ``bed`` (beds,) the sleeper or -1; ``likes``
    (n, rooms) very low where one may not live.
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
