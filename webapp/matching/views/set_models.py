"""View for setting weights by hand, before any past year exists."""

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from webapp.accounts.requests import SignedInRequest
from webapp.cohorts.models import Cohort
from webapp.cohorts.selectors.cohorts import cohort_choices
from webapp.common.decorators import staff_required
from webapp.common.errors import Refusal
from webapp.common.selectors import get_or_none, owned_by
from webapp.matching.errors import MatchingError
from webapp.matching.services.set_models import CHOICES, model_set

USUAL = 0.5  # initial value of a question: small, so that the important ones stand out


@require_http_methods(["GET", "POST"])
@staff_required
def model_set_page(request: SignedInRequest) -> HttpResponse:
    """Choose how much each question of a cohort matters."""
    cohorts = owned_by(Cohort, request.user)
    sent = request.POST or request.GET
    cohort = get_or_none(cohorts, sent.get("cohort")) or cohorts.first()
    names = [question["name"] for question in cohort.questions] if cohort else []
    values = [sent.get(f"importance-{index}", str(USUAL)) for index in range(len(names))]
    error = ""
    if request.method == "POST":
        try:
            if cohort is None:
                raise MatchingError("Import a cohort first.")
            importance = {n: _value(v) for n, v in zip(names, values, strict=True)}
            made = model_set(
                user=request.user, name=sent.get("name", ""), cohort=cohort, importance=importance
            )
            return redirect("matching:model", made.pk)
        except Refusal as problem:
            error = str(problem)
    context = {
        "cohorts": cohort_choices(cohorts),
        "chosen_cohort": str(cohort.pk) if cohort else "",
        "cohort": cohort,
        "questions": list(zip(names, values, strict=True)),
        "choices": [(str(value), words) for value, words in CHOICES],
        "name": sent.get("name", ""),
        "error": error,
    }
    return render(request, "matching/model_set_new.html", context, status=422 if error else 200)


def _value(text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise MatchingError("An importance is none of those offered.") from error
