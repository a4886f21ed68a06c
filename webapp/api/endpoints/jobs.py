"""Who am I, and the jobs of the organisation."""

from uuid import UUID

from webapp.api.dispatch import page_of
from webapp.api.registry import Request, endpoint
from webapp.api.shapes import jobs as shapes
from webapp.api.shapes.base import Page, Paging
from webapp.common.selectors import get_owned_or_404
from webapp.jobs.models import Job
from webapp.jobs.selectors import jobs_of
from webapp.jobs.services import job_cancel


@endpoint("GET", "/me", tag="Jobs", summary="Whom this token stands for")
def get_me(request: Request) -> shapes.Me:
    """Return the person, the organisation and what the token may do."""
    return shapes.Me(
        username=request.user.get_username(),
        role=request.user.role,
        organisation=str(request.user.organisation),
        may_change=request.api_token.may_change,
    )


@endpoint("GET", "/jobs", tag="Jobs", summary="List jobs", query=Paging)
def list_jobs(request: Request) -> Page[shapes.Job]:
    """Return the organisation's jobs, newest first."""
    return page_of(request, jobs_of(request.user), shapes.Job)


@endpoint("GET", "/jobs/{job_id}", tag="Jobs", summary="Look at a job")
def get_job(request: Request, job_id: UUID) -> shapes.Job:
    """Return where a job stands."""
    return shapes.Job.model_validate(get_owned_or_404(Job, request.user, job_id))


@endpoint("GET", "/jobs/{job_id}/trace", tag="Jobs", summary="Convergence of a job")
def get_job_trace(request: Request, job_id: UUID) -> shapes.Trace:
    """Return bounds and gap step by step."""
    job = get_owned_or_404(Job, request.user, job_id)
    points = job.trace.values(*shapes.TracePoint.model_fields)
    return shapes.Trace(points=[shapes.TracePoint(**point) for point in points])


@endpoint("POST", "/jobs/{job_id}/cancel", tag="Jobs", summary="Cancel a job")
def cancel_job(request: Request, job_id: UUID) -> shapes.Job:
    """Ask a job to stop; one that is over stays as it is."""
    job = get_owned_or_404(Job, request.user, job_id)
    job_cancel(user=request.user, job=job)
    return shapes.Job.model_validate(job)
