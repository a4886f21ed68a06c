"""Endpoints for building lists and their rooms."""

from typing import Any
from uuid import UUID

from django.db.models import Count, Sum
from django.db.models.functions import Coalesce

from webapp.accounts.models import Role
from webapp.api.dispatch import page_of, read_body, read_query
from webapp.api.problems import Problem
from webapp.api.registry import Request, endpoint
from webapp.api.shapes import housing as shapes
from webapp.api.shapes.base import Page, Paging
from webapp.common.errors import Refusal
from webapp.common.selectors import get_or_404, get_owned_or_404, owned_by
from webapp.housing.models import BuildingList
from webapp.housing.models import Room as RoomRow
from webapp.housing.selectors.buildings import rooms_matching
from webapp.housing.services import buildings as services

TAG = "Buildings"
FILE = {"type": "string", "format": "binary", "description": "CSV or XLSX with a header"}
SHOWN_PROBLEMS = 50


def _counted(request: Request) -> Any:
    return owned_by(BuildingList, request.user).annotate(
        n_rooms=Count("rooms"), n_beds=Coalesce(Sum("rooms__capacity"), 0)
    )


def _found(request: Request, key: UUID) -> shapes.Buildings:
    return shapes.Buildings.model_validate(get_owned_or_404(_counted(request), request.user, key))


@endpoint("GET", "/buildings", tag=TAG, summary="List building lists", query=Paging)
def list_buildings(request: Request) -> Page[shapes.Buildings]:
    """Return the organisation's building lists, last changed first."""
    return page_of(request, _counted(request), shapes.Buildings)


@endpoint(
    "POST",
    "/buildings",
    tag=TAG,
    summary="Make a building list",
    description="From a file, one line a room or a bed, all or nothing; without a file it is empty "
    "and rooms are added one by one. Columns are used as the preview on the page would suggest.",
    form={"file": FILE, "name": {"type": "string"}},
    required=("name",),
    status=201,
)
def create_buildings(request: Request) -> shapes.Buildings:
    """Create a building list from a file of rooms, or an empty one."""
    name, file = request.POST.get("name", ""), request.FILES.get("file")
    if file is None:
        made = services.building_list_create(user=request.user, name=name)
        return _found(request, made.pk)
    draft = services.building_draft_create(
        user=request.user, filename=file.name or "", size=file.size or 0, read=file.read
    )
    try:
        problems = [one.sentence for one in services.building_draft_file(draft).problems]
        if problems:
            raise Problem(422, f"{problems[0]} Nothing was imported.", problems[:SHOWN_PROBLEMS])
        made = services.building_draft_import(user=request.user, draft=draft, name=name)
    except (Problem, Refusal):
        services.building_draft_discard(user=request.user, draft=draft)
        raise
    return _found(request, made.pk)


@endpoint("GET", "/buildings/{buildings_id}", tag=TAG, summary="Look at a building list")
def get_buildings(request: Request, buildings_id: UUID) -> shapes.Buildings:
    """Return one building list."""
    return _found(request, buildings_id)


@endpoint(
    "POST",
    "/buildings/{buildings_id}/rename",
    tag=TAG,
    summary="Rename a building list",
    body=shapes.NewName,
)
def rename_buildings(request: Request, buildings_id: UUID) -> shapes.Buildings:
    """Change the name of a building list."""
    found = get_owned_or_404(BuildingList, request.user, buildings_id)
    name = read_body(request, shapes.NewName).name
    services.building_list_rename(user=request.user, buildings=found, name=name)
    return _found(request, buildings_id)


@endpoint(
    "DELETE",
    "/buildings/{buildings_id}",
    tag=TAG,
    summary="Remove a building list",
    status=204,
    role=Role.ADMINISTRATOR,
)
def delete_buildings(request: Request, buildings_id: UUID) -> None:
    """Delete a building list that no placement uses, for good."""
    found = get_owned_or_404(BuildingList, request.user, buildings_id)
    services.building_list_remove(user=request.user, buildings=found, typed_name=found.name)


@endpoint(
    "GET",
    "/buildings/{buildings_id}/rooms",
    tag=TAG,
    summary="List rooms",
    query=shapes.RoomQuery,
)
def list_rooms(request: Request, buildings_id: UUID) -> Page[shapes.Room]:
    """Return the rooms of a building list in the order of the file."""
    found = get_owned_or_404(BuildingList, request.user, buildings_id)
    query = read_query(request, shapes.RoomQuery)
    return page_of(request, rooms_matching(found, query.hall, query.q), shapes.Room)


@endpoint(
    "POST",
    "/buildings/{buildings_id}/rooms",
    tag=TAG,
    summary="Add a room",
    body=shapes.NewRoom,
    status=201,
)
def add_room(request: Request, buildings_id: UUID) -> shapes.Room:
    """Add a room to a building list."""
    found = get_owned_or_404(BuildingList, request.user, buildings_id)
    values = read_body(request, shapes.NewRoom).values()
    saved = services.room_save(user=request.user, buildings=found, room=None, values=values)
    return shapes.Room.model_validate(saved.room)


def _room(request: Request, buildings_id: UUID, room_id: int) -> RoomRow:
    found = get_owned_or_404(BuildingList, request.user, buildings_id)
    return get_or_404(found.rooms.all(), room_id)


@endpoint(
    "PUT",
    "/buildings/{buildings_id}/rooms/{room_id}",
    tag=TAG,
    summary="Change a room",
    description="The whole room is sent. Refused while somebody with a published bed could not "
    "live there any more; students of drafts need another room then.",
    body=shapes.NewRoom,
)
def change_room(request: Request, buildings_id: UUID, room_id: int) -> shapes.Room:
    """Change the beds, designation, state or other properties of a room."""
    room = _room(request, buildings_id, room_id)
    values = read_body(request, shapes.NewRoom).values()
    saved = services.room_save(
        user=request.user, buildings=room.buildings, room=room, values=values
    )
    return shapes.Room.model_validate(saved.room)


@endpoint(
    "DELETE",
    "/buildings/{buildings_id}/rooms/{room_id}",
    tag=TAG,
    summary="Remove a room",
    status=204,
)
def remove_room(request: Request, buildings_id: UUID, room_id: int) -> None:
    """Remove a room from its list, unless somebody has a published bed there."""
    services.room_remove(user=request.user, room=_room(request, buildings_id, room_id))
