"""Outcome of a placement: the figures by which placements are compared."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import numpy as np

from webapp.housing.models import Placement, Room
from webapp.housing.rules import needs_in
from webapp.housing.scores import Scores
from webapp.housing.selectors.placements import PlacementRooms
from webapp.housing.selectors.wishes import CohortWishes

LOWEST = 0.05  # share of the shared rooms that count as low


def side_by_side(placements: Sequence[Placement]) -> list[PlacementRooms]:
    """Return placements of one cohort with their rooms; shared data are read once."""
    lists: dict[UUID, list[Room]] = {}
    wishes = CohortWishes(placements[0].cohort_id) if placements else None
    found = []
    for placement in placements:
        rooms = PlacementRooms(placement, wishes, lists.get(placement.buildings_id))
        lists[placement.buildings_id] = rooms.rooms
        found.append(rooms)
    return found


def scored_alike(found: Sequence[PlacementRooms], base: int) -> list[PlacementRooms]:
    """Return placements of one cohort with the scores that the weights of one of them give.

    Scores of other weights, learned or set by hand, have another unit, so
    they cannot be ranked together.
    """
    model = found[base].placement.model_id
    scores = Scores(found[base].placement)
    alike = []
    for rooms in found:
        if rooms.placement.model_id != model:
            members: dict[int, list[int]] = defaultdict(list)
            for number, room in rooms.where.items():
                if room is not None:
                    members[room].append(number)
            rooms = rooms.once_moved(
                rooms.where, scores.of_rooms(list(members.values()), rooms.stays)
            )
        alike.append(rooms)
    return alike


def low_score(rooms: PlacementRooms) -> float | None:
    """Return the score below which about 1 of 20 shared rooms lies, to a tenth."""
    known = [card.score for card in rooms.cards() if card.score is not None]
    return round(float(np.quantile(known, LOWEST)), 1) if known else None


def moved_from(before: PlacementRooms, after: PlacementRooms) -> int:
    """Return how many people of one placement live elsewhere in another."""
    return sum(before.where.get(number, room) != room for number, room in after.where.items())


def outcome(rooms: PlacementRooms, low: float | None = None) -> dict[str, Any]:
    """Return the figures by which scenarios are compared; ``low`` is the score of a low room."""
    scores = [p["score"] for p in rooms.places if p["score"] is not None]
    cards = rooms.cards()
    known = [card.score for card in cards if card.score is not None]
    first, any_choice, n_choosers = _choices_met(rooms)
    return {
        "people": len(rooms.places),
        "placed": rooms.n_placed,
        "total": sum(scores) / 2,
        "mean": sum(scores) / len(scores) if scores else None,
        "mutual": [sum(rooms.is_together(*pair) for pair in rooms.requests.mutual),
                   len(rooms.requests.mutual)],
        "one_sided": [sum(rooms.is_together(*pair) for pair in rooms.requests.one_sided),
                      len(rooms.requests.one_sided)],
        "first_choice": [first, n_choosers],
        "any_choice": [any_choice, n_choosers],
        "needs": list(_needs_met(rooms)),
        "low": low,
        "rooms_below": 0 if low is None else sum(score < low for score in known),
        "rooms_shared": len(known),
        "beds_free": sum(card.free for card in cards),
        "extra_taken": sum(card.extra_taken for card in cards),
    }  # fmt: skip


def _needs_met(rooms: PlacementRooms) -> tuple[int, int]:
    if not rooms.rules.needs:
        return 0, 0
    met_by = {room.pk: room.met_needs for room in rooms.rooms}
    met = asked = 0
    for number, attributes in rooms.wishes.attributes.items():
        needs = needs_in(attributes, rooms.rules.needs)
        if needs and number in rooms.where:
            asked += 1
            offered = met_by.get(rooms.where[number] or 0, set())
            met += all(need.casefold() in offered for need in needs)
    return met, asked


def _choices_met(rooms: PlacementRooms) -> tuple[int, int, int]:
    """Return how many students live in their first choice, in any choice, and how many chose."""
    room_of = {room.pk: room for room in rooms.rooms}
    first: set[int] = set()
    any_choice: set[int] = set()
    choosers: set[int] = set()
    for number, rank, wanted in rooms.wishes.choices:
        if number not in rooms.where:
            continue
        choosers.add(number)
        room = room_of.get(rooms.where[number] or 0)
        if room is not None and wanted.casefold() in (room.hall.casefold(), room.kind.casefold()):
            any_choice.add(number)
            if rank == 1:
                first.add(number)
    return len(first), len(any_choice), len(choosers)
