"""Endpoints for rooms of a placement, alternatives of a student, scenarios and the waiting list."""

from functools import partial
from uuid import UUID

from webapp.api.dispatch import read_query
from webapp.api.endpoints.placements import TAG, find_placement
from webapp.api.problems import Problem
from webapp.api.registry import Request, endpoint
from webapp.api.shapes import rooms as shapes
from webapp.api.shapes.base import Page, Paging
from webapp.cohorts.models import Cohort
from webapp.cohorts.naming import numbers_meant, shown_names
from webapp.common.selectors import get_or_404, get_owned_or_404
from webapp.housing.forms import read_students
from webapp.housing.scores import Scores
from webapp.housing.selectors.choices import choices_of
from webapp.housing.selectors.filters import MISSED, RoomFilter, matching_cards
from webapp.housing.selectors.offers import beds_for
from webapp.housing.selectors.outcomes import (
    low_score,
    moved_from,
    outcome,
    scored_alike,
    side_by_side,
)
from webapp.housing.selectors.placements import PlacementRooms, unplaced_reasons
from webapp.housing.selectors.rooms import room_history
from webapp.housing.selectors.scenarios import base_of, compared_placements


@endpoint(
    "GET",
    "/placements/{placement_id}/rooms",
    tag=TAG,
    summary="List rooms with who lives there",
    query=shapes.PlacedRoomQuery,
)
def list_placed_rooms(request: Request, placement_id: UUID) -> Page[shapes.PlacedRoom]:
    """Return the rooms that match the filters, in the order of the building list."""
    found = find_placement(request, placement_id)
    query = read_query(request, shapes.PlacedRoomQuery)
    wanted = RoomFilter.of(
        query.model_dump(exclude={"limit", "offset"}),
        partial(numbers_meant, request.user, found.cohort),
    )
    if query.look == MISSED and not request.user.is_staff_member:
        raise Problem(403, "Only staff see which requests are honoured.")
    cards = matching_cards(PlacementRooms(found), wanted)
    names = shown_names(request.user, found.cohort)
    return Page[shapes.PlacedRoom](
        items=[
            shapes.PlacedRoom.of(card, names, with_requests=request.user.is_staff_member)
            for card in cards[query.offset : query.offset + query.limit]
        ],
        total=len(cards),
        limit=query.limit,
        offset=query.offset,
    )


@endpoint(
    "GET",
    "/placements/{placement_id}/rooms/{room_id}/history",
    tag=TAG,
    summary="Look at the history of a room's beds",
    query=Paging,
)
def get_room_history(request: Request, placement_id: UUID, room_id: int) -> Page[shapes.BedChange]:
    """Return the students who moved in or out by hand or by late changes, newest first."""
    found, query = find_placement(request, placement_id), read_query(request, Paging)
    room = get_or_404(found.buildings.rooms.all(), room_id)
    history = room_history(found, room)
    return Page[shapes.BedChange](
        items=[
            shapes.BedChange.of(entry)
            for entry in history[query.offset : query.offset + query.limit]
        ],
        total=len(history),
        limit=query.limit,
        offset=query.offset,
    )


@endpoint(
    "GET",
    "/placements/{placement_id}/students/{student}/choices",
    tag=TAG,
    summary="Find another room for a student",
    description="Rooms with a free bed and swaps that break no rule, with what each changes; take "
    "one at /decisions.",
    query=shapes.ChoiceQuery,
)
def get_choices(request: Request, placement_id: UUID, student: str) -> shapes.Choices:
    """Return the rooms and swaps that one student could have instead."""
    found, query = find_placement(request, placement_id), read_query(request, shapes.ChoiceQuery)
    number = read_students([student])[0]
    return shapes.Choices.of(choices_of(PlacementRooms(found), number, query.q[:80]))


@endpoint(
    "GET",
    "/placements/{placement_id}/waiting",
    tag=TAG,
    summary="Look at the waiting list",
    query=Paging,
)
def list_waiting(request: Request, placement_id: UUID) -> Page[shapes.Waiting]:
    """Return the students without a bed, in order, with the best free beds that break no rule."""
    found, query = find_placement(request, placement_id), read_query(request, Paging)
    rooms = PlacementRooms(found)
    numbers = rooms.homeless[query.offset : query.offset + query.limit]
    offers = beds_for(rooms, numbers, Scores(found)) if numbers else {}
    needs = unplaced_reasons(rooms) if numbers else {}
    return Page[shapes.Waiting](
        items=[shapes.Waiting.of(n, needs.get(n, ""), offers[n]) for n in numbers],
        total=len(rooms.homeless),
        limit=query.limit,
        offset=query.offset,
    )


@endpoint(
    "GET",
    "/cohorts/{cohort_id}/scenarios",
    tag=TAG,
    summary="Compare the scenarios of a cohort",
    description=(
        "The placements that are worked out, at most four, side by side. All scores are by the "
        "weights of the published one, or of the first: scores of other weights have another unit."
    ),
    query=Paging,
)
def list_scenarios(request: Request, cohort_id: UUID) -> Page[shapes.Scenario]:
    """Return each scenario's rules and figures, and the number of people who would move."""
    query = read_query(request, Paging)
    chosen, published = compared_placements(get_owned_or_404(Cohort, request.user, cohort_id))
    position = base_of(chosen, published)
    found = scored_alike(side_by_side(chosen), position) if chosen else []
    base = found[position] if found else None
    low = low_score(base) if base else None
    items = [
        shapes.Scenario.of_row(
            rooms.placement,
            outcome(rooms, low),
            None if published is None or base is None else moved_from(base, rooms),
        )
        for rooms in found[query.offset : query.offset + query.limit]
    ]
    return Page[shapes.Scenario](
        items=items, total=len(found), limit=query.limit, offset=query.offset
    )
