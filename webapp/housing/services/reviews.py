"""Staff decisions about whole rooms: accepted as they are, or held back."""

from collections.abc import Sequence

from django.db import transaction
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from webapp.accounts.models import User
from webapp.housing.errors import HousingError
from webapp.housing.models import (
    AcceptedRoom,
    ActKind,
    Placement,
    PlacementEvent,
    Room,
    RoomState,
)
from webapp.housing.services.closing import (
    check_no_published_bed,
    closed_words,
    drafts_leave,
    rooms_in_words,
    students_to_move_out,
)
from webapp.housing.services.conflicts import check_unchanged
from webapp.housing.services.history import event_record
from webapp.housing.services.locking import lock_placement
from webapp.housing.services.seats import GONE, Row, Seat, Seating

Side = tuple[str, list[int] | None]  # the room's state, and the members accepted with it


@transaction.atomic
def rooms_accept(
    *, user: User, placement: Placement, rooms: Sequence[int], accepted: bool, version: int
) -> PlacementEvent:
    """Accept rooms with the people who live there, or open the decision again.

    An accepted student may still be moved; the room is then undecided. Raises HousingError if all
    of the rooms are empty, PlacesChangedError if somebody changed one of them since ``version``.
    """
    placement = lock_placement(placement)
    found = _rooms(placement, rooms)
    check_unchanged(placement, version, rooms=found)
    members = _members(placement, list(found))
    lived_in = [key for key in found if members.get(key)]
    if not lived_in:
        raise HousingError(_("Nobody lives there, so there is nothing to accept."))
    before = sides(placement, lived_in)
    after = {key: (state, members[key] if accepted else None) for key, (state, _) in before.items()}
    put_sides(placement, after)
    what = rooms_in_words([found[key] for key in lived_in])
    if accepted:
        words = ngettext("%(rooms)s accepted.", "%(rooms)s accepted.", len(lived_in))
    else:
        words = ngettext("%(rooms)s undecided again.", "%(rooms)s undecided again.", len(lived_in))
    return event_record(
        user=user,
        placement=placement,
        kind=ActKind.REVIEWED,
        verb="accepted" if accepted else "reopened",
        sentence=words % {"rooms": what},
        rooms=_changes(before, after),
        count=len(after),
    )


@transaction.atomic
def rooms_keep(
    *, user: User, placement: Placement, rooms: Sequence[int], kept: bool, version: int
) -> PlacementEvent:
    """Hold rooms back, so that no student is placed there, or open them again.

    The state belongs to the building list, so that other placements share it. Students placed there
    by a draft then need another room; a published bed is never lost this way.

    Raises
    ------
    HousingError
        For a room that is offline, or in which a student has a published bed.
    PlacesChangedError
        If somebody changed one of the rooms since ``version``.
    """
    placement = lock_placement(placement)
    found = _rooms(placement, rooms)
    wanted = RoomState.KEPT if kept else RoomState.OPEN
    chosen = [room for room in found.values() if room.state != wanted]
    check_unchanged(placement, version, rooms=[room.pk for room in chosen])
    if not chosen:
        raise HousingError(_("This is %(wanted)s already.") % {"wanted": wanted.label.lower()})
    for room in chosen:
        if room.state == RoomState.OFFLINE:
            raise HousingError(
                _("%(room)s is offline. Open it in its building list first.") % {"room": room}
            )
    keys = [room.pk for room in chosen]
    before = sides(placement, keys)
    after: dict[int, Side] = {key: (wanted.value, side[1]) for key, side in before.items()}
    for room in chosen:
        room.state = wanted.value
    leaving = students_to_move_out(chosen) if kept else {}
    check_no_published_bed(leaving, chosen)
    put_sides(placement, after)
    sentence = closed_words(chosen, wanted)
    others = drafts_leave(user=user, leaving=leaving, why=sentence, skip=placement)
    rows_before, rows_after = _leave(placement, leaving.get(placement, {}))
    if rows_after:
        count = len(rows_after)
        own = ngettext(
            "%(count)s person needs another room here.",
            "%(count)s people need another room here.",
            count,
        ) % {"count": f"{count:,}"}
        others = f"{own} {others}".strip()
    return event_record(
        user=user,
        placement=placement,
        kind=ActKind.REVIEWED,
        verb="held back" if kept else "opened",
        sentence=f"{sentence} {others}".strip(),
        before=rows_before,
        after=rows_after,
        rooms=_changes(before, after),
        count=len(after),
    )


def _leave(placement: Placement, students: dict[int, str]) -> tuple[list[Row], list[Row]]:
    """Move students of this placement out of their rooms; return their rows before and after."""
    if not students:
        return [], []
    seating = Seating(placement, {number: Seat(None) for number in students})
    seating.write()
    return seating.before, seating.after


def _changes(before: dict[int, Side], after: dict[int, Side]) -> list[list[object]]:
    return [[key, list(before[key]), list(after[key])] for key in after]


def sides(placement: Placement, rooms: Sequence[int]) -> dict[int, Side]:
    """Return the state of rooms, and the members with whom each was accepted."""
    accepted = dict(
        placement.accepted_rooms.filter(room__in=rooms).values_list("room_id", "members")
    )
    states = Room.objects.filter(pk__in=rooms).values_list("pk", "state")
    return {key: (state, accepted.get(key)) for key, state in states}


def put_sides(placement: Placement, wanted: dict[int, Side]) -> None:
    """Write states and acceptances of rooms."""
    AcceptedRoom.objects.filter(placement=placement, room__in=list(wanted)).delete()
    AcceptedRoom.objects.bulk_create(
        [
            AcceptedRoom(placement=placement, room_id=key, members=members)
            for key, (_, members) in wanted.items()
            if members is not None
        ],
        batch_size=500,
    )
    now = dict(Room.objects.filter(pk__in=list(wanted)).values_list("pk", "state"))
    for state in {side[0] for side in wanted.values()}:
        keys = [key for key, side in wanted.items() if side[0] == state and now.get(key) != state]
        if keys:
            Room.objects.filter(pk__in=keys).update(state=state)


def _rooms(placement: Placement, keys: Sequence[int]) -> dict[int, Room]:
    rooms = Room.objects.select_for_update().filter(
        buildings=placement.buildings_id, pk__in=list(keys)
    )
    found = {room.pk: room for room in rooms}
    if len(found) != len(set(keys)):
        raise HousingError(GONE)
    return found


def _members(placement: Placement, keys: Sequence[int]) -> dict[int, list[int]]:
    members: dict[int, list[int]] = {}
    places = placement.places.filter(room__in=keys).order_by("number")
    for room, number in places.values_list("room_id", "number"):
        members.setdefault(room, []).append(number)
    return members
