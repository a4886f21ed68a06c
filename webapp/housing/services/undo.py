"""Undo: put back exactly what one act changed, if nothing else touched it since."""

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Greatest
from django.utils import timezone

from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.housing.errors import HousingError
from webapp.housing.models import Place, Placement, PlacementEvent, Room, RoomState
from webapp.housing.services.checks import check_musts, check_rooms
from webapp.housing.services.decisions import (
    is_change,
    lock_placement,
    members_after,
    refresh_scores,
    row_of,
)
from webapp.housing.services.reviews import put_sides, sides
from webapp.housing.told import tell_moved


@transaction.atomic
def decision_undo(*, user: User, placement: Placement, event: PlacementEvent) -> str:
    """Put back what one act changed, if nothing else touched those places since.

    Raises HousingError when somebody moved one of them, or when the rooms were worked out anew.
    """
    placement = lock_placement(placement)
    event = PlacementEvent.objects.select_for_update().get(pk=event.pk)
    if event.undone_at is not None:
        raise HousingError("This was undone already.")
    if event.revision != placement.revision:
        raise HousingError("The rooms were worked out anew since. Nothing was changed.")
    _put_rooms_back(placement, event)
    numbers = {row[0] for row in event.after}
    places = {p.number: p for p in placement.places.filter(number__in=numbers)}
    if any(row[0] not in places or row_of(places[row[0]]) != row for row in event.after):
        raise HousingError("Somebody changed these places since. Nothing was changed.")
    keys = {row[1] for row in event.before} | {row[1] for row in event.after}
    rooms = {room.pk: room for room in Room.objects.filter(pk__in=[key for key in keys if key])}
    Place.objects.filter(pk__in=[p.pk for p in places.values()]).update(room=None, bed=None)
    occupied = set(placement.places.filter(room__in=rooms).values_list("room_id", "bed"))
    for number, room, bed, is_locked, has_left in event.before:
        if room is not None and (room not in rooms or (room, bed) in occupied):
            raise HousingError("A bed that they had is taken by now. Nothing was changed.")
        Place.objects.filter(pk=places[number].pk).update(
            room=room, bed=bed, is_locked=is_locked, has_left=has_left, score=None
        )
    members = members_after(placement, rooms, {})
    entered = [row[1] for row in event.before if row[1] is not None]
    check_rooms(placement, {rooms[k]: [place.student for place in members[k]] for k in entered})
    check_musts(placement, numbers)
    refresh_scores(placement, members)
    event.undone_at = timezone.now()
    event.save(update_fields=["undone_at"])
    change = int(is_change(event.before, event.after))
    if placement.best_at is None or event.created_at > placement.best_at:
        change = -change  # the rooms are nearer to those of the certificate again
    Placement.objects.filter(pk=placement.pk).update(
        version=F("version") + 1,
        changes=Greatest(F("changes") + change, 0),
        updated_at=timezone.now(),
    )
    tell_moved(placement, event.after, event.before)
    audit(user, "undid", placement, what=event.sentence)
    return f"Undone: {event.sentence}"


def _put_rooms_back(placement: Placement, event: PlacementEvent) -> None:
    """Put back states and acceptances of rooms, if nobody changed them since."""
    if not event.rooms:
        return
    keys = [key for key, _, _ in event.rooms]
    now = sides(placement, keys)
    if any(key not in now or list(now[key]) != after for key, _, after in event.rooms):
        raise HousingError("Somebody changed these rooms since. Nothing was changed.")
    before = {key: (old[0], old[1]) for key, old, _ in event.rooms}
    shut = [
        key for key, old, after in event.rooms if old[0] != after[0] and old[0] != RoomState.OPEN
    ]
    if Place.objects.filter(room__in=shut).exists():
        raise HousingError("Somebody lives in one of these rooms by now. Nothing was changed.")
    put_sides(placement, before)
