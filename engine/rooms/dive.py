"""Dive: fix the groups that the mixture uses most, solve again, and so on to a whole placement."""

from collections.abc import Callable

import numpy as np

from engine.core.arguments import BoolArray, FloatArray, IntArray
from engine.core.progress import StopCallback
from engine.rooms.columns import Columns
from engine.rooms.master import Master

SURE = 0.95  # a share from which a group is as good as chosen
STEP = 0.06  # share of the groups fixed at least in one step
ROUNDS = 2  # of new groups in one step
MAX_SECONDS = 20.0  # of one solve


def dive(
    master: Master,
    columns: Columns,
    add_groups: Callable[[BoolArray], int],
    should_stop: StopCallback,
) -> IntArray:
    """Return groups that fit together, as indices of columns; some atoms may be in none.

    ``add_groups(is_taken)`` adds columns for the atoms that are left, at the master's prices, and
    says how many. The master must have been solved; its columns are free again afterwards.
    """
    fixed: list[int] = []
    is_taken = np.zeros(master.n_atoms, dtype=bool)
    while not should_stop():
        shares = master.shares()[1]
        chosen = _next(columns, shares, is_taken)
        if not len(chosen):
            break
        fixed.extend(chosen.tolist())
        master.fix(chosen, 1.0)
        members = columns.members[chosen]
        is_taken[members[members >= 0]] = True
        if is_taken.all() or not master.solve(MAX_SECONDS, should_stop):
            break
        for _ in range(ROUNDS):
            if should_stop() or not add_groups(is_taken):
                break
            master.add_new_columns()
            if not master.solve(MAX_SECONDS, should_stop):
                break
    master.free()
    return np.array(fixed, dtype=np.int64)


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
