"""Adding late arrivals, by a file or by hand."""

from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from webapp.accounts.requests import SignedInRequest
from webapp.cohorts.forms import LateArrivalForm
from webapp.cohorts.models import Cohort, LateArrivals
from webapp.cohorts.services.latecomers import (
    LATE,
    latecomers_add,
    latecomers_undo,
)
from webapp.cohorts.views.drafts import LIMITS
from webapp.cohorts.views.student_files import checked_upload
from webapp.common.decorators import staff_required
from webapp.common.errors import Refusal
from webapp.common.kept_forms import keeps_typed
from webapp.common.selectors import get_owned_or_404
from webapp.common.toasts import attempt, toast


@keeps_typed
@require_http_methods(["GET", "POST"])
@staff_required
def latecomers(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Check a file of late arrivals before they are added, or add one by hand."""
    cohort = get_owned_or_404(Cohort, request.user, uuid)
    if request.FILES.get("file") is not None:
        try:
            return redirect(checked_upload(request, cohort, LATE.key, ""))
        except Refusal as problem:
            return _show(
                request, cohort, LateArrivalForm(cohort=cohort, auto_id="late-%s"), str(problem)
            )
    form = LateArrivalForm.typed(request, cohort=cohort, auto_id="late-%s")

    def add(**_: str) -> None:
        added = latecomers_add(user=request.user, cohort=cohort, rows=[form.row])
        toast(request, added.sentence, undo_url=undo_address(added.arrivals), icon="user-plus")

    if form.submit(request, add):
        return redirect("cohorts:cohort", cohort.pk)
    return _show(request, cohort, form)


def _show(
    request: SignedInRequest, cohort: Cohort, form: LateArrivalForm, error: str = ""
) -> HttpResponse:
    """Return the page; ``error`` says why a file was refused."""
    context = {"cohort": cohort, "error": error, "limits": LIMITS, "form": form}
    status = 422 if error else form.status
    return render(request, "cohorts/latecomers.html", context, status=status)


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
        raise Http404(_("There is no such addition of students."))

    def remove() -> None:
        toast(request, latecomers_undo(user=request.user, arrivals=found))

    attempt(request, remove)
    return redirect("cohorts:cohort", cohort.pk)
