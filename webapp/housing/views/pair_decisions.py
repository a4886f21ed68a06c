"""Views of decisions: each answers with the page's body and, when open, the pair card."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from webapp.accounts.models import User
from webapp.accounts.requests import SignedInRequest
from webapp.audit.services import audit
from webapp.cohorts.naming import are_hidden, may_see_names
from webapp.common.acts import filters_of
from webapp.common.decorators import staff_required, viewer_required
from webapp.common.errors import Refusal
from webapp.common.kept_forms import keeps_typed
from webapp.common.listing import light
from webapp.common.parameters import digits_of
from webapp.common.selectors import get_or_404
from webapp.common.toasts import attempt, toast
from webapp.housing.decision_forms import DecidePairsForm, RuleForm, SwapForm
from webapp.housing.errors import HousingError
from webapp.housing.models import ActKind, PlacedPair, Placement, PlacementEvent
from webapp.housing.pairs.cards import swap_partners
from webapp.housing.pairs.decisions import Decision, pairs_decide
from webapp.housing.pairs.pages import drawer_context, pairs_context
from webapp.housing.pairs.placing import pair_conflicts, pairs_compute
from webapp.housing.pairs.rule_changes import rule_change
from webapp.housing.pairs.swaps import pairs_swap, swap_offer
from webapp.housing.pairs.table import with_questions
from webapp.housing.typed_students import SeveralStudentsError, students_typed
from webapp.housing.views.pairs import find_pairs, find_pairs_to_change
from webapp.housing.views.questions import Question, ask, trail_of

_ICONS = {
    ActKind.REVIEWED: "check",
    ActKind.PARTED: "x",
    ActKind.LOCKED: "lock",
    ActKind.MOVED: "arrow-left-right",
}


class _SeveralInFieldError(SeveralStudentsError):
    """Refusal of a field that several students match; ``field`` is its name."""

    def __init__(self, field: str, several: SeveralStudentsError) -> None:
        HousingError.__init__(self, str(several))
        self.text, self.choices, self.field = several.text, several.choices, field


def _filters(back: str) -> dict[str, str]:
    """Return the parameters of the page with the form."""
    sent = filters_of(back)
    names = ("tab", "sort", "q", "against", "page", "pair")
    return {name: sent[name] for name in names if sent.get(name)}


def answer_with_pairs(request: SignedInRequest, placement: Placement, back: str) -> HttpResponse:
    """Return the pairs after a decision: the page without scripts, its body with them."""
    parameters = _filters(back)
    if not request.htmx:
        address = reverse("housing:placement", args=[placement.pk])
        return redirect(f"{address}?{urlencode(parameters)}" if parameters else address)
    placement = with_questions().get(pk=placement.pk)
    context = pairs_context(placement, parameters, request.user)
    context["with_drawer"] = True
    return render(request, "housing/pairs/_body.html", context)


def _toast_event(request: SignedInRequest, placement: Placement, event: PlacementEvent) -> None:
    undo = reverse("housing:placement-undo", args=[placement.pk, event.pk])
    toast(request, event.sentence, undo_url=undo, icon=_ICONS.get(ActKind(event.kind), ""))


@require_POST
@staff_required
def decide(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Accept, reject, lock, forbid or reopen one or more pairs."""
    placement = find_pairs_to_change(request, uuid)
    form = DecidePairsForm.typed(request)

    def act(*, decision: Decision, pair: dict[int, int], back: str) -> None:
        event = pairs_decide(
            user=request.user, placement=placement, decision=decision, versions=pair
        )
        _toast_event(request, placement, event)

    form.press(request, act)
    return answer_with_pairs(request, placement, form.back_to)


@keeps_typed
@require_http_methods(["GET", "POST"])
@staff_required
def rule(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Change a rule; compute a placement that only waited for it at once."""
    placement = find_pairs(request, uuid)
    form = RuleForm.typed(request)
    if not form.is_bound:  # a filter of the page that showed a refused form
        address = reverse("housing:placement", args=[placement.pk])
        return redirect(f"{address}?{request.GET.urlencode()}")
    try:
        form.check()
        data = form.cleaned_data
        event = rule_change(
            user=request.user,
            placement=placement,
            action=data["action"],
            first=_number(request.user, placement, data, "first"),
            second=_number(request.user, placement, data, "second"),
            column=data["column"],
        )
        placement.refresh_from_db()
        if not placement.is_computed and not pair_conflicts(placement):
            toast(request, event.sentence)  # no undo while the pairs are being computed
            attempt(request, lambda: pairs_compute(user=request.user, placement=placement))
            return _whole_page(request, placement)
        _toast_event(request, placement, event)
    except _SeveralInFieldError as several:
        return ask(request, _whom_question(form, placement, several), placement)
    except Refusal as problem:
        if form.cleaned_data.get("typed_in") and not request.htmx:
            return _show_rule(request, placement, form, problem)
        toast(request, str(problem), error=True)
    return answer_with_pairs(request, placement, form.back_to)


def _show_rule(
    request: SignedInRequest, placement: Placement, form: RuleForm, problem: Refusal
) -> HttpResponse:
    """Return the page with the dialog of the rules, in which a refused form is as it was typed."""
    if not form.errors:
        form.add_error(problem.field or form.refused_field, str(problem))
    context = pairs_context(placement, _filters(form.back_to), request.user)
    context |= {"rule_form": form, "rule_typed_in": form["typed_in"].value()}
    return render(request, "housing/pairs/page.html", context, status=form.status)


def _whom_question(form: RuleForm, placement: Placement, several: _SeveralInFieldError) -> Question:
    """Return the question whom a name means; the answer repeats the rule with one student."""
    sent = form.sent
    del sent[several.field]
    back = urlencode(_filters(form.back_to))
    return Question(
        title=_("Who is meant?"),
        sentences=[
            _("Several students match “%(several)s”. Nothing is changed yet.")
            % {"several": several.text[:40]}
        ],
        button="",
        address=reverse("housing:pairs-rule", args=[placement.pk]),
        fields=sent,
        choices=several.choices,
        choice_field=several.field,
        back=f"{reverse('housing:placement', args=[placement.pk])}?{back}",
        trail=trail_of(placement),
    )


def _whole_page(request: SignedInRequest, placement: Placement) -> HttpResponse:
    address = reverse("housing:placement", args=[placement.pk])
    if not request.htmx:
        return redirect(address)
    response = HttpResponse(status=204)
    response["HX-Redirect"] = address
    return response


def _number(user: User, placement: Placement, data: Mapping[str, str], name: str) -> int:
    """Return the number of the student whom a field names, 0 if it is empty.

    Raises
    ------
    _SeveralInFieldError
        If several students match.
    HousingError
        If nobody matches, or the field names several students one by one.
    """
    text = data.get(name, "").strip()
    if not text:
        return 0
    if text[0] in "sS" and digits_of(text):
        text = f"S-{digits_of(text)}"
    try:
        found = students_typed(user, placement.cohort, [text])
    except SeveralStudentsError as several:
        raise _SeveralInFieldError(name, several) from several
    except HousingError as problem:
        problem.field = name
        raise
    if len(found) > 1:
        raise HousingError(_("Name one student in each field. Nothing was changed."), name)
    return found[0]


def _find_pair(request: SignedInRequest, uuid: str, pair_id: int) -> tuple[Placement, PlacedPair]:
    placement = find_pairs(request, uuid)
    pairs = PlacedPair.objects.filter(placement=placement, pk=pair_id)
    return placement, get_or_404(light(pairs, "first", "second"), pair_id)


@require_safe
@viewer_required
def pair(request: SignedInRequest, uuid: str, pair_id: int) -> HttpResponse:
    """Show the card of one pair: the drawer alone, or the page with it open."""
    placement = find_pairs(request, uuid)
    get_or_404(PlacedPair.objects.filter(placement=placement).only("pk"), pair_id)
    parameters = {**request.GET.dict(), "pair": str(pair_id)}
    if not request.htmx:
        address = reverse("housing:placement", args=[placement.pk])
        return redirect(f"{address}?{urlencode(parameters)}")
    context = drawer_context(placement, parameters, request.user)
    response = render(request, "housing/pairs/_drawer.html", context)
    address = reverse("housing:placement", args=[placement.pk])
    response["HX-Push-Url"] = f"{address}?{urlencode(parameters)}"
    return response


@require_POST
@staff_required
def originals(request: SignedInRequest, uuid: str, pair_id: int) -> HttpResponse:
    """Show the original ids of a pair; an audit line names the reader."""
    placement, found = _find_pair(request, uuid, pair_id)
    if not may_see_names(request.user) or are_hidden(request):
        raise PermissionDenied(_("Original ids are not shown to you now."))
    audit(request.user, "looked up ids", placement, pairs=[found.label])
    return render(request, "housing/pairs/_originals.html", {"pair": found})


@require_http_methods(["GET", "POST"])
@staff_required
def swap(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Show the pairs and the cost of a swap; make the swap on POST."""
    placement = find_pairs(request, uuid)
    if request.method == "POST":
        form = SwapForm.typed(request)

        def act(*, pair: dict[int, int], back: str, **typed: str) -> None:
            numbers = {name: _number(request.user, placement, typed, name) for name in typed}
            event = pairs_swap(user=request.user, placement=placement, versions=pair, **numbers)
            _toast_event(request, placement, event)

        form.press(request, act)
        return answer_with_pairs(request, placement, form.back_to)
    context: dict[str, Any] = {"placement": placement}
    for name in ("student", "partner"):
        context[name] = request.GET.get(name, "").strip()[:200]
    try:
        student, partner = (
            _number(request.user, placement, request.GET, name) for name in ("student", "partner")
        )
        context |= {
            name: f"S-{number}"
            for name, number in (("student", student), ("partner", partner))
            if number
        }
        if student and partner:
            context["offer"] = swap_offer(placement, student, partner)
        elif student:
            context["next_best"] = swap_partners(placement, student)
    except _SeveralInFieldError as several:
        context["several"] = several
    except HousingError as problem:
        context["error"] = str(problem)
    template = "housing/pairs/_swap_dialog.html" if request.htmx else "housing/pairs/swap.html"
    return render(request, template, context)
