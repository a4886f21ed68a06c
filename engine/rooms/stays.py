"""Atoms that may stay in each room of a view, and the prices of those rooms."""

from dataclasses import dataclass

import numpy as np

from engine.core.arguments import FloatArray, IntArray
from engine.rooms.problem import RoomProblem


@dataclass(frozen=True, slots=True)
class Stays:
    """Atoms that may stay in rooms of a view, by atom and by room, with the rooms' extra prices."""

    atom: IntArray
    start: IntArray
    room: IntArray
    refund: FloatArray
    room_start: IntArray
    room_atom: IntArray
    room_refund: FloatArray
    room_base: FloatArray
    rows: IntArray

    @staticmethod
    def of(
        problem: RoomProblem,
        view: int,
        kinds: IntArray,
        kind_prices: FloatArray,
        row_prices: FloatArray,
        base: float,
    ) -> "Stays":
        """Collect the stays in the kinds of a view; ``base`` is the price of its cheapest kind."""
        rows = np.flatnonzero(np.isin(problem.row_kind, kinds))
        number = np.full(len(problem.row_kind), -1, dtype=np.int64)
        number[rows] = np.arange(len(rows))
        mine = number[problem.stay_row] >= 0
        mine &= problem.allowed[view, problem.stay_atom]
        atom, room = problem.stay_atom[mine], number[problem.stay_row[mine]]
        refund = problem.stay_refund[mine]
        by_atom = np.argsort(atom, kind="stable")
        by_room = np.argsort(room, kind="stable")
        n_start = np.searchsorted(atom[by_atom], np.arange(problem.n_atoms + 1))
        r_start = np.searchsorted(room[by_room], np.arange(len(rows) + 1))
        extra = kind_prices[problem.row_kind[rows]] + row_prices[rows] - base
        return Stays(
            atom[by_atom],
            n_start.astype(np.int64),
            room[by_atom],
            refund[by_atom],
            r_start.astype(np.int64),
            atom[by_room],
            refund[by_room],
            extra,
            rows,
        )
