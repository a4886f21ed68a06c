"""Odd sets that cross, and what to hold in their place."""

import numpy as np

from engine.core.arguments import BoolArray, FloatArray, IntArray
from engine.inference.matching.odd_sets import TOLERANCE, smaller_side


def uncross(
    tau: FloatArray, held: tuple[IntArray, ...], violated: tuple[IntArray, ...]
) -> tuple[IntArray, ...]:
    """Return violated odd sets of which none crosses another or a held one.

    Two odd sets that cross can be exchanged for two that do not and that no more leaves in all
    (submodularity): one of these is violated where one of the two was and the other holds with
    equality. Crossing sets cannot all hold with equality where every marginal is above 0.
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
    """Return which nodes a set holds, shape (n,)."""
    side = np.zeros(n_nodes, dtype=np.bool_)
    side[nodes] = True
    return side


def crosses(first: BoolArray, second: BoolArray) -> bool:
    """Whether all four parts that two sets make hold somebody."""
    parts = (first & second, first & ~second, ~first & second, ~(first | second))
    return all(bool(part.any()) for part in parts)


def _cut(tau: FloatArray, side: BoolArray) -> float:
    """Return what leaves a set."""
    return float(tau[np.ix_(side, ~side)].sum())


def _is_same(first: BoolArray, second: BoolArray) -> bool:
    """Whether two sets are the two sides of one cut, or the same."""
    return bool((first == second).all() or (first != second).all())
