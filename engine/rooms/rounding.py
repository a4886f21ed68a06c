"""Rounding: groups that fit together, the best above their prices first."""

import numpy as np

from engine.core.arguments import IntArray
from engine.rooms.columns import Columns
from engine.rooms.prices import Prices
from engine.rooms.problem import RoomProblem


def first_fit(problem: RoomProblem, columns: Columns, prices: Prices) -> IntArray:
    """Return the places of groups that share no atom and find rooms of their kinds, shape (c,).

    Groups are taken in the order of what they are worth above their prices, as long as they fit.
    It is no search, but at good prices most of these groups belong to good placements.
    """
    is_taken = np.zeros(problem.n_atoms + 1, dtype=bool)
    count, is_row_taken = problem.count.copy(), np.zeros(len(problem.row_kind) + 1, dtype=bool)
    chosen = []
    for k in np.argsort(-columns.reduced_values(prices), kind="stable").tolist():
        members, kind, row = columns.members[k], columns.kind[k], columns.row[k]
        if count[kind] > 0 and not is_row_taken[row] and not is_taken[members].any():
            chosen.append(k)
            count[kind] -= 1
            is_taken[members[members >= 0]] = True
            is_row_taken[row] = row >= 0
    return np.array(chosen, dtype=np.int64)
