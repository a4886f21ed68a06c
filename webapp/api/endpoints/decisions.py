"""Endpoints for decisions about a placement: students, whole rooms, the waiting list, undo."""

from uuid import UUID

from webapp.api.dispatch import page_of, read_body, read_query
from webapp.api.endpoints.placements import TAG, find_placement
from webapp.api.problems import Problem
from webapp.api.registry import Request, endpoint
from webapp.api.shapes import housing as shapes
from webapp.api.shapes.base import Event, Page, Paging, Sentence
from webapp.cohorts.naming import shown_names
from webapp.common.listing import light
from webapp.common.selectors import get_or_404
from webapp.housing.errors import HousingError
from webapp.housing.forms import read_students
from webapp.housing.models import Place, Placement, PlacementEvent
from webapp.housing.selectors.placements import find_place
from webapp.housing.services import decisions
from webapp.housing.services.drafts import draft_add
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
        places = places.without_bed()
    names = shown_names(request.user, found.cohort)

    def named(rows: list[Place]) -> list[shapes.StudentPlace]:
        answers = [shapes.StudentPlace.of(place) for place in rows]
        for answer, place in zip(answers, rows, strict=True):
            answer.full_name = names.name(place.number) or None
        return answers

    return page_of(request, places, shapes.StudentPlace, prepare=named)


@endpoint(
    "POST",
    "/placements/{placement_id}/decisions",
    tag=TAG,
    summary="Decide about students' rooms",
    description="Two students are swapped; all or none is done. Refused with 409 when somebody "
    "changed the same students or rooms since the version given, with 422 when a rule would "
    "break. A change to a published placement is not made at once: it joins the caller's "
    "draft of late changes, which is confirmed at /drafts.",
    body=shapes.NewRoomDecision,
)
def decide_rooms(request: Request, placement_id: UUID) -> shapes.RoomDecided:
    """Lock, release, empty, move, swap, withdraw or return students."""
    found = find_placement(request, placement_id)
    sent = read_body(request, shapes.NewRoomDecision)
    numbers = read_students(sent.students)
    user, version = request.user, sent.version
    if sent.act in ("lock", "release"):
        event = decisions.places_lock(
            user=user,
            placement=found,
            numbers=numbers,
            locked=sent.act == "lock",
            version=version,
        )
        return _decided(found, event)
    decision = _decision(found, sent, numbers)
    if not found.is_published:
        event = decisions.decision_make(
            user=user, placement=found, decision=decision, version=version
        )
        return _decided(found, event)
    draft = draft_add(user=user, placement=found, decision=decision, version=version)
    sentence = "Added to the draft of late changes; confirm it." if draft else "The draft is empty."
    found.refresh_from_db()
    return shapes.RoomDecided(
        sentence=sentence, event=None, draft=draft.pk if draft else None, version=found.version
    )


def _decided(placement: Placement, event: PlacementEvent) -> shapes.RoomDecided:
    return shapes.RoomDecided(
        sentence=event.sentence, event=event.pk, draft=None, version=event.version
    )


@endpoint(
    "POST",
    "/placements/{placement_id}/rooms",
    tag=TAG,
    summary="Decide about whole rooms",
    description="Accepted rooms count for exactly the people who live there then; rooms that are "
    "held back take nobody: students of drafts who live there need another room then. All or "
    "none; refused with 409 when somebody changed the same rooms since.",
    body=shapes.NewDecisionOfRooms,
)
def decide_whole_rooms(request: Request, placement_id: UUID) -> shapes.RoomDecided:
    """Accept, reopen, keep or open whole rooms."""
    found = find_placement(request, placement_id)
    sent = read_body(request, shapes.NewDecisionOfRooms)
    user, rooms, version = request.user, sent.rooms, sent.version
    if sent.act in ("accept", "reopen"):
        accepted = sent.act == "accept"
        event = rooms_accept(
            user=user, placement=found, rooms=rooms, accepted=accepted, version=version
        )
    else:
        kept = sent.act == "keep"
        event = rooms_keep(user=user, placement=found, rooms=rooms, kept=kept, version=version)
    return _decided(found, event)


def _decision(
    placement: Placement, sent: shapes.NewRoomDecision, numbers: list[int]
) -> decisions.Decision:
    """Return the decision about students that a program sent."""
    if sent.act == "withdraw":
        return decisions.withdrawing(numbers)
    if sent.act == "return":
        return decisions.returning(numbers)
    if sent.act == "empty":
        return decisions.emptying(numbers)
    who = " and ".join(f"S-{number}" for number in numbers)
    if sent.act == "move":
        if sent.room is None:
            raise Problem(422, "room is missing.")
        room = placement.buildings.rooms.filter(pk=sent.room).first()
        if room is None:
            raise HousingError(f"There is no such room in {placement.buildings.name}.")
        moves = [decisions.Move(number, room.pk) for number in numbers]
        return decisions.moving(moves, f"{who} moved to {room}.")
    found = [find_place(placement, number) for number in numbers]
    places = [place for place in found if place is not None]
    if len(numbers) != 2 or len(places) != 2:
        raise HousingError("A swap takes two students of this placement.")
    first, second = places
    moves = [
        decisions.Move(first.number, second.room_id),
        decisions.Move(second.number, first.room_id),
    ]
    return decisions.moving(moves, f"{who} swapped rooms.")


@endpoint(
    "POST",
    "/placements/{placement_id}/waiting",
    tag=TAG,
    summary="Reorder the waiting list",
    body=shapes.NewTurn,
)
def reorder_waiting(request: Request, placement_id: UUID) -> Sentence:
    """Move a student without a bed to the start or the end of the waiting list."""
    found = find_placement(request, placement_id)
    sent = read_body(request, shapes.NewTurn)
    number = read_students([sent.student])[0]
    event = turn_change(user=request.user, placement=found, number=number, is_first=sent.is_first)
    return Sentence(sentence=event.sentence)


@endpoint("GET", "/placements/{placement_id}/events", tag=TAG, summary="List changes", query=Paging)
def list_events(request: Request, placement_id: UUID) -> Page[Event]:
    """Return every event of a placement, newest first."""
    found = find_placement(request, placement_id)
    return page_of(request, light(found.events.all(), "user"), Event)


@endpoint(
    "POST",
    "/placements/{placement_id}/events/{event_id}/undo",
    tag=TAG,
    summary="Undo a change",
    description="Refused when somebody changed the same students or rooms since. Undo that "
    "changes the beds of a published placement is refused with 409 unless confirmed is the number "
    "of students concerned, which the refusal names.",
    body=shapes.Confirmed,
)
def undo_event(request: Request, placement_id: UUID, event_id: int) -> Sentence:
    """Undo one event."""
    found = find_placement(request, placement_id)
    event = get_or_404(found.events.all(), event_id)
    confirmed = read_body(request, shapes.Confirmed).confirmed
    sentence = decision_undo(user=request.user, placement=found, event=event, confirmed=confirmed)
    return Sentence(sentence=sentence)
