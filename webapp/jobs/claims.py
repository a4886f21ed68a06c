"""A process's claim on a job: whoever holds it may change the row, everybody else may not."""

import uuid
from collections import Counter
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
    first. Within an organisation a job comes before the pieces of one that others run already, and
    of equals the one that waits longest. No organisation runs more than
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
            return job  # else another process was quicker: look again


def _next_turn(jobs: models.QuerySet[Job]) -> tuple[int, uuid.UUID | None] | None:
    """Return whose turn it is: an organisation, and the job whose piece it is, None of a whole."""
    family = ("organisation", "parent")
    running: Counter[int] = Counter()
    of_family: Counter[uuid.UUID] = Counter()
    # A job that was dealt out in pieces is run by nobody.
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
