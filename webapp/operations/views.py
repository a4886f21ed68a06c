"""What an administrator looks at when something seems wrong."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_POST

from webapp.common.decorators import administrator_required
from webapp.common.toasts import toast
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
