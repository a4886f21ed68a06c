"""Contexts of the page of a placement, for the full page and for its fragments alike."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from django.utils.translation import gettext as _

from webapp.accounts.models import User
from webapp.cohorts.naming import numbers_meant
from webapp.common.listing import page_at
from webapp.common.parameters import digits_of, whole_number
from webapp.housing.errors import HousingError
from webapp.housing.models import Placement, RoomState
from webapp.housing.models.building import kind_in_words
from webapp.housing.selectors.drafts import drafts_of
from webapp.housing.selectors.filters import (
    ANYBODY,
    LOOKS,
    MISSED,
    RoomFilter,
    looks_without_requests,
    matching_cards,
)
from webapp.housing.selectors.need_meanings import open_needs
from webapp.housing.selectors.needs import uncounted_needs
from webapp.housing.selectors.placements import (
    Person,
    PlacementRooms,
    RoomCard,
    floors_of,
    unplaced_reasons,
)
from webapp.housing.selectors.publication import publish_question
from webapp.housing.selectors.rooms import room_drawer
from webapp.housing.selectors.versions import waiting_context
from webapp.housing.services.placements import left_out_of
from webapp.housing.stays import ALWAYS
from webapp.matching.selectors.models import learned_since
from webapp.translation.lazy import gettext_lazy

VIEWS = ("rooms", "table", "students")
FILTERS = ("hall", "floor", "q", "kind", "look", "designation")
KEPT = (*FILTERS, "view", "sort", "whole", "page")
A_PAGE = 50  # rows of a table
SHOWN_WHOLE = 120  # a filter with at most this many rooms shows all of them
MANY = 60  # a decision about at least this many rooms renders the whole page again
SMALL = 100  # with at most this many rooms, all halls are shown at once
SORTS = {
    "": gettext_lazy("As in the list"),
    "score": gettext_lazy("Lowest score first"),
    "doubt": gettext_lazy("Most doubt first"),
}


@dataclass(frozen=True, slots=True)
class StudentRow:
    """One line of the list by student; ``card`` is None without a room."""

    person: Person
    card: RoomCard | None
    others: tuple[int, ...]
    reason: str = ""


def placement_context(
    placement: Placement, parameters: Mapping[str, str], user: User
) -> dict[str, Any]:
    """Return the context of a placement's page for the parameters of its address."""
    kept = {name: parameters[name][:80] for name in KEPT if parameters.get(name)}
    if kept.get("look") == MISSED and not user.is_staff_member:
        del kept["look"]  # it tells who asked for somebody in vain
    context: dict[str, Any] = {
        "placement": placement,
        "kept": kept,
        "successor": learned_since(placement.model),
        "uncounted": uncounted_needs(placement),
        "left_out": left_out_of(placement),
    }
    if not placement.is_computed:
        attributes = placement.cohort.students.values_list("attributes", flat=True)
        named = placement.buildings.rooms.all()
        return context | {"unnamed_needs": open_needs(placement.cohort, named, attributes)}
    rooms = PlacementRooms(placement)
    halls = rooms.halls()
    wanted = _wanted(rooms, kept, user)
    cards = matching_cards(rooms, wanted)
    view = kept.get("view", "")
    view = view if view in VIEWS else VIEWS[0]
    return (
        context
        | _facts(rooms)
        | {
            "halls": halls,
            "hall": wanted.hall,
            "is_all": not wanted.hall,
            "query": wanted.q,
            "wanted": wanted,
            "view": view,
            "matching": cards,
            "n_matching": len(cards),
            "sorts": SORTS,
            "unnamed_needs": open_needs(
                placement.cohort, rooms.rooms, rooms.wishes.attributes.values()
            ),
            "looks": LOOKS if user.is_staff_member else looks_without_requests(),
            **_choices(rooms, wanted.hall),
        }
        | _listed(rooms, cards, view, kept, wanted)
        | _drawer(rooms, parameters, cards)
        | waiting_context(placement, len(rooms.homeless))
        | {"drafts": drafts_of(placement, user) if user.is_staff_member else []}
    )


def drawer_context(
    placement: Placement, parameters: Mapping[str, str], user: User
) -> dict[str, Any]:
    """Return the context of the drawer alone, for a click on a room of the page."""
    kept = {name: parameters[name][:80] for name in KEPT if parameters.get(name)}
    rooms = PlacementRooms(placement)
    cards = matching_cards(rooms, _wanted(rooms, kept, user))
    return {"placement": placement, "kept": kept} | _drawer(rooms, parameters, cards)


def changed_context(
    placement: Placement, parameters: Mapping[str, str], changed: Collection[int], user: User
) -> dict[str, Any]:
    """Return the context of the changes of a decision: some rooms, the figures and the drawer."""
    kept = {name: parameters[name][:80] for name in KEPT if parameters.get(name)}
    rooms = PlacementRooms(placement)
    wanted = _wanted(rooms, kept, user)
    cards = [card for card in rooms.cards() if card.room.pk in changed]
    matching = matching_cards(rooms, wanted)
    view = kept.get("view", "")
    context = {"placement": placement, "kept": kept, "view": view, "changed": cards}
    if view == "students":
        context["student_rows"] = [
            _row(person, card) for card in cards for person in card.people
        ] + _homeless_rows(rooms)
    return (
        context
        | _facts(rooms)
        | {
            "halls": rooms.halls(),
            "hall": wanted.hall,
            "is_all": not wanted.hall,
            "query": wanted.q,
            "wanted": wanted,
            "n_matching": len(matching),
        }
        | _drawer(rooms, parameters, matching)
    )


def rooms_matching(
    placement: Placement, parameters: Mapping[str, str], user: User
) -> list[RoomCard]:
    """Return the rooms that the filters of an address show, on all pages."""
    kept = {name: parameters[name][:80] for name in KEPT if parameters.get(name)}
    rooms = PlacementRooms(placement)
    return matching_cards(rooms, _wanted(rooms, kept, user)) if placement.is_computed else []


def concerned_rooms(found: Sequence[RoomCard], act: str) -> list[RoomCard]:
    """Return the rooms of a bulk act that it changes, without empty or held-back ones."""
    match act:
        case "accept":
            return [card for card in found if card.people and not card.is_accepted]
        case "reopen":
            return [card for card in found if card.is_accepted]
        case "lock":
            return [card for card in found if card.people and not card.is_locked]
        case "release":
            return [card for card in found if any(one.is_locked for one in card.people)]
        case "empty":
            return [card for card in found if card.people]
        case "keep":
            return [card for card in found if card.room.is_open]
        case "open":
            return [card for card in found if card.room.state == RoomState.KEPT]
    raise HousingError(_("There is no such decision."))


def _wanted(rooms: PlacementRooms, kept: Mapping[str, str], user: User) -> RoomFilter:
    """Return the filters of an address; without one, the first hall if there are many rooms."""
    wanted = RoomFilter.of(kept, partial(numbers_meant, user, rooms.placement.cohort))
    hall = shown_hall(rooms, wanted.hall)
    return replace(wanted, hall="" if wanted.narrows and hall != wanted.hall else hall)


def shown_hall(rooms: PlacementRooms, wanted: str | None) -> str:
    """Return the hall whose rooms a page shows, "" for all halls.

    Without the name of a hall, and unless "all" is wanted, a large building list shows its first.
    """
    halls = list(dict.fromkeys(room.hall for room in rooms.rooms))
    if wanted in halls:
        return str(wanted)
    return halls[0] if len(rooms.rooms) > SMALL and wanted != "all" else ""


def _facts(rooms: PlacementRooms) -> dict[str, Any]:
    homeless = rooms.homeless
    lived_in = [card for card in rooms.cards() if card.people]
    return {
        "homeless": homeless,
        "reasons": unplaced_reasons(rooms) if homeless else {},
        "n_people": len(rooms.places),
        "n_placed": rooms.n_placed,
        "n_beds": rooms.n_beds,
        "n_extra": rooms.n_extra,
        "free_beds": rooms.free_in_words,
        "n_extra_taken": sum(card.extra_taken for card in rooms.cards()),
        "n_rooms": len(lived_in),
        "n_all_rooms": len(rooms.rooms),
        "n_decided": sum(card.is_accepted or card.is_locked for card in lived_in),
        "n_mutual": len(rooms.requests.mutual),
        # Called by the template only where an administrator may publish.
        "publish_question": lambda: publish_question(rooms.placement, homeless),
    }


def _choices(rooms: PlacementRooms, hall: str) -> dict[str, Any]:
    designations = {room.designation or ANYBODY for room in rooms.rooms}
    floors = dict.fromkeys(r.floor for r in rooms.rooms if hall and r.hall == hall and r.floor)
    return {
        "kinds": sorted({(room.capacity, kind_in_words(room.capacity)) for room in rooms.rooms}),
        "designations": sorted(designations) if len(designations) > 1 else [],
        "floor_names": list(floors) if len(floors) > 1 else [],
    }


def _listed(
    rooms: PlacementRooms,
    cards: Sequence[RoomCard],
    view: str,
    kept: Mapping[str, str],
    wanted: RoomFilter,
) -> dict[str, Any]:
    """Return the rows of the chosen view."""
    sort = kept.get("sort", "") if kept.get("sort", "") in SORTS else ""
    if view == "rooms":
        is_whole = wanted.narrows and len(cards) <= SHOWN_WHOLE
        return {"floors": floors_of(cards, kept.get("whole", ""), is_whole=is_whole)}
    if view == "table":
        ordered = sorted(cards, key=lambda card: _order(card.score, card.doubt, sort))
        page = page_at(ordered, kept.get("page"), A_PAGE)
        return {"sort": sort, "page_of": page, "table_cards": list(page.object_list)}
    rows = [_row(person, card) for card in cards for person in card.people]
    if wanted.q:
        rows = [row for row in rows if wanted.names(row.person)] or rows
    if sort:
        rows.sort(key=lambda row: _order(row.person.score, row.person.doubt, sort))
    else:
        rows.sort(key=lambda row: row.person.number)
    waiting = [] if wanted.narrows and not wanted.q else _homeless_rows(rooms)
    if wanted.q:
        waiting = [row for row in waiting if wanted.names(row.person)]
    page = page_at(waiting + rows, kept.get("page"), A_PAGE)
    return {"sort": sort, "page_of": page, "student_rows": list(page.object_list)}


def _order(score: float | None, doubt: float | None, sort: str) -> float:
    value = score if sort == "score" else None if doubt is None else -doubt
    return 0.0 if not sort else float("inf") if value is None else value


def _row(person: Person, card: RoomCard) -> StudentRow:
    days = person.stay or ALWAYS
    others = tuple(
        other.number
        for other in card.people
        if other.number != person.number and days.overlaps(other.stay or ALWAYS)
    )
    return StudentRow(person, card, others)


def _homeless_rows(rooms: PlacementRooms) -> list[StudentRow]:
    reasons = unplaced_reasons(rooms)
    return [
        StudentRow(Person(n, None, False, False, False), None, (), reasons.get(n, ""))
        for n in rooms.homeless
    ]


def _drawer(
    rooms: PlacementRooms, parameters: Mapping[str, str], listed: Sequence[RoomCard]
) -> dict[str, Any]:
    """Return the drawer of the room that the address names; nothing if none is open."""
    key = whole_number(parameters.get("room", ""))
    cards = rooms.cards()
    index = next((k for k, card in enumerate(cards) if card.room.pk == key), None)
    if index is None:
        return {}
    parts = parameters.get("pair", "").split("-")
    numbers = [n for part in parts if (n := whole_number(digits_of(part))) is not None]
    pair = (numbers[0], numbers[1]) if len(parts) == len(numbers) == 2 else None
    order = [card.room.pk for card in listed]
    order = order if key in order else [card.room.pk for card in cards]
    place = order.index(cards[index].room.pk)
    return {
        "opened": key,
        "drawer": room_drawer(rooms, cards[index], pair),
        "previous_room": order[place - 1] if place else None,
        "next_room": order[place + 1] if place + 1 < len(order) else None,
    }
