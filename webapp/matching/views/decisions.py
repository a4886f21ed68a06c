"""Views of decisions: each answers with the page's body and, when open, the pair card."""

from typing import Any
from urllib.parse import urlencode

from django.core.exceptions import PermissionDenied
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from webapp.accounts.requests import SignedInRequest
from webapp.audit.services import audit
from webapp.cohorts.naming import are_hidden, may_see_names
from webapp.common.acts import filters_of
from webapp.common.decorators import staff_required, viewer_required
from webapp.common.errors import Refusal
from webapp.common.listing import light
from webapp.common.parameters import digits_of, whole_number
from webapp.common.selectors import get_or_404
from webapp.common.toasts import attempt, toast
from webapp.matching.errors import DecisionError
from webapp.matching.models import Decision, DecisionEvent, Proposal, ProposedPair
from webapp.matching.selectors.cards import swap_partners
from webapp.matching.selectors.pages import drawer_context, proposal_context
from webapp.matching.selectors.proposals import with_questions
from webapp.matching.services.decisions import decision_undo, pairs_decide
from webapp.matching.services.proposals import proposal_compute, proposal_conflicts
from webapp.matching.services.rules import rule_change
from webapp.matching.services.swaps import pairs_swap, swap_offer
from webapp.matching.views.proposals import find_proposal

_ICONS = {
    Decision.ACCEPT: "check",
    Decision.REJECT: "x",
    Decision.LOCK: "lock",
    Decision.NEVER: "ban",
    Decision.REOPEN: "rotate-ccw",
    Decision.SWAP: "arrow-left-right",
}
# Recorded by other views; never accepted as a decision about a pair.
_NOT_ASKED_FOR = (Decision.SWAP, Decision.UNLOCK, Decision.RULE)


def _back(request: SignedInRequest) -> dict[str, str]:
    """Return the parameters of the page with the form."""
    sent = filters_of(request.POST.get("back", ""))
    names = ("tab", "sort", "q", "against", "page", "pair")
    return {name: sent[name] for name in names if sent.get(name)}


def _answer(request: SignedInRequest, proposal: Proposal) -> HttpResponse:
    parameters = _back(request)
    if not request.htmx:
        address = reverse("matching:proposal", args=[proposal.pk])
        return redirect(f"{address}?{urlencode(parameters)}" if parameters else address)
    proposal = with_questions().get(pk=proposal.pk)
    context = proposal_context(proposal, parameters, request.user)
    context["with_drawer"] = True
    return render(request, "matching/_proposal_body.html", context)


def _toast_event(request: SignedInRequest, proposal: Proposal, event: DecisionEvent) -> None:
    undo = reverse("matching:undo", args=[proposal.pk, event.pk])
    toast(request, event.sentence, undo_url=undo, icon=_ICONS.get(Decision(event.decision), ""))


def _versions(request: SignedInRequest) -> dict[int, int]:
    """Return {pair: version} from the fields ``pair`` = KEY:VERSION."""
    versions = {}
    for text in request.POST.getlist("pair"):
        key, version = map(whole_number, text.partition(":")[::2])
        if key is not None and version is not None:
            versions[key] = version
    return versions


@require_POST
@staff_required
def decide(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Accept, reject, lock, forbid or reopen one or more pairs."""
    proposal = find_proposal(request, uuid)
    wanted, versions = request.POST.get("decision", ""), _versions(request)
    try:
        if wanted not in Decision.values or Decision(wanted) in _NOT_ASKED_FOR:
            raise DecisionError("There is no such decision.")
        if not versions:
            raise DecisionError("Mark at least one pair first.")
        event = pairs_decide(
            user=request.user, proposal=proposal, decision=Decision(wanted), versions=versions
        )
        _toast_event(request, proposal, event)
    except DecisionError as problem:
        toast(request, str(problem), error=True)
    return _answer(request, proposal)


@require_POST
@staff_required
def undo(request: SignedInRequest, uuid: str, event_id: int) -> HttpResponse:
    """Undo one decision."""
    proposal = find_proposal(request, uuid)
    event = DecisionEvent.objects.filter(proposal=proposal, pk=event_id).first()
    try:
        if event is None:
            raise DecisionError("There is nothing to undo.")
        toast(request, decision_undo(user=request.user, proposal=proposal, event=event))
    except DecisionError as problem:
        toast(request, str(problem), error=True)
    return _answer(request, proposal)


@require_POST
@staff_required
def rule(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Change a rule; compute a proposal that only waited for it at once."""
    proposal = find_proposal(request, uuid)
    data = request.POST
    try:
        event = rule_change(
            user=request.user,
            proposal=proposal,
            action=data.get("action", ""),
            first=_number(data, "first"),
            second=_number(data, "second"),
            column=data.get("column", ""),
        )
        proposal.refresh_from_db()
        if not proposal.is_computed and not proposal_conflicts(proposal):
            toast(request, event.sentence)  # no undo while the pairs are being computed
            attempt(request, lambda: proposal_compute(user=request.user, proposal=proposal))
            return _whole_page(request, proposal)
        _toast_event(request, proposal, event)
    except Refusal as problem:
        toast(request, str(problem), error=True)
    return _answer(request, proposal)


def _whole_page(request: SignedInRequest, proposal: Proposal) -> HttpResponse:
    address = reverse("matching:proposal", args=[proposal.pk])
    if not request.htmx:
        return redirect(address)
    response = HttpResponse(status=204)
    response["HX-Redirect"] = address
    return response


def _number(data: QueryDict, name: str) -> int:
    """Return the number of the student in a field, 0 if it is empty.

    Raises DecisionError for text that is not an id on screen.
    """
    text = data.get(name, "").strip()
    number = whole_number(digits_of(text))
    if text and number is None:
        raise DecisionError(f"“{text[:20]}” is not an id on screen. Type one such as S-1042.")
    return number or 0


def _find_pair(request: SignedInRequest, uuid: str, pair_id: int) -> tuple[Proposal, ProposedPair]:
    proposal = find_proposal(request, uuid)
    pairs = ProposedPair.objects.filter(proposal=proposal, pk=pair_id)
    return proposal, get_or_404(light(pairs, "first", "second"), pair_id)


@require_safe
@viewer_required
def pair(request: SignedInRequest, uuid: str, pair_id: int) -> HttpResponse:
    """Show the card of one pair: the drawer alone, or the page with it open."""
    proposal, _ = _find_pair(request, uuid, pair_id)
    parameters = {**request.GET.dict(), "pair": str(pair_id)}
    if not request.htmx:
        address = reverse("matching:proposal", args=[proposal.pk])
        return redirect(f"{address}?{urlencode(parameters)}")
    context = drawer_context(proposal, parameters, request.user)
    response = render(request, "matching/_drawer.html", context)
    address = reverse("matching:proposal", args=[proposal.pk])
    response["HX-Push-Url"] = f"{address}?{urlencode(parameters)}"
    return response


@require_POST
@staff_required
def originals(request: SignedInRequest, uuid: str, pair_id: int) -> HttpResponse:
    """Show the original ids of a pair; an audit line names the reader."""
    proposal, found = _find_pair(request, uuid, pair_id)
    if not may_see_names(request.user) or are_hidden(request):
        raise PermissionDenied("Original ids are not shown to you now.")
    audit(request.user, "looked up ids", proposal, pairs=[found.label])
    return render(request, "matching/_originals.html", {"pair": found})


@require_http_methods(["GET", "POST"])
@staff_required
def swap(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Show the pairs and the cost of a swap; make the swap on POST."""
    proposal = find_proposal(request, uuid)
    if request.method == "POST":
        try:
            event = pairs_swap(
                user=request.user,
                proposal=proposal,
                student=_number(request.POST, "student"),
                partner=_number(request.POST, "partner"),
                versions=_versions(request),
            )
            _toast_event(request, proposal, event)
        except DecisionError as problem:
            toast(request, str(problem), error=True)
        return _answer(request, proposal)
    context: dict[str, Any] = {"proposal": proposal}
    for name in ("student", "partner"):
        context[name] = request.GET.get(name, "").strip()
    try:
        student, partner = _number(request.GET, "student"), _number(request.GET, "partner")
        if student and partner:
            context["offer"] = swap_offer(proposal, student, partner)
        elif student:
            context["next_best"] = swap_partners(proposal, student)
    except DecisionError as problem:
        context["error"] = str(problem)
    template = "matching/_swap_dialog.html" if request.htmx else "matching/swap.html"
    return render(request, template, context)
