"""Adding students who come after the import, by a file or by hand."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from webapp.cohorts.models import Cohort
from webapp.cohorts.selectors.cohorts import constraint_groups
from webapp.cohorts.services.latecomers import (
    EMAIL,
    ID,
    NAME,
    Latecomers,
    latecomers_add,
    latecomers_import,
)
from webapp.cohorts.views.drafts import LIMITS
from webapp.common.decorators import staff_required
from webapp.common.errors import Refusal
from webapp.common.selectors import get_owned_or_404
from webapp.common.toasts import toast


@require_http_methods(["GET", "POST"])
@staff_required
def latecomers(request: HttpRequest, uuid: str) -> HttpResponse:
    """Add students of a file, or one by hand; all or none."""
    cohort = get_owned_or_404(Cohort, request.user, uuid)
    error = ""
    if request.method == "POST":
        try:
            added = _add(request, cohort)
            toast(request, added.sentence, icon="user-plus")
            return redirect("cohorts:cohort", cohort.pk)
        except Refusal as problem:
            error = str(problem)
    context = {
        "cohort": cohort,
        "error": error,
        "limits": LIMITS,
        "sent": request.POST,
        "questions": [
            (k, question, request.POST.get(f"q{k}", ""))
            for k, question in enumerate(cohort.questions)
        ],
        "rules": [
            (k, name, [value for value, _ in values if value], request.POST.get(f"r{k}", ""))
            for k, (name, values) in enumerate(constraint_groups(cohort))
        ],
    }
    return render(request, "cohorts/latecomers.html", context, status=422 if error else 200)


def _add(request: HttpRequest, cohort: Cohort) -> Latecomers:
    upload = request.FILES.get("file")
    if upload is not None:
        return latecomers_import(
            user=request.user, cohort=cohort, size=upload.size, read=upload.read
        )
    sent = request.POST
    row = {ID: sent.get("id", ""), EMAIL: sent.get("email", ""), NAME: sent.get("name", "")}
    row |= {q["name"]: sent.get(f"q{k}", "") for k, q in enumerate(cohort.questions)}
    groups = constraint_groups(cohort)
    row |= {name: sent.get(f"r{k}", "") for k, (name, _) in enumerate(groups)}
    return latecomers_add(user=request.user, cohort=cohort, rows=[row])
