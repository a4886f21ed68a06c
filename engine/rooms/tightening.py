"""Bounds below that of the linear relaxation: masters with cuts, priced exactly."""

from dataclasses import dataclass

import numpy as np

from engine.core.arguments import FloatArray, IntArray
from engine.core.rounding import sum_allowance
from engine.rooms.cuts import charges
from engine.rooms.prices import Prices
from engine.rooms.pricing import Pricer
from engine.rooms.problem import RoomProblem

LEAST = 1e-9  # nats per atom: groups nearer to their prices are ignored


@dataclass(frozen=True, slots=True)
class PricedWithCuts:
    """Result of a search at prices of atoms, rooms and cuts.

    Parameters
    ----------
    members (g, 8), kind (g,), row (g,) : groups worth more than their prices, best first.
    bound : upper bound on the value of every placement.
    """

    members: IntArray
    kind: IntArray
    row: IntArray
    bound: float


def price_with_cuts(
    problem: RoomProblem,
    pricer: Pricer,
    prices: Prices,
    cuts: IntArray,
    cut_prices: FloatArray,
) -> PricedWithCuts | None:
    """Find every group worth more than its atoms and room cost, and charge it for cuts.

    ``cuts`` (c, 3) and ``cut_prices`` (c,), not negative. Charges only lower the value of a group,
    so no other group is worth more than its prices. The bound is the sum of all prices, with those
    of atoms raised as in `Pricer.search`. Return None if there are too many groups to list, or if
    the clock is over.
    """
    found = pricer.all_within(prices, LEAST)
    if found is None:
        return None
    members, kind, row = found
    reduced = problem.group_values(members, kind, row)
    reduced -= prices.of_groups(members, kind, row)
    reduced -= charges(cuts, cut_prices, members, problem.n_atoms)
    part = reduced / np.maximum((members >= 0).sum(axis=1), 1)
    share = np.full(problem.n_atoms + 1, LEAST)
    for k in range(members.shape[1]):
        np.maximum.at(share, members[:, k], part)
    total = pricer.bound_of(prices, share[:-1]) + float(cut_prices.sum())
    total += sum_allowance(len(cut_prices) + 1, abs(total) + float(cut_prices.sum()))
    order = np.argsort(-reduced, kind="stable")
    order = order[part[order] > LEAST]
    return PricedWithCuts(members[order], kind[order], row[order], total)
