"""Adding late arrivals, by a file or by hand."""

from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from webapp.accounts.requests import SignedInRequest
from webapp.cohorts.late_files import EMAIL, ID, NAME
from webapp.cohorts.models import Cohort, LateArrivals
from webapp.cohorts.selectors.cohorts import constraint_groups
from webapp.cohorts.services.latecomers import (
    LATE,
    Latecomers,
    latecomers_add,
    latecomers_undo,
)
from webapp.cohorts.views.drafts import LIMITS
from webapp.cohorts.views.student_files import checked_upload
from webapp.common.decorators import staff_required
from webapp.common.errors import Refusal
from webapp.common.selectors import get_owned_or_404
from webapp.common.toasts import attempt, toast


@require_http_methods(["GET", "POST"])
@staff_required
def latecomers(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Check a file of late arrivals before they are added, or add one by hand."""
    cohort = get_owned_or_404(Cohort, request.user, uuid)
    error = ""
    if request.method == "POST":
        try:
            if request.FILES.get("file") is not None:
                return redirect(checked_upload(request, cohort, LATE.key, ""))
            added = _add(request, cohort)
            toast(request, added.sentence, undo_url=undo_address(added.arrivals), icon="user-plus")
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


def _add(request: SignedInRequest, cohort: Cohort) -> Latecomers:
    sent = request.POST
    row = {ID: sent.get("id", ""), EMAIL: sent.get("email", ""), NAME: sent.get("name", "")}
    row |= {q["name"]: sent.get(f"q{k}", "") for k, q in enumerate(cohort.questions)}
    groups = constraint_groups(cohort)
    row |= {name: sent.get(f"r{k}", "") for k, (name, _) in enumerate(groups)}
    return latecomers_add(user=request.user, cohort=cohort, rows=[row])


def undo_address(arrivals: LateArrivals) -> str:
    """Return the address that undoes an addition of students."""
    return reverse("cohorts:latecomers-undo", args=[arrivals.cohort_id, arrivals.pk])


@require_POST
@staff_required
def undo(request: SignedInRequest, uuid: str, arrivals_id: int) -> HttpResponse:
    """Remove the students of one addition from the cohort again."""
    cohort = get_owned_or_404(Cohort, request.user, uuid)
    found = LateArrivals.objects.filter(cohort=cohort, pk=arrivals_id).first()
    if found is None:
        raise Http404("There is no such addition of students.")

    def remove() -> None:
        toast(request, latecomers_undo(user=request.user, arrivals=found))

    attempt(request, remove)
    return redirect("cohorts:cohort", cohort.pk)
