"""Versions of a placement's rooms: stored by every run, put into force or restored on purpose.

A stored version rarely fits the present exactly: people withdrew, rooms closed, locks were set.
:func:`fit_version` returns what it would change now and which students cannot get their room in it;
:func:`version_use` makes exactly these changes, if they are still what somebody confirmed.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import numpy as np
from django.db import transaction
from django.db.models import Max
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from numpy.typing import NDArray

from webapp.accounts.models import User
from webapp.common.formats import counted
from webapp.housing.errors import HousingError, PlacesChangedError
from webapp.housing.models import (
    ActKind,
    Place,
    Placement,
    PlacementEvent,
    PlacementVersion,
    Room,
    VersionOrigin,
)
from webapp.housing.pairs.records import pair_row
from webapp.housing.problem import PlacementProblem
from webapp.housing.rules import PlacementRules, misfits
from webapp.housing.selectors.outcomes import outcome
from webapp.housing.selectors.placements import PlacementRooms
from webapp.housing.selectors.suites import suite_neighbours
from webapp.housing.services.checks import forbidden_numbers, musts, rooms_taken_elsewhere
from webapp.housing.services.history import event_record, state_of
from webapp.housing.services.locking import lock_placement
from webapp.housing.services.seats import Seat, Seating
from webapp.housing.stays import ALWAYS, Stay, first_free_bed, stays_in
from webapp.housing.webhook_reports import report_finished
from webapp.jobs.models import Job
from webapp.translation.lazy import gettext_lazy

LOCKED_ELSEWHERE = gettext_lazy("Locked into another room, and stays there.")
# The history of putting a version into force, by the origin of the version.
PLACED = gettext_lazy("Version %(number)s placed: %(people)s.")
PAIRED = gettext_lazy("Version %(number)s paired: %(people)s.")
USED = gettext_lazy("Version %(number)s used: %(people)s.")
TAKEN = gettext_lazy("Version %(number)s taken into force: %(people)s.")
RESTORED = gettext_lazy("Version %(number)s restored: %(people)s.")


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


@transaction.atomic
def places_prepare(placement: Placement) -> None:
    """Give every student a place without a bed ahead of the transaction of a first version.

    SQLite has one lock for all that is written, and nobody can decide while it is held.

    Raises HousingError if the placement was removed during the computation.
    """
    locked = lock_placement(placement)
    if not locked.is_computed:
        _seat_everybody(locked)


def version_store(
    *,
    placement_id: UUID,
    job: Job | None,
    user: User | None,
    rules: Mapping[str, Any],
    rooms: Mapping[int, int | None],
    doubts: Mapping[int, float | None],
    figures: dict[str, Any],
    outcomes: dict[str, Any],
) -> PlacementVersion:
    """Store the result of a run as a version; call it in the transaction that ends the job.

    The first version of a placement is put into force at once: there is nothing to replace.

    Parameters
    ----------
    rules : the rules of the run, as a placement stores them.
    rooms : mapping of a student's key to a room's key, or None.
    doubts : mapping of a student's key to the uncertainty (share of likely roommates).
    outcomes : figures of the version, and "moved".

    Raises HousingError if the placement was removed.
    """
    found = Placement.objects.filter(pk=placement_id).first()
    if found is None:
        raise HousingError(_("The placement was removed meanwhile."))
    placement = lock_placement(found)
    version = PlacementVersion.objects.create(
        placement=placement,
        number=next_number(placement),
        origin=VersionOrigin.RUN,
        job=job,
        created_by=user,
        rules=dict(rules),
        rows=[[key, room, None, False, False, doubts.get(key)] for key, room in rooms.items()],
        figures=figures,
        outcome=outcomes,
        best_at=timezone.now(),
    )
    if not placement.is_computed:
        _seat_everybody(placement)
        _take_into_force(user, placement, version, fit_version(placement, version), PLACED)
    Placement.objects.filter(pk=placement.pk).update(clashes=[])
    placed = sum(room is not None for room in rooms.values())
    report_finished(placement, placed=placed, students=len(rooms))
    return version


def version_of_pairs_use(
    user: User | None, placement: Placement, version: PlacementVersion
) -> None:
    """Put computed pairs into force at once; the placement must be locked.

    Locks of students who were no pair are used up by it.
    """
    is_first = not placement.is_computed
    _seat_everybody(placement)
    locks = [[lock.first_id, lock.second_id] for lock in placement.locks.all()]
    placement.locks.all().delete()
    fitted = fit_version(placement, version)
    _take_into_force(user, placement, version, fitted, PAIRED if is_first else USED, locks)


def start_of(placement: Placement, problem: PlacementProblem) -> NDArray[np.int64]:
    """Return the rooms that a run starts from, as positions in the problem, -1 for none.

    They are those of a computed version that waits for a decision, or the current ones; a locked
    student is always in the current room.
    """
    waiting = waiting_version(placement)
    if waiting is None:
        return problem.previous
    position = {key: k for k, key in enumerate(problem.room_keys)}
    rows = {row[0]: position.get(row[1], -1) for row in waiting.rows if row[1] is not None}
    locked = set(placement.places.filter(is_locked=True).values_list("student_id", flat=True))
    start = problem.previous.copy()
    for k, student in enumerate(problem.students):
        if student.pk not in locked:
            start[k] = rows.get(student.pk, -1)
    return start


def waiting_version(placement: Placement) -> PlacementVersion | None:
    """Return the last computed version if nobody has decided about it yet."""
    last = placement.versions.filter(origin=VersionOrigin.RUN).first()
    return last if last is not None and last.is_waiting else None


def next_number(placement: Placement) -> int:
    """Return the number of the next version of a placement."""
    return (placement.versions.aggregate(last=Max("number"))["last"] or 0) + 1


def _seat_everybody(placement: Placement) -> None:
    """Give every student of the cohort without a place one without a bed."""
    known = placement.places.values("student")
    students = placement.cohort.students.exclude(pk__in=known).values_list("pk", "number")
    Place.objects.bulk_create(
        [Place(placement=placement, student_id=key, number=number) for key, number in students],
        batch_size=400,
    )


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
        then = copy(self._placement)
        then.rules, then.figures = self._version.rules, self._version.figures
        pairs = musts(then, list(rooms))
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


@transaction.atomic
def version_use(*, user: User, placement: Placement, number: int, digest: str) -> PlacementEvent:
    """Put a version into force, or restore an earlier one; the previous rooms become a version.

    Parameters
    ----------
    digest : digest of :class:`FittedVersion` in the question.

    Raises PlacesChangedError if the version would now make other changes.
    """
    placement = lock_placement(placement)
    version = find_version(placement, number)
    fitted = fit_version(placement, version)
    if fitted.digest != digest:
        raise PlacesChangedError(
            _(
                "The changes of %(version)s are not what the page showed any more. Nothing was "
                "changed; look at it again."
            )
            % {"version": version}
        )
    words = TAKEN if version.is_waiting else RESTORED
    return _take_into_force(user, placement, version, fitted, words)


def find_version(placement: Placement, number: int) -> PlacementVersion:
    """Return a version by its number, or raise HousingError."""
    version = placement.versions.filter(number=number).first()
    if version is None:
        raise HousingError(
            _("%(placement)s has no version %(number)s.")
            % {"placement": placement.name, "number": number}
        )
    return version


def _take_into_force(
    user: User | None,
    placement: Placement,
    version: PlacementVersion,
    fitted: FittedVersion,
    words: str,
    locks: Sequence[list[int]] = (),
) -> PlacementEvent:
    is_first = not placement.is_computed
    if not is_first:
        _save_present(user, placement)
    before = state_of(placement)
    _set_state(placement, version, fitted)
    seating = Seating(placement, fitted.seats, places=fitted.places)
    seating.check()
    seating.write(_set_uncertainty(version, fitted.places.values()))
    placed = placement.places.with_bed().count()
    if placement.is_pairs:
        people = counted(placed // 2, "pair")
    else:
        people = ngettext(
            "%(count)s student has a bed", "%(count)s students have a bed", placed
        ) % {"count": f"{placed:,}"}
    details: dict[str, Any] = {} if is_first else {"state": [before, state_of(placement)]}
    if locks and not is_first:
        details["rules"] = {"locks": {"removed": list(locks), "added": []}}
    rows = ([], []) if is_first else (seating.before, seating.after)
    return event_record(
        user=user,
        placement=placement,
        kind=ActKind.VERSION,
        verb="took a version into force",
        sentence=words % {"number": version.number, "people": people},
        before=rows[0],
        after=rows[1],
        details=details,
        is_by_hand=False,
        known_pairs=version.pairs,
        number=version.number,
        people=len(fitted.seats),
    )


def _set_state(placement: Placement, version: PlacementVersion, fitted: FittedVersion) -> None:
    """Set the version in force, with its rules and its certificate.

    Students who cannot have the version's room count as moves by hand since its certificate.
    """
    refused = sum(sentence != str(LOCKED_ELSEWHERE) for sentence in fitted.refused.values())
    placement.rules, placement.figures = version.rules, version.figures
    placement.best_at, placement.changes = version.best_at, version.changes + refused
    placement.current, placement.clashes = version, []
    placement.arrays = version.arrays
    if version.used_at is None:
        placement.revision += 1
        version.used_at, version.discarded_at = timezone.now(), None
        version.save(update_fields=["used_at", "discarded_at"])
    placement.save(
        update_fields=[
            "rules", "figures", "best_at", "changes", "current", "clashes", "revision", "arrays",
        ]
    )  # fmt: skip


def _save_present(user: User | None, placement: Placement) -> None:
    """Store the current rooms as a version, unless a version already holds them."""
    if placement.current is not None and not placement.changes and not _has_news(placement):
        return
    places = placement.places.all()
    PlacementVersion.objects.create(
        placement=placement,
        number=next_number(placement),
        origin=VersionOrigin.SAVED,
        created_by=user,
        rules=placement.rules,
        rows=[[p.student_id, p.room_id, p.bed, p.is_locked, p.has_left, p.doubt] for p in places],
        figures=placement.figures,
        outcome={**outcome(PlacementRooms(placement)), "moved": 0},
        best_at=placement.best_at,
        changes=placement.changes,
        used_at=timezone.now(),
        arrays=placement.arrays,
        pairs=[pair_row(pair) for pair in placement.pairs.all()],
    )


def _has_news(placement: Placement) -> bool:
    """Return True if an act since the version in force changed rooms, locks or withdrawals."""
    since = placement.events.filter(kind=ActKind.VERSION).first()
    events = placement.events.filter(pk__gt=since.pk if since else 0)
    return any(event.before != event.after for event in events.only("placement", "before", "after"))


def _set_uncertainty(version: PlacementVersion, places: Iterable[Place]) -> list[Place]:
    """Set the uncertainty of a version's students; return the places where it is another."""
    doubts = {row[0]: row[5] for row in version.rows}
    changed = []
    for place in places:
        doubt = doubts.get(place.student_id, place.doubt)
        if doubt != place.doubt:
            place.doubt = doubt
            changed.append(place)
    return changed


@transaction.atomic
def version_discard(*, user: User, placement: Placement, number: int) -> PlacementEvent:
    """Reject a computed version; it stays among the versions and can be restored.

    Raises HousingError for a version about which somebody has decided.
    """
    placement = lock_placement(placement)
    version = find_version(placement, number)
    if not version.is_waiting:
        raise HousingError(_("%(version)s was decided about already.") % {"version": version})
    version.discarded_at = timezone.now()
    version.save(update_fields=["discarded_at"])
    return event_record(
        user=user,
        placement=placement,
        kind=ActKind.DISCARDED,
        verb="discarded a version",
        sentence=_("Version %(number)s discarded. The rooms stay as they are.")
        % {"number": number},
        number=number,
    )
