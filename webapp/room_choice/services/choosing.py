"""The choice of a room by a student, for the whole group: one act in the placement's history.

Placement and building list are locked before anything is read that decides, and the database
itself admits one student a bed, so that nobody can take a bed twice.
"""

from django.db import transaction
from django.utils.translation import gettext as _

from webapp.housing.errors import HousingError
from webapp.housing.models import ActKind, Placement, Room
from webapp.housing.services.checks import rooms_taken_elsewhere
from webapp.housing.services.history import event_record
from webapp.housing.services.locking import lock_placement
from webapp.housing.services.seats import Seat, seats_put
from webapp.room_choice.errors import ChoiceConflictError, ChoiceError
from webapp.room_choice.models import RoomChoice
from webapp.room_choice.selectors.turns import StudentTurn, turn_of


class RoomTakenError(ChoiceConflictError):
    """Refusal because the room cannot take the group any more."""


@transaction.atomic
def room_choose(*, turn: StudentTurn, room_id: int, seen: str) -> None:
    """Choose a room for a student and the whole group.

    ``turn`` is read again under the lock; ``seen`` is the digest of the group and its rooms that
    the page showed. Choosing the room that the group has already changes nothing.

    Raises
    ------
    ChoiceError
        If the slot is not open.
    ChoiceConflictError
        If the group or its room changed since the page was made.
    RoomTakenError
        If the room cannot take the group any more.
    """
    placement = _locked(turn.placement)
    now = turn_of(turn.student)
    if now is None or not now.is_open or now.placement != placement:
        raise ChoiceError(_("You cannot choose a room now."))
    room = Room.objects.filter(buildings=placement.buildings_id, pk=room_id).first()
    if room is not None and all(place.room_id == room.pk for place in now.places):
        return
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
        seating = seats_put(placement, seats)
    except HousingError as error:  # its sentence may name other students
        words = _("Room %(room)s cannot take you any more. These rooms are free now.")
        raise RoomTakenError(words % {"room": room.label}) from error
    event = event_record(
        user=None,
        placement=placement,
        kind=ActKind.MOVED,
        verb="chose a room",
        sentence=_sentence(now, room),
        before=seating.before,
        after=seating.after,
        round=now.round.name,
    )
    RoomChoice.objects.bulk_create(
        RoomChoice(round=now.round, student=one, chosen_by=now.student, room=room, event=event)
        for one in now.members
    )


def _locked(placement: Placement) -> Placement:
    try:
        return lock_placement(placement)
    except HousingError as error:  # the placement was removed
        raise ChoiceError(_("You cannot choose a room now.")) from error


def _sentence(turn: StudentTurn, room: Room) -> str:
    """Return the words of the history, which staff read."""
    if not turn.mates:
        return f"{turn.student.label} chose {room}."
    others = ", ".join(mate.label for mate in turn.mates)
    return f"{turn.student.label} chose {room}, also for {others}."
