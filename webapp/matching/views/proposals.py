"""Views of the list of proposals, a new proposal, and the page of its pairs."""

from typing import Any
from urllib.parse import urlencode

from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from webapp.accounts.requests import SignedInRequest
from webapp.cohorts.models import Cohort
from webapp.cohorts.selectors.cohorts import cohort_choices, rule_groups
from webapp.common.decorators import administrator_required, staff_required, viewer_required
from webapp.common.errors import Refusal
from webapp.common.free_names import free_name
from webapp.common.listing import light
from webapp.common.selectors import get_or_none, get_owned_or_404, owned_by
from webapp.common.toasts import attempt
from webapp.files.downloads import download
from webapp.files.file_headers import plain_name
from webapp.matching.charts import compare_scores, probability_heatmap
from webapp.matching.errors import MatchingError
from webapp.matching.models import Proposal
from webapp.matching.numbers import ProposalNumbers
from webapp.matching.selectors.models import learned_models
from webapp.matching.selectors.pages import proposal_context
from webapp.matching.selectors.proposals import proposal_listing, with_questions
from webapp.matching.services.exports import proposal_export
from webapp.matching.services.proposals import (
    proposal_compute,
    proposal_create,
    proposal_delete,
    proposal_rename,
)


def find_proposal(request: SignedInRequest, uuid: str) -> Proposal:
    """Return a proposal of the user's organisation or answer 404."""
    return get_owned_or_404(with_questions(), request.user, uuid)


SHOWN_GROUPS = 12
SHOWN_EARLIER = 5


@require_safe
@viewer_required
def proposal_list(request: SignedInRequest) -> HttpResponse:
    """List the proposals, last changed first."""
    context = {
        "listing": proposal_listing(request.user, request.GET),
        "has_models": learned_models(request.user).exists(),
    }
    return render(request, "matching/proposal_list.html", context)


@require_http_methods(["GET", "POST"])
@staff_required
def proposal_new(request: SignedInRequest) -> HttpResponse:
    """Choose cohort, model and rules, and start proposing."""
    cohorts = light(owned_by(Cohort, request.user))
    models = learned_models(request.user)
    error = ""
    sent = request.POST or request.GET
    cohort = get_or_none(cohorts, sent.get("cohort"))
    if request.method == "GET" and "cohort" not in sent:
        cohort = cohorts.filter(n_pairs=0).order_by("-created_at").first()  # a default
    model = next((m for m in models if str(m.pk) == sent.get("model")), None)
    if request.method == "POST":
        try:
            if cohort is None or model is None:
                raise MatchingError("Choose a cohort and a model first.")
            created = proposal_create(
                user=request.user,
                name=request.POST.get("name", ""),
                cohort=cohort,
                model=model,
                same=[c for c in request.POST.getlist("same") if c in cohort.constraints],
            )
            return redirect("matching:proposal", created.pk)
        except Refusal as problem:
            error = str(problem)
    context = {
        "cohorts": cohort_choices(cohorts),
        "chosen_cohort": str(cohort.pk) if cohort else "",
        "models": models,
        "cohort": cohort,
        "chosen_model": sent.get("model", ""),
        # A refused form is shown with its values: a rule that was left out stays out.
        "same": request.POST.getlist("same") if error else cohort and cohort.same_columns,
        "name": request.POST.get("name", "") if error else cohort and _suggested_name(cohort),
        "error": error,
        "groups": rule_groups(cohort)[:SHOWN_GROUPS] if cohort else [],
        "earlier": light(cohort.proposals.all())[:SHOWN_EARLIER] if cohort else [],
    }
    return render(request, "matching/proposal_new.html", context, status=422 if error else 200)


def _suggested_name(cohort: Cohort) -> str:
    return free_name(cohort.name, cohort.proposals.all())


@require_safe
@viewer_required
def proposal(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Show the pairs of a proposal under the URL's tab, order, filter and page."""
    found = find_proposal(request, uuid)
    context = proposal_context(found, request.GET, request.user)
    is_part = request.htmx and request.htmx.target == "proposal"
    if not is_part:
        return render(request, "matching/proposal.html", context)
    response = render(request, "matching/_proposal_body.html", context)
    kept = {name: value for name, value in request.GET.items() if value}
    response["HX-Push-Url"] = f"{request.path}?{urlencode(kept)}"
    return response


@require_safe
@viewer_required
def look(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Show the charts of a proposal."""
    found = find_proposal(request, uuid)
    context: dict[str, Any] = {"proposal": found}
    if found.is_computed:
        numbers = ProposalNumbers(found)
        context |= {
            "scores": compare_scores(numbers),
            "heatmap": probability_heatmap(numbers),
        }
    return render(request, "matching/look.html", context)


@require_POST
@staff_required
def compute(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Propose again around the decisions."""
    found = find_proposal(request, uuid)
    attempt(request, lambda: proposal_compute(user=request.user, proposal=found))
    return redirect("matching:proposal", found.pk)


@require_safe
@staff_required
def export(request: SignedInRequest, uuid: str, file_format: str) -> HttpResponseBase:
    """Download the pairs with original ids; an audit line names the reader."""
    found = find_proposal(request, uuid)
    return download(
        request,
        lambda: proposal_export(
            user=request.user,
            proposal=found,
            file_format=file_format,
            decided_only=request.GET.get("only") == "decided",
            with_names=request.GET.get("names") == "1",
        ),
        f"{plain_name(found.name, 'pairs')}.{file_format}",
        back=reverse("matching:proposal", args=[found.pk]),
    )


@require_POST
@staff_required
def rename(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Change the name of the proposal."""
    found, name = find_proposal(request, uuid), request.POST.get("name", "")
    attempt(
        request,
        lambda: proposal_rename(user=request.user, proposal=found, name=name),
        "The proposal was renamed.",
    )
    return redirect("matching:proposal", found.pk)


@require_POST
@administrator_required
def delete(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Delete the proposal if its name was typed."""
    found, name = find_proposal(request, uuid), request.POST.get("name", "")
    is_removed = attempt(
        request,
        lambda: proposal_delete(user=request.user, proposal=found, typed_name=name),
        f"{found.name} was removed.",
    )
    return redirect("matching:proposals") if is_removed else redirect("matching:proposal", uuid)
