"""The choice of a room by a student, for the whole group: one act in the placement's history.

Hundreds of students choose in the same minute, and every act locks placement and building list. So
a choice is checked before the lock. Under the lock the few rows that decide are read once more: if
they are the same, the choice is written; if not, it is checked again there. The database itself
admits one student a bed, so that nobody can take a bed twice.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _

from webapp.housing.errors import HousingError
from webapp.housing.models import ActKind, Placement, Room, RoommateRequest
from webapp.housing.selectors.suites import neighbours_in_list
from webapp.housing.services.checks import forbidden_numbers, rooms_taken_elsewhere
from webapp.housing.services.history import event_record
from webapp.housing.services.locking import lock_placement
from webapp.housing.services.seats import Seat, Seating
from webapp.room_choice.errors import ChoiceConflictError, ChoiceError
from webapp.room_choice.models import ChoiceRound, RoomChoice, RoundState
from webapp.room_choice.selectors.turns import StudentTurn, turn_of
from webapp.translation.staff import staff_language

QUEUE_SECONDS = 10.0

# One thread of a process asks for the lock at a time: SQLite lets the others poll for it, and a
# thread that polls can wait for seconds while the lock is free.
_queue = threading.Lock()


class RoomTakenError(ChoiceConflictError):
    """Refusal because the room cannot take the group any more."""


@dataclass(frozen=True, slots=True)
class _Choice:
    """A checked choice: the turn, the room and the seats; no seats if nothing changes."""

    turn: StudentTurn
    room: Room
    seating: Seating | None


def room_choose(*, turn: StudentTurn, room_id: int, seen: str) -> None:
    """Choose a room for a student and the whole group.

    ``turn`` is read again; ``seen`` is the digest of the group and its rooms that the page showed.
    Choosing the room that the group has already changes nothing.

    Raises
    ------
    ChoiceError
        If the slot is not open, or too many students choose at the same moment.
    ChoiceConflictError
        If the group or its room changed since the page was made.
    RoomTakenError
        If the room cannot take the group any more.
    """
    known = _deciding_rows(turn, turn.placement, room_id)
    choice = _checked(turn, turn.placement, room_id, seen, is_locked=False)
    if choice.seating is None:
        return
    with _queued(), transaction.atomic():
        placement = _locked(turn.placement)
        is_same = choice.turn.numbers == turn.numbers and choice.turn.ends_at > timezone.now()
        if not is_same or _deciding_rows(turn, placement, room_id) != known:
            choice = _checked(turn, placement, room_id, seen, is_locked=True)
        _write(choice, placement)


@contextmanager
def _queued() -> Iterator[None]:
    """Wait for the choices of other students; raise ChoiceError if that takes too long."""
    if not _queue.acquire(timeout=QUEUE_SECONDS):
        raise ChoiceError(
            _("The server is busy. Your answer is not saved yet. Send it again soon.")
        )
    try:
        yield
    finally:
        _queue.release()


def _deciding_rows(turn: StudentTurn, placement: Placement, room_id: int) -> list[Any]:
    """Return the rows that decide whether a group may take a room.

    Two equal lists, read before and after a check, mean that the check still holds.
    """
    cohort, numbers = placement.cohort_id, turn.numbers
    rounds = ChoiceRound.objects.filter(pk=turn.round.pk, state=RoundState.OPEN)
    asked = RoommateRequest.objects.filter(cohort=cohort).filter(
        Q(student__number__in=numbers) | Q(target__number__in=numbers)
    )
    requests = list(
        asked.order_by("pk").values_list("student__number", "target__number", "is_ignored")
    )
    near = {*numbers, *(number for row in requests for number in row[:2])}
    rooms = {room_id, *(place.room_id for place in turn.places)} - {None}
    chosen = Room.objects.filter(buildings=placement.buildings_id, pk=room_id)
    suite = neighbours_in_list(placement.buildings_id, chosen).get(room_id, ())
    rooms |= set(suite)
    places = placement.places.filter(Q(number__in=near) | Q(room__in=rooms)).order_by("number")
    return [
        [placement.published_at, placement.revision, placement.current_id, placement.rules],
        list(rounds.values_list("version", flat=True)),
        requests,
        list(
            places.values_list(
                "number",
                "room_id",
                "bed",
                "is_locked",
                "has_left",
                "arrives_on",
                "leaves_on",
                "student__attributes",
            )
        ),
        list(chosen.values()),
        sorted(suite),
        forbidden_numbers(placement),
        sorted(rooms_taken_elsewhere(placement, [room_id])),
    ]


def _checked(
    turn: StudentTurn, placement: Placement, room_id: int, seen: str, *, is_locked: bool
) -> _Choice:
    """Return the choice after all checks; raise ChoiceError with one sentence if one fails."""
    now = turn_of(turn.student)
    if now is None or not now.is_open or now.placement != placement:
        raise ChoiceError(_("You cannot choose a room now."))
    room = Room.objects.filter(buildings=placement.buildings_id, pk=room_id).first()
    if room is not None and all(place.room_id == room.pk for place in now.places):
        return _Choice(now, room, None)
    if now.seen != seen:
        raise ChoiceConflictError(
            _("Your group or its room changed meanwhile. Look at it, and choose again.")
        )
    if room is None or rooms_taken_elsewhere(placement, [room.pk]):
        raise RoomTakenError(_("This room is not offered any more. These rooms are free now."))
    others = placement.places.filter(room=room).exclude(number__in=now.numbers).count()
    if others + len(now.places) > room.capacity:
        words = _("Somebody took room %(room)s a moment ago. These rooms are free now.")
        raise RoomTakenError(words % {"room": room.label})
    seats = {number: Seat(room.pk, is_locked=True) for number in now.numbers}
    try:
        seating = Seating(placement, seats, is_locked=is_locked)
        seating.check()
    except HousingError as error:  # its sentence may name other students
        words = _("Room %(room)s cannot take you any more. These rooms are free now.")
        raise RoomTakenError(words % {"room": room.label}) from error
    seating.scores  # noqa: B018  # computed here: before the lock, if there is none yet
    return _Choice(now, room, seating)


def _write(choice: _Choice, placement: Placement) -> None:
    """Write a choice that holds, with the placement locked."""
    seating, turn = choice.seating, choice.turn
    if seating is None:
        return
    seating.write()
    with staff_language():  # staff read the history, and why offers ended
        event = event_record(
            user=None,
            placement=placement,
            kind=ActKind.MOVED,
            verb="chose a room",
            sentence=_sentence(turn, choice.room),
            before=seating.before,
            after=seating.after,
            round=turn.round.name,
        )
    RoomChoice.objects.bulk_create(
        RoomChoice(
            round=turn.round, student=one, chosen_by=turn.student, room=choice.room, event=event
        )
        for one in turn.members
    )


def _locked(placement: Placement) -> Placement:
    try:
        return lock_placement(placement)
    except HousingError as error:  # the placement was removed
        raise ChoiceError(_("You cannot choose a room now.")) from error


def _sentence(turn: StudentTurn, room: Room) -> str:
    """Return the words of the history, which staff read."""
    if not turn.mates:
        return _("%(student)s chose %(room)s.") % {"student": turn.student.label, "room": room}
    return _("%(student)s chose %(room)s, also for %(others)s.") % {
        "student": turn.student.label,
        "room": room,
        "others": ", ".join(mate.label for mate in turn.mates),
    }
