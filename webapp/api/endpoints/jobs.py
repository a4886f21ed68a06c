"""Endpoints for the token's own person, and for the organisation's jobs."""

from uuid import UUID

from webapp.api.dispatch import page_of
from webapp.api.registry import Request, endpoint
from webapp.api.shapes import jobs as shapes
from webapp.api.shapes.base import Page, Paging
from webapp.common.selectors import get_or_404
from webapp.jobs.selectors import jobs_of, visible_jobs
from webapp.jobs.services import job_cancel


@endpoint("GET", "/me", tag="Jobs", summary="Whom this token stands for")
def get_me(request: Request) -> shapes.Me:
    """Return the person, the organisation and the rights of the token."""
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
    """Return the state of a job."""
    return shapes.Job.model_validate(get_or_404(visible_jobs(request.user), job_id))


@endpoint("GET", "/jobs/{job_id}/trace", tag="Jobs", summary="Convergence of a job")
def get_job_trace(request: Request, job_id: UUID) -> shapes.Trace:
    """Return the bounds and the gap of a job, step by step."""
    job = get_or_404(visible_jobs(request.user), job_id)
    points = job.trace.values(*shapes.TracePoint.model_fields)
    return shapes.Trace(points=[shapes.TracePoint(**point) for point in points])


@endpoint("POST", "/jobs/{job_id}/cancel", tag="Jobs", summary="Cancel a job")
def cancel_job(request: Request, job_id: UUID) -> shapes.Job:
    """Ask a job to stop; a finished job stays as it is."""
    job = get_or_404(visible_jobs(request.user), job_id)
    job_cancel(user=request.user, job=job)
    return shapes.Job.model_validate(job)
