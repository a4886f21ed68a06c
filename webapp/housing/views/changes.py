"""Late changes of a placement: withdraw, work out, keep or discard."""

from collections.abc import Callable
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from webapp.common.decorators import staff_required
from webapp.common.errors import Refusal
from webapp.common.parameters import whole_number
from webapp.common.toasts import toast
from webapp.files.file_headers import as_attachment, plain_name
from webapp.housing.errors import HousingError
from webapp.housing.exports import moves_export
from webapp.housing.forms import find_numbers, read_students
from webapp.housing.models import Placement, PlacementEvent, ProposedChange
from webapp.housing.rules import PlacementRules
from webapp.housing.selectors.changes import changes_context, explained_changes
from webapp.housing.services.changes import change_discard, change_keep, change_propose
from webapp.housing.services.decisions import (
    Move,
    places_move,
    students_return,
    students_withdraw,
)
from webapp.housing.services.proposed_scores import scores_after
from webapp.housing.services.waiting import turn_change
from webapp.housing.views.placements import find_placement


@require_GET
@staff_required
def changes(request: HttpRequest, uuid: str) -> HttpResponse:
    """Show who left, who has no room, and what would change."""
    found = find_placement(request, uuid)
    context = changes_context(found, request.GET.get("q", "").strip()[:40])
    rules = PlacementRules.from_json(found.rules)
    context["price"] = context["change"].price if context["change"] else rules.price
    return render(request, "housing/changes.html", context)


@require_POST
@staff_required
def act(request: HttpRequest, uuid: str) -> HttpResponse:
    """Withdraw students, work changes out, let somebody stay, keep or discard."""
    found = find_placement(request, uuid)
    try:
        _act(request, found)
    except Refusal as problem:
        toast(request, str(problem), error=True)
    return redirect("housing:changes", found.pk)


def _act(request: HttpRequest, placement: Placement) -> None:
    wanted, user = request.POST.get("act", ""), request.user
    if wanted in _EVENTS:
        event = _EVENTS[wanted](request, placement)
        undo = reverse("housing:placement-undo", args=[placement.pk, event.pk])
        toast(request, event.sentence, undo_url=undo)
    elif wanted in ("first", "last"):
        (number,) = read_students([request.POST.get("students", "")])[:1]
        is_first = wanted == "first"
        sentence = turn_change(user=user, placement=placement, number=number, is_first=is_first)
        toast(request, sentence)
    elif wanted == "propose":
        now = ProposedChange.objects.filter(placement=placement).first()
        change_propose(
            user=user,
            placement=placement,
            price=_price(request.POST.get("price", "")),
            pinned=read_students([request.POST.get("pinned", "")], may_be_empty=True),
            chosen=_chosen(now),
        )
    elif wanted == "choose":
        _choose(request, placement)
    elif wanted == "discard":
        change_discard(user=user, placement=placement)
        toast(request, "Discarded. Nothing was changed.")
    else:
        raise HousingError("There is no such act.")


def _chosen(change: ProposedChange | None) -> dict[int, int]:
    return {int(number): room for number, room in change.chosen.items()} if change else {}


def _choose(request: HttpRequest, placement: Placement) -> None:
    """Work the changes out again with somebody in the room that was chosen, or in none again."""
    now = ProposedChange.objects.filter(placement=placement).first()
    if now is None:
        raise HousingError("These changes were discarded meanwhile.")
    (number,) = read_students([request.POST.get("students", "")])[:1]
    chosen, room = _chosen(now), whole_number(request.POST.get("room", ""))
    chosen.pop(number, None)
    if room is not None:
        chosen[number] = room
    change_propose(
        user=request.user, placement=placement, price=now.price, pinned=now.pinned, chosen=chosen
    )


@require_GET
@staff_required
def moves_file(request: HttpRequest, uuid: str, file_format: str) -> HttpResponseBase:
    """Download who would move, from where, to where and why; an audit line says who did."""
    found = find_placement(request, uuid)
    change = ProposedChange.objects.filter(placement=found, is_ready=True).first()
    if change is None or file_format not in ("csv", "xlsx"):
        raise Http404("No changes are worked out.")
    data, kind = moves_export(
        user=request.user,
        placement=found,
        rows=explained_changes(found, change),
        file_format=file_format,
    )
    return as_attachment(
        HttpResponse(data, content_type=kind), f"{plain_name(found.name)}-moves.{file_format}"
    )


def _withdraw(request: HttpRequest, placement: Placement) -> PlacementEvent:
    numbers = find_numbers(placement, request.POST.get("students", ""))
    return students_withdraw(numbers=numbers, **_seen(request, placement))


def _return(request: HttpRequest, placement: Placement) -> PlacementEvent:
    """Take somebody back who withdrew."""
    numbers = read_students([request.POST.get("students", "")])
    return students_return(numbers=numbers, **_seen(request, placement))


def _give(request: HttpRequest, placement: Placement) -> PlacementEvent:
    """Give somebody who waits a free bed."""
    numbers = read_students([request.POST.get("students", "")])
    key = whole_number(request.POST.get("room", ""))
    room = placement.buildings.rooms.filter(pk=key or 0).first()
    if room is None:
        raise HousingError("This room is not in the building list any more.")
    sentence = f"S-{numbers[0]} got a bed in {room}."
    moves = [Move(numbers[0], room.pk)]
    return places_move(moves=moves, sentence=sentence, **_seen(request, placement))


def _keep(request: HttpRequest, placement: Placement) -> PlacementEvent:
    key = whole_number(request.POST.get("change", ""))
    scores = scores_after(placement)
    return change_keep(user=request.user, placement=placement, change_id=key or 0, scores=scores)


def _seen(request: HttpRequest, placement: Placement) -> dict[str, Any]:
    """Return who acts on what, by the version that their page showed."""
    version = whole_number(request.POST.get("version", ""))
    return {
        "user": request.user,
        "placement": placement,
        "version": -1 if version is None else version,
    }


_EVENTS: dict[str, Callable[[HttpRequest, Placement], PlacementEvent]] = {
    "withdraw": _withdraw,
    "return": _return,
    "give": _give,
    "keep": _keep,
}
"""Acts that a button of the toast takes back."""


def _price(text: str) -> float:
    try:
        return float(text.strip().replace(",", "."))
    except ValueError as error:
        raise HousingError(f"“{text[:20]}” is no price of a move.") from error
