"""Partial groups: the pair values of a set of atoms, and the atoms that may join it."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.core.arguments import FloatArray, IntArray
from engine.kernels.compiling import inner, step
from engine.kernels.room_tables import PairValues

LEVEL = np.dtype(
    [
        ("need", np.float64),  # sets of k atoms worth less lead to no group
        ("per_node", np.float64),  # share of the price of each atom that the set is charged
        ("uneven", np.float64),  # share of it that the set of one atom less is charged
        ("part", np.float64),  # share of the price of the room
    ]
)
"""Thresholds and shares for sets of k atoms, in row k."""

SET = np.dtype(
    [
        ("room", np.int64),  # in which it stays, -1 for any
        ("people", np.int64),  # number of people still needed
        ("worth", np.float64),  # of its pairs
        ("price", np.float64),  # of its atoms
        ("rest", np.float64),  # what it adds to the value of an extension
        ("count", np.int64),  # extensions
        ("following", np.int64),  # the next extension to follow
    ]
)
"""Partial group of k atoms, in row k: the first k members."""


class SetPath(NamedTuple):
    """Sets of 1, 2, ... members on the way to a group of m of n atoms."""

    members: IntArray  # (m,)
    joins: FloatArray  # (m,) pair values of the newest atom with the members
    within: FloatArray  # (m, m) row k: pair sums of each of the first k members with the others
    sums: FloatArray  # (m, n) row k: pair sums of any atom with the first k members
    sets: NDArray[Any]  # (m,) SET


@inner
def make_levels(m: int, least: float, slack: float) -> NDArray[Any]:
    """Return thresholds and shares for sets of any number of atoms, for groups of m."""
    levels = np.zeros(m + 1, dtype=LEVEL)
    for k in range(2, m + 1):
        levels[k].need = least * k * (k - 1) / (m * (m - 1.0)) - slack
        levels[k].per_node = (k - 1.0) / (m - 1.0)
        levels[k].uneven = (k - 2.0) / (m - 1.0)
        levels[k].part = k * (k - 1) / 2.0 / (m * (m - 1) / 2.0)
    return levels


@step
def add_pairs(new: int, pairs: PairValues, before: FloatArray, out: FloatArray) -> None:
    """Write the pair sums (n,) with the previous members and a new atom."""
    scores, bonus, scale = pairs
    own = scores[new]
    if len(bonus) > 0:
        liked = bonus[new]
        for v in range(len(out)):
            out[v] = before[v] + scale * own[v] + liked[v]
    else:
        for v in range(len(out)):
            out[v] = before[v] + scale * own[v]


@step
def append_atom(
    path: SetPath,
    depth: int,
    new: int,
    room: int,
    pairs: PairValues,
    sizes: IntArray,
    price: FloatArray,
) -> None:
    """Extend the set of ``depth`` atoms by a new one, in a room or in any."""
    members, joins, within, _, sets = path
    weigh_joining(members, depth, new, pairs, joins)
    total = 0.0
    for k in range(depth):
        within[depth + 1, k] = within[depth, k] + joins[k]
        total += joins[k]
    within[depth + 1, depth] = total
    members[depth] = new
    sets[depth + 1].room = room
    sets[depth + 1].people = sets[depth].people - sizes[new]
    sets[depth + 1].worth = sets[depth].worth + total
    sets[depth + 1].price = sets[depth].price + price[new]


@inner
def can_complete(n_people: int, n_atoms: int) -> bool:
    """Return True if ``n_atoms`` more atoms can have exactly ``n_people`` people."""
    return n_people >= n_atoms if n_atoms > 0 else n_people == 0


@inner
def weigh_joining(
    members: IntArray, count: int, new: int, pairs: PairValues, out: FloatArray
) -> bool:
    """Write the pair values of a new atom with the members; return False if it is a member."""
    scores, bonus, scale = pairs
    for k in range(count):
        if members[k] == new:
            return False
        value = scale * scores[members[k], new]
        if len(bonus) > 0:
            value += bonus[members[k], new]
        out[k] = value
    return True


@inner
def is_least(
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
    """Return True if the new atom contributes least to the set.

    Among those within ``slack`` of the least, so that rounding decides nothing, the one with the
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
