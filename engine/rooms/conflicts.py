"""What makes a placement impossible, said by name."""

from collections.abc import Sequence
from dataclasses import dataclass

from engine.crf.room_rules import RoomRules
from engine.crf.rooms import Rooms
from engine.rooms.formulation import Attributes


@dataclass(frozen=True, slots=True)
class RoomConflict:
    """One reason for which not everybody can have a room.

    Parameters
    ----------
    kind : str
        too_few_beds, too_many_beds, contradiction, unknown, or clash (a smallest set of rules).
    sentence : str, for people, naming ids.
    students : tuple of student indices that take part.
    rooms : tuple of room indices that take part.
    rules : tuple of (name of the field of RoomRules, its entry): the rules that clash. Leaving any
        one out removes the conflict.
    """

    kind: str
    sentence: str
    students: tuple[int, ...] = ()
    rooms: tuple[int, ...] = ()
    rules: tuple[tuple[str, object], ...] = ()

    @property
    def is_lack_of_beds(self) -> bool:
        """Whether some can be placed and others not, rather than rules contradicting each other."""
        return self.kind in {"too_few_beds", "too_many_beds", "clash"}


def check_room_rules(
    n_students: int,
    rooms: Rooms,
    rules: RoomRules,
    attributes: Attributes,
    *,
    ids: Sequence[str],
) -> tuple[RoomConflict, ...]:
    """Return what makes a placement of everybody impossible; empty when nothing was found."""
    beds = rooms.n_beds - sum(int(rooms.capacities[r]) for r in set(rules.closed))
    if n_students > beds:
        text = f"{n_students} students need a bed, and the rooms have {beds}."
        return (RoomConflict("too_few_beds", text),)
    return ()
