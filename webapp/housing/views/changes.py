"""Late changes of a placement: withdraw, give beds, compute, confirm or discard."""

from collections.abc import Callable

from django.http import Http404, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from webapp.accounts.requests import SignedInRequest
from webapp.common.decorators import staff_required
from webapp.common.errors import Refusal
from webapp.common.parameters import whole_number
from webapp.common.selectors import get_or_404
from webapp.common.toasts import toast
from webapp.files.file_headers import as_attachment, plain_name
from webapp.housing.errors import HousingError
from webapp.housing.exports import moves_export
from webapp.housing.forms import find_numbers, read_students, seen_version
from webapp.housing.models import Placement, PlacementEvent, ProposedChange
from webapp.housing.rules import PlacementRules
from webapp.housing.selectors.changes import changes_context, explained_changes
from webapp.housing.selectors.drafts import drafts_of
from webapp.housing.services.changes import (
    change_discard,
    change_keep,
    change_propose,
    computed_change,
)
from webapp.housing.services.decisions import Decision, Move, moving, returning, withdrawing
from webapp.housing.services.drafts import draft_confirm, draft_discard, draft_drop
from webapp.housing.services.waiting import turn_change
from webapp.housing.views.decisions import DRAFT_GONE, decide_or_draft
from webapp.housing.views.placements import find_placement
from webapp.housing.views.requests import came_from


@require_safe
@staff_required
def changes(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Show the students who left or have no room, and the proposed changes."""
    found = find_placement(request, uuid)
    context = changes_context(found, request.user, request.GET.get("q", "").strip()[:80])
    rules = PlacementRules.from_json(found.rules)
    context["price"] = context["change"].price if context["change"] else rules.price
    context["drafts"] = drafts_of(found, request.user)
    return render(request, "housing/changes.html", context)


@require_POST
@staff_required
def act(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Withdraw students, compute changes, keep a student in place, confirm or discard."""
    found = find_placement(request, uuid)
    try:
        _act(request, found)
    except Refusal as problem:
        toast(request, str(problem), error=True)
    return redirect("housing:changes", found.pk)


def _act(request: SignedInRequest, placement: Placement) -> None:
    wanted, user = request.POST.get("act", ""), request.user
    if wanted in _DECISIONS:
        decision = _DECISIONS[wanted](request, placement)
        options = {"user": user, "placement": placement, "version": seen_version(request.POST)}
        _say(request, decide_or_draft(request, decision, options))
    elif wanted == "keep":
        key = whole_number(request.POST.get("change", ""))
        _say(request, change_keep(user=user, placement=placement, change_id=key or 0))
    elif wanted in ("first", "last"):
        (number,) = read_students([request.POST.get("students", "")])[:1]
        is_first = wanted == "first"
        _say(
            request,
            turn_change(user=user, placement=placement, number=number, is_first=is_first),
        )
    elif wanted == "propose":
        change_propose(
            user=user,
            placement=placement,
            price=_price(request.POST.get("price", "")),
            pinned=read_students([request.POST.get("pinned", "")], may_be_empty=True),
            chosen=_chosen(computed_change(placement)),
        )
    elif wanted == "choose":
        _choose(request, placement)
    elif wanted == "discard":
        change_discard(user=user, placement=placement)
        toast(request, "Discarded. Nothing was changed.")
    else:
        raise HousingError("There is no such action.")


def _say(request: SignedInRequest, event: PlacementEvent | None) -> None:
    """Show what was done, with Undo; an act that joined a draft has shown its own message."""
    if event is not None:
        undo = reverse("housing:placement-undo", args=[event.placement_id, event.pk])
        toast(request, event.sentence, undo_url=undo)


def _chosen(change: ProposedChange | None) -> dict[int, int]:
    return {int(number): room for number, room in change.chosen.items()} if change else {}


def _choose(request: SignedInRequest, placement: Placement) -> None:
    """Compute the changes again with a student in a chosen room, or without that choice."""
    now = computed_change(placement)
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


@require_POST
@staff_required
def draft(request: SignedInRequest, uuid: str, draft_id: int) -> HttpResponse:
    """Confirm a draft of late changes by hand, discard it, or leave one student out of it."""
    placement = find_placement(request, uuid)
    drafts = ProposedChange.objects.filter(placement=placement, is_by_hand=True)
    found = get_or_404(drafts.select_related("placement"), draft_id)
    try:
        _act_on_draft(request, found)
    except Refusal as problem:
        toast(request, str(problem), error=True)
    if came_from(request, reverse("housing:changes", args=[placement.pk])):
        return redirect("housing:changes", placement.pk)
    return redirect("housing:placement", placement.pk)


def _act_on_draft(request: SignedInRequest, found: ProposedChange) -> None:
    wanted, user = request.POST.get("act", ""), request.user
    if wanted == "confirm":
        people = whole_number(request.POST.get("people", ""))
        version = seen_version(request.POST)
        event = draft_confirm(user=user, draft=found, people=people or 0, version=version)
        _say(request, event)
    elif wanted == "drop":
        (number,) = read_students([request.POST.get("student", "")])[:1]
        if draft_drop(user=user, draft=found, number=number) is None:
            toast(request, DRAFT_GONE)
    elif wanted == "discard":
        draft_discard(user=user, draft=found)
        toast(request, "The draft was discarded. Nothing was changed.")
    else:
        raise HousingError("There is no such action.")


@require_safe
@staff_required
def moves_file(request: SignedInRequest, uuid: str, file_format: str) -> HttpResponseBase:
    """Download the moves with rooms and reasons; an audit line records who downloaded them."""
    found = find_placement(request, uuid)
    change = computed_change(found)
    if change is None or not change.is_ready or file_format not in ("csv", "xlsx"):
        raise Http404("No changes are computed.")
    data, kind = moves_export(
        user=request.user,
        placement=found,
        rows=explained_changes(found, change),
        file_format=file_format,
    )
    return as_attachment(
        HttpResponse(data, content_type=kind), f"{plain_name(found.name)}-moves.{file_format}"
    )


def _withdraw(request: SignedInRequest, placement: Placement) -> Decision:
    return withdrawing(find_numbers(placement, request.POST.get("students", "")))


def _return(request: SignedInRequest, placement: Placement) -> Decision:
    """Return the decision to bring back a student who withdrew."""
    return returning(read_students([request.POST.get("students", "")]))


def _give(request: SignedInRequest, placement: Placement) -> Decision:
    """Return the decision to give a waiting student a free bed."""
    numbers = read_students([request.POST.get("students", "")])
    key = whole_number(request.POST.get("room", ""))
    room = placement.buildings.rooms.filter(pk=key or 0).first()
    if room is None:
        raise HousingError("This room is not in the building list any more.")
    return moving([Move(numbers[0], room.pk)], f"S-{numbers[0]} got a bed in {room}.")


_DECISIONS: dict[str, Callable[[SignedInRequest, Placement], Decision]] = {
    "withdraw": _withdraw,
    "return": _return,
    "give": _give,
}
"""Acts on students that a draft collects if the placement is published."""


def _price(text: str) -> float:
    try:
        return float(text.strip().replace(",", "."))
    except ValueError as error:
        raise HousingError(f"“{text[:20]}” is no price of a move.") from error
