"""Deciding about rooms by hand: move, swap, empty, lock, withdraw.

Every act names the version of the placement it saw, so that two people never overwrite each other,
and is refused with one sentence when a rule would break.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.common.formats import counted
from webapp.housing.errors import HousingError, PlacesChangedError
from webapp.housing.models import BuildingList, Place, Placement, PlacementEvent, Room
from webapp.housing.scores import Scores
from webapp.housing.services.checks import check_musts, check_rooms
from webapp.housing.told import tell_moved

Row = list[int | bool | None]


@dataclass(frozen=True, slots=True)
class Move:
    """One student's next room; None for no room."""

    number: int
    room: int | None


def lock_placement(placement: Placement, version: int | None = None) -> Placement:
    """Return the placement's row, locked until the transaction ends, with its building list.

    The building list comes first, for all alike: placements of other cohorts use the same rooms.

    Raises
    ------
    HousingError
        While its rooms are being computed: a decision taken now would be lost.
    PlacesChangedError
        If ``version`` is given and somebody changed the placement since.
    """
    BuildingList.objects.select_for_update().get(pk=placement.buildings_id)
    locked = (
        Placement.objects.select_for_update(of=("self",))
        .select_related("job", "cohort", "model", "buildings")
        .get(pk=placement.pk)
    )
    if locked.is_running:
        raise HousingError("Rooms are being worked out right now. Decide when that is done.")
    if version is not None and version != locked.version:
        raise PlacesChangedError(
            "Somebody changed this placement since the page was loaded. Nothing was changed; "
            "look at it as it is now."
        )
    return locked


@transaction.atomic
def places_move(
    *, user: User, placement: Placement, moves: Sequence[Move], version: int, sentence: str
) -> PlacementEvent:
    """Move students, all or none; two moves at once are a swap.

    Raises
    ------
    HousingError
        If a student is locked, has left or is unknown, or if a rule would break; one sentence.
    PlacesChangedError
        If somebody was quicker.
    """
    placement = lock_placement(placement, version)
    wanted = {move.number: move.room for move in moves}
    places = {p.number: p for p in _places(placement, wanted)}
    for number in wanted:
        if number not in places:
            raise HousingError(f"S-{number} is not in this placement.")
        place = places[number]
        if place.has_left:
            raise HousingError(f"{place.label} has withdrawn.")
        if place.is_locked and place.room_id != wanted[number]:
            raise HousingError(f"{place.label} is locked into {place.room}. Release it first.")
    touched = {p.room_id for p in places.values()} | set(wanted.values())
    rooms = {
        room.pk: room
        for room in Room.objects.select_for_update().filter(
            buildings=placement.buildings_id, pk__in=[key for key in touched if key]
        )
    }
    if any(key is not None and key not in rooms for key in wanted.values()):
        raise HousingError("This room is not in the building list any more.")
    members = members_after(placement, rooms, wanted)
    _check(placement, rooms, members, set(wanted.values()))
    before = [row_of(place) for place in places.values()]
    _settle(places, rooms, members, wanted)
    check_musts(placement, list(wanted))
    refresh_scores(placement, members)
    after = [row_of(place) for place in places.values()]
    return _record(user, placement, sentence, before, after, "moved")


def _places(placement: Placement, numbers: dict[int, int | None]) -> list[Place]:
    return list(placement.places.select_related("room", "student").filter(number__in=list(numbers)))


def members_after(
    placement: Placement, rooms: dict[int, Room], wanted: dict[int, int | None]
) -> dict[int, list[Place]]:
    """Return who lives in every room that is touched, once the moves are made."""
    people = placement.places.select_related("student").filter(room__in=rooms)
    members: dict[int, list[Place]] = {key: [] for key in rooms}
    for place in people:
        if place.number not in wanted:
            members[place.room_id].append(place)
    arriving = placement.places.select_related("student").filter(number__in=list(wanted))
    for place in arriving:
        key = wanted[place.number]
        if key is not None:
            members[key].append(place)
    return members


def _check(
    placement: Placement,
    rooms: dict[int, Room],
    members: dict[int, list[Place]],
    entered: set[int | None],
) -> None:
    """Hold the rooms that somebody enters against the rules."""
    keys = [key for key in entered if key is not None]
    check_rooms(placement, {rooms[key]: [place.student for place in members[key]] for key in keys})


def _settle(
    places: dict[int, Place],
    rooms: dict[int, Room],
    members: dict[int, list[Place]],
    wanted: dict[int, int | None],
) -> None:
    """Free the old beds, then take free beds of the new rooms."""
    Place.objects.filter(pk__in=[p.pk for p in places.values()]).update(
        room=None, bed=None, score=None
    )
    for place in places.values():
        place.room, place.bed, place.score = None, None, None
    for number, key in wanted.items():
        place = places[number]
        if key is None:
            continue
        taken = {p.bed for p in members[key] if p.number not in wanted}
        taken |= {p.bed for p in places.values() if p.room_id == key}
        place.room = rooms[key]
        place.bed = next(b for b in range(1, rooms[key].capacity + 1) if b not in taken)
        place.save(update_fields=["room", "bed", "score"])


def refresh_scores(placement: Placement, members: dict[int, list[Place]]) -> None:
    scores = Scores(placement)
    for group in members.values():
        if not group:
            continue
        found = scores.of_members([place.number for place in group])
        for place in group:
            Place.objects.filter(pk=place.pk).update(score=found[place.number])


@transaction.atomic
def places_lock(
    *, user: User, placement: Placement, numbers: Sequence[int], locked: bool, version: int
) -> PlacementEvent:
    """Lock students into their rooms, or release them; all or none."""
    placement = lock_placement(placement, version)
    places = list(
        placement.places.select_related("room").filter(number__in=numbers, room__isnull=False)
    )
    if not places:
        raise HousingError("Nobody lives there.")
    before = [row_of(place) for place in places]
    Place.objects.filter(pk__in=[p.pk for p in places]).update(is_locked=locked)
    for place in places:
        place.is_locked = locked
    who = places[0].label if len(places) == 1 else counted(len(places), "person", "people")
    where = f" into {places[0].room}" if len({p.room_id for p in places}) == 1 else ""
    sentence = f"{who} locked{where}." if locked else f"{who} released."
    after = [row_of(place) for place in places]
    return _record(
        user,
        placement,
        sentence,
        before,
        after,
        "locked" if locked else "released",
    )


@transaction.atomic
def students_withdraw(
    *, user: User, placement: Placement, numbers: Sequence[int], version: int
) -> PlacementEvent:
    """Mark students as withdrawn; their beds are free at once."""
    placement = lock_placement(placement, version)
    places = list(
        placement.places.select_related("room").filter(number__in=numbers, has_left=False)
    )
    if len(places) != len(set(numbers)):
        known = {place.number for place in places}
        missing = next(number for number in numbers if number not in known)
        raise HousingError(f"S-{missing} is not in this placement, or has withdrawn already.")
    before = [row_of(place) for place in places]
    left_rooms = {place.room_id: place.room for place in places if place.room_id}
    Place.objects.filter(pk__in=[p.pk for p in places]).update(
        has_left=True, room=None, bed=None, is_locked=False, score=None
    )
    for place in places:
        place.has_left, place.room, place.bed, place.is_locked = True, None, None, False
    refresh_scores(placement, members_after(placement, left_rooms, {}))
    who = places[0].label if len(places) == 1 else counted(len(places), "person", "people")
    after = [row_of(place) for place in places]
    return _record(user, placement, f"{who} withdrawn.", before, after, "withdrew")


@transaction.atomic
def students_return(
    *, user: User, placement: Placement, numbers: Sequence[int], version: int
) -> PlacementEvent:
    """Take back that students withdrew; they wait for a bed like others without one."""
    placement = lock_placement(placement, version)
    places = list(placement.places.filter(number__in=numbers, has_left=True))
    if len(places) != len(set(numbers)):
        known = {place.number for place in places}
        missing = next(number for number in numbers if number not in known)
        raise HousingError(f"S-{missing} has not withdrawn from this placement.")
    before = [row_of(place) for place in places]
    Place.objects.filter(pk__in=[p.pk for p in places]).update(has_left=False)
    for place in places:
        place.has_left = False
    who = places[0].label if len(places) == 1 else counted(len(places), "person", "people")
    after = [row_of(place) for place in places]
    return _record(user, placement, f"{who} came back.", before, after, "took back")


def row_of(place: Place) -> Row:
    """Return a place as events keep it: number, room, bed, locked, left."""
    return [place.number, place.room_id, place.bed, place.is_locked, place.has_left]


def is_change(before: list[Row], after: list[Row]) -> bool:
    """Whether anybody lives elsewhere after an act: then the certificate is of before."""
    return {row[0]: row[1] for row in before} != {row[0]: row[1] for row in after}


def _record(
    user: User,
    placement: Placement,
    sentence: str,
    before: list[Row],
    after: list[Row],
    verb: str,
) -> PlacementEvent:
    """Keep what undo needs, date the change, and write the audit line."""
    Placement.objects.filter(pk=placement.pk).update(
        version=F("version") + 1,
        changes=F("changes") + int(is_change(before, after)),
        updated_at=timezone.now(),
    )
    tell_moved(placement, before, after)
    audit(user, verb, placement, students=[f"S-{row[0]}" for row in after][:50], what=sentence)
    return PlacementEvent.objects.create(
        placement=placement,
        revision=placement.revision,
        user=user,
        sentence=sentence[:300],
        before=before,
        after=after,
    )
