"""Everything that the page of a placement needs, for the full page and for its fragments alike."""

from collections.abc import Mapping
from typing import Any

from webapp.common.parameters import digits_of, whole_number
from webapp.housing.models import Placement
from webapp.housing.selectors.placements import PlacementRooms, unplaced_reasons
from webapp.housing.selectors.rooms import room_drawer
from webapp.housing.services.placements import publish_question

KEPT = ("hall", "q", "kind", "whole", "tab", "page")


def placement_context(placement: Placement, parameters: Mapping[str, str]) -> dict[str, Any]:
    """Return the context of a placement's page under the parameters of its address."""
    kept = {name: parameters[name][:80] for name in KEPT if parameters.get(name)}
    context: dict[str, Any] = {"placement": placement, "kept": kept}
    if not placement.is_computed:
        return context
    rooms = PlacementRooms(placement)
    halls = rooms.halls()
    hall = kept.get("hall", "")
    if hall not in {entry.name for entry in halls}:
        hall = halls[0].name if halls and len(rooms.rooms) > 100 else ""
    query = kept.get("q", "").strip()
    homeless = rooms.homeless
    context |= {
        "halls": halls,
        "hall": hall,
        "is_all": not hall,
        "query": query,
        "floors": rooms.floors(
            "" if query else hall, query, kept.get("kind", ""), kept.get("whole", "")
        ),
        "kinds": sorted({(room.capacity, room.kind) for room in rooms.rooms}),
        "homeless": homeless,
        "reasons": unplaced_reasons(rooms) if homeless else {},
        "n_people": len(rooms.places),
        "n_placed": rooms.n_placed,
        "n_beds": rooms.n_beds,
        "n_rooms": len({p["room_id"] for p in rooms.places if p["room_id"]}),
        "n_mutual": len(rooms.requests.mutual),
        "publish_question": publish_question(placement, homeless),
    }
    return context | _drawer(rooms, parameters)


def _drawer(rooms: PlacementRooms, parameters: Mapping[str, str]) -> dict[str, Any]:
    """Return the drawer of the room that the address names; nothing when none is open."""
    key = whole_number(parameters.get("room", ""))
    cards = rooms.cards()
    index = next((k for k, card in enumerate(cards) if card.room.pk == key), None)
    if index is None:
        return {}
    parts = parameters.get("pair", "").split("-")
    numbers = [whole_number(digits_of(part)) for part in parts]
    pair = (numbers[0], numbers[1]) if len(numbers) == 2 and None not in numbers else None
    return {
        "opened": key,
        "drawer": room_drawer(rooms, cards[index], pair),
        "previous_room": cards[index - 1].room.pk if index else None,
        "next_room": cards[index + 1].room.pk if index + 1 < len(cards) else None,
    }
