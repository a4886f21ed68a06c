"""Who am I, and the jobs of the organisation."""

from typing import Any
from uuid import UUID

from webapp.api.dispatch import page_of
from webapp.api.registry import Query, Request, endpoint
from webapp.common.selectors import get_owned_or_404
from webapp.jobs.models import Job
from webapp.jobs.selectors import jobs_of
from webapp.jobs.services import job_cancel

PAGING = (
    Query("limit", "At most so many, 1 to 1000.", {"type": "integer", "default": 100}),
    Query("offset", "Leave out so many from the start.", {"type": "integer", "default": 0}),
)


def job_json(job: Job) -> dict[str, Any]:
    """Return a job as the interface shows it."""
    return {
        "id": str(job.pk),
        "kind": job.kind,
        "title": job.title,
        "state": job.state,
        "progress": job.progress,
        "sentence": job.sentence,
        "error": job.error,
        "seconds_left": job.seconds_left,
        "seed": job.seed,
        "code_version": job.code_version,
        "created_at": time_json(job.created_at),
        "started_at": time_json(job.started_at),
        "finished_at": time_json(job.finished_at),
    }


def time_json(value: Any) -> str | None:
    """Return a time in ISO 8601, or None."""
    return value.isoformat() if value else None


@endpoint("GET", "/me", tag="Jobs", summary="Whom this token stands for", answer="Me")
def get_me(request: Request) -> dict[str, Any]:
    """Return the person, the organisation and what the token may do."""
    return {
        "username": request.user.get_username(),
        "role": request.user.role,
        "organisation": str(request.user.organisation),
        "may_change": request.api_token.may_change,
    }


@endpoint("GET", "/jobs", tag="Jobs", summary="List jobs", answer="JobPage", queries=PAGING)
def list_jobs(request: Request) -> dict[str, Any]:
    """Return the organisation's jobs, newest first."""
    found, numbers = page_of(request, jobs_of(request.user))
    return {"items": [job_json(job) for job in found], **numbers}


@endpoint("GET", "/jobs/{job_id}", tag="Jobs", summary="Look at a job", answer="Job")
def get_job(request: Request, job_id: UUID) -> dict[str, Any]:
    """Return where a job stands."""
    return job_json(get_owned_or_404(Job, request.user, job_id))


@endpoint("GET", "/jobs/{job_id}/trace", tag="Jobs", summary="Convergence of a job", answer="Trace")
def get_job_trace(request: Request, job_id: UUID) -> dict[str, Any]:
    """Return bounds and gap step by step."""
    job = get_owned_or_404(Job, request.user, job_id)
    names = ("iteration", "seconds", "objective", "lower_bound", "relative_gap")
    return {"points": list(job.trace.values(*names))}


@endpoint("POST", "/jobs/{job_id}/cancel", tag="Jobs", summary="Cancel a job", answer="Job")
def cancel_job(request: Request, job_id: UUID) -> dict[str, Any]:
    """Ask a job to stop; one that is over stays as it is."""
    job = get_owned_or_404(Job, request.user, job_id)
    job_cancel(user=request.user, job=job)
    return job_json(job)
