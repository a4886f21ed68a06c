"""Closing the gap: every group that a better placement could use, in one integer programme."""

import highspy
import numpy as np

from engine.core.arguments import FloatArray, IntArray
from engine.rooms.problem import Groups, RoomProblem

ALLOWANCE = 1e-9  # relative, for the tolerances of the solver


def solve_whole(
    problem: RoomProblem,
    groups: Groups,
    penalty: float,
    max_seconds: float,
) -> tuple[IntArray, float]:
    """Return the groups of the best placement among the given ones, and a bound on its value.

    ``groups``: members (g, 8), kinds and rows (g,). Atoms may be left out at the penalty. The
    chosen groups are empty when the limit came before any placement.

    Notes
    -----
    With every group that is worth its feasible prices minus the gap or more, no placement outside
    the programme is better than the one known, so the bound holds for all.
    """
    members, kind, row = groups
    n, t, r = problem.n_atoms, problem.n_kinds, len(problem.row_kind)
    values = problem.group_values(members, kind, row)
    table = np.column_stack((members, n + kind, np.where(row >= 0, n + t + row, -1)))
    lone = np.full((n, table.shape[1]), -1)
    lone[:, 0] = np.arange(n)
    table = np.concatenate((table, lone))
    costs = -np.concatenate((values, -penalty * problem.sizes))
    model = highspy.Highs()  # type: ignore[no-untyped-call]
    model.setOptionValue("output_flag", False)
    model.setOptionValue("threads", 1)
    model.setOptionValue("mip_rel_gap", 0.0)
    model.setOptionValue("mip_abs_gap", 1e-9)
    model.setOptionValue("time_limit", min(max_seconds, 1e6))
    lower = np.concatenate((np.ones(n), np.full(t + r, -highspy.kHighsInf)))
    upper = np.concatenate((np.ones(n), problem.count.astype(np.float64), np.ones(r)))
    none = np.empty(0, dtype=np.int32)
    model.addRows(n + t + r, lower, upper, 0, none, none, np.empty(0))
    _add_binaries(model, table, costs)
    model.run()
    found = model.getInfo()
    bound = -float(found.mip_dual_bound)
    bound += ALLOWANCE * max(1.0, float(np.abs(costs).max(initial=0.0)))
    if found.primal_solution_status != 2:
        return np.empty(0, dtype=np.int64), bound
    chosen = np.array(model.getSolution().col_value)[: len(values)]
    return np.flatnonzero(chosen > 0.5).astype(np.int64), bound


def _add_binaries(model: highspy.Highs, table: IntArray, costs: FloatArray) -> None:
    present = table >= 0
    start = np.concatenate(([0], np.cumsum(present.sum(axis=1))[:-1])).astype(np.int32)
    index = table[present].astype(np.int32)
    count = len(costs)
    ones, zeros = np.ones(count), np.zeros(count)
    model.addCols(count, costs, zeros, ones, len(index), start, index, np.ones(len(index)))
    kinds = np.full(count, highspy.HighsVarType.kInteger)
    model.changeColsIntegrality(count, np.arange(count, dtype=np.int32), kinds)
