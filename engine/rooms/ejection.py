"""Ejection chains: beds for unplaced people, each taking the place of the next (Glover 1996)."""

import numpy as np

from engine.core.arguments import BoolArray, IntArray
from engine.core.progress import StopCallback
from engine.rooms.exchange import Exchange

MOST_LOOKED_AT = 4_000  # people whose place is tried in the search for one chain
ROOMS_EMPTIED = 40  # rooms tried for people who are locked together


def place_by_chains(
    exchange: Exchange, rng: np.random.Generator, should_stop: StopCallback
) -> None:
    """Place the people for whom a chain of displacements exists; large atoms first.

    A chain ends in a free bed. If people who are locked together find no chain, the residents of a
    room are removed for them and placed by chains in turn.
    """
    if exchange.problem.must_fill:
        return  # a chain would leave and fill single beds
    sizes = exchange.problem.sizes
    waiting = np.flatnonzero(exchange.room_of == exchange.outside)
    for atom in waiting[np.argsort(-sizes[waiting], kind="stable")].tolist():
        if should_stop():
            return
        if not _place(exchange, atom) and sizes[atom] > 1:
            _place_by_emptying(exchange, atom, rng, should_stop)


def _place(exchange: Exchange, atom: int) -> bool:
    """Place one atom by a shortest chain; return False, and change nothing, if there is none."""
    chain = _chain(exchange, atom)
    if chain is None:
        return False
    atoms = np.array([a for a, _ in chain], dtype=np.int64)
    rooms = np.array([r for _, r in chain], dtype=np.int64)
    before = exchange.room_of[atoms].copy()
    exchange.move(atoms, rooms)
    if exchange.is_allowed():
        return True
    exchange.move(atoms, before)  # two atoms of the chain met in a room
    return False


def _chain(exchange: Exchange, atom: int) -> list[tuple[int, int]] | None:
    """Return (atom, room) moves of a chain found breadth first; the last atom takes free beds."""
    can_end = _fits_free_beds(exchange)
    came_from = np.full(exchange.problem.n_atoms, -1, dtype=np.int64)
    waiting, looked_at = [atom], 0
    while waiting and looked_at < MOST_LOOKED_AT:
        following: list[int] = []
        for taker in waiting:
            looked_at += 1
            if can_end[taker]:
                return _trace(exchange, came_from, atom, taker)
            giving = exchange.can_replace(taker) & (came_from < 0)
            giving[atom] = False
            found = np.flatnonzero(giving)
            came_from[found] = taker
            ends = found[can_end[found]]
            if len(ends):
                return _trace(exchange, came_from, atom, int(ends[0]))
            following += found.tolist()
        waiting = following
    return None


def _fits_free_beds(exchange: Exchange) -> BoolArray:
    """Return which atoms fit in a room with free beds, shape (n,)."""
    fits = np.zeros(exchange.problem.n_atoms, dtype=bool)
    for room in exchange.rooms_with_free_beds():
        fits |= exchange.can_join(room)
    return fits


def _trace(
    exchange: Exchange, came_from: IntArray, first: int, last: int
) -> list[tuple[int, int]] | None:
    """Return the chain from the last atom, which takes free beds, back to the first."""
    path = [last]
    while path[-1] != first:
        path.append(int(came_from[path[-1]]))
    passed = {int(exchange.room_of[a]) for a in path}
    for room in exchange.rooms_with_free_beds():
        if room not in passed and exchange.can_join(room)[last]:
            chain = [(last, int(room))]
            for taker, giver in zip(path[1:], path[:-1], strict=True):
                chain.append((taker, int(exchange.room_of[giver])))
            return chain
    return None


def _place_by_emptying(
    exchange: Exchange, atom: int, rng: np.random.Generator, should_stop: StopCallback
) -> None:
    """Give a room to people who are locked together; move its residents by chains."""
    problem = exchange.problem
    view = problem.view[exchange.kind_of_room]
    rooms = np.flatnonzero(
        problem.allowed[view, atom] & (exchange.capacity[:-1] >= problem.sizes[atom])
    )
    for room in rng.permutation(rooms)[:ROOMS_EMPTIED].tolist():
        if should_stop():
            return
        kept = exchange.room_of.copy()
        left_before = _n_left(exchange)
        put_out = np.flatnonzero(exchange.room_of == room)
        exchange.move(put_out, np.full(len(put_out), exchange.outside))
        exchange.move(np.array([atom]), np.array([room]))
        for other in put_out[np.argsort(-problem.sizes[put_out], kind="stable")].tolist():
            _place(exchange, other)
        if _n_left(exchange) < left_before:
            return
        exchange.start(kept)


def _n_left(exchange: Exchange) -> int:
    return int(exchange.problem.sizes[exchange.room_of == exchange.outside].sum())
