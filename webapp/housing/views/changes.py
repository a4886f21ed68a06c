"""Late changes of a placement: withdraw, give beds, compute, confirm or discard."""

from collections.abc import Callable
from functools import partial
from typing import Any

from django.http import Http404, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from webapp.accounts.requests import SignedInRequest
from webapp.common.acts import page_of, passed_on
from webapp.common.decorators import staff_required
from webapp.common.forms import TypedForm
from webapp.common.kept_forms import keeps_typed
from webapp.common.selectors import get_or_404
from webapp.common.toasts import toast
from webapp.files.file_headers import as_attachment, plain_name
from webapp.housing.change_forms import (
    ChangeForm,
    ProposeForm,
    StudentForm,
    StudentRoomForm,
    WithdrawForm,
)
from webapp.housing.decision_forms import DraftAct, DraftForm
from webapp.housing.errors import HousingError
from webapp.housing.exports import moves_export
from webapp.housing.forms import read_students
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
from webapp.housing.typed_students import SeveralStudentsError, students_typed
from webapp.housing.views.decisions import DRAFT_GONE, decide_or_draft
from webapp.housing.views.placements import find_placement
from webapp.housing.views.questions import Question, ask, trail_of

_MOVED = {
    "withdraw": "housing:changes-withdraw",
    "return": "housing:changes-return",
    "give": "housing:changes-give",
    "keep": "housing:changes-keep",
    "first": "housing:changes-first",
    "last": "housing:changes-last",
    "propose": "housing:changes-propose",
    "choose": "housing:changes-choose",
    "discard": "housing:changes-discard",
}


@require_safe
@staff_required
def changes(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Show the students who left or have no room, and the proposed changes."""
    return _show(request, find_placement(request, uuid))


def _show(
    request: SignedInRequest,
    found: Placement,
    *,
    withdraw: WithdrawForm | None = None,
    propose: ProposeForm | None = None,
) -> HttpResponse:
    """Return the page; ``withdraw`` and ``propose`` are forms to show as they were typed."""
    context = changes_context(found, request.user, request.GET.get("q", "").strip()[:80])
    rules, change = PlacementRules.from_json(found.rules), context["change"]
    pinned = " ".join(f"S-{number}" for number in change.pinned) if change else ""
    initial = {"price": change.price if change else rules.price, "pinned": pinned}
    context |= {
        "drafts": drafts_of(found, request.user),
        "withdraw_form": withdraw or WithdrawForm(initial={"version": found.version}),
        "propose_form": propose or ProposeForm(initial=initial),
    }
    bound = withdraw or propose
    status = bound.status if bound is not None else 200
    return render(request, "housing/changes.html", context, status=status)


def _press(
    request: SignedInRequest, uuid: str, form: TypedForm, act: Callable[..., object]
) -> HttpResponse:
    """Perform the act of a button; a refusal is a toast, since nothing was typed."""
    found = find_placement(request, uuid)
    form.press(request, partial(act, request, found))
    return redirect("housing:changes", found.pk)


def _decide(
    request: SignedInRequest, placement: Placement, decision: Decision, version: int
) -> None:
    """Carry out a decision, or add it to the user's draft if the placement is published."""
    options = {"user": request.user, "placement": placement, "version": version}
    _say(request, decide_or_draft(request, decision, options))


@keeps_typed
@require_http_methods(["GET", "POST"])
@staff_required
def withdraw(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Withdraw students; a name of several students is a choice among them."""
    found = find_placement(request, uuid)
    form = WithdrawForm.typed(request, initial={"version": found.version})
    namesakes: list[SeveralStudentsError] = []

    def act(*, students: str, version: int) -> None:
        try:
            numbers = students_typed(request.user, found.cohort, [students])
        except SeveralStudentsError as several:
            namesakes.append(several)
            raise
        _decide(request, found, withdrawing(numbers), version)

    if form.submit(request, act):
        return redirect("housing:changes", found.pk)
    if namesakes:
        return ask(request, _whom_question(found, namesakes[0], form), found)
    form.show_value("version", str(found.version))
    return _show(request, found, withdraw=form)


def _whom_question(
    placement: Placement, several: SeveralStudentsError, form: WithdrawForm
) -> Question:
    """Return the question whom a name means; the answer withdraws all students named."""
    address = reverse("housing:changes", args=[placement.pk])
    return Question(
        title=_("Who is meant?"),
        sentences=[
            _("Several students match “%(several)s”. Nobody is withdrawn yet.")
            % {"several": several.text[:40]}
        ],
        button="",
        address=reverse("housing:changes-withdraw", args=[placement.pk]),
        fields={"version": form.cleaned_data["version"]},
        choices=several.choices,
        choice_field="students",
        back=address,
        trail=[*trail_of(placement), (_("Late changes"), address)],
    )


@keeps_typed
@require_http_methods(["GET", "POST"])
@staff_required
def propose(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Compute what changes at a price of a move."""
    found = find_placement(request, uuid)
    form = ProposeForm.typed(request)

    def act(*, price: float, pinned: list[int]) -> None:
        chosen = _chosen(computed_change(found))
        change_propose(
            user=request.user, placement=found, price=price, pinned=pinned, chosen=chosen
        )

    if form.submit(request, act):
        return redirect("housing:changes", found.pk)
    return _show(request, found, propose=form if form.is_bound else None)


@require_POST
@staff_required
def bring_back(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Bring back a student who withdrew."""

    def act(request: SignedInRequest, found: Placement, *, students: int, version: int) -> None:
        _decide(request, found, returning([students]), version)

    return _press(request, uuid, StudentForm.typed(request), act)


@require_POST
@staff_required
def give(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Give a waiting student a free bed."""

    def act(
        request: SignedInRequest, found: Placement, *, students: int, room: int | None, version: int
    ) -> None:
        chosen = found.buildings.rooms.filter(pk=room or 0).first()
        if chosen is None:
            raise HousingError(_("This room is not in the building list any more."))
        sentence = _("%(student)s got a bed in %(room)s.") % {
            "student": f"S-{students}",
            "room": chosen,
        }
        _decide(request, found, moving([Move(students, chosen.pk)], sentence), version)

    return _press(request, uuid, StudentRoomForm.typed(request), act)


@require_POST
@staff_required
def keep(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Confirm the proposed changes."""

    def act(request: SignedInRequest, found: Placement, *, change: int) -> None:
        _say(request, change_keep(user=request.user, placement=found, change_id=change))

    return _press(request, uuid, ChangeForm.typed(request), act)


@require_POST
@staff_required
def first(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Put a student first in the waiting list."""
    return _turn(request, uuid, is_first=True)


@require_POST
@staff_required
def last(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Put a student last in the waiting list."""
    return _turn(request, uuid, is_first=False)


def _turn(request: SignedInRequest, uuid: str, *, is_first: bool) -> HttpResponse:
    def act(request: SignedInRequest, found: Placement, *, students: int, version: int) -> None:
        event = turn_change(user=request.user, placement=found, number=students, is_first=is_first)
        _say(request, event)

    return _press(request, uuid, StudentForm.typed(request), act)


@require_POST
@staff_required
def choose(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Compute the changes again with a student in a chosen room, or without that choice."""

    def act(
        request: SignedInRequest, found: Placement, *, students: int, room: int | None, version: int
    ) -> None:
        now = computed_change(found)
        if now is None:
            raise HousingError(_("These changes were discarded meanwhile."))
        chosen = _chosen(now)
        chosen.pop(students, None)
        if room is not None:
            chosen[students] = room
        change_propose(
            user=request.user, placement=found, price=now.price, pinned=now.pinned, chosen=chosen
        )

    return _press(request, uuid, StudentRoomForm.typed(request), act)


@require_POST
@staff_required
def discard(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Discard the proposed changes."""

    def act(request: SignedInRequest, found: Placement) -> None:
        change_discard(user=request.user, placement=found)
        toast(request, _("Discarded. Nothing was changed."))

    return _press(request, uuid, TypedForm.typed(request), act)


@require_POST
@staff_required
def act(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Repeat an act at its own address; until version 0.2 this address took all of them."""
    found = find_placement(request, uuid)
    moved = passed_on(request, _MOVED, found.pk)
    if moved is not None:
        return moved
    toast(request, _("There is no such action."), error=True)
    return redirect("housing:changes", found.pk)


def _say(request: SignedInRequest, event: PlacementEvent | None) -> None:
    """Show what was done, with Undo; an act that joined a draft has shown its own message."""
    if event is not None:
        undo = reverse("housing:placement-undo", args=[event.placement_id, event.pk])
        toast(request, event.sentence, undo_url=undo)


def _chosen(change: ProposedChange | None) -> dict[int, int]:
    return {int(number): room for number, room in change.chosen.items()} if change else {}


@require_POST
@staff_required
def draft(request: SignedInRequest, uuid: str, draft_id: int) -> HttpResponse:
    """Confirm a draft of late changes by hand, discard it, or leave one student out of it."""
    placement = find_placement(request, uuid)
    drafts = ProposedChange.objects.filter(placement=placement, is_by_hand=True)
    found = get_or_404(drafts.select_related("placement"), draft_id)
    form = DraftForm.typed(request)

    def perform(*, act: DraftAct, back: str, **fields: Any) -> None:
        _DRAFT_ACTS[act](request, found, **fields)

    form.press(request, perform)
    changes_page = reverse("housing:changes", args=[placement.pk])
    own = reverse("housing:placement", args=[placement.pk])
    return redirect(page_of(form.back_to, changes_page) or own)


def _confirm(
    request: SignedInRequest, found: ProposedChange, *, people: int | None, version: int, **_: Any
) -> None:
    event = draft_confirm(user=request.user, draft=found, people=people or 0, version=version)
    _say(request, event)


def _drop(request: SignedInRequest, found: ProposedChange, *, student: str, **_: Any) -> None:
    (number,) = read_students([student])[:1]
    if draft_drop(user=request.user, draft=found, number=number) is None:
        toast(request, DRAFT_GONE)


def _discard(request: SignedInRequest, found: ProposedChange, **fields: Any) -> None:
    draft_discard(user=request.user, draft=found)
    toast(request, _("The draft was discarded. Nothing was changed."))


_DRAFT_ACTS: dict[DraftAct, Callable[..., None]] = {
    DraftAct.CONFIRM: _confirm,
    DraftAct.DROP: _drop,
    DraftAct.DISCARD: _discard,
}


@require_safe
@staff_required
def moves_file(request: SignedInRequest, uuid: str, file_format: str) -> HttpResponseBase:
    """Download the moves with rooms and reasons; an audit line records who downloaded them."""
    found = find_placement(request, uuid)
    change = computed_change(found)
    if change is None or not change.is_ready or file_format not in ("csv", "xlsx"):
        raise Http404(_("No changes are computed."))
    data, kind = moves_export(
        user=request.user,
        placement=found,
        rows=explained_changes(found, change),
        file_format=file_format,
    )
    return as_attachment(
        HttpResponse(data, content_type=kind), f"{plain_name(found.name)}-moves.{file_format}"
    )
