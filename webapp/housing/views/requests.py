"""Requests and preferences of a cohort: importing them, and resolving unclear ones.

Each act has an address of its own. A form names the requests or students that it is about, and
the page with its filters to return to.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from engine import InvalidProblemError
from webapp.accounts.requests import SignedInRequest
from webapp.cohorts.models import Cohort
from webapp.cohorts.views.student_files import checked_upload
from webapp.common.acts import passed_on
from webapp.common.decorators import staff_required
from webapp.common.errors import Refusal
from webapp.common.formats import counted
from webapp.common.forms import BackForm
from webapp.common.kept_forms import keeps_typed
from webapp.common.selectors import get_owned_or_404
from webapp.common.toasts import toast
from webapp.housing.errors import HousingError
from webapp.housing.forms import RulesForm
from webapp.housing.models import Placement, RoommateRequest
from webapp.housing.request_forms import (
    CountForm,
    KeepForm,
    MembersForm,
    OldActForm,
    PairsForm,
    SettleForm,
)
from webapp.housing.rules import PlacementRules
from webapp.housing.selectors.requests import (
    musts_apart_sentence,
    requests_context,
)
from webapp.housing.selectors.wish_effects import (
    NO_ESTIMATE,
    estimated_strengths,
    wish_strengths,
)
from webapp.housing.services import request_groups
from webapp.housing.services import requests as services
from webapp.housing.services.placements import placement_copy, rules_change
from webapp.matching.models import LearnedModel

IMPORTS = ("requests", "preferences", "needs")
_MOVED = {
    "close": "housing:requests-match",
    "leave-out": "housing:requests-leave-out",
    "split": "housing:requests-split",
    "circle": "housing:requests-circles",
    "cut": "housing:requests-cut",
    "keep": "housing:requests-keep",
    "impossible": "housing:requests-impossible",
    "count": "housing:requests-try",
    "themselves": "housing:requests-themselves",
    "clear": "housing:requests-clear",
}


def _cohort(request: SignedInRequest, uuid: str) -> Cohort:
    return get_owned_or_404(Cohort, request.user, uuid)


def _page_of(cohort: Cohort) -> str:
    return reverse("housing:requests", args=[cohort.pk])


@require_safe
@staff_required
def requests(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Show the requests, those that need a decision first; only staff may see who asked whom."""
    cohort = _cohort(request, uuid)
    return render(request, "housing/requests.html", requests_context(cohort, request.GET))


@require_safe
@staff_required
def wish_effects(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Show the strengths of wishes with their estimated effects, for a form that asks for them."""
    cohort = _cohort(request, uuid)
    model, rules = None, PlacementRules()
    if placement_key := request.GET.get("placement"):
        placement = get_owned_or_404(cohort.placements.all(), request.user, placement_key)
        model, rules = placement.model, PlacementRules.from_json(placement.rules)
    elif model_key := request.GET.get("model"):
        model = get_owned_or_404(LearnedModel, request.user, model_key)
    form = RulesForm(request.GET, cohort=cohort, now=rules)
    rules = replace(rules, wish=form.rules.wish) if placement_key else form.rules
    try:
        if "wish" in form.errors:
            raise HousingError(_("This strength is no number."))
        if model is None:
            raise HousingError(_("Choose a model first."))
        strengths, sentence = estimated_strengths(cohort, model, rules)
    except (Refusal, InvalidProblemError):
        strengths, sentence = wish_strengths(rules.wish), NO_ESTIMATE
    context = {"strengths": strengths, "effects_sentence": sentence}
    return render(request, "housing/_wish_options.html", context)


@require_POST
@staff_required
def import_file(request: SignedInRequest, uuid: str, kind: str) -> HttpResponse:
    """Check a file of requests, choices of hall or needs before it is imported."""
    cohort = _cohort(request, uuid)
    if kind not in IMPORTS:
        raise Http404(_("There is no such kind of file."))
    try:
        return redirect(checked_upload(request, cohort, kind, _page_of(cohort)))
    except Refusal as problem:
        toast(request, str(problem), error=True)
    return redirect(_page_of(cohort))


@require_POST
@staff_required
def leave_one_out(request: SignedInRequest, uuid: str, request_id: int) -> HttpResponse:
    """Leave one unknown request out."""

    def act(**options: Any) -> str:
        services.request_settle(request_id=request_id, answer="", **options)
        return _("Left out.")

    return _press(request, _cohort(request, uuid), BackForm.typed(request), act)


@keeps_typed
@require_http_methods(["GET", "POST"])
@staff_required
def settle(request: SignedInRequest, uuid: str, request_id: int) -> HttpResponse:
    """Set whom one request means."""
    cohort = _cohort(request, uuid)
    if not RoommateRequest.objects.filter(cohort=cohort, pk=request_id).exists():
        toast(request, _("This request was removed meanwhile."), error=True)
        return redirect(_page_of(cohort))
    form = SettleForm.typed(request)
    if request.method == "POST" and form.is_valid():
        answer = form.cleaned_data["answer"]

        def act() -> None:
            settled = services.request_settle(
                user=request.user, cohort=cohort, request_id=request_id, answer=answer
            )
            toast(
                request,
                _("Means %(target)s.") % {"target": settled.target.label}
                if settled.target
                else _("Left out."),
            )

        if form.attempt(act):
            return redirect(form.page_of(_page_of(cohort)))
    if not form.is_bound:
        return redirect(f"{_page_of(cohort)}?show=unknown")
    return _show(request, cohort, form, settle_form=form, settled_id=request_id)


def _show(request: SignedInRequest, cohort: Cohort, form: BackForm, **more: Any) -> HttpResponse:
    """Return the page of requests, under the filters of the form's page, with a refused form."""
    page = form.page_of(_page_of(cohort))
    filters = dict(parse_qsl(urlsplit(page).query))
    context = requests_context(cohort, filters) | {"back": page} | more
    return render(request, "housing/requests.html", context, status=form.status)


def _press(
    request: SignedInRequest, cohort: Cohort, form: BackForm, act: Callable[..., str]
) -> HttpResponse:
    """Perform the act of a button and return to its page; a refusal is a toast."""
    done: list[str] = []

    def perform(*, back: str, **fields: Any) -> None:
        done.append(act(user=request.user, cohort=cohort, **fields))

    if form.press(request, perform):
        toast(request, done[0])
    return redirect(form.page_of(_page_of(cohort)))


def _left_out(count: int) -> str:
    return ngettext("%(count)s request left out.", "%(count)s requests left out.", count)


def _matched(count: int) -> str:
    return ngettext("%(count)s request matched.", "%(count)s requests matched.", count)


def _removed(count: int) -> str:
    return ngettext("%(count)s request removed.", "%(count)s requests removed.", count)


def _of_counted(service: Callable[..., int], sentence: Callable[[int], str]) -> Callable[..., str]:
    """Return an act that says how many requests a service changed."""

    def act(**options: Any) -> str:
        count = service(**options)
        return sentence(count) % {"count": f"{count:,}"}

    return act


@require_POST
@staff_required
def match(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Match every unknown request that can mean only one student."""
    act = _of_counted(services.requests_match_close, _matched)
    return _press(request, _cohort(request, uuid), BackForm.typed(request), act)


@require_POST
@staff_required
def leave_out(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Leave out the unknown requests that resemble no student."""
    act = _of_counted(services.requests_leave_out, _left_out)
    return _press(request, _cohort(request, uuid), BackForm.typed(request), act)


@require_POST
@staff_required
def split(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Split one group that fits no room, named by its members, or all of them."""
    form = MembersForm.typed(request)
    return _press(request, _cohort(request, uuid), form, request_groups.groups_split)


@require_POST
@staff_required
def circles(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Count one circle of requests, named by its members, or all of them as groups."""
    form = MembersForm.typed(request)
    return _press(request, _cohort(request, uuid), form, request_groups.circles_close)


@require_POST
@staff_required
def impossible(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Leave out the mutual requests of students whom no room takes: one set, or all."""
    form = MembersForm.typed(request)
    return _press(request, _cohort(request, uuid), form, request_groups.impossible_leave_out)


@require_POST
@staff_required
def cut(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Leave out the chosen requests."""

    def act(*, pair: list[tuple[int, int]], **options: Any) -> str:
        count = services.requests_cut(pairs=pair, **options)
        if not count:
            raise HousingError(_("These requests were left out meanwhile."))
        return ngettext("%(count)s request left out.", "%(count)s requests left out.", count) % {
            "count": f"{count:,}"
        }

    return _press(request, _cohort(request, uuid), PairsForm.typed(request), act)


@require_POST
@staff_required
def keep(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Count left-out requests again: some or all."""

    def act(**options: Any) -> str:
        again = counted(services.requests_keep(**options), "request")
        return _("%(again)s counted again.%(musts_apart_sentence)s") % {
            "again": again,
            "musts_apart_sentence": musts_apart_sentence(options["cohort"]),
        }

    return _press(request, _cohort(request, uuid), KeepForm.typed(request), act)


@require_POST
@staff_required
def themselves(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Leave out every request of a student for themselves."""
    act = _of_counted(services.requests_drop_selves, _left_out)
    return _press(request, _cohort(request, uuid), BackForm.typed(request), act)


@require_POST
@staff_required
def clear(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Remove all requests of the cohort."""
    act = _of_counted(services.requests_clear, _removed)
    return _press(request, _cohort(request, uuid), BackForm.typed(request), act)


@require_POST
@staff_required
def count(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Change how requests count in a placement, and place again."""

    def act(placement: Placement, rules: PlacementRules) -> str:
        rules_change(user=request.user, placement=placement, rules=rules)
        return _("%(placement)s is placed again with requests counted so.") % {
            "placement": placement.name
        }

    return _count(request, _cohort(request, uuid), act)


@require_POST
@staff_required
def try_count(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Try another way of counting requests in a scenario beside a placement."""
    cohort = _cohort(request, uuid)
    moved = passed_on(request, {"set": "housing:requests-count"}, cohort.pk, field="as")
    if moved is not None:
        return moved

    def act(placement: Placement, rules: PlacementRules) -> str:
        made = placement_copy(user=request.user, placement=placement, rules=rules)
        return _("%(made)s is being computed. Its cost shows here when it is done.") % {
            "made": made.name
        }

    return _count(request, cohort, act)


def _count(
    request: SignedInRequest, cohort: Cohort, act: Callable[[Placement, PlacementRules], str]
) -> HttpResponse:
    form = CountForm.typed(request, cohort=cohort)

    def perform(*, placement: Placement, **others: Any) -> str:
        now = PlacementRules.from_json(placement.rules)
        form.now = now
        asked = form.rules
        rules = replace(now, mutual=asked.mutual, one_sided=asked.one_sided, wish=asked.wish)
        if rules == now:
            raise HousingError(_("Requests count so already. Nothing was changed."))
        return act(placement, rules)

    return _press(request, cohort, form, perform)


@require_POST
@staff_required
def change(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Repeat an act at its own address; until version 0.2 this address took all of them."""
    cohort = _cohort(request, uuid)
    form = OldActForm.typed(request)
    sent = form.cleaned_data if form.is_valid() else {}
    act = sent.get("act")
    if act in ("import", *IMPORTS[1:]):
        kind = "requests" if act == "import" else act
        return redirect("housing:requests-import", cohort.pk, kind, preserve_request=True)
    if act == "settle" and sent["request"] is not None:
        name = "housing:request-settle" if sent["answer"] else "housing:request-leave-out"
        return redirect(name, cohort.pk, sent["request"], preserve_request=True)
    if "group" in form.sent:  # a position, which may be another group's by now
        toast(request, request_groups.CHANGED, error=True)
        return redirect(_page_of(cohort))
    moved = passed_on(request, _MOVED, cohort.pk)
    if moved is not None:
        return moved
    toast(request, _("There is no such action."), error=True)
    return redirect(_page_of(cohort))
