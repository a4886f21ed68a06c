"""Claim of a process on a job: only the holder may change the row."""

import uuid
from collections import Counter
from typing import Any

from django.conf import settings
from django.db import models
from django.db.models.functions import Coalesce, Now

from webapp.jobs.liveness import memory_kills, parent_process, this_process
from webapp.jobs.models import Job, JobState


class ClaimLostError(Exception):
    """Error of a job that another process took over; this process must not touch it again."""


def job_claim(*, job_id: uuid.UUID) -> Job | None:
    """Claim a queued job for this process; None if this process may not run it (any more)."""
    claim = uuid.uuid4()
    claimed = Job.objects.filter(pk=job_id, state=JobState.QUEUED).update(
        state=JobState.RUNNING,
        claim=claim,
        worker=this_process(),
        worker_parent=parent_process(),
        memory_kills=memory_kills(),
        attempt=models.F("attempt") + 1,
        heartbeat_at=Now(),  # the database's time: the clocks of several hosts differ
        started_at=Coalesce("started_at", Now()),
        attempt_started_at=Now(),
        sentence="Starting",
        progress=None,
        seconds_left=None,
        n_competitors=0,
    )
    return (
        Job.objects.select_related("organisation", "created_by").get(pk=job_id, claim=claim)
        if claimed
        else None
    )


def job_claim_next(*, kinds: list[str]) -> Job | None:
    """Claim the next job of these kinds; None if no waiting job may run.

    Organisations share the workers: the one with the fewest running jobs of these kinds comes
    first. Within an organisation, a job comes before the pieces of one that others run already.
    Of equals, the one that waits longest comes first. No organisation runs more than
    ``ORGANISATION_MAX_RUNNING_JOBS`` of a queue at once; pieces count like jobs.
    """
    jobs = Job.objects.filter(kind__in=kinds)
    while True:
        turn = _next_turn(jobs)
        if turn is None:
            return None
        organisation, parent = turn
        waiting = jobs.filter(state=JobState.QUEUED, organisation=organisation, parent=parent)
        key = waiting.order_by("created_at", "pk").values_list("pk", flat=True).first()
        job = job_claim(job_id=key) if key else None
        if job is not None:
            return job  # otherwise another process was quicker: look again


def _next_turn(jobs: models.QuerySet[Job]) -> tuple[int, uuid.UUID | None] | None:
    """Return the next organisation, and the parent of the next piece or None for a whole job."""
    family = ("organisation", "parent")
    running: Counter[int] = Counter()
    of_family: Counter[uuid.UUID] = Counter()
    # A job that was split into pieces is not run by any process.
    now = jobs.filter(state=JobState.RUNNING, n_pieces=0).order_by().values_list(*family)
    for organisation, parent, count in now.annotate(models.Count("pk")):
        running[organisation] += count
        if parent is not None:
            of_family[parent] = count
    queued = jobs.filter(state=JobState.QUEUED).order_by().values_list(*family)
    turns = [
        (running[organisation], of_family[parent] if parent else 0, since, organisation, parent)
        for organisation, parent, since in queued.annotate(models.Min("created_at"))
        if running[organisation] < settings.ORGANISATION_MAX_RUNNING_JOBS
    ]
    if not turns:
        return None
    *_, organisation, parent = min(turns, key=lambda turn: turn[:4])
    return organisation, parent


def change_if_claimed(job: Job, **fields: Any) -> bool:
    """Change fields of a running job while its claim holds; return True if it held."""
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
