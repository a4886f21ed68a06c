"""Dive: fix the groups that the mixture uses most, solve again, and so on to a whole placement."""

from collections.abc import Callable

import numpy as np

from engine.core.arguments import BoolArray, FloatArray, IntArray
from engine.core.progress import StopCallback
from engine.rooms.columns import Columns
from engine.rooms.master import Master
from engine.rooms.prices import Prices
from engine.rooms.problem import RoomProblem

SURE = 0.95  # a share from which a group is as good as chosen

STEP = 0.15  # share of the groups fixed at least in one step
MAX_SECONDS = 120.0  # of one solve

Groups = tuple[IntArray, IntArray, IntArray]  # members (g, 8), kinds and rows (g,)


def dive(
    problem: RoomProblem,
    columns: Columns,
    penalty: float,
    find_groups: Callable[[BoolArray, Prices], Groups],
    should_stop: StopCallback,
) -> Groups:
    """Return members, kinds and rows of groups that fit together; some atoms may be in none.

    ``columns`` are what the dive begins with: few, since a master of its own solves them again at
    every step. ``find_groups(is_taken, prices)`` prices more for the atoms that are left.
    """
    master = Master(problem, columns, penalty)
    master.add_new_columns()
    fixed: list[int] = []
    is_taken = np.zeros(master.n_atoms, dtype=bool)
    is_solved = master.solve(MAX_SECONDS, should_stop, at_corner=True)
    while is_solved and not should_stop():
        shares = master.shares()[1]
        chosen = _next(columns, shares, is_taken)
        if not len(chosen):
            break
        fixed.extend(chosen.tolist())
        master.fix(chosen, 1.0)
        members = columns.members[chosen]
        is_taken[members[members >= 0]] = True
        if is_taken.all() or not master.solve(MAX_SECONDS, should_stop, at_corner=True):
            break
        if not should_stop() and columns.add(*find_groups(is_taken, master.prices())):
            master.add_new_columns()
            is_solved = master.solve(MAX_SECONDS, should_stop, at_corner=True)
    chosen = np.array(fixed, dtype=np.int64)
    return columns.members[chosen], columns.kind[chosen], columns.row[chosen]


def _next(columns: Columns, shares: FloatArray, is_taken: BoolArray) -> IntArray:
    """Choose the sure groups, and at least a few of the most used, that do not overlap."""
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
