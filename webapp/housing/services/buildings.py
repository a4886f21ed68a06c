"""Making building lists from files and by hand; each act is one transaction with its audit line."""

from collections.abc import Callable
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Max
from django.utils import timezone

from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.cohorts.services.drafts import clean_filename
from webapp.cohorts.tables.reading import check_file_size, read_table
from webapp.common.formats import counted
from webapp.files.quota import check_quota, with_fresh_count
from webapp.housing.errors import HousingError, PlacesChangedError
from webapp.housing.models import MAX_BEDS, BuildingDraft, BuildingList, Place, Room, RoomState
from webapp.housing.room_file import Column, RoomFile, guess_roles, read_rooms

MANY_COLUMNS = (Column.NEED, Column.IGNORE)  # roles that more than one column may have


@with_fresh_count
@transaction.atomic
def building_draft_create(
    *, user: User, filename: str, size: int, read: Callable[[], bytes]
) -> BuildingDraft:
    """Read an upload and guess what its columns hold; nothing is a building list yet.

    Raises
    ------
    TableError, QuotaError
        One sentence; nothing was saved.
    """
    check_file_size(size)
    table = read_table(read())
    draft = BuildingDraft.objects.create(
        organisation=user.organisation,
        created_by=user,
        filename=clean_filename(filename),
        read_as=table.description[:60],
        header=list(table.header),
        rows=[list(row) for row in table.rows],
        row_numbers=list(table.row_numbers),
        roles=guess_roles(table.header, table.rows),
    )
    audit(user, "uploaded", draft, rows=table.n_rows, columns=table.n_columns)
    check_quota(user.organisation_id, written=size)
    return draft


def building_draft_file(draft: BuildingDraft) -> RoomFile:
    """Return the rooms of a draft under its present roles."""
    return read_rooms(draft.header, draft.rows, draft.row_numbers, draft.roles)


@transaction.atomic
def building_draft_assign(*, draft: BuildingDraft, column: int, role: str) -> None:
    """Give a column of a draft a role; the column that had it is left out."""
    if role not in list(Column) or not 0 <= column < len(draft.roles):
        raise HousingError("There is no such column or use of a column.")
    draft = BuildingDraft.objects.select_for_update().get(pk=draft.pk)
    if role not in MANY_COLUMNS:
        draft.roles = [Column.IGNORE if r == role else r for r in draft.roles]
    draft.roles[column] = role
    draft.save(update_fields=["roles"])


@transaction.atomic
def building_draft_discard(*, user: User, draft: BuildingDraft) -> None:
    """Forget an upload."""
    audit(user, "discarded", draft)
    draft.delete()


def building_draft_import(*, user: User, draft: BuildingDraft, name: str) -> BuildingList:
    """Make a building list of all rooms of a draft, or of none.

    Raises
    ------
    HousingError
        If problems remain, there is no room, or the name is taken; nothing was changed.
    """
    found = building_draft_file(draft)
    if found.problems:
        raise HousingError(f"{found.problems[0].sentence} Nothing was imported.")
    name = _checked_name(name)
    try:
        with transaction.atomic():
            claimed, _ = BuildingDraft.objects.filter(pk=draft.pk).delete()
            if not claimed:
                raise PlacesChangedError("This import was finished by somebody else.")
            buildings = BuildingList.objects.create(
                organisation=user.organisation,
                created_by=user,
                name=name,
                filename=draft.filename,
            )
            Room.objects.bulk_create(
                (
                    Room(
                        buildings=buildings,
                        hall=row.hall,
                        floor=row.floor,
                        name=row.name,
                        capacity=row.capacity,
                        designation=row.designation,
                        meets=list(row.meets),
                        state=row.state,
                        note=row.note,
                        position=position,
                    )
                    for position, row in enumerate(found.rooms)
                ),
                batch_size=500,
            )
            audit(user, "imported", buildings, rooms=len(found.rooms), beds=found.n_beds)
    except IntegrityError as error:
        raise HousingError(f"There is already a building list called “{name}”.") from error
    return buildings


@transaction.atomic
def building_list_create(*, user: User, name: str) -> BuildingList:
    """Make an empty building list, to be filled by hand."""
    name = _checked_name(name)
    try:
        with transaction.atomic():
            buildings = BuildingList.objects.create(
                organisation=user.organisation, created_by=user, name=name
            )
    except IntegrityError as error:
        raise HousingError(f"There is already a building list called “{name}”.") from error
    audit(user, "created", buildings)
    return buildings


def _checked_name(name: str) -> str:
    name = " ".join(name.split())[:120]
    if not name:
        raise HousingError("The building list needs a name.")
    return name


@transaction.atomic
def room_save(
    *, user: User, buildings: BuildingList, room: Room | None, values: dict[str, Any]
) -> Room:
    """Add a room, or change one.

    Parameters
    ----------
    values : dict
        hall, floor, name, capacity (a number or None), designation, meets (list), state, note.

    Raises
    ------
    HousingError
        If a value cannot be, the name is taken in its hall, or more students live there than the
        room would have beds.
    """
    BuildingList.objects.select_for_update().get(pk=buildings.pk)
    capacity, state = values["capacity"], values["state"]
    if not values["hall"] or not values["name"]:
        raise HousingError("A room needs a hall and a name.")
    if capacity is None or not 1 <= capacity <= MAX_BEDS:
        raise HousingError(f"A room has 1 to {MAX_BEDS} beds.")
    if state not in RoomState.values:
        raise HousingError("A room is open, kept or offline.")
    room = room or Room(buildings=buildings, position=_next_position(buildings))
    if room.pk:
        taken = Place.objects.filter(room=room).aggregate(last=Max("bed"))["last"] or 0
        if taken > capacity:
            raise HousingError(f"Bed {taken} of {room} is taken. Move that student first.")
    for name in ("hall", "floor", "name", "designation", "note"):
        setattr(room, name, values[name][: Room._meta.get_field(name).max_length])
    room.capacity, room.state, room.meets = capacity, state, values["meets"]
    same = buildings.rooms.exclude(pk=room.pk).filter(hall=room.hall, name=room.name)
    if same.exists():
        raise HousingError(f"{room.hall} already has a room {room.name}.")
    is_new = room.pk is None
    room.save()
    _touch(buildings)
    audit(user, "added a room" if is_new else "changed a room", buildings, room=room.label)
    return room


def _next_position(buildings: BuildingList) -> int:
    last = buildings.rooms.aggregate(last=Max("position"))["last"]
    return 0 if last is None else last + 1


def _touch(buildings: BuildingList) -> None:
    BuildingList.objects.filter(pk=buildings.pk).update(updated_at=timezone.now())


@transaction.atomic
def room_remove(*, user: User, room: Room) -> None:
    """Take a room out of its list, unless somebody lives there."""
    places = Place.objects.filter(room=room)
    if places.exists():
        count = counted(places.count(), "student lives", "students live")
        raise HousingError(f"{count} in {room}. Close it instead, or move them first.")
    audit(user, "removed a room", room.buildings, room=room.label)
    _touch(room.buildings)
    room.delete()


@transaction.atomic
def building_list_remove(*, user: User, buildings: BuildingList, typed_name: str) -> None:
    """Remove a building list that no placement uses, when its name was typed."""
    if typed_name.strip() != buildings.name:
        raise HousingError("The name does not match. Nothing was removed.")
    used = buildings.placements.first()
    if used is not None:
        raise HousingError(f"{used.name} uses these rooms. Remove that placement first.")
    audit(user, "removed", buildings, rooms=buildings.rooms.count())
    buildings.delete()


@transaction.atomic
def building_list_rename(*, user: User, buildings: BuildingList, name: str) -> None:
    """Give a building list another name."""
    name = _checked_name(name)
    same = BuildingList.objects.filter(organisation=buildings.organisation, name=name)
    if same.exclude(pk=buildings.pk).exists():
        raise HousingError(f"There is already a building list called “{name}”.")
    audit(user, "renamed", buildings, to=name)
    BuildingList.objects.filter(pk=buildings.pk).update(name=name)
