"""Building lists, their rooms, and requests and choices of cohorts."""

from typing import Any
from uuid import UUID

from django.db.models import Count, Sum
from django.db.models.functions import Coalesce
from django.http import Http404

from webapp.accounts.models import Role
from webapp.api.dispatch import page_of, read_body, read_query
from webapp.api.problems import Problem
from webapp.api.registry import Request, endpoint
from webapp.api.shapes import housing as shapes
from webapp.api.shapes.base import Page, Paging, Sentence
from webapp.cohorts.models import Cohort
from webapp.common.errors import Refusal
from webapp.common.formats import counted
from webapp.common.selectors import get_or_404, get_owned_or_404, owned_by
from webapp.housing.forms import read_students
from webapp.housing.models import BuildingList, RoommateRequest
from webapp.housing.models import Room as RoomRow
from webapp.housing.selectors.buildings import rooms_matching
from webapp.housing.selectors.requests import graph_of
from webapp.housing.services import buildings as services
from webapp.housing.services import requests as wishes

TAG = "Buildings"
REQUESTS = "Requests"
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
    """Import rooms, or make an empty list."""
    name, file = request.POST.get("name", ""), request.FILES.get("file")
    if file is None:
        made = services.building_list_create(user=request.user, name=name)
        return _found(request, made.pk)
    draft = services.building_draft_create(
        user=request.user, filename=file.name, size=file.size, read=file.read
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
    """Give a building list another name."""
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
    """Remove a building list that no placement uses, for good."""
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
    """Return the rooms of a list in the order of the file."""
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
    """Add one room."""
    found = get_owned_or_404(BuildingList, request.user, buildings_id)
    values = read_body(request, shapes.NewRoom).values()
    room = services.room_save(user=request.user, buildings=found, room=None, values=values)
    return shapes.Room.model_validate(room)


def _room(request: Request, buildings_id: UUID, room_id: int) -> RoomRow:
    found = get_owned_or_404(BuildingList, request.user, buildings_id)
    return get_or_404(found.rooms.all(), room_id)


@endpoint(
    "PUT",
    "/buildings/{buildings_id}/rooms/{room_id}",
    tag=TAG,
    summary="Change a room",
    description="The whole room is sent. Refused while a bed that would go is taken.",
    body=shapes.NewRoom,
)
def change_room(request: Request, buildings_id: UUID, room_id: int) -> shapes.Room:
    """Change beds, designation, state or anything else of a room."""
    room = _room(request, buildings_id, room_id)
    values = read_body(request, shapes.NewRoom).values()
    saved = services.room_save(
        user=request.user, buildings=room.buildings, room=room, values=values
    )
    return shapes.Room.model_validate(saved)


@endpoint(
    "DELETE",
    "/buildings/{buildings_id}/rooms/{room_id}",
    tag=TAG,
    summary="Remove a room",
    status=204,
)
def remove_room(request: Request, buildings_id: UUID, room_id: int) -> None:
    """Take a room out of its list, unless somebody lives there."""
    services.room_remove(user=request.user, room=_room(request, buildings_id, room_id))


@endpoint(
    "GET",
    "/cohorts/{cohort_id}/requests",
    tag=REQUESTS,
    summary="List requests",
    description="Who asked whom is shown to staff only.",
    query=Paging,
    role=Role.STAFF,
)
def list_requests(request: Request, cohort_id: UUID) -> Page[shapes.RoommateWish]:
    """Return who wants to live with whom."""
    cohort = get_owned_or_404(Cohort, request.user, cohort_id)
    rows = RoommateRequest.objects.filter(cohort=cohort).select_related("student", "target")
    return page_of(request, rows, shapes.RoommateWish)


def _file(request: Request) -> dict[str, Any]:
    file = request.FILES.get("file")
    if file is None:
        raise Problem(400, "Send a CSV or XLSX file in the multipart field “file”.")
    return {"filename": file.name, "size": file.size, "read": file.read}


@endpoint(
    "POST",
    "/cohorts/{cohort_id}/requests",
    tag=REQUESTS,
    summary="Import requests",
    description="The id of who asks, then whom they want, in one or more columns.",
    form={"file": FILE},
    required=("file",),
)
def import_requests(request: Request, cohort_id: UUID) -> Sentence:
    """Add the requests of a file to a cohort."""
    cohort = get_owned_or_404(Cohort, request.user, cohort_id)
    found = wishes.requests_import(user=request.user, cohort=cohort, **_file(request))
    return Sentence(sentence=found.sentence)


@endpoint("DELETE", "/cohorts/{cohort_id}/requests", tag=REQUESTS, summary="Remove all requests")
def clear_requests(request: Request, cohort_id: UUID) -> Sentence:
    """Remove every request of a cohort."""
    cohort = get_owned_or_404(Cohort, request.user, cohort_id)
    count = wishes.requests_clear(user=request.user, cohort=cohort)
    return Sentence(sentence=f"{counted(count, 'request')} removed.")


@endpoint(
    "POST",
    "/cohorts/{cohort_id}/requests/match",
    tag=REQUESTS,
    summary="Match what has one close id",
)
def match_requests(request: Request, cohort_id: UUID) -> Sentence:
    """Match every unknown request that has exactly one close id."""
    cohort = get_owned_or_404(Cohort, request.user, cohort_id)
    count = wishes.requests_match_close(user=request.user, cohort=cohort)
    return Sentence(sentence=f"{counted(count, 'request')} matched.")


@endpoint(
    "POST",
    "/cohorts/{cohort_id}/requests/cut",
    tag=REQUESTS,
    summary="Leave requests out",
    body=shapes.NewCuts,
)
def cut_requests(request: Request, cohort_id: UUID) -> Sentence:
    """Leave out the requests between pairs of students, both ways."""
    cohort = get_owned_or_404(Cohort, request.user, cohort_id)
    sent = read_body(request, shapes.NewCuts)
    pairs = [tuple(read_students(pair)) for pair in sent.pairs]
    if any(len(pair) != 2 for pair in pairs):
        raise Problem(422, "pairs: two different students each.")
    count = wishes.requests_cut(user=request.user, cohort=cohort, pairs=pairs)
    return Sentence(sentence=f"{counted(count, 'request')} left out.")


@endpoint(
    "POST",
    "/cohorts/{cohort_id}/requests/{request_id}/settle",
    tag=REQUESTS,
    summary="Say whom a request means",
    description="A blank student leaves the request out.",
    body=shapes.NewAnswer,
)
def settle_request(request: Request, cohort_id: UUID, request_id: int) -> Sentence:
    """Match a request, or leave it out."""
    cohort = get_owned_or_404(Cohort, request.user, cohort_id)
    if not RoommateRequest.objects.filter(cohort=cohort, pk=request_id).exists():
        raise Http404("There is no such request.")
    answer = read_body(request, shapes.NewAnswer).student
    settled = wishes.request_settle(
        user=request.user, cohort=cohort, request_id=request_id, answer=answer
    )
    target = settled.target
    return Sentence(sentence=f"Means {target.label}." if target else "Left out.")


@endpoint(
    "POST",
    "/cohorts/{cohort_id}/preferences",
    tag=REQUESTS,
    summary="Import choices of halls",
    description="The student's id, then the choices in their order. Replaces those there are.",
    form={"file": FILE},
    required=("file",),
)
def import_preferences(request: Request, cohort_id: UUID) -> Sentence:
    """Replace the choices of a cohort by those of a file."""
    cohort = get_owned_or_404(Cohort, request.user, cohort_id)
    kept, strangers = wishes.preferences_import(user=request.user, cohort=cohort, **_file(request))
    rest = f"; {counted(strangers, 'row')} of nobody in this cohort left out" if strangers else ""
    return Sentence(sentence=f"{counted(kept, 'choice')} imported{rest}.")


@endpoint(
    "POST",
    "/cohorts/{cohort_id}/needs",
    tag=REQUESTS,
    summary="Import what students need",
    description="Who has a need, and what, in words. Replaces what a file said before; the rules "
    "of a placement say whether the column “Needs” counts.",
    form={"file": FILE},
    required=("file",),
)
def import_needs(request: Request, cohort_id: UUID) -> Sentence:
    """Replace the needs of a cohort by those of a file."""
    cohort = get_owned_or_404(Cohort, request.user, cohort_id)
    kept, strangers = wishes.needs_import(user=request.user, cohort=cohort, **_file(request))
    rest = f"; {counted(strangers, 'row')} of nobody in this cohort left out" if strangers else ""
    words = counted(kept, "student has a need", "students have needs")
    return Sentence(sentence=f"{words} now{rest}.")


@endpoint(
    "POST",
    "/cohorts/{cohort_id}/requests/circles",
    tag=REQUESTS,
    summary="Count circles of requests as groups",
)
def close_circles(request: Request, cohort_id: UUID) -> Sentence:
    """Count everybody who stands in a circle of requests as asked back."""
    cohort = get_owned_or_404(Cohort, request.user, cohort_id)
    made = sum(
        wishes.requests_close_circle(user=request.user, cohort=cohort, circle=circle)
        for circle in graph_of(cohort).circles
    )
    return Sentence(sentence=f"{counted(made, 'request')} counted as asked back.")


@endpoint(
    "POST",
    "/cohorts/{cohort_id}/requests/themselves",
    tag=REQUESTS,
    summary="Leave out who asked for themselves",
)
def drop_selves(request: Request, cohort_id: UUID) -> Sentence:
    """Leave out every request of somebody for themselves."""
    cohort = get_owned_or_404(Cohort, request.user, cohort_id)
    left = wishes.requests_drop_selves(user=request.user, cohort=cohort)
    return Sentence(sentence=f"{counted(left, 'request')} left out.")
