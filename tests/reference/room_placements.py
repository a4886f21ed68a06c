"""The best placement by brute force, and by one integer programme over all groups."""

from collections.abc import Iterator
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
