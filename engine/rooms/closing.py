"""Closing the gap: an integer programme of every group that a better placement could use."""

import numpy as np
from scipy.sparse import csc_array

from engine.core.arguments import BoolArray, FloatArray, IntArray
from engine.rooms.clock import SearchClock
from engine.rooms.problem import Groups, RoomProblem
from engine.rooms.programme import EXACT, maximise, rounded_up


def solve_whole(
    problem: RoomProblem,
    groups: Groups,
    clock: SearchClock,
    seconds: float,
    may_be_out: BoolArray | None = None,
) -> tuple[IntArray, float]:
    """Return the groups of the best placement among the given ones, and a bound on its value.

    ``groups``: members (g, 8), kinds and rows (g,). Atoms may be left out at their penalties, or
    only those in ``may_be_out`` (n,): fewer penalties, which are large, make a nearer bound. No
    groups are returned if the budget, in counted seconds, ended before any placement was found.

    Notes
    -----
    If the groups include every one whose value is at least its feasible prices minus the gap, and
    so do the atoms that may be left out, no placement outside the programme is better than the
    known one, so the bound holds for all.
    """
    members, kind, row = groups
    n, t, r = problem.n_atoms, problem.n_kinds, len(problem.row_kind)
    out = np.arange(n) if may_be_out is None else np.flatnonzero(may_be_out)
    worth = np.concatenate((problem.group_values(members, kind, row), -problem.penalty[out]))
    table = np.column_stack((members, n + kind, np.where(row >= 0, n + t + row, -1)))
    lone = np.full((len(out), table.shape[1]), -1)
    lone[:, 0] = out
    matrix = _ones(np.concatenate((table, lone)), n + t + r)
    lower = np.concatenate((np.ones(n), np.full(t + r, -np.inf)))
    upper = np.concatenate((np.ones(n), problem.count.astype(np.float64), np.ones(r)))
    columns: tuple[FloatArray, FloatArray] = np.zeros(len(worth)), np.ones(len(worth))
    whole = np.ones(len(worth), dtype=bool)
    found = maximise(worth, matrix, (lower, upper), columns, whole, clock, seconds, EXACT)
    bound = rounded_up(found.bound, worth, n)
    if found.values is None:
        return np.empty(0, dtype=np.int64), bound
    return np.flatnonzero(found.values[: len(kind)] > 0.5).astype(np.int64), bound


def _ones(table: IntArray, n_rows: int) -> csc_array:
    """Return a matrix with ones in the rows that each line of a table lists; -1 is ignored."""
    present = table >= 0
    start = np.concatenate(([0], np.cumsum(present.sum(axis=1))))
    index = table[present]
    return csc_array((np.ones(len(index)), index, start), shape=(n_rows, len(table)))
