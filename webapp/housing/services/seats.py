"""Putting students into beds: the only module that writes where a placement's students live.

A row is a student's entry in the history: [number, key of the room or None, bed, locked, left].
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.utils.translation import gettext as _

from webapp.database.rows import update_rows
from webapp.housing.errors import HousingError
from webapp.housing.models import Place, Placement, Room
from webapp.housing.scores import Scores
from webapp.housing.services.checks import check_musts, check_rooms
from webapp.housing.stays import ALWAYS, Stay, first_free_bed, stays_in
from webapp.translation.lazy import gettext_lazy

Row = list[Any]  # number, room, bed, is_locked, has_left: as the history keeps it in JSON
GONE = gettext_lazy("This room is not in the building list any more.")


@dataclass(frozen=True, slots=True)
class Seat:
    """The future place of one student.

    Parameters
    ----------
    room : int or None, key of the room.
    bed : int or None
        None: the student's bed of that room, or the first one that is free.
    is_locked, has_left : bool or None
        None: as it is now; a student who changes rooms is not locked.
    """

    room: int | None
    bed: int | None = None
    is_locked: bool | None = None
    has_left: bool | None = None


def row_of(place: Place) -> Row:
    """Return a place as a row of the history: number, room, bed, locked, left."""
    return [place.number, place.room_id, place.bed, place.is_locked, place.has_left]


def places_of(placement: Placement, numbers: Iterable[int]) -> dict[int, Place]:
    """Return the places of some students by number, with room and student."""
    wanted = placement.places.filter(number__in=list(numbers))
    found = wanted.select_related("room", "student").defer("student__answers")
    return {place.number: place for place in found}


class Seating:
    """Seats to be assigned, checked as a whole.

    Make it with the placement locked; with ``is_locked=False`` it is a plan, to be made again if
    the places or rules that it read have changed once the placement is locked. ``places``, if
    given, are all of the placement, read since it was locked. ``before`` and ``after`` are the rows
    of the students concerned, in the order of ``seats``.

    Raises
    ------
    HousingError
        If a student or room is unknown or a bed is taken.
    """

    def __init__(
        self,
        placement: Placement,
        seats: Mapping[int, Seat],
        *,
        is_locked: bool = True,
        places: Mapping[int, Place] | None = None,
    ) -> None:
        self.placement, self.seats, self._is_locked = placement, seats, is_locked
        self._all_places = [] if places is None else list(places.values())
        self._places = places_of(placement, seats) if places is None else places
        self._stays = stays_in(placement)
        for number in seats:
            if number not in self._places:
                raise HousingError(_("S-%(number)s is not in this placement.") % {"number": number})
        self._old_room = {number: self._places[number].room_id for number in seats}
        touched = {*self._old_room.values(), *(seat.room for seat in seats.values())} - {None}
        self._rooms = self._lock_rooms(touched)
        self._members = self._members_after()
        self.before = [row_of(self._places[number]) for number in seats]
        self.after = self._rows_after()

    def _lock_rooms(self, keys: Collection[int | None]) -> dict[int, Room]:
        rows = Room.objects.select_for_update() if self._is_locked else Room.objects.all()
        rooms = rows.filter(buildings=self.placement.buildings_id, pk__in=list(keys))
        found = {room.pk: room for room in rooms}
        if any(seat.room is not None and seat.room not in found for seat in self.seats.values()):
            raise HousingError(GONE)
        return found

    def _members_after(self) -> dict[int, list[Place]]:
        """Return the future members of each changed room."""
        members: dict[int, list[Place]] = {key: [] for key in self._rooms}
        for place in self._all_places or self._read_members():
            if place.room_id in members and place.number not in self.seats:
                members[place.room_id].append(place)
        for number, seat in self.seats.items():
            if seat.room is not None:
                members[seat.room].append(self._places[number])
        return members

    def _read_members(self) -> Iterable[Place]:
        people = self.placement.places.select_related("student").defer("student__answers")
        return people.filter(room__in=self._rooms)

    def _rows_after(self) -> list[Row]:
        taken: dict[int, list[tuple[int, Stay]]] = defaultdict(list)
        for key, people in self._members.items():
            others = [p for p in people if p.number not in self.seats]
            taken[key] = [(p.bed, self._stay(p.number)) for p in others if p.bed is not None]
        beds: dict[int, int | None] = {}
        for number, seat in self.seats.items():
            place = self._places[number]
            bed = seat.bed
            if bed is None and seat.room is not None and seat.room == place.room_id:
                bed = place.bed
            if seat.room is None or bed is None:
                continue
            stay = self._stay(number)
            if any(other == bed and stay.overlaps(days) for other, days in taken[seat.room]):
                raise HousingError(
                    _("Bed %(bed)s of %(rooms)s is taken by now.")
                    % {"bed": bed, "rooms": self._rooms[seat.room]}
                )
            taken[seat.room].append((bed, stay))
            beds[number] = bed
        for number, seat in self.seats.items():
            if seat.room is not None and number not in beds:
                stay = self._stay(number)
                found = first_free_bed(stay, taken[seat.room])
                taken[seat.room].append((found, stay))
                beds[number] = found
        return [self._row(number, seat, beds.get(number)) for number, seat in self.seats.items()]

    def _stay(self, number: int) -> Stay:
        return self._stays.get(number, ALWAYS)

    def _row(self, number: int, seat: Seat, bed: int | None) -> Row:
        place = self._places[number]
        stays = seat.room is not None and seat.room == place.room_id
        is_locked = place.is_locked and stays if seat.is_locked is None else seat.is_locked
        has_left = place.has_left if seat.has_left is None else seat.has_left
        return [number, seat.room, bed, is_locked and seat.room is not None, has_left]

    @property
    def is_move(self) -> bool:
        """Return True if any student gets another room or bed, leaves or comes back."""
        return [(r[1], r[2], r[4]) for r in self.before] != [(r[1], r[2], r[4]) for r in self.after]

    @property
    def rooms(self) -> set[int]:
        """The keys of the rooms that somebody leaves, enters or stays in."""
        return set(self._rooms)

    def check(self) -> None:
        """Raise HousingError with one sentence if a rule would break.

        Rooms that no new student enters are not checked: leaving a room breaks none of its rules.
        """
        entered = {
            seat.room for number, seat in self.seats.items() if seat.room != self._old_room[number]
        }
        if not entered:  # nobody changes rooms
            return
        checked = {
            room: [place.student for place in self._members[key]]
            for key, room in self._rooms.items()
            if key in entered
        }
        known = {key: [place.student for place in people] for key, people in self._members.items()}
        check_rooms(self.placement, checked, known)
        self._check_beds(entered)
        moved = {row[0]: row[1] for row in self.after if row[1] != self._old_room[row[0]]}
        if moved:
            check_musts(self.placement, moved)

    def _check_beds(self, entered: Collection[int | None]) -> None:
        """Raise HousingError if a room has free beds on each day of a stay, but not one for all."""
        if not self._stays:
            return
        for number, key, bed, *_rest in self.after:
            if key is not None and key in entered and bed > self._rooms[key].max_capacity:
                when = self._stay(number).words or _("all of the term")
                raise HousingError(
                    _(
                        "No bed of %(rooms)s is free for S-%(number)s (%(when)s): each bed "
                        "is taken on a part of these days."
                    )
                    % {"rooms": self._rooms[key], "number": number, "when": when}
                )

    def write(self, others: Iterable[Place] = ()) -> None:
        """Write beds and scores: old beds are freed before new ones are taken.

        ``others`` are places whose uncertainty changed, as they were given.
        """
        changed = {place.number: place for place in others}
        freed = []
        for old, row in zip(self.before, self.after, strict=True):
            if old == row:
                continue
            place = self._places[row[0]]
            place.room = None if row[1] is None else self._rooms[row[1]]
            place.bed, place.is_locked, place.has_left = row[2], row[3], row[4]
            changed[row[0]] = place
            if old[1] is not None:
                freed.append(row[0])
        if freed:
            self.placement.places.filter(number__in=freed).update(room=None, bed=None)
        if self.is_move:
            for place, score in self.scores:
                if place.score != score:
                    place.score = score
                    changed[place.number] = place
        fields = ["room", "bed", "is_locked", "has_left", "score", "doubt"]
        update_rows(list(changed.values()), fields)

    @cached_property
    def scores(self) -> list[tuple[Place, float | None]]:
        """The places in the rooms that change, and those of ``seats``, with their new scores."""
        scores = Scores(self.placement).of_rooms(
            [[place.number for place in people] for people in self._members.values() if people]
        )
        people = {p.number: p for members in self._members.values() for p in members}
        people |= {number: self._places[number] for number in self.seats}
        return [(place, scores.get(number)) for number, place in people.items()]


def seats_put(placement: Placement, seats: Mapping[int, Seat]) -> Seating:
    """Put students into rooms, all or none; return the change.

    Call it in the transaction of an act, with the placement locked. Raises HousingError with one
    sentence if a student or room is unknown, a bed is taken or a rule would break.
    """
    seating = Seating(placement, seats)
    seating.check()
    seating.write()
    return seating
