"""Atoms that may stay in each room of a view, and the prices of those rooms."""

from dataclasses import dataclass

import numpy as np

from engine.core.arguments import FloatArray, IntArray
from engine.kernels.room_tables import StayTables
from engine.rooms.problem import RoomProblem


@dataclass(frozen=True, slots=True)
class Stays:
    """Atoms that may stay in rooms of a view.

    Parameters
    ----------
    tables : StayTables of these rooms, numbered from 0.
    base : (rooms,) their prices above that of the cheapest kind of the view.
    rows : (rooms,) their rows in the problem.
    """

    tables: StayTables
    base: FloatArray
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
        tables = stay_tables(atom, room, problem.stay_refund[mine], problem.n_atoms, len(rows))
        return Stays(tables, kind_prices[problem.row_kind[rows]] + row_prices[rows] - base, rows)


def stay_tables(
    atom: IntArray, room: IntArray, refund: FloatArray, n_atoms: int, n_rooms: int
) -> StayTables:
    """Order the rooms in which atoms may stay, and their gains there, by atom and by room."""
    by_atom, by_room = np.argsort(atom, kind="stable"), np.argsort(room, kind="stable")
    start = np.searchsorted(atom[by_atom], np.arange(n_atoms + 1)).astype(np.int64)
    room_start = np.searchsorted(room[by_room], np.arange(n_rooms + 1)).astype(np.int64)
    return StayTables(
        *(start, room[by_atom], refund[by_atom]),
        *(room_start, atom[by_room], refund[by_room]),
    )
