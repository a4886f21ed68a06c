"""Reading jobs."""

from datetime import datetime
from typing import Any

from django.db.models import Q, QuerySet, Sum

from webapp.accounts.models import User
from webapp.common.selectors import owned_by
from webapp.jobs.models import ACTIVE_STATES, Job, JobState


def jobs_of(user: User) -> QuerySet[Job]:
    """Return the jobs of the user's organisation, newest first."""
    return owned_by(Job, user).select_related("created_by", "cancelled_by")


def running_label(user: User) -> str:
    """Return what the rail says beside Jobs: '1 running', '2 waiting' or ''."""
    states = list(
        owned_by(Job, user).filter(state__in=ACTIVE_STATES).values_list("state", flat=True)
    )
    running = states.count(JobState.RUNNING)
    if running:
        return f"{running} running"
    return f"{len(states)} waiting" if states else ""


def reserved_bytes(organisation_id: int, since: datetime) -> int:
    """Return what jobs may still write, or wrote since a time, in bytes."""
    jobs = Job.objects.filter(organisation_id=organisation_id, stores_bytes__gt=0)
    ahead = jobs.filter(Q(state__in=ACTIVE_STATES) | Q(finished_at__gte=since))
    return ahead.aggregate(total=Sum("stores_bytes"))["total"] or 0


def recent_jobs(user: User) -> dict[str, Any]:
    """Return the latest jobs for the side of the home page."""
    jobs = list(jobs_of(user)[:6])
    return {"jobs": jobs, "is_side": True, "any_active": any(job.is_active for job in jobs)}
