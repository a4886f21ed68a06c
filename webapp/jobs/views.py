"""Watching and cancelling jobs."""

from http import HTTPStatus
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST
from django_tables2 import RequestConfig

from webapp.common.decorators import staff_required
from webapp.common.listing import light
from webapp.common.selectors import get_owned_or_404
from webapp.common.toasts import toast
from webapp.jobs import convergence, selectors, services
from webapp.jobs.filters import JobFilter
from webapp.jobs.models import Job
from webapp.jobs.news import news_of, remember_seen
from webapp.jobs.tables import JobTable

JOBS_A_PAGE = 25


@require_GET
def job_list(request: HttpRequest) -> HttpResponse:
    """List the jobs of the organisation, newest first."""
    is_part = request.htmx and request.htmx.target == "job-list"
    if not is_part:
        remember_seen(request.user)
    jobs = JobFilter(request.GET, queryset=light(selectors.jobs_of(request.user)))
    table = JobTable(jobs.qs)
    RequestConfig(request, paginate={"per_page": JOBS_A_PAGE, "silent": True}).configure(table)
    active = any(row.record.is_active for row in table.paginated_rows)
    context = {"table": table, "filter": jobs, "any_active": active}
    return render(request, "jobs/_list.html" if is_part else "jobs/list.html", context)


@require_GET
def job_bell(request: HttpRequest) -> HttpResponse:
    """The bell alone, for polling; it stops with the person's last job.

    The answer is empty while the bell shows what is so, since screen readers speak each new one.
    """
    news = news_of(request.user)
    if news.n_active and request.GET.get("ended") == str(news.n_ended):
        return HttpResponse(status=HTTPStatus.NO_CONTENT)
    return render(request, "jobs/_bell.html", {"news": news})


@require_GET
def job_page(request: HttpRequest, uuid: UUID) -> HttpResponse:
    """Show one job: where it stands, its convergence, its settings."""
    job = get_owned_or_404(selectors.jobs_of(request.user), request.user, uuid)
    context = {
        "job": job,
        "by": convergence.axis_of(request),
        "has_convergence": convergence.is_expected(job),
        "subject": selectors.subject_links([job]).get(job.pk),
    }
    return render(request, "jobs/job.html", context)


@require_GET
def job_card(request: HttpRequest, uuid: UUID) -> HttpResponse:
    """The card alone, for polling; once the job is over the answer carries no trigger any more."""
    job = get_owned_or_404(selectors.jobs_of(request.user), request.user, uuid)
    wants_reload = request.GET.get("reload") == "1"
    context = _card_context(request, job)
    response = render(request, "jobs/_job_card.html", context)
    if not job.is_active and wants_reload:
        response["HX-Refresh"] = "true"
    return response


def _card_context(request: HttpRequest, job: Job) -> dict[str, Any]:
    """Return the context of a polled card; ``badge`` asks for the badge that its page shows."""
    return {
        "job": job,
        "reload": request.GET.get("reload") == "1",
        "with_badge": request.GET.get("badge") == "1",
        "is_polled": True,
    }


@require_GET
def job_convergence(request: HttpRequest, uuid: UUID) -> HttpResponse:
    """The convergence plot alone, for polling; by time or by step."""
    job = get_owned_or_404(Job, request.user, uuid)
    return render(
        request, "jobs/_convergence.html", {"job": job, "by": convergence.axis_of(request)}
    )


@require_POST
@staff_required
def job_cancel(request: HttpRequest, uuid: UUID) -> HttpResponse:
    """Cancel a job; answers with its card, or with its page without scripts."""
    job = get_owned_or_404(selectors.jobs_of(request.user), request.user, uuid)
    if services.job_cancel(user=request.user, job=job):
        toast(request, f"{job.title}: cancelling.", icon="circle-x")
    else:
        toast(request, f"{job.title} was over already.")
    if request.htmx:
        return render(request, "jobs/_job_card.html", _card_context(request, job))
    return redirect("jobs:job", uuid=job.pk)
