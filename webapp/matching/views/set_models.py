"""View for setting weights by hand, before any past year exists."""

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from webapp.accounts.requests import SignedInRequest
from webapp.cohorts.models import Cohort
from webapp.cohorts.selectors.cohorts import cohort_choices
from webapp.common.decorators import staff_required
from webapp.common.kept_forms import keeps_typed, sent_fields
from webapp.common.selectors import get_or_none, owned_by
from webapp.matching.forms import SetWeightsForm
from webapp.matching.models import LearnedModel
from webapp.matching.services.set_models import model_set


@keeps_typed
@require_http_methods(["GET", "POST"])
@staff_required
def model_set_page(request: SignedInRequest) -> HttpResponse:
    """Choose how much each question of a cohort matters."""
    cohorts = owned_by(Cohort, request.user)
    sent = sent_fields(request) or request.GET
    cohort = get_or_none(cohorts, sent.get("cohort")) or cohorts.first()
    if cohort is None:
        error = _("Import a cohort first.") if request.method == "POST" else ""
        status = 422 if error else 200
        return render(request, "matching/model_set_new.html", {"error": error}, status=status)
    form = SetWeightsForm.typed(
        request, cohort=cohort, initial={name: request.GET[name] for name in request.GET}
    )
    made: list[LearnedModel] = []

    def create(*, name: str, **_: float) -> None:
        made.append(
            model_set(user=request.user, name=name, cohort=cohort, importance=form.importance)
        )

    if form.submit(request, create):
        return redirect("matching:model", made[0].pk)
    context = {
        "cohorts": cohort_choices(cohorts),
        "chosen_cohort": str(cohort.pk),
        "cohort": cohort,
        "form": form,
    }
    return render(request, "matching/model_set_new.html", context, status=form.status)
