"""A process's claim on a job: whoever holds it may change the row, everybody else may not."""

import uuid
from typing import Any

from django.conf import settings
from django.db import models
from django.db.models.functions import Coalesce, Now

from webapp.jobs.liveness import this_process
from webapp.jobs.models import Job, JobState


class ClaimLostError(Exception):
    """Somebody else took the job over; this process must leave it alone."""


def job_claim(*, job_id: uuid.UUID) -> Job | None:
    """Claim a queued job for this process; None when it is not ours to run (any more)."""
    claim = uuid.uuid4()
    claimed = Job.objects.filter(pk=job_id, state=JobState.QUEUED).update(
        state=JobState.RUNNING,
        claim=claim,
        worker=this_process(),
        attempt=models.F("attempt") + 1,
        heartbeat_at=Now(),  # of the database: the clocks of several hosts differ
        started_at=Coalesce("started_at", Now()),
        attempt_started_at=Now(),
        sentence="Starting",
        progress=None,
        seconds_left=None,
    )
    return (
        Job.objects.select_related("organisation", "created_by").get(pk=job_id, claim=claim)
        if claimed
        else None
    )


def job_claim_next(*, kinds: list[str]) -> Job | None:
    """Claim the job of these kinds whose turn it is; None when none waits that may run.

    Organisations share the workers: the one that has fewest jobs of these kinds running comes
    first, and of those that have equally many the one whose oldest job waits longest. None runs
    more than ``ORGANISATION_MAX_RUNNING_JOBS`` of a queue at once.
    """
    jobs = Job.objects.filter(kind__in=kinds)
    while True:
        running = dict(
            jobs.filter(state=JobState.RUNNING)
            .order_by()
            .values_list("organisation")
            .annotate(models.Count("pk"))
        )
        heads = list(
            jobs.filter(state=JobState.QUEUED)
            .order_by()
            .values_list("organisation")
            .annotate(models.Min("created_at"))
        )
        may = [
            (running.get(organisation, 0), since, organisation)
            for organisation, since in heads
            if running.get(organisation, 0) < settings.ORGANISATION_MAX_RUNNING_JOBS
        ]
        if not may:
            return None
        waiting = jobs.filter(state=JobState.QUEUED, organisation=min(may)[2])
        key = waiting.order_by("created_at", "pk").values_list("pk", flat=True).first()
        job = job_claim(job_id=key) if key else None
        if job is not None:
            return job  # else another process was quicker: look again


def change_if_claimed(job: Job, **fields: Any) -> bool:
    """Change fields of a running job as long as its claim stands; return whether it stood."""
    rows = Job.objects.filter(pk=job.pk, state=JobState.RUNNING, claim=job.claim)
    return bool(rows.update(**fields))


def job_update(*, job: Job, **fields: Any) -> None:
    """Change fields of a running job that this process has claimed.

    Raises
    ------
    ClaimLostError
        If the job is no longer this process's.
    """
    if not change_if_claimed(job, **fields):
        raise ClaimLostError(str(job.pk))
