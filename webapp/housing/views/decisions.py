"""Deciding about rooms; an answer is what the decision changed: rooms, figures, the drawer."""

from typing import Any
from urllib.parse import urlencode, urlsplit

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from webapp.common.decorators import staff_required
from webapp.common.formats import counted
from webapp.common.parameters import whole_number
from webapp.common.toasts import toast
from webapp.housing.errors import HousingError, PlacesChangedError
from webapp.housing.forms import read_students
from webapp.housing.models import Placement, PlacementEvent, Room
from webapp.housing.selectors.choices import choices_of
from webapp.housing.selectors.pages import (
    KEPT,
    MANY,
    changed_context,
    placement_context,
    rooms_matching,
)
from webapp.housing.selectors.placements import PlacementRooms, find_place
from webapp.housing.services.decisions import (
    Move,
    places_lock,
    places_move,
    students_withdraw,
)
from webapp.housing.services.reviews import rooms_accept, rooms_keep
from webapp.housing.services.undo import decision_undo
from webapp.housing.views.placements import find_placement
from webapp.housing.views.requests import address_again, came_from

CHOICES = ("move", "swap", "give", "change")  # what a choice of another room does
ROOM_ACTS = ("accept", "reopen", "lock", "release", "empty", "keep", "open")


def _parameters(request: HttpRequest) -> dict[str, str]:
    """Return the parameters of the page on which the form stood."""
    sent = QueryDict(request.POST.get("back") or urlsplit(request.headers.get("Referer", "")).query)
    return {name: sent[name] for name in (*KEPT, "room", "pair") if sent.get(name)}


def _answer(
    request: HttpRequest, placement: Placement, event: PlacementEvent | None
) -> HttpResponse:
    parameters = _parameters(request)
    requests = reverse("housing:requests", args=[placement.cohort_id])
    if not request.htmx and came_from(request, requests):
        return redirect(address_again(request, requests))
    if not request.htmx:
        address = reverse("housing:placement", args=[placement.pk])
        return redirect(f"{address}?{urlencode(parameters)}" if parameters else address)
    fresh = Placement.objects.select_related("cohort", "model", "job", "buildings")
    fresh = fresh.get(pk=placement.pk)
    then = request.POST.get("then", "")
    if then and event is not None:
        parameters = {**parameters, "room": then, "pair": ""}
    rooms = _changed(event) if event is not None else set()
    if parameters.get("view") == "students" or len(rooms) > MANY or not fresh.is_computed:
        context = placement_context(fresh, parameters) | {"with_drawer": True}
        response = render(request, "housing/_placement_body.html", context)
        response["HX-Retarget"], response["HX-Reswap"] = "#placement", "outerHTML"
        return response
    context = changed_context(fresh, parameters, rooms)
    return render(request, "housing/_changed.html", context)


def _changed(event: PlacementEvent) -> set[int]:
    """Return the keys of the rooms that an act touched."""
    lived = {row[1] for row in (*event.before, *event.after) if row[1] is not None}
    return lived | {key for key, _, _ in event.rooms}


@require_POST
@staff_required
def decide(request: HttpRequest, uuid: str) -> HttpResponse:
    """Accept, lock, empty, keep, move, swap or withdraw: one room, some, or all that match."""
    placement = find_placement(request, uuid)
    version = whole_number(request.POST.get("version", ""))
    event = None
    try:
        event = _act(request, placement, -1 if version is None else version)
        undo = reverse("housing:placement-undo", args=[placement.pk, event.pk])
        toast(request, event.sentence, undo_url=undo)
    except HousingError as problem:
        toast(request, str(problem), error=True)
    return _answer(request, placement, event)


def _act(request: HttpRequest, placement: Placement, version: int) -> PlacementEvent:
    act = request.POST.get("act", "")
    options = {"user": request.user, "placement": placement, "version": version}
    if act in ROOM_ACTS and not request.POST.getlist("student"):
        return _act_on_rooms(act, _chosen_rooms(request, placement), options)
    numbers = read_students(request.POST.getlist("student"))
    if act in ("lock", "release"):
        return places_lock(numbers=numbers, locked=act == "lock", **options)
    if act == "withdraw":
        return students_withdraw(numbers=numbers, **options)
    if act == "empty":
        return _empty(numbers, options)
    if act == "move":
        room = _room(placement, request.POST.get("to", ""))
        who = " and ".join(f"S-{number}" for number in numbers)
        moves = [Move(number, room.pk) for number in numbers]
        return places_move(moves=moves, sentence=f"{who} moved to {room}.", **options)
    if act == "swap" and len(numbers) == 2:
        rooms = [find_place(placement, number) for number in numbers]
        if any(place is None for place in rooms):
            raise HousingError("Both students must be in this placement.")
        if rooms[0].room_id == rooms[1].room_id:
            raise HousingError("They share a room already. Name somebody of another room.")
        moves = [Move(numbers[0], rooms[1].room_id), Move(numbers[1], rooms[0].room_id)]
        sentence = f"S-{numbers[0]} and S-{numbers[1]} swapped rooms."
        return places_move(moves=moves, sentence=sentence, **options)
    raise HousingError("There is no such decision.")


def _chosen_rooms(request: HttpRequest, placement: Placement) -> list[int]:
    """Return the rooms that a form names, or all that the filters of its page show."""
    if request.POST.get("scope") == "matching":
        found = [card.room.pk for card in rooms_matching(placement, _parameters(request))]
        if str(len(found)) != request.POST.get("count"):
            raise PlacesChangedError(
                f"{counted(len(found), 'room matches', 'rooms match')} now, not what the page "
                "said. Nothing was changed; look at them as they are."
            )
        return found
    keys = [whole_number(text) for text in request.POST.getlist("room")]
    found = [key for key in keys if key is not None]
    if not found:
        raise HousingError("Choose a room first.")
    return found


def _act_on_rooms(act: str, rooms: list[int], options: dict[str, Any]) -> PlacementEvent:
    if act in ("accept", "reopen"):
        return rooms_accept(rooms=rooms, accepted=act == "accept", **options)
    if act in ("keep", "open"):
        return rooms_keep(rooms=rooms, kept=act == "keep", **options)
    places = options["placement"].places.filter(room__in=rooms)
    if act == "empty":
        numbers = list(places.filter(is_locked=False).values_list("number", flat=True))
        if not numbers and places.exists():
            raise HousingError("Everybody there is locked. Release them first.")
        return _empty(numbers, options)
    numbers = list(places.filter(is_locked=act == "release").values_list("number", flat=True))
    if not numbers and places.exists():
        raise HousingError("They are locked already." if act == "lock" else "Nobody is locked.")
    return places_lock(numbers=numbers, locked=act == "lock", **options)


def _empty(numbers: list[int], options: dict[str, Any]) -> PlacementEvent:
    if not numbers:
        raise HousingError("Nobody lives there.")
    who = f"S-{numbers[0]}" if len(numbers) == 1 else f"{len(numbers):,} people"
    moves = [Move(number, None) for number in numbers]
    return places_move(moves=moves, sentence=f"{who} moved out.", **options)


def _room(placement: Placement, text: str) -> Room:
    """Return the room that a form names: by hall and name, such as Alder 312."""
    words = " ".join(text.split()).casefold()
    found = [room for room in placement.buildings.rooms.all() if room.label.casefold() == words]
    if len(found) != 1:
        raise HousingError(f"“{text.strip()[:40]}” is no room of {placement.buildings.name}.")
    return found[0]


@require_GET
@staff_required
def choose(request: HttpRequest, uuid: str) -> HttpResponse:
    """Show where one student could live instead, as a dialog, or as a page without scripts.

    ``act`` says what a choice does: move or swap now, give a bed to who waits, or be part of the
    late changes that are proposed.
    """
    placement = find_placement(request, uuid)
    act, sent = request.GET.get("act", ""), request.GET.get("student", "")
    context: dict[str, Any] = {
        "placement": placement,
        "act": act if act in CHOICES else CHOICES[0],
        "student": sent[:20],
        "query": request.GET.get("wanted", "")[:80],
        "opened": request.GET.get("room", ""),
        "kept": {name: request.GET[name][:80] for name in KEPT if request.GET.get(name)},
    }
    try:
        number = read_students([sent])[0]
        context["choices"] = choices_of(PlacementRooms(placement), number, context["query"])
    except HousingError as problem:
        context["error"] = str(problem)
    is_part = request.htmx and request.htmx.target == "dialog-slot"
    template = "housing/_choose_dialog.html" if is_part else "housing/choose.html"
    return render(request, template, context)


@require_POST
@staff_required
def undo(request: HttpRequest, uuid: str, event_id: int) -> HttpResponse:
    """Put back what one act changed."""
    placement = find_placement(request, uuid)
    event = PlacementEvent.objects.filter(placement=placement, pk=event_id).first()
    try:
        if event is None:
            raise HousingError("There is nothing to undo.")
        toast(request, decision_undo(user=request.user, placement=placement, event=event))
    except HousingError as problem:
        toast(request, str(problem), error=True)
    return _answer(request, placement, event)
