"""Part of a placement problem: some atoms, and the rooms that are left for them."""

from dataclasses import replace

import numpy as np

from engine.core.arguments import IntArray
from engine.rooms.problem import RoomProblem


def restrict(problem: RoomProblem, atoms: IntArray, count: IntArray, rows: IntArray) -> RoomProblem:
    """Return the problem of some atoms and rooms; kinds and rows keep their numbers.

    ``atoms`` (m,) ascending become 0 to m - 1; ``count`` (T,) rooms of each kind; ``rows`` single
    rooms in which an atom may still stay.
    """
    number = np.full(problem.n_atoms, -1, dtype=np.int64)
    number[atoms] = np.arange(len(atoms))
    stays = (number[problem.stay_atom] >= 0) & np.isin(problem.stay_row, rows)
    square = np.ix_(atoms, atoms)
    bonus = np.ascontiguousarray(problem.bonus[square]) if len(problem.bonus) else problem.bonus
    return replace(
        problem,
        scores=np.ascontiguousarray(problem.scores[square]),
        bonus=bonus,
        sizes=problem.sizes[atoms],
        with_needs=problem.with_needs[atoms],
        penalty=problem.penalty[atoms],
        own_score=problem.own_score[atoms],
        own_bonus=problem.own_bonus[atoms],
        count=count,
        allowed=np.ascontiguousarray(problem.allowed[:, atoms]),
        preference=np.ascontiguousarray(problem.preference[:, atoms]),
        stay_atom=number[problem.stay_atom[stays]],
        stay_row=problem.stay_row[stays],
        stay_refund=problem.stay_refund[stays],
    )
