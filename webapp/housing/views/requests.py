"""Requests and preferences of a cohort: importing them, and settling what is unclear."""

from dataclasses import replace
from typing import Any
from urllib.parse import urlencode, urlsplit

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from webapp.cohorts.models import Cohort
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
from webapp.housing.services.placements import placement_copy, rules_change
from webapp.housing.services.requests import (
    needs_import,
    preferences_import,
    request_settle,
    requests_clear,
    requests_close_circle,
    requests_cut,
    requests_drop_selves,
    requests_import,
    requests_keep,
    requests_leave_out,
    requests_match_close,
)

SHOWN = ("show", "sort", "page")  # of the address of the page
IMPORTS = ("import", "preferences", "needs")


@require_GET
@staff_required
def requests(request: HttpRequest, uuid: str) -> HttpResponse:
    """Show what needs a decision first; who asked whom is for staff only."""
    cohort = get_owned_or_404(Cohort, request.user, uuid)
    return render(request, "housing/requests.html", requests_context(cohort, request.GET))


@require_POST
@staff_required
def change(request: HttpRequest, uuid: str) -> HttpResponse:
    """Import, match, leave out, split or remove requests."""
    cohort = get_owned_or_404(Cohort, request.user, uuid)
    try:
        toast(request, _act(request, cohort))
    except Refusal as problem:
        toast(request, str(problem), error=True)
    return redirect(address_again(request, reverse("housing:requests", args=[cohort.pk])))


def came_from(request: HttpRequest, address: str) -> bool:
    """Whether a form stood on the page of an address."""
    return urlsplit(request.headers.get("Referer", "")).path == address


def address_again(request: HttpRequest, address: str) -> str:
    """Return an address with what the page of the form showed of it: kind, order and page."""
    if not came_from(request, address):
        return address
    sent = QueryDict(urlsplit(request.headers["Referer"]).query)
    kept = {name: sent[name] for name in SHOWN if sent.get(name)}
    return f"{address}?{urlencode(kept)}" if kept else address


def _act(request: HttpRequest, cohort: Cohort) -> str:
    act, options = request.POST.get("act", ""), {"user": request.user, "cohort": cohort}
    if act in IMPORTS:
        return _import(request, act, options)
    if act == "settle":
        key = whole_number(request.POST.get("request", ""))
        answer = request.POST.get("answer", "")
        settled = request_settle(request_id=key or 0, answer=answer, **options)
        target = settled.target
        return f"Means {target.label}." if target else "Left out."
    if act == "close":
        return f"{counted(requests_match_close(**options), 'request')} matched."
    if act == "leave-out":
        return f"{counted(requests_leave_out(**options), 'request')} left out."
    if act == "split":
        group = whole_number(request.POST.get("group", ""))
        splits = splits_of(cohort)
        chosen = splits if group is None else splits[group : group + 1]
        pairs = [pair for split in chosen for pair in split.cut]
        if not pairs:
            raise HousingError("This group was settled meanwhile.")
        requests_cut(pairs=pairs, **options)
        return f"{counted(len(chosen), 'group')} split; {counted(len(pairs), 'request')} left out."
    if act == "circle":
        key = whole_number(request.POST.get("group", ""))
        circles = graph_of(cohort).circles
        chosen = circles if key is None else circles[key : key + 1]
        if not chosen:
            raise HousingError("This circle was settled meanwhile.")
        made = sum(requests_close_circle(circle=circle, **options) for circle in chosen)
        return f"{counted(made, 'request')} counted as asked back."
    if act in ("cut", "keep"):
        return _cut_or_keep(request, act, options)
    if act == "impossible":
        return _leave_out_impossible(request, cohort)
    if act == "count":
        return _count(request, cohort)
    if act == "themselves":
        return f"{counted(requests_drop_selves(**options), 'request')} left out."
    if act == "clear":
        return f"{counted(requests_clear(**options), 'request')} removed."
    raise HousingError("There is no such act.")


def _cut_or_keep(request: HttpRequest, act: str, options: dict[str, Any]) -> str:
    """Leave out the requests that were chosen, each "asker-asked", or count some again, by key."""
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


def _leave_out_impossible(request: HttpRequest, cohort: Cohort) -> str:
    """Leave out the requests among people whom no room takes together: one set of them, or all."""
    wishes = impossible_of(cohort)
    members = request.POST.get("members", "")
    if members:
        wishes = [wish for wish in wishes if members == "-".join(map(str, wish.members))]
    if not wishes:
        raise HousingError("This was settled meanwhile.")
    pairs = [pair for wish in wishes for pair in wish.cut]
    requests_cut(user=request.user, cohort=cohort, pairs=pairs)
    return f"{counted(len(pairs), 'mutual request')} left out."


def _count(request: HttpRequest, cohort: Cohort) -> str:
    """Let requests count otherwise: in the placement of now, or in a scenario beside it."""
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


def _import(request: HttpRequest, act: str, options: dict[str, Any]) -> str:
    file = request.FILES.get("file")
    if file is None:
        raise HousingError("Choose a CSV or XLSX file first.")
    sent = {"filename": file.name, "size": file.size, "read": file.read}
    if act == "import":
        return requests_import(**sent, **options).sentence
    is_needs = act == "needs"
    kept, strangers = (needs_import if is_needs else preferences_import)(**sent, **options)
    rest = f"; {counted(strangers, 'row')} of nobody in this cohort left out" if strangers else ""
    if is_needs:
        words = counted(kept, "student has a need", "students have needs")
        return f"{words} now{rest}. Rules of placements made before do not count them yet."
    return f"{counted(kept, 'choice')} imported{rest}."
