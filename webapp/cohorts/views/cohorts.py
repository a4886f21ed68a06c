"""Pages of cohorts: the list, one cohort, and its acts."""

import secrets
from functools import partial
from typing import Any

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods, require_safe

from webapp.accounts.requests import SignedInRequest
from webapp.audit.services import audit
from webapp.cohorts.forms import SeedForm, SimulateForm
from webapp.cohorts.late_arrivals import late_additions
from webapp.cohorts.models import Cohort
from webapp.cohorts.naming import are_hidden, may_see_names
from webapp.cohorts.selectors.cohorts import (
    cohort_listing,
    constraint_groups,
    find_students,
    halves_within,
    is_original_id,
    open_drafts,
    past_pairs,
    question_summaries,
)
from webapp.cohorts.services.cohorts import cohort_purge, cohort_rename, cohort_split
from webapp.cohorts.services.practice import pairs_simulation_start
from webapp.common.decorators import administrator_required, staff_required, viewer_required
from webapp.common.form_pages import FormPage, Trail, remove_page, rename_page
from webapp.common.hooks import CohortContent, cohort_contents
from webapp.common.kept_forms import keeps_typed
from webapp.common.listing import light, page_at
from webapp.common.parameters import MAX_DIGITS
from webapp.common.selectors import get_owned_or_404
from webapp.common.toasts import toast
from webapp.jobs.models import Job

PAGE_SIZE = 50
DRAFTS = 50
TABS = ("questions", "students", "pairs")


@require_safe
@viewer_required
def cohort_list(request: SignedInRequest) -> HttpResponse:
    """Show all cohorts and unfinished imports."""
    drafts = open_drafts(request.user).filter(about=None)[:DRAFTS]
    context = {
        "listing": cohort_listing(request.user, request.GET),
        "drafts": drafts if request.user.is_staff_member else [],
    }
    return render(request, "cohorts/cohort_list.html", context)


@require_safe
@viewer_required
def cohort(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Show one cohort: its questions, students or pairs."""
    found = get_owned_or_404(Cohort, request.user, uuid)
    tab = request.GET.get("tab", "questions")
    tab = tab if tab in TABS else "questions"
    query = request.GET.get("q", "").strip()[:100]
    originals = tab != "questions" and _asks_for_originals(request, found, query)
    by = {"originals": originals, "by_name": may_see_names(request.user)}
    context: dict[str, Any] = {
        "cohort": found,
        "tab": tab,
        "query": query,
        "show_originals": originals,
        "groups": constraint_groups(found),
        "jobs": _open_jobs(found),
        "models": light(found.models_learned.all())[:5],
        "placements": light(found.placements.all())[:5],
        "n_requests": found.requests.count() if request.user.is_staff_member else 0,
        "halves": halves_within(found),
        "purged": _purged(found) if request.user.is_administrator else [],
        "drafts": found.drafts.all() if request.user.is_staff_member else [],
        "arrivals": late_additions(found) if request.user.is_staff_member else [],
    }
    if tab == "questions":
        context["questions"] = question_summaries(found)
    elif tab == "students":
        context["page"] = _page(request, find_students(found, query, **by))
    else:
        context["page"] = _page(request, past_pairs(found, query, **by))
    if originals:
        audit(request.user, "looked up ids", found, **_what_is_shown(context))
    return render(request, "cohorts/cohort.html", context)


def _purged(cohort: Cohort) -> list[CohortContent]:
    """Return what a purge of a cohort and its halves removes besides their answers."""
    parts = [cohort, *halves_within(cohort)]
    return sorted(
        (content for part in parts for content in cohort_contents(part)),
        key=lambda content: not content.url,
    )


def _page(request: SignedInRequest, rows: Any) -> Any:
    return page_at(rows, request.GET.get("page"), PAGE_SIZE)


def _asks_for_originals(request: SignedInRequest, cohort: Cohort, query: str) -> bool:
    """Return True if somebody who sees names asks for original ids, or searches by one."""
    is_asking = bool(request.GET.get("originals")) or is_original_id(cohort, query)
    return is_asking and may_see_names(request.user) and not are_hidden(request)


def _what_is_shown(context: dict[str, Any]) -> dict[str, Any]:
    """Return the audit details of the original ids shown; a search names the rows found."""
    shown = {"page": context["page"].number, "tab": context["tab"]}
    return shown | {"found": [str(row) for row in context["page"]]} if context["query"] else shown


def _open_jobs(cohort: Cohort) -> list[Job]:
    jobs = Job.objects.filter(
        organisation_id=cohort.organisation_id,
        kind="roommates.simulate",
        parameters__cohort=str(cohort.pk),
    )
    latest = jobs.first()
    if latest is None or (latest.state == "succeeded"):
        return []
    return [latest]


@keeps_typed
@require_http_methods(["GET", "POST"])
@staff_required
def rename(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Rename the cohort."""
    found = get_owned_or_404(Cohort, request.user, uuid)
    act = partial(cohort_rename, user=request.user, cohort=found)
    return rename_page(request, "cohort", act, _trail(found))


def _trail(found: Cohort) -> Trail:
    own = reverse("cohorts:cohort", args=[found.pk])
    return [(_("Cohorts"), reverse("cohorts:list")), (found.name, own)]


@keeps_typed
@require_http_methods(["GET", "POST"])
@staff_required
def split(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Split the cohort into two halves by a seed."""
    found = get_owned_or_404(Cohort, request.user, uuid)
    form = SeedForm.typed(request)
    halves: list[Cohort] = []

    def act(*, seed: int | None) -> None:
        if seed is None:
            seed = secrets.randbelow(10**MAX_DIGITS)  # reported, to allow the same halves again
        halves.extend(cohort_split(user=request.user, cohort=found, seed=seed))
        sentence = ngettext(
            "Split into %(first)s and %(second)s student (seed %(seed)s).",
            "Split into %(first)s and %(second)s students (seed %(seed)s).",
            halves[1].n_students,
        ) % {
            "first": f"{halves[0].n_students:,}",
            "second": f"{halves[1].n_students:,}",
            "seed": seed,
        }
        toast(request, sentence)

    if form.submit(request, act):
        return redirect("cohorts:cohort", halves[0].pk)
    return FormPage(_("Split into two halves"), _("Split"), _trail(found)).show(request, form)


@keeps_typed
@require_http_methods(["GET", "POST"])
@staff_required
def simulate(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Start simulating pairs for practice."""
    found = get_owned_or_404(Cohort, request.user, uuid)
    form = SimulateForm.typed(request, cohort=found)
    if form.submit(request, partial(pairs_simulation_start, user=request.user, cohort=found)):
        return redirect("cohorts:cohort", found.pk)
    return FormPage(_("Simulate pairs"), _("Simulate pairs"), _trail(found)).show(request, form)


@require_http_methods(["GET", "POST"])
@administrator_required
def purge(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Remove the cohort for good, if its name was typed."""
    found = get_owned_or_404(Cohort, request.user, uuid)
    return remove_page(
        request,
        _("Purge the cohort"),
        partial(cohort_purge, user=request.user, cohort=found),
        _trail(found),
        words=_("This removes the cohort with everything in it."),
        done=_("%(name)s was purged with everything in it."),
    )
