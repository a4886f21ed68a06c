"""Fitting a stored version into a placement as it is now, and the plan to put it into force.

A stored version rarely fits the present exactly: people withdrew, rooms closed, locks were set.
:func:`fit_version` returns what it would change now and which students cannot get their room in it.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext as _

from webapp.housing.errors import PlacesChangedError
from webapp.housing.models import Place, Placement, PlacementVersion, Room, VersionOrigin
from webapp.housing.rules import PlacementRules, misfits
from webapp.housing.selectors.suites import suite_neighbours
from webapp.housing.services.checks import forbidden_numbers, musts, rooms_taken_elsewhere
from webapp.housing.services.seats import Seat, Seating
from webapp.housing.stays import ALWAYS, Stay, first_free_bed, stays_in
from webapp.translation.lazy import gettext_lazy

LOCKED_ELSEWHERE = gettext_lazy("Locked into another room, and stays there.")


@dataclass(slots=True)
class FittedVersion:
    """The changes of putting a version into force now.

    Parameters
    ----------
    seats : seats by number of students whose room, or lock, would change.
    refused : why students cannot have the room that the version names, by number.
    rooms : each student's room afterwards, by number.
    here : each student's room now, by number.
    places : every place of the placement as it was read, by number.
    """

    seats: dict[int, Seat] = field(default_factory=dict)
    refused: dict[int, str] = field(default_factory=dict)
    rooms: dict[int, int | None] = field(default_factory=dict)
    here: dict[int, int | None] = field(default_factory=dict)
    places: dict[int, Place] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """Digest of the changes, to check that they are the ones that were confirmed."""
        seats = sorted(self.seats.items())
        entries = [(n, self.here[n], seat.room, seat.bed, seat.is_locked) for n, seat in seats]
        return hashlib.sha256(json.dumps(entries).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class VersionPlan:
    """A version fitted, checked and scored before the placement is locked: only writing is left.

    SQLite has one lock for all that is written, and nobody can decide while it is held. If anything
    that decided the plan has changed once the placement is locked, it is made again there.

    Parameters
    ----------
    version : the version; that of a run is not saved yet.
    known : the deciding rows from which the plan was made.
    """

    version: PlacementVersion
    fitted: FittedVersion
    seating: Seating
    known: list[Any]

    def holds(self, placement: Placement) -> bool:
        """Return True if all that decided the plan is unchanged; the placement must be locked.

        In a published placement, offers and the beds of other publications decide as well. These
        are only read under the lock, so that no plan made before it holds.
        """
        if placement.is_published:
            return False
        return _deciding_rows(placement, self.version) == self.known


def plan_version(
    placement: Placement,
    version: PlacementVersion,
    digest: str | None = None,
    *,
    is_locked: bool = False,
) -> VersionPlan:
    """Return the plan to put a version into force; ``is_locked`` if the placement is.

    Raises HousingError if a rule of the version would break, and PlacesChangedError if ``digest``,
    of the changes that somebody confirmed, is of others.
    """
    # Read before the version is fitted, so that a change in between shows under the lock.
    known = [] if is_locked else _deciding_rows(placement, version)
    fitted = fit_version(placement, version)
    if digest is not None and fitted.digest != digest:
        raise PlacesChangedError(
            _(
                "The changes of %(version)s are not what the page showed any more. Nothing was "
                "changed; look at it again."
            )
            % {"version": version}
        )
    then = _under_rules_of(version, placement)
    seating = Seating(then, fitted.seats, is_locked=is_locked, places=fitted.places)
    seating.check()
    seating.scores  # noqa: B018  # computed here: before the lock, if there is none yet
    return VersionPlan(version, fitted, seating, known)


def _under_rules_of(version: PlacementVersion, placement: Placement) -> Placement:
    """Return a copy of a placement with the rules of a version; it is never saved."""
    then = copy(placement)
    then.rules, then.figures = version.rules, version.figures
    return then


_OF_PLACES = (
    "number", "room_id", "bed", "is_locked", "has_left", "arrives_on", "leaves_on", "score", "doubt"
)  # fmt: skip


def _deciding_rows(placement: Placement, version: PlacementVersion) -> list[Any]:
    """Return the rows that decide what putting a version into force changes.

    Two equal lists, read before a plan is made and under the lock, mean that the plan still holds.
    The revision of the cohort counts all changes of what students answered and need.
    """
    places = list(placement.places.order_by("number").values_list(*_OF_PLACES))
    locks = placement.locks.order_by("pk")
    term = placement.term
    return [
        [placement.version, placement.revision, placement.current_id, placement.published_at],
        [placement.rules, placement.model_id, placement.buildings_id, placement.cohort.revision],
        [placement.term_id, term and (term.starts_on, term.ends_on)],
        places,
        list(placement.buildings.rooms.order_by("pk").values_list()),
        list(placement.pairs.order_by("pk").values_list("pk", "version")),
        list(locks.values_list("first_id", "second_id", "created_by", "created_at")),
        forbidden_numbers(placement),
        sorted(rooms_taken_elsewhere(placement)),
        stays_in(placement),
        musts(_under_rules_of(version, placement), [row[0] for row in places]),
    ]


def fit_version(placement: Placement, version: PlacementVersion) -> FittedVersion:
    """Return the changes of putting a version into force in the placement as it is now.

    Locked students stay where they are, students who withdrew stay withdrawn, and nobody gets a
    room that is closed, gone or taken by another published cohort, or that would break a rule of
    the version. Students without the version's room keep theirs where it is still free.
    """
    return _Fitting(placement, version).fitted()


_READ = (
    "placement_id", "student_id", "number", "room_id", "bed", "is_locked", "has_left", "score",
    "doubt",
    "student__cohort_id", "student__number", "student__attributes",
)  # fmt: skip


class _Fitting:
    """Fitting of a version's students into rooms, one rule after the other."""

    def __init__(self, placement: Placement, version: PlacementVersion) -> None:
        self._placement, self._version = placement, version
        self._rules = PlacementRules.from_json(version.rules)
        self._forbidden = forbidden_numbers(placement)
        self._taken = rooms_taken_elsewhere(placement)
        self._stays = stays_in(placement)
        self._rooms = {room.pk: room for room in placement.buildings.rooms.all()}
        read = placement.places.select_related("student").only(*_READ)
        self._places = {place.number: place for place in read}
        self._members: dict[int, set[int]] = {}  # who lives in each room now
        for place in self._places.values():
            if place.room_id is not None:
                self._members.setdefault(place.room_id, set()).add(place.number)
        self._rows = {row[0]: row for row in version.rows}
        self._refused: dict[int, str] = {}
        self._suites = suite_neighbours(self._rooms.values())
        self._kept: dict[int, list[Place]] = {}  # who is fitted into each room so far

    def fitted(self) -> FittedVersion:
        here = {n: p.room_id for n, p in self._places.items() if not p.has_left}
        wanted = {n: self._wanted(self._places[n]) for n in here}
        members: dict[int, list[Place]] = {}
        for number, key in sorted(wanted.items(), key=self._order):
            if key is not None:
                members.setdefault(key, []).append(self._places[number])
        rooms: dict[int, int | None] = dict.fromkeys(here)
        for key in self._unchanged_first(members):
            self._kept[key] = self._keeping_rules(key, members[key])
            for place in self._kept[key]:
                rooms[place.number] = key
        if not self._placement.is_pairs:  # nobody stays in a room without a pair
            self._keep_present_rooms(rooms, here)
        self._part_musts(rooms)
        beds = self._beds(rooms)
        seats = {n: s for n in rooms if (s := self._seat(self._places[n], rooms[n], beds.get(n)))}
        return FittedVersion(seats, self._refused, rooms, here, self._places)

    def _unchanged_first(self, members: Mapping[int, list[Place]]) -> list[int]:
        """Return the keys of the rooms; in suites, rooms whose people stay come first.

        The people of a suite who stay decide who may join them.
        """

        def comes_later(key: int) -> bool:
            people = {place.number for place in members[key]}
            return key in self._suites and people != self._members.get(key, set())

        return sorted(members, key=comes_later)

    def _order(self, entry: tuple[int, int | None]) -> tuple[bool, bool, int]:
        """Return the sort key: locked students first, then those already there, then by number."""
        place = self._places[entry[0]]
        return (not place.is_locked, place.room_id != entry[1], entry[0])

    def _wanted(self, place: Place) -> int | None:
        """Return a student's room in the version, or None if the student cannot have it."""
        row = self._rows.get(place.student_id)
        if row is None or row[4]:
            return None
        if place.is_locked:
            if row[1] is not None and row[1] != place.room_id:
                self._refused[place.number] = str(LOCKED_ELSEWHERE)
            return place.room_id
        if row[1] is None or row[1] == place.room_id:
            return row[1]
        room = self._rooms.get(row[1])
        if room is None:
            self._refused[place.number] = _("The room is not in the building list any more.")
        elif room.pk in self._taken:
            self._refused[place.number] = _(
                "%(room)s is taken in %(placement)s, which is published."
            ) % {"room": room, "placement": self._taken[room.pk].placement}
        else:
            return room.pk
        return None

    def _keeping_rules(self, key: int, people: list[Place]) -> list[Place]:
        """Return the students of a version's room who can live there; a present group stays."""
        now = self._members.get(key, set())
        if {place.number for place in people} == now:
            return people
        refused = self._misfits(self._rooms[key], people)
        self._refused |= refused
        return [place for place in people if place.number not in refused]

    def _misfits(self, room: Room, people: Sequence[Place]) -> dict[int, str]:
        students = [place.student for place in people]
        beside = [
            place.student
            for key in self._suites.get(room.pk, ())
            for place in self._kept.get(key, ())
        ]
        return misfits(room, students, self._rules, self._forbidden, self._stays, beside)

    def _keep_present_rooms(
        self, rooms: dict[int, int | None], here: Mapping[int, int | None]
    ) -> None:
        """Keep students without a room in the version where they live now, if that is free.

        In a version of earlier rooms, students who had no room have none again.
        """
        is_restored = self._version.origin == VersionOrigin.SAVED
        members: dict[int, list[int]] = {}
        for number, key in rooms.items():
            if key is not None:
                members.setdefault(key, []).append(number)
        for number in sorted(here):
            key = here[number]
            row = self._rows.get(self._places[number].student_id)
            if rooms[number] is not None or key is None:
                continue
            if is_restored and row is not None and row[1] is None and not row[4]:
                continue
            beside = [*members.get(key, []), number]
            if self._misfits(self._rooms[key], [self._places[n] for n in beside]):
                continue
            rooms[number] = key
            members[key] = beside
            self._kept.setdefault(key, []).append(self._places[number])

    def _part_musts(self, rooms: dict[int, int | None]) -> None:
        """Remove the bed of one of two students who must live together and would not."""
        pairs = musts(_under_rules_of(self._version, self._placement), list(rooms))
        for a, b in sorted(pairs):
            if rooms.get(a) is None or rooms.get(b) is None or rooms[a] == rooms[b]:
                continue
            if all(rooms[n] == self._places[n].room_id for n in (a, b)):
                continue  # they already live apart
            last = a if self._places[b].is_locked else b
            if self._places[last].is_locked:
                continue
            rooms[last] = None
            self._refused[last] = _(
                "S-%(a)s and S-%(b)s asked to live together, which is a must."
            ) % {"a": a, "b": b}

    def _beds(self, rooms: dict[int, int | None]) -> dict[int, int]:
        """Return each student's bed: the current one if they stay, the version's if it is free.

        A student for whom no bed is free on all days gets no room.
        """
        taken: dict[int, list[tuple[int, Stay]]] = {}
        beds: dict[int, int] = {}
        wishes: list[tuple[int, int, int | None]] = []
        for number, key in rooms.items():
            place = self._places[number]
            if key is None:
                continue
            if place.room_id == key and place.bed is not None:
                beds[number] = place.bed
                stay = self._stays.get(number, ALWAYS)
                taken.setdefault(key, []).append((place.bed, stay))
            else:
                row = self._rows.get(place.student_id)
                wishes.append((number, key, row[2] if row and row[1] == key else None))
        for number, key, bed in sorted(wishes, key=lambda wish: (wish[2] is None, wish[0])):
            others, stay = taken.setdefault(key, []), self._stays.get(number, ALWAYS)
            used = {other for other, days in others if days.overlaps(stay)}
            if bed is None or bed in used or bed > self._rooms[key].max_capacity:
                bed = first_free_bed(stay, others)
            if bed > self._rooms[key].max_capacity:
                self._refused[number] = _("No bed of %(rooms)s is free on all days.") % {
                    "rooms": self._rooms[key]
                }
                rooms[number] = None
                continue
            beds[number] = bed
            others.append((bed, stay))
        return beds

    def _seat(self, place: Place, room: int | None, bed: int | None) -> Seat | None:
        """Return a student's seat if it differs from the present one."""
        row = self._rows.get(place.student_id)
        was_locked = row is not None and row[1] == room and bool(row[3])
        is_locked = room is not None and (place.is_locked or was_locked)
        if (room, is_locked) == (place.room_id, place.is_locked):
            return None
        return Seat(room, bed, is_locked)
