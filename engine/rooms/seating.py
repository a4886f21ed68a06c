"""Seating: the search's room numbers for a placement of students, and for groups of atoms."""

import numpy as np

from engine.core.arguments import IntArray
from engine.rooms.exchange import Exchange
from engine.rooms.formulation import Formulation
from engine.rooms.problem import Groups


def seat_atoms(
    exchange: Exchange, formulation: Formulation, room: IntArray, atoms: IntArray | None = None
) -> IntArray:
    """Return the exchange's room of every atom, shape (n,), for rooms of students.

    Atoms that are split over rooms, do not fit, or may not live there are outside. ``atoms`` are
    the atoms of the formulation that the exchange includes, by default all.
    """
    problem = formulation.problem
    number = np.full(len(formulation.kind_of) + 1, exchange.outside, dtype=np.int64)
    row_of = np.full(len(formulation.kind_of), -1, dtype=np.int64)
    row_of[formulation.room_of_row] = np.arange(len(formulation.room_of_row))
    for kind in range(problem.n_kinds):
        mine = np.flatnonzero(formulation.kind_of == kind)
        there = np.flatnonzero(exchange.kind_of_room == kind)
        # Rooms that somebody may stay in come first on both sides, in the order of their rows.
        order = np.argsort(np.where(row_of[mine] >= 0, row_of[mine], len(row_of)), kind="stable")
        rows = exchange.row_of_room[there]
        places = np.argsort(np.where(rows >= 0, rows, len(row_of)), kind="stable")
        number[mine[order]] = there[places]
    wanted = number[room]
    lowest = np.full(problem.n_atoms, exchange.outside, dtype=np.int64)
    highest = np.full(problem.n_atoms, -1, dtype=np.int64)
    np.minimum.at(lowest, formulation.atom_of, wanted)
    np.maximum.at(highest, formulation.atom_of, wanted)
    out = np.where(lowest == highest, lowest, exchange.outside)
    inside = np.flatnonzero(out < exchange.outside)
    views = problem.view[exchange.kind_of_room[out[inside]]]
    out[inside[~problem.allowed[views, inside]]] = exchange.outside
    return _without_clashes(exchange, out if atoms is None else out[atoms])


def _without_clashes(exchange: Exchange, room_of: IntArray) -> IntArray:
    """Remove people from rooms that are too full or in which two may not live together."""
    problem = exchange.problem
    inside = np.flatnonzero(room_of < exchange.outside)
    order = inside[np.argsort(room_of[inside], kind="stable")]
    for group in np.split(order, np.flatnonzero(np.diff(room_of[order])) + 1):
        kept: list[int] = []
        people = 0
        for atom in group.tolist():
            size = int(problem.sizes[atom])
            fits = people + size <= exchange.capacity[room_of[atom]]
            if fits and np.isfinite(problem.scores[atom, kept]).all():
                kept.append(atom)
                people += size
            else:
                room_of[atom] = exchange.outside
    return room_of


def seat_groups(exchange: Exchange, room_of: IntArray, rooms: IntArray, groups: Groups) -> None:
    """Write into ``room_of`` (n,) rooms of their kinds for groups: members, kinds and rows.

    ``rooms`` are the available rooms, used in order. A group that stays gets its room; the atoms of
    a group without an available room of its kind keep their places.
    """
    members, kinds, rows = groups
    own = {int(exchange.row_of_room[r]): int(r) for r in rooms if exchange.row_of_room[r] >= 0}
    fixed = {own[int(row)] for row in rows if row >= 0}
    free: dict[int, list[int]] = {}
    for room in rooms[::-1].tolist():
        if room not in fixed:
            free.setdefault(int(exchange.kind_of_room[room]), []).append(room)
    for group, kind, row in zip(members, kinds.tolist(), rows.tolist(), strict=True):
        if row >= 0 or free.get(kind):
            room_of[group[group >= 0]] = own[row] if row >= 0 else free[kind].pop()
