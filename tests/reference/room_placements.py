"""The best placement by brute force, and by one integer programme over all groups."""

from collections.abc import Callable, Iterator
from itertools import combinations

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

from engine.core.arguments import FloatArray, IntArray


def group_value(scores: FloatArray, members: tuple[int, ...]) -> float:
    """The sum over pairs divided by the number of others; -inf where a pair is forbidden."""
    total = sum(scores[i, j] for i, j in combinations(members, 2))
    return float(total / max(len(members) - 1, 1))


def assignments(capacities: tuple[int, ...], n: int) -> Iterator[tuple[int, ...]]:
    """Every way to give n students rooms within their capacities."""

    def extend(chosen: list[int]) -> Iterator[tuple[int, ...]]:
        if len(chosen) == n:
            yield tuple(chosen)
            return
        for room, capacity in enumerate(capacities):
            if chosen.count(room) < capacity:
                yield from extend([*chosen, room])

    yield from extend([])


def best_by_enumeration(worth: "object", capacities: tuple[int, ...], n: int) -> float:
    """Largest sum over rooms of ``worth(members, room)``, -inf when there is no placement."""
    cache: dict[tuple[int, tuple[int, ...]], float] = {}
    best = -np.inf
    for rooms in assignments(capacities, n):
        total = 0.0
        for room in set(rooms):
            members = tuple(k for k in range(n) if rooms[k] == room)
            if (room, members) not in cache:
                cache[room, members] = worth(members, room)  # type: ignore[operator]
            total += cache[room, members]
        best = max(best, total)
    return float(best)


def best_by_subsets(worth: Callable[[tuple[int, ...], int], float], n_rooms: int, n: int) -> float:
    """Largest sum over rooms of ``worth(members, room)``, -inf when there is no placement.

    Room by room, over every set of people whom the rooms so far may hold.
    """
    best = {0: 0.0}  # by set of people placed
    for room in range(n_rooms):
        worths = {}
        for size in range(1, n + 1):
            for members in combinations(range(n), size):
                value = worth(members, room)
                if value > -np.inf:
                    worths[sum(1 << k for k in members)] = value
        after = dict(best)
        for placed, total in best.items():
            for group, value in worths.items():
                if not placed & group:
                    key = placed | group
                    after[key] = max(after.get(key, -np.inf), total + value)
        best = after
    return float(best.get((1 << n) - 1, -np.inf))


def best_of_whole_model(
    worth: Callable[[tuple[int, ...], int], float], room_type: IntArray, capacity: IntArray, n: int
) -> float:
    """Optimum over every group of people in every type of room, by HiGHS to a gap of 0.

    ``room_type`` (r,) type of each room; ``capacity`` (types,); ``worth(members, type)``.
    """
    columns, values = [], []
    counts = np.bincount(room_type, minlength=len(capacity))
    for t, beds in enumerate(capacity.tolist()):
        for size in range(1, beds + 1):
            for members in combinations(range(n), size):
                value = worth(members, t)
                if value > -np.inf:
                    columns.append((*members, n + t))
                    values.append(value)
    rows = np.array([k for c in columns for k in c])
    places = np.repeat(np.arange(len(columns)), [len(c) for c in columns])
    shape = (n + len(capacity), len(columns))
    matrix = csr_array((np.ones(len(rows)), (rows, places)), shape=shape)
    found = milp(
        -np.array(values),
        constraints=LinearConstraint(
            matrix,
            np.concatenate((np.ones(n), np.zeros(len(capacity)))),
            np.concatenate((np.ones(n), counts)),
        ),
        integrality=np.ones(len(columns), dtype=np.int64),
        bounds=Bounds(0, 1),
        options={"mip_rel_gap": 0.0, "time_limit": 300.0},
    )
    return -np.inf if found.status == 2 else -float(found.fun)


def best_of_nested(
    groups: list[tuple[int, ...]], sizes: IntArray, values: FloatArray, n: int, counts: IntArray
) -> float:
    """Optimum of the whole set-partitioning model, by HiGHS to a gap of 0.

    ``counts[c - 1]`` rooms of c beds; a group of s takes any room of s beds or more, so for every c
    the groups of more than c - 1 people must not outnumber the rooms of more than c - 1 beds.
    """
    rows = [m for g in groups for m in g]
    columns = [k for k, g in enumerate(groups) for _ in g]
    for c in range(1, len(counts) + 1):
        large = np.flatnonzero(sizes >= c).tolist()
        rows += [n + c - 1] * len(large)
        columns += large
    matrix = csr_array((np.ones(len(rows)), (rows, columns)), shape=(n + len(counts), len(groups)))
    at_least = np.cumsum(counts[::-1])[::-1].astype(np.float64)
    low = np.concatenate((np.ones(n), np.zeros(len(counts))))
    high = np.concatenate((np.ones(n), at_least))
    found = milp(
        -values,
        constraints=LinearConstraint(matrix, low, high),
        integrality=np.ones(len(groups), dtype=np.int64),
        bounds=Bounds(0, 1),
        options={"mip_rel_gap": 0.0, "time_limit": 300.0},
    )
    return -float(found.fun)


def best_with_some_left_out(
    worth: Callable[[tuple[int, ...], int], float],
    n_rooms: int,
    n: int,
    groups: tuple[set[int], ...],
) -> tuple[tuple[int, ...], float]:
    """Return how many of each group can be placed, the first group first, and the best total then.

    Room by room, over every set of people whom the rooms so far may hold.
    """
    best = {0: 0.0}  # by set of people placed
    for room in range(n_rooms):
        worths = {}
        for size in range(1, n + 1):
            for members in combinations(range(n), size):
                value = worth(members, room)
                if value > -np.inf:
                    worths[sum(1 << k for k in members)] = value
        after = dict(best)
        for placed, total in best.items():
            for group, value in worths.items():
                if not placed & group:
                    after[placed | group] = max(after.get(placed | group, -np.inf), total + value)
        best = after
    masks = [sum(1 << k for k in group) for group in groups]

    def rank(placed: int) -> tuple[int, ...]:
        return tuple((placed & mask).bit_count() for mask in masks)

    highest = max(rank(placed) for placed in best)
    return highest, max(total for placed, total in best.items() if rank(placed) == highest)
