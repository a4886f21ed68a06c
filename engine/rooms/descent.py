"""First prices: a descent of the bound by the groups that prices leave too cheap."""

from collections.abc import Callable

import numpy as np

from engine.core.arguments import FloatArray, IntArray
from engine.rooms.columns import Columns
from engine.rooms.prices import Prices
from engine.rooms.pricing import Priced, Pricer
from engine.rooms.problem import RoomProblem

STEPS = 100
LONG_STEP = 1.0  # of Polyak's; halved after so many steps without a better bound
PATIENCE = 5
SHORTEST_STEP = 0.4  # below, pricing by the master brings more for its seconds
NEAR = 1e-3  # relative distance of bound and target at which prices are as good as these get


def descend(
    problem: RoomProblem,
    pricer: Pricer,
    columns: Columns,
    start: Prices,
    is_over: Callable[[], bool],
) -> Prices:
    """Return better prices than those of a placement; every group met joins the columns.

    Each atom wants the group that is worth most above its prices, for its part of the excess. The
    bound is the sum of all prices and parts; it is convex in the prices, and falls when atoms and
    rooms that are wanted more often than they are there cost more, and the others less. Groups are
    searched for heuristically, so the bound is an estimate: what is proved is proved by pricing.

    References
    ----------
    Polyak 1969 (the length of steps, for a known target); Held, Wolfe and Crowder 1974.
    """
    prices, best, least = start, start, np.inf
    length, idle = LONG_STEP, 0
    target = _total(problem, start)
    for _ in range(STEPS):
        if is_over():
            break
        found = pricer.search(prices, is_exact=False, tolerance=1e-9)
        columns.add(found.members, found.kind, found.row)
        share, wanted = _wishes(problem.n_atoms, found)
        value = _total(problem, prices) + float(share.sum())
        if value < least - 1e-4 * abs(least - target) or not np.isfinite(least):
            best, least, idle = prices, value, 0
        else:
            idle += 1
            if idle >= PATIENCE:
                length, idle = length / 2.0, 0
                if length < SHORTEST_STEP:
                    break
                prices = best
                continue
        if value - target <= NEAR * max(abs(target), 1.0):
            break
        prices = _step(problem, prices, found, share, wanted, length * (value - target))
    return best


def _total(problem: RoomProblem, prices: Prices) -> float:
    kinds = problem.count @ np.maximum(prices.kinds, 0.0)
    return float(prices.atoms.sum() + kinds + np.maximum(prices.rows, 0.0).sum())


def _wishes(n_atoms: int, found: Priced) -> tuple[FloatArray, IntArray]:
    """Return each atom's largest part of an excess (n,), and the group that has it, or -1."""
    if not len(found.reduced):
        return np.zeros(n_atoms), np.full(n_atoms, -1, dtype=np.int64)
    counts = (found.members >= 0).sum(axis=1)
    part = found.reduced / np.maximum(counts, 1)
    order = np.argsort(part, kind="stable")
    share, wanted = np.zeros(n_atoms), np.full(n_atoms, -1, dtype=np.int64)
    for k in range(found.members.shape[1]):
        groups = order[found.members[order, k] >= 0]
        atoms = found.members[groups, k]
        last = np.full(n_atoms, -1, dtype=np.int64)
        last[atoms] = groups  # of several the last is kept, which is the largest
        better = (last >= 0) & (part[last] > share)
        share[better], wanted[better] = part[last[better]], last[better]
    return share, wanted


def _step(
    problem: RoomProblem,
    prices: Prices,
    found: Priced,
    share: FloatArray,
    wanted: IntArray,
    excess: float,
) -> Prices:
    """Move prices against a subgradient of the bound."""
    atoms = np.ones(problem.n_atoms)
    kinds, rows = problem.count.astype(float), np.ones(len(problem.row_kind))
    groups = wanted[wanted >= 0]
    members, counts = found.members[groups], (found.members[groups] >= 0).sum(axis=1)
    for k in range(members.shape[1]):
        there = members[:, k] >= 0
        np.subtract.at(atoms, members[there, k], 1.0 / counts[there])
    np.subtract.at(kinds, found.kind[groups], 1.0 / counts)
    is_fixed = found.row[groups] >= 0
    np.subtract.at(rows, found.row[groups][is_fixed], 1.0 / counts[is_fixed])
    kinds[(kinds > 0.0) & (prices.kinds <= 0.0)] = 0.0  # none costs less than nothing
    rows[(rows > 0.0) & (prices.rows <= 0.0)] = 0.0
    weight = 1.0 / np.maximum(problem.count, 1)  # a kind of many rooms moves no faster
    size = float(atoms @ atoms + (weight * kinds) @ kinds + rows @ rows)
    if size <= 0.0:
        return prices
    step = excess / size
    return Prices(
        prices.atoms - step * atoms,
        np.maximum(prices.kinds - step * weight * kinds, 0.0),
        np.maximum(prices.rows - step * rows, 0.0),
    )
