"""Records of kernels for rooms: values of pairs and atoms, rooms to stay in, placements."""

from typing import NamedTuple

from engine.core.arguments import FloatArray, IntArray
from engine.kernels.compiling import step


class PairValues(NamedTuple):
    """Values of pairs of n atoms, scale * score + bonus."""

    scores: FloatArray  # (n, n), diagonal 0
    bonus: FloatArray  # (n, n), or (0, 0) for none
    scale: float


class StayTables(NamedTuple):
    """Rooms in which atoms may stay, e entries in all, by atom and by room."""

    start: IntArray  # (n + 1,) first entry of each atom in the next two
    room: IntArray  # (e,)
    refund: FloatArray  # (e,) gain of the atom there
    room_start: IntArray  # (rooms + 1,) first entry of each room in the next two
    room_atom: IntArray  # (e,)
    room_refund: FloatArray  # (e,)


class RoomObjective(NamedTuple):
    """Scores and limits of all placements of n atoms in rooms; the last room is outside."""

    scores: FloatArray  # (n, n), diagonal 0
    bonus: FloatArray  # (n, n) for pairs in one room, whatever its size; (0, 0) for none
    own_score: FloatArray  # (n,) sums over the pairs within an atom
    sizes: IntArray  # (n,) people
    likes: FloatArray  # (rooms, n) an atom's own contribution, very low if it may not live there
    capacity: IntArray  # (rooms,) beds
    normal: IntArray  # (rooms,) beds that cost nothing
    extra_price: float  # of each bed above the normal ones
    outside: int  # the last room: nobody is scored there
    must_fill: bool  # whether a room is full or empty


class Occupancy(NamedTuple):
    """Placement of n atoms, with sums that kernels keep up to date."""

    room_of: IntArray  # (n,)
    sums: FloatArray  # (rooms, n) scores of any atom with each room's members
    wishes: FloatArray  # (rooms, n) the same of the bonuses; (0, 0) for none
    scored: FloatArray  # (rooms,) scores of all pairs
    liked: FloatArray  # (rooms,) own contributions and bonuses
    people: IntArray  # (rooms,)


@step
def room_worth(scored: float, liked: float, people: int, normal: int, extra_price: float) -> float:
    """Return the value of a room; nobody is scored alone, and beds above normal have a price."""
    worth = liked + (scored / (people - 1) if people > 1 else 0.0)
    return worth - extra_price * (people - normal) if people > normal else worth
