"""Deciding about rooms; every answer is the page's body and, when open, the drawer."""

from urllib.parse import urlencode, urlsplit

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST

from webapp.common.decorators import staff_required
from webapp.common.parameters import whole_number
from webapp.common.toasts import toast
from webapp.housing.errors import HousingError
from webapp.housing.forms import read_students
from webapp.housing.models import Placement, PlacementEvent, Room
from webapp.housing.selectors.pages import KEPT, placement_context
from webapp.housing.selectors.placements import find_place
from webapp.housing.services.decisions import (
    Move,
    decision_undo,
    places_lock,
    places_move,
    students_withdraw,
)
from webapp.housing.views.placements import find_placement


def _answer(request: HttpRequest, placement: Placement) -> HttpResponse:
    sent = QueryDict(request.POST.get("back") or urlsplit(request.headers.get("Referer", "")).query)
    parameters = {name: sent[name] for name in (*KEPT, "room", "pair") if sent.get(name)}
    if not request.htmx:
        address = reverse("housing:placement", args=[placement.pk])
        return redirect(f"{address}?{urlencode(parameters)}" if parameters else address)
    fresh = Placement.objects.select_related("cohort", "model", "job", "buildings")
    context = placement_context(fresh.get(pk=placement.pk), parameters)
    context["with_drawer"] = True
    return render(request, "housing/_placement_body.html", context)


@require_POST
@staff_required
def decide(request: HttpRequest, uuid: str) -> HttpResponse:
    """Lock, release, empty, move, swap or withdraw."""
    placement = find_placement(request, uuid)
    version = whole_number(request.POST.get("version", ""))
    try:
        event = _act(request, placement, -1 if version is None else version)
        undo = reverse("housing:placement-undo", args=[placement.pk, event.pk])
        toast(request, event.sentence, undo_url=undo)
    except HousingError as problem:
        toast(request, str(problem), error=True)
    return _answer(request, placement)


def _act(request: HttpRequest, placement: Placement, version: int) -> PlacementEvent:
    act = request.POST.get("act", "")
    numbers = read_students(request.POST.getlist("student"))
    options = {"user": request.user, "placement": placement, "version": version}
    if act in ("lock", "release"):
        return places_lock(numbers=numbers, locked=act == "lock", **options)
    if act == "withdraw":
        return students_withdraw(numbers=numbers, **options)
    if act == "empty":
        who = f"S-{numbers[0]}" if len(numbers) == 1 else f"{len(numbers)} people"
        moves = [Move(number, None) for number in numbers]
        return places_move(moves=moves, sentence=f"{who} moved out.", **options)
    if act == "move":
        room = _room(placement, request.POST.get("to", ""))
        who = " and ".join(f"S-{number}" for number in numbers)
        moves = [Move(number, room.pk) for number in numbers]
        return places_move(moves=moves, sentence=f"{who} moved to {room}.", **options)
    if act == "swap" and len(numbers) == 2:
        rooms = [find_place(placement, number) for number in numbers]
        if any(place is None for place in rooms):
            raise HousingError("Both students must be in this placement.")
        moves = [Move(numbers[0], rooms[1].room_id), Move(numbers[1], rooms[0].room_id)]
        sentence = f"S-{numbers[0]} and S-{numbers[1]} swapped rooms."
        return places_move(moves=moves, sentence=sentence, **options)
    raise HousingError("There is no such decision.")


def _room(placement: Placement, text: str) -> Room:
    """Return the room that a form names: by hall and name, such as Alder 312."""
    words = " ".join(text.split()).casefold()
    found = [room for room in placement.buildings.rooms.all() if room.label.casefold() == words]
    if len(found) != 1:
        raise HousingError(f"“{text.strip()[:40]}” is no room of {placement.buildings.name}.")
    return found[0]


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
    return _answer(request, placement)
