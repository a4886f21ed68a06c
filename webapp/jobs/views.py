"""Pages to watch and cancel jobs."""

from http import HTTPStatus
from typing import Any
from uuid import UUID

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from webapp.accounts.requests import SignedInRequest
from webapp.common.decorators import staff_required
from webapp.common.listing import light, list_page
from webapp.common.selectors import get_owned_or_404
from webapp.common.toasts import toast
from webapp.jobs import convergence, registry, selectors, services
from webapp.jobs.forms import JobFilter
from webapp.jobs.models import Job
from webapp.jobs.notifications import notifications_of, remember_seen

JOBS_A_PAGE = 25
SORTS = ("created_at", "title", "state", "created_by__username")


@require_safe
def job_list(request: SignedInRequest) -> HttpResponse:
    """List the jobs of the organisation, newest first."""
    is_part = request.htmx and request.htmx.target == "job-list"
    if not is_part:
        remember_seen(request.user)
    form = JobFilter(request.GET)
    jobs = form.matching(light(selectors.jobs_of(request.user)))
    listing = list_page(jobs, request.GET, search=(), sorts=SORTS, size=JOBS_A_PAGE)
    subjects = selectors.subject_links(listing.rows)
    context = {
        "listing": listing,
        "rows": [(job, subjects.get(job.pk)) for job in listing.rows],
        "form": form,
        "any_active": any(job.is_active for job in listing.rows),
    }
    return render(request, "jobs/_list.html" if is_part else "jobs/list.html", context)


@require_safe
def job_bell(request: SignedInRequest) -> HttpResponse:
    """Return the bell alone, for polling; polling stops with the person's last job.

    The answer is empty while the bell is up to date, since screen readers speak each new one.
    """
    news = notifications_of(request.user)
    if news.n_active and request.GET.get("ended") == str(news.n_ended):
        return HttpResponse(status=HTTPStatus.NO_CONTENT)
    return render(request, "jobs/_bell.html", {"news": news})


@require_safe
def job_page(request: SignedInRequest, uuid: UUID) -> HttpResponse:
    """Show one job: its state, its convergence, its settings."""
    job = get_owned_or_404(selectors.jobs_of(request.user), request.user, uuid)
    context = {
        "job": job,
        "by": convergence.axis_of(request),
        "has_convergence": convergence.is_expected(job),
        "subject": selectors.subject_links([job]).get(job.pk),
    }
    return render(request, "jobs/job.html", context)


@require_safe
def job_card(request: SignedInRequest, uuid: UUID) -> HttpResponse:
    """Return the card alone, for polling; once the job is over it has no trigger any more."""
    job = get_owned_or_404(selectors.jobs_of(request.user), request.user, uuid)
    wants_reload = request.GET.get("reload") == "1"
    context = _card_context(request, job)
    response = render(request, "jobs/_job_card.html", context)
    if not job.is_active and wants_reload:
        response["HX-Refresh"] = "true"
    return response


def _card_context(request: SignedInRequest, job: Job) -> dict[str, Any]:
    """Return the context of a polled card; ``badge`` adds the badge of its page."""
    return {
        "job": job,
        "reload": request.GET.get("reload") == "1",
        "with_badge": request.GET.get("badge") == "1",
        "is_polled": True,
    }


@require_safe
def job_convergence(request: SignedInRequest, uuid: UUID) -> HttpResponse:
    """Return the convergence plot alone, for polling; by time or by step."""
    job = get_owned_or_404(selectors.visible_jobs(request.user), request.user, uuid)
    return render(
        request, "jobs/_convergence.html", {"job": job, "by": convergence.axis_of(request)}
    )


@require_POST
@staff_required
def job_cancel(request: SignedInRequest, uuid: UUID) -> HttpResponse:
    """Cancel a job; return its card, or its page without scripts."""
    job = get_owned_or_404(selectors.jobs_of(request.user), request.user, uuid)
    if services.job_cancel(user=request.user, job=job):
        toast(request, _("%(job)s: cancelling.") % {"job": registry.title_of(job)}, icon="circle-x")
    else:
        toast(request, _("%(job)s was over already.") % {"job": registry.title_of(job)})
    if request.htmx:
        return render(request, "jobs/_job_card.html", _card_context(request, job))
    return redirect("jobs:job", uuid=job.pk)
