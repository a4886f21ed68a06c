"""Decisions about a placement: who lives where, whole rooms, the waiting list, undo."""

from uuid import UUID

from webapp.api.dispatch import page_of, read_body, read_query
from webapp.api.endpoints.placements import TAG, find_placement
from webapp.api.problems import Problem
from webapp.api.registry import Request, endpoint
from webapp.api.shapes import housing as shapes
from webapp.api.shapes.base import Event, Page, Paging, Sentence
from webapp.common.selectors import get_or_404
from webapp.housing.errors import HousingError
from webapp.housing.forms import read_students
from webapp.housing.models import Placement, PlacementEvent
from webapp.housing.selectors.placements import find_place
from webapp.housing.services import decisions
from webapp.housing.services.reviews import rooms_accept, rooms_keep
from webapp.housing.services.undo import decision_undo
from webapp.housing.services.waiting import turn_change


@endpoint(
    "GET",
    "/placements/{placement_id}/students",
    tag=TAG,
    summary="List who lives where",
    query=shapes.PlaceQuery,
)
def list_places(request: Request, placement_id: UUID) -> Page[shapes.StudentPlace]:
    """Return the students of a placement by id on screen, with room, bed and score."""
    found, query = find_placement(request, placement_id), read_query(request, shapes.PlaceQuery)
    places = found.places.select_related("room")
    if query.room:
        places = places.filter(room=int(query.room)) if query.room.isdecimal() else places.none()
    if query.without_room == "yes":
        places = places.filter(room__isnull=True, has_left=False)
    return page_of(request, places, shapes.StudentPlace)


@endpoint(
    "POST",
    "/placements/{placement_id}/decisions",
    tag=TAG,
    summary="Decide about students' rooms",
    description="Two students are swapped; all or none is done. Refused with 409 when the "
    "placement changed since the version given, with 422 when a rule would break.",
    body=shapes.NewRoomDecision,
)
def decide_rooms(request: Request, placement_id: UUID) -> shapes.RoomDecided:
    """Lock, release, empty, move, swap, withdraw or return."""
    found = find_placement(request, placement_id)
    sent = read_body(request, shapes.NewRoomDecision)
    event = _act(request, found, sent)
    found.refresh_from_db()
    return shapes.RoomDecided(sentence=event.sentence, event=event.pk, version=found.version)


@endpoint(
    "POST",
    "/placements/{placement_id}/rooms",
    tag=TAG,
    summary="Decide about whole rooms",
    description="Accepted rooms count for exactly the people who live there then; rooms that are "
    "kept back take nobody. All or none; refused with 409 when the placement changed since.",
    body=shapes.NewDecisionOfRooms,
)
def decide_whole_rooms(request: Request, placement_id: UUID) -> shapes.RoomDecided:
    """Accept, reopen, keep or open rooms."""
    found = find_placement(request, placement_id)
    sent = read_body(request, shapes.NewDecisionOfRooms)
    options = {
        "user": request.user,
        "placement": found,
        "rooms": sent.rooms,
        "version": sent.version,
    }
    if sent.act in ("accept", "reopen"):
        event = rooms_accept(accepted=sent.act == "accept", **options)
    else:
        event = rooms_keep(kept=sent.act == "keep", **options)
    found.refresh_from_db()
    return shapes.RoomDecided(sentence=event.sentence, event=event.pk, version=found.version)


def _act(request: Request, placement: Placement, sent: shapes.NewRoomDecision) -> PlacementEvent:
    numbers = read_students(sent.students)
    options = {"user": request.user, "placement": placement, "version": sent.version}
    if sent.act in ("lock", "release"):
        return decisions.places_lock(numbers=numbers, locked=sent.act == "lock", **options)
    if sent.act == "withdraw":
        return decisions.students_withdraw(numbers=numbers, **options)
    if sent.act == "return":
        return decisions.students_return(numbers=numbers, **options)
    who = " and ".join(f"S-{number}" for number in numbers)
    if sent.act == "empty":
        moves = [decisions.Move(number, None) for number in numbers]
        return decisions.places_move(moves=moves, sentence=f"{who} moved out.", **options)
    if sent.act == "move":
        if sent.room is None:
            raise Problem(422, "room is missing.")
        room = placement.buildings.rooms.filter(pk=sent.room).first()
        if room is None:
            raise HousingError(f"There is no such room in {placement.buildings.name}.")
        moves = [decisions.Move(number, room.pk) for number in numbers]
        return decisions.places_move(moves=moves, sentence=f"{who} moved to {room}.", **options)
    places = [find_place(placement, number) for number in numbers]
    if len(places) != 2 or any(place is None for place in places):
        raise HousingError("A swap takes two students of this placement.")
    first, second = places
    moves = [
        decisions.Move(first.number, second.room_id),
        decisions.Move(second.number, first.room_id),
    ]
    return decisions.places_move(moves=moves, sentence=f"{who} swapped rooms.", **options)


@endpoint(
    "POST",
    "/placements/{placement_id}/waiting",
    tag=TAG,
    summary="Reorder the waiting list",
    body=shapes.NewTurn,
)
def reorder_waiting(request: Request, placement_id: UUID) -> Sentence:
    """Put somebody without a bed first on the waiting list, or last."""
    found = find_placement(request, placement_id)
    sent = read_body(request, shapes.NewTurn)
    number = read_students([sent.student])[0]
    sentence = turn_change(
        user=request.user, placement=found, number=number, is_first=sent.is_first
    )
    return Sentence(sentence=sentence)


@endpoint("GET", "/placements/{placement_id}/events", tag=TAG, summary="List changes", query=Paging)
def list_events(request: Request, placement_id: UUID) -> Page[Event]:
    """Return what staff changed, newest first."""
    found = find_placement(request, placement_id)
    return page_of(request, found.events.select_related("user"), Event)


@endpoint(
    "POST",
    "/placements/{placement_id}/events/{event_id}/undo",
    tag=TAG,
    summary="Undo a change",
)
def undo_event(request: Request, placement_id: UUID, event_id: int) -> Sentence:
    """Put back what one change did, if nothing else touched those places since."""
    found = find_placement(request, placement_id)
    event = get_or_404(found.events.all(), event_id)
    sentence = decision_undo(user=request.user, placement=found, event=event)
    return Sentence(sentence=sentence)
