"""Dive: fix the groups that the mixture uses most, and solve again until all are placed."""

from collections.abc import Callable

import numpy as np

from engine.core.arguments import BoolArray, FloatArray, IntArray
from engine.rooms.clock import SearchClock
from engine.rooms.closing import solve_whole
from engine.rooms.columns import Columns
from engine.rooms.cuts import NONE, charges
from engine.rooms.master import Left, Master
from engine.rooms.part import restrict
from engine.rooms.prices import Prices
from engine.rooms.pricing import Pricer
from engine.rooms.problem import Groups, RoomProblem

SURE = 0.95  # share from which a group counts as chosen

CORNER = 300  # remaining atoms at which the simplex method is faster than the interior point
STEP = 0.15  # least share of the groups fixed in one step
TAIL = 90  # remaining atoms that one integer programme places
TAIL_GROUPS = 3_000  # largest number of groups in that programme
TAIL_SHARE = 0.1  # of the master's value: how far groups may violate their prices, at first
TAIL_TRIES = 8  # each with half the share; lower shares admit no group
TAIL_SECONDS = 5.0  # counted seconds
LEAST_WORTH = 1e-7  # least value above the prices of a group that a dive adds


def dive(
    problem: RoomProblem,
    columns: Columns,
    find_groups: Callable[[BoolArray, Prices], Groups],
    clock: SearchClock,
    cuts: IntArray = NONE,
) -> Groups:
    """Return members, kinds and rows of groups that fit together; some atoms may be in no group.

    ``columns`` are the first columns of the dive, which adds those that it finds. Each step has its
    own master over the remaining atoms and groups, so that the last steps cost almost nothing.
    ``cuts`` (c, 3) are used while none of their atoms is taken: then the atoms' rows imply them.
    ``find_groups(is_taken, prices)`` prices more groups for the remaining atoms.
    """
    is_taken = np.zeros(problem.n_atoms, dtype=bool)
    fixed: list[Groups] = [columns.among(np.empty(0, dtype=np.int64))]
    while not is_taken.all() and not clock.is_over():
        left = _left(problem, is_taken, fixed)
        open_ = columns.without(is_taken)
        is_small = bool(left.atoms.sum() <= CORNER)
        master = Master(problem, open_, clock, left, cuts[~is_taken[cuts].any(axis=1)])
        master.add_new_columns()
        if not master.solve(at_corner=is_small):
            break
        found = _worthy(problem, find_groups(is_taken, master.prices()), master)
        columns.add(*found)
        if open_.add(*found):
            master.add_new_columns()
            if not master.solve(at_corner=is_small):
                break
        if left.atoms.sum() <= TAIL:
            last = _fill_the_rest(problem, left, master, clock)
            if last is not None:
                fixed.append(last)
                break
        chosen = _next(open_, master.shares()[1], is_taken)
        if not len(chosen):
            break
        fixed.append(open_.among(chosen))
        is_taken[open_.members[chosen][open_.members[chosen] >= 0]] = True
    members, kind, row = (np.concatenate(part) for part in zip(*fixed, strict=True))
    return members, kind, row


def _worthy(problem: RoomProblem, found: Groups, master: Master) -> Groups:
    """Return the groups whose values exceed their prices and the charges of cuts."""
    if not len(master.cuts):
        return found
    members, kind, row = found
    asked = master.prices().of_groups(members, kind, row)
    asked += charges(master.cuts, master.cut_prices(), members, problem.n_atoms)
    good = problem.group_values(members, kind, row) > asked + LEAST_WORTH
    return members[good], kind[good], row[good]


def _fill_the_rest(
    problem: RoomProblem, left: Left, master: Master, clock: SearchClock
) -> Groups | None:
    """Place the last atoms optimally, among the groups that prices allow; None if out of time.

    A dive loses most at its end, where a fixed group leaves no choice to the others.
    """
    atoms = np.flatnonzero(left.atoms)
    part = restrict(problem, atoms, left.count, np.flatnonzero(left.rows > 0.0))
    prices = master.prices()
    prices = Prices(prices.atoms[atoms], prices.kinds, prices.rows)
    pricer = Pricer(part, clock, room_for=TAIL_GROUPS)
    for share in TAIL_SHARE / 2.0 ** np.arange(TAIL_TRIES):
        shortfall = max(share * abs(master.value), LEAST_WORTH)
        groups = pricer.all_within(prices, shortfall)
        if groups is not None or clock.is_over():
            break
    if groups is None:
        return None
    chosen, _ = solve_whole(part, groups, clock, TAIL_SECONDS)
    if not len(chosen):
        return None
    members, kind, row = (column[chosen] for column in groups)
    return np.where(members >= 0, atoms[members], -1), kind, row


def _left(problem: RoomProblem, is_taken: BoolArray, fixed: list[Groups]) -> Left:
    count, rows = problem.count.copy(), np.ones(len(problem.row_kind))
    for _, kind, row in fixed:
        np.subtract.at(count, kind, 1)
        rows[row[row >= 0]] = 0.0
    return Left(~is_taken, count, rows)


def _next(columns: Columns, shares: FloatArray, is_taken: BoolArray) -> IntArray:
    """Choose the almost certain groups, and at least a few of the most used, without overlap."""
    padded = np.append(is_taken, False)
    open_ = np.flatnonzero((shares > 1e-6) & ~padded[columns.members].any(axis=1))
    order = open_[np.argsort(-shares[open_], kind="stable")]
    least = max(1, int(STEP * (~is_taken).sum() / 3))
    chosen: list[int] = []
    taken = np.append(is_taken, False)
    for k in order.tolist():
        if shares[k] < SURE and len(chosen) >= least:
            break
        members = columns.members[k]
        members = members[members >= 0]
        if not taken[members].any():
            taken[members] = True
            chosen.append(k)
    return np.array(chosen, dtype=np.int64)
