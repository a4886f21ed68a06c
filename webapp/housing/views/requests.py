"""Requests and preferences of a cohort: importing them, and resolving unclear ones."""

from dataclasses import replace
from typing import Any
from urllib.parse import urlencode, urlsplit

from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from engine import InvalidProblemError
from webapp.accounts.requests import SignedInRequest
from webapp.cohorts.models import Cohort
from webapp.cohorts.views.student_files import checked_upload
from webapp.common.decorators import staff_required
from webapp.common.errors import Refusal
from webapp.common.formats import counted
from webapp.common.parameters import whole_number
from webapp.common.selectors import get_owned_or_404
from webapp.common.toasts import toast
from webapp.housing.errors import HousingError
from webapp.housing.forms import read_rules
from webapp.housing.models import Placement
from webapp.housing.rules import PlacementRules
from webapp.housing.selectors.requests import (
    graph_of,
    impossible_of,
    musts_apart_sentence,
    requests_context,
    splits_of,
)
from webapp.housing.selectors.wish_effects import (
    NO_ESTIMATE,
    estimated_strengths,
    wish_strengths,
)
from webapp.housing.services.placements import placement_copy, rules_change
from webapp.housing.services.requests import (
    request_settle,
    requests_clear,
    requests_close_circle,
    requests_cut,
    requests_drop_selves,
    requests_keep,
    requests_leave_out,
    requests_match_close,
)
from webapp.matching.models import LearnedModel

SHOWN = ("show", "sort", "page")  # parameters of the page's address
IMPORTS = {"import": "requests", "preferences": "preferences", "needs": "needs"}


@require_safe
@staff_required
def requests(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Show the requests, those that need a decision first; only staff may see who asked whom."""
    cohort = get_owned_or_404(Cohort, request.user, uuid)
    return render(request, "housing/requests.html", requests_context(cohort, request.GET))


@require_safe
@staff_required
def wish_effects(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Show the strengths of wishes with their estimated effects, for a form that asks for them."""
    cohort = get_owned_or_404(Cohort, request.user, uuid)
    model, rules = None, PlacementRules()
    if placement_key := request.GET.get("placement"):
        placement = get_owned_or_404(cohort.placements.all(), request.user, placement_key)
        model, rules = placement.model, PlacementRules.from_json(placement.rules)
    elif model_key := request.GET.get("model"):
        model = get_owned_or_404(LearnedModel, request.user, model_key)
    try:
        asked = read_rules(request.GET, cohort, rules)
        rules = replace(rules, wish=asked.wish) if placement_key else asked
        if model is None:
            raise HousingError("Choose a model first.")
        strengths, sentence = estimated_strengths(cohort, model, rules)
    except (Refusal, InvalidProblemError):
        strengths, sentence = wish_strengths(rules.wish), NO_ESTIMATE
    context = {"strengths": strengths, "effects_sentence": sentence}
    return render(request, "housing/_wish_options.html", context)


@require_POST
@staff_required
def change(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Import, match, leave out, split or remove requests."""
    cohort = get_owned_or_404(Cohort, request.user, uuid)
    purpose = IMPORTS.get(request.POST.get("act", ""))
    try:
        if purpose is not None:
            back = reverse("housing:requests", args=[cohort.pk])
            return redirect(checked_upload(request, cohort, purpose, back))
        toast(request, _act(request, cohort))
    except Refusal as problem:
        toast(request, str(problem), error=True)
    return redirect(address_again(request, reverse("housing:requests", args=[cohort.pk])))


def came_from(request: SignedInRequest, address: str) -> bool:
    """Return True if a form was sent from the page of an address."""
    return urlsplit(request.headers.get("Referer", "")).path == address


def address_again(request: SignedInRequest, address: str) -> str:
    """Return an address with the filters of the form's page: kind, order and page."""
    if not came_from(request, address):
        return address
    sent = QueryDict(urlsplit(request.headers["Referer"]).query)
    kept = {name: sent[name] for name in SHOWN if sent.get(name)}
    return f"{address}?{urlencode(kept)}" if kept else address


def _act(request: SignedInRequest, cohort: Cohort) -> str:
    act, user = request.POST.get("act", ""), request.user
    if act == "settle":
        key = whole_number(request.POST.get("request", ""))
        answer = request.POST.get("answer", "")
        settled = request_settle(request_id=key or 0, answer=answer, user=user, cohort=cohort)
        target = settled.target
        return f"Means {target.label}." if target else "Left out."
    if act == "close":
        return f"{counted(requests_match_close(user=user, cohort=cohort), 'request')} matched."
    if act == "leave-out":
        return f"{counted(requests_leave_out(user=user, cohort=cohort), 'request')} left out."
    if act == "split":
        group = whole_number(request.POST.get("group", ""))
        splits = splits_of(cohort)
        chosen = splits if group is None else splits[group : group + 1]
        pairs = [pair for split in chosen for pair in split.cut]
        if not pairs:
            raise HousingError("This group was settled meanwhile.")
        requests_cut(pairs=pairs, user=user, cohort=cohort)
        return f"{counted(len(chosen), 'group')} split; {counted(len(pairs), 'request')} left out."
    if act == "circle":
        key = whole_number(request.POST.get("group", ""))
        circles = graph_of(cohort).circles
        closed = circles if key is None else circles[key : key + 1]
        if not closed:
            raise HousingError("This circle was settled meanwhile.")
        made = sum(
            requests_close_circle(circle=circle, user=user, cohort=cohort) for circle in closed
        )
        return f"{counted(made, 'request')} counted as asked back."
    if act in ("cut", "keep"):
        return _cut_or_keep(request, act, {"user": user, "cohort": cohort})
    if act == "impossible":
        return _leave_out_impossible(request, cohort)
    if act == "count":
        return _count(request, cohort)
    if act == "themselves":
        return f"{counted(requests_drop_selves(user=user, cohort=cohort), 'request')} left out."
    if act == "clear":
        return f"{counted(requests_clear(user=user, cohort=cohort), 'request')} removed."
    raise HousingError("There is no such action.")


def _cut_or_keep(request: SignedInRequest, act: str, options: dict[str, Any]) -> str:
    """Leave out the chosen requests, each "asker-asked", or count some again, by key."""
    if act == "keep":
        named = [whole_number(text) for text in request.POST.getlist("request")]
        keys = None if request.POST.get("all") else [key for key in named if key is not None]
        again = counted(requests_keep(keys=keys, **options), "request")
        return f"{again} counted again.{musts_apart_sentence(options['cohort'])}"
    chosen = [[whole_number(n) for n in text.split("-")] for text in request.POST.getlist("pair")]
    pairs = [(a, b) for a, b in (pair for pair in chosen if len(pair) == 2) if a and b]
    if not pairs:
        raise HousingError("Choose at least one request first.")
    cut = requests_cut(pairs=pairs, **options)
    if not cut:
        raise HousingError("These requests were left out meanwhile.")
    return f"{counted(cut, 'request')} left out."


def _leave_out_impossible(request: SignedInRequest, cohort: Cohort) -> str:
    """Leave out the requests among people whom no room takes together: one set, or all sets."""
    wishes = impossible_of(cohort)
    members = request.POST.get("members", "")
    if members:
        wishes = [wish for wish in wishes if members == "-".join(map(str, wish.members))]
    if not wishes:
        raise HousingError("This was settled meanwhile.")
    pairs = [pair for wish in wishes for pair in wish.cut]
    requests_cut(user=request.user, cohort=cohort, pairs=pairs)
    return f"{counted(len(pairs), 'mutual request')} left out."


def _count(request: SignedInRequest, cohort: Cohort) -> str:
    """Change how requests count, in the current placement or in a scenario beside it."""
    found = get_owned_or_404(Placement, request.user, request.POST.get("placement", ""))
    if found.cohort_id != cohort.pk:
        raise HousingError("This placement is of another cohort.")
    now = PlacementRules.from_json(found.rules)
    asked = read_rules(request.POST, cohort, now)
    rules = replace(now, mutual=asked.mutual, one_sided=asked.one_sided, wish=asked.wish)
    if rules == now:
        raise HousingError("Requests count so already. Nothing was changed.")
    if request.POST.get("as") == "set":
        rules_change(user=request.user, placement=found, rules=rules)
        return f"{found.name} is placed again with requests counted so."
    made = placement_copy(user=request.user, placement=found, rules=rules)
    return f"{made.name} is being worked out; what it costs shows here once it is."
