"""Crossing odd sets and the sets that replace them."""

import numpy as np

from engine.core.arguments import BoolArray, FloatArray, IntArray
from engine.inference.matching.odd_sets import TOLERANCE, smaller_side


def uncross(
    tau: FloatArray, held: tuple[IntArray, ...], violated: tuple[IntArray, ...]
) -> tuple[IntArray, ...]:
    """Return violated odd sets that cross neither each other nor an active set.

    Two odd sets that cross can be exchanged for two that do not and whose total cut is no larger
    (submodularity): one of these is violated if one of the two was violated and the other is tight.
    Crossing sets cannot all hold with equality if every marginal is above 0.
    """
    n = len(tau)
    kept = [side_of(nodes, n) for nodes in held]
    for nodes in violated:
        side = side_of(nodes, n)
        for _ in range(n):
            other = next((k for k in kept if crosses(side, k)), None)
            if other is None:
                break
            pair = (side & other, side | other)
            if pair[0].sum() % 2 == 0:
                pair = (side & ~other, other & ~side)
            side = min(pair, key=lambda part: _cut(tau, part))
        if _cut(tau, side) < 1.0 - TOLERANCE and not any(_is_same(side, k) for k in kept):
            kept.append(side)
    return tuple(smaller_side(side) for side in kept[len(held) :])


def side_of(nodes: IntArray, n_nodes: int) -> BoolArray:
    """Return a mask of the set's nodes, shape (n,)."""
    side = np.zeros(n_nodes, dtype=np.bool_)
    side[nodes] = True
    return side


def crosses(first: BoolArray, second: BoolArray) -> bool:
    """Return True if two sets cross: all four parts that they form contain a node."""
    parts = (first & second, first & ~second, ~first & second, ~(first | second))
    return all(bool(part.any()) for part in parts)


def _cut(tau: FloatArray, side: BoolArray) -> float:
    """Return the weight of the cut around a set."""
    return float(tau[np.ix_(side, ~side)].sum())


def _is_same(first: BoolArray, second: BoolArray) -> bool:
    """Return True if two sets are equal or the two sides of one cut."""
    return bool((first == second).all() or (first != second).all())
