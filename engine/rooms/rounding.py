"""Rounding: groups of a mixture that fit together."""

import numpy as np

from engine.core.arguments import FloatArray, IntArray
from engine.rooms.columns import Columns
from engine.rooms.prices import Prices
from engine.rooms.problem import RoomProblem


def first_fit(
    problem: RoomProblem, columns: Columns, prices: Prices, shares: FloatArray
) -> IntArray:
    """Return the indices of groups that share no atom and fit in rooms of their kinds, shape (c,).

    Groups are taken as long as they fit: those that a mixture uses most (``shares`` (g,)) first,
    then those with the highest values above prices.
    """
    is_taken = np.zeros(problem.n_atoms + 1, dtype=bool)
    count, is_row_taken = problem.count.copy(), np.zeros(len(problem.row_kind) + 1, dtype=bool)
    chosen = []
    order = np.lexsort((-columns.reduced_values(prices), -np.round(shares, 3)))
    for k in order.tolist():
        members, kind, row = columns.members[k], columns.kind[k], columns.row[k]
        if count[kind] > 0 and not is_row_taken[row] and not is_taken[members].any():
            chosen.append(k)
            count[kind] -= 1
            is_taken[members[members >= 0]] = True
            is_row_taken[row] = row >= 0
    return np.array(chosen, dtype=np.int64)
