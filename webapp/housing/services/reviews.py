"""What staff say about rooms as a whole: good as it is, or kept back for somebody else."""

from collections.abc import Sequence

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.common.formats import counted
from webapp.housing.errors import HousingError
from webapp.housing.models import AcceptedRoom, Place, Placement, PlacementEvent, Room, RoomState
from webapp.housing.services.decisions import lock_placement

Side = tuple[str, list[int] | None]  # the room's state, and whom it was accepted with


@transaction.atomic
def rooms_accept(
    *, user: User, placement: Placement, rooms: Sequence[int], accepted: bool, version: int
) -> PlacementEvent:
    """Say that rooms are good with the people who live there, or open the question again.

    Nothing is tied: who is accepted may still be moved, and the room is undecided then. Raises
    HousingError when nobody lives in any of them.
    """
    placement = lock_placement(placement, version)
    found = _rooms(placement, rooms)
    members = _members(placement, list(found))
    lived_in = [key for key in found if members.get(key)]
    if not lived_in:
        raise HousingError("Nobody lives there, so there is nothing to accept.")
    before = sides(placement, lived_in)
    after = {key: (state, members[key] if accepted else None) for key, (state, _) in before.items()}
    put_sides(placement, after)
    what = _named([found[key] for key in lived_in])
    sentence = f"{what} accepted." if accepted else f"{what} undecided again."
    verb = "accepted" if accepted else "reopened"
    return _record(user, placement, sentence, verb, before, after)


@transaction.atomic
def rooms_keep(
    *, user: User, placement: Placement, rooms: Sequence[int], kept: bool, version: int
) -> PlacementEvent:
    """Keep rooms back, so that nobody is placed there, or open them again.

    The state belongs to the building list: other placements of it see the same. Raises HousingError
    for a room that somebody lives in or that is offline.
    """
    placement = lock_placement(placement, version)
    found = _rooms(placement, rooms)
    wanted = RoomState.KEPT if kept else RoomState.OPEN
    chosen = [room for room in found.values() if room.state != wanted]
    if not chosen:
        raise HousingError(f"This is {wanted.label.lower()} already.")
    for room in chosen:
        if room.state == RoomState.OFFLINE:
            raise HousingError(f"{room} is offline. Open it in its building list first.")
    place = Place.objects.filter(room__in=chosen).select_related("placement", "room").first()
    if kept and place is not None:
        raise HousingError(
            f"Somebody lives in {place.room} in {place.placement}. Empty it first, then keep it."
        )
    keys = [room.pk for room in chosen]
    before = sides(placement, keys)
    after: dict[int, Side] = {key: (wanted.value, side[1]) for key, side in before.items()}
    put_sides(placement, after)
    sentence = f"{_named(chosen)} {'kept back' if kept else 'open again'}."
    return _record(user, placement, sentence, "kept" if kept else "opened", before, after)


def sides(placement: Placement, rooms: Sequence[int]) -> dict[int, Side]:
    """Return the state of rooms, and whom each was accepted with."""
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
        raise HousingError("This room is not in the building list any more.")
    return found


def _members(placement: Placement, keys: Sequence[int]) -> dict[int, list[int]]:
    members: dict[int, list[int]] = {}
    places = placement.places.filter(room__in=keys).order_by("number")
    for room, number in places.values_list("room_id", "number"):
        members.setdefault(room, []).append(number)
    return members


def _named(rooms: Sequence[Room]) -> str:
    return str(rooms[0]) if len(rooms) == 1 else counted(len(rooms), "room")


def _record(
    user: User,
    placement: Placement,
    sentence: str,
    verb: str,
    before: dict[int, Side],
    after: dict[int, Side],
) -> PlacementEvent:
    Placement.objects.filter(pk=placement.pk).update(
        version=F("version") + 1, updated_at=timezone.now()
    )
    audit(user, verb, placement, rooms=len(after), what=sentence)
    return PlacementEvent.objects.create(
        placement=placement,
        revision=placement.revision,
        user=user,
        sentence=sentence,
        before=[],
        after=[],
        rooms=[[key, list(before[key]), list(after[key])] for key in after],
    )
