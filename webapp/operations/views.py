"""What an administrator looks at when something seems wrong."""

from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_POST

from webapp.common.decorators import administrator_required
from webapp.common.toasts import attempt, toast
from webapp.jobs.models import Worker
from webapp.operations import selectors, services


@require_GET
@administrator_required
def page(request: HttpRequest) -> HttpResponse:
    """Show alarms in words, then workers, queues, parts and limits."""
    return render(request, "operations/page.html", selectors.overview(request.user))


@require_POST
@administrator_required
def forget(request: HttpRequest, pk: int) -> HttpResponse:
    """Take a worker that does not answer off the page; one that answers again comes back."""
    worker = get_object_or_404(Worker, pk=pk)
    services.worker_forget(user=request.user, worker=worker)
    toast(request, f"{worker.host} is no longer expected.")
    return redirect("operations:page")


@require_POST
@administrator_required
def back_up(request: HttpRequest) -> HttpResponse:
    """Start a backup, as a job that the page shows."""
    attempt(request, lambda: services.backup_start(user=request.user))
    return redirect("operations:page")


@require_POST
@administrator_required
def alert_me(request: HttpRequest) -> HttpResponse:
    """Write to this person when a check turns bad, and when it is well again."""
    address = request.POST.get("address", "").strip()
    try:
        validate_email(address)
    except ValidationError:
        toast(request, "That is no e-mail address. Nothing was changed.", error=True)
        return redirect("operations:page")
    services.alerts_start(user=request.user, address=address)
    toast(request, f"Mails go to {address} when something turns bad.", icon="mail")
    return redirect("operations:page")


@require_POST
@administrator_required
def alert_me_no_more(request: HttpRequest) -> HttpResponse:
    """Write to this person no longer."""
    services.alerts_stop(user=request.user)
    toast(request, "You get no more mails about this.")
    return redirect("operations:page")
