"""Views of the operations page."""

from functools import partial

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from webapp.accounts.requests import SignedInRequest
from webapp.common.decorators import operator_required
from webapp.common.toasts import attempt, toast
from webapp.jobs.models import Worker
from webapp.operations import selectors, services
from webapp.operations.forms import AlertForm


@require_safe
def page(request: SignedInRequest) -> HttpResponse:
    """Show operators the installation, and administrators their organisation."""
    user = request.user
    if user.is_operator:
        return _overview(request, AlertForm(initial={"address": user.email}))
    if not user.is_administrator:
        raise PermissionDenied(_("This needs the role administrator."))
    return render(request, "operations/organisation.html", selectors.of_organisation(user))


def _overview(request: SignedInRequest, form: AlertForm) -> HttpResponse:
    rows_url = reverse("admin:index") if settings.OPERATOR_ADMIN else ""
    context = selectors.overview(request.user) | {"rows_url": rows_url, "alert_form": form}
    return render(request, "operations/page.html", context, status=form.status)


@require_POST
@operator_required
def forget(request: SignedInRequest, pk: int) -> HttpResponse:
    """Remove a silent worker from the page; a worker that answers again comes back."""
    worker = get_object_or_404(Worker, pk=pk)
    services.worker_forget(user=request.user, worker=worker)
    toast(request, _("%(host)s is no longer expected.") % {"host": worker.host})
    return redirect("operations:page")


@require_POST
@operator_required
def back_up(request: SignedInRequest) -> HttpResponse:
    """Start a backup as a job that the page shows."""
    attempt(request, lambda: services.backup_start(user=request.user))
    return redirect("operations:page")


@require_POST
@operator_required
def alert_me(request: SignedInRequest) -> HttpResponse:
    """Mail this user when a fault begins, and when it is over."""
    form = AlertForm.typed(request)
    if not form.submit(request, partial(services.alerts_start, user=request.user)):
        return _overview(request, form)
    address = form.cleaned_data["address"]
    toast(
        request,
        _("Mails go to %(address)s when something turns bad.") % {"address": address},
        icon="mail",
    )
    return redirect("operations:page")


@require_POST
@operator_required
def alert_me_no_more(request: SignedInRequest) -> HttpResponse:
    """Stop mailing this user about faults."""
    services.alerts_stop(user=request.user)
    toast(request, _("You get no more mails about this."))
    return redirect("operations:page")
