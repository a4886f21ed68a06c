"""Changing jobs. Every change of state is a compare-and-set on the row."""

import secrets
import shutil
import uuid
from datetime import timedelta
from pathlib import Path
from typing import Any

import structlog
from django.conf import settings
from django.db import models, transaction
from django.utils import timezone

from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.common.storage import organisation_folder
from webapp.common.version import code_version
from webapp.jobs import dispatch, registry
from webapp.jobs.liveness import is_alive, this_process
from webapp.jobs.models import Job, JobState

log = structlog.get_logger(__name__)

TOO_LONG = (
    f"It ran for {settings.JOB_HARD_TIME_LIMIT // 3600} hours, the most that a job may. "
    "Nothing was changed. Make it smaller, or accept a larger gap."
)

_FIRST_RESEND_SECONDS = 10
_LAST_RESEND_SECONDS = 300


class ClaimLostError(Exception):
    """Somebody else took the job over; this process must leave it alone."""


def job_enqueue(
    *,
    user: User,
    kind: str,
    parameters: dict[str, Any],
    title: str = "",
    seed: int | None = None,
) -> Job:
    """Create a queued job and send it to the workers once the transaction has committed.

    A send that fails loses nothing: the row stays queued, and the sweep sends it again.

    Parameters
    ----------
    kind : str
        A registered kind; KeyError otherwise.
    parameters : dict
        Ids and plain values only.
    title : str, optional
        Such as "Returning 2023-2025"; shown after the verb of the kind.
    seed : int, optional
        Of the job's random numbers; made and stored when None.
    """
    entry = registry.find_kind(kind)
    job = Job.objects.create(
        organisation=user.organisation,
        created_by=user,
        kind=kind,
        title=f"{entry.verb}: {title}"[:200] if title else entry.verb,
        parameters=parameters,
        seed=secrets.randbelow(2**31) if seed is None else seed,
        code_version=code_version(),
        sentence="Waiting for a free worker",
    )
    audit(user, "started", job, kind=kind)
    transaction.on_commit(lambda: job_dispatch(job_id=job.pk))
    return job


def job_dispatch(*, job_id: uuid.UUID) -> bool:
    """Send a queued job to the broker; return whether the broker took it."""
    # The time is written first: when the send succeeds and this process dies, the sweep waits.
    Job.objects.filter(pk=job_id, state=JobState.QUEUED).update(
        dispatched_at=timezone.now(), dispatch_count=models.F("dispatch_count") + 1
    )
    return dispatch.send(job_id)


def job_claim(*, job_id: uuid.UUID) -> Job | None:
    """Claim a queued job for this process; None when it is not ours to run (any more)."""
    now = timezone.now()
    claim = uuid.uuid4()
    claimed = Job.objects.filter(pk=job_id, state=JobState.QUEUED).update(
        state=JobState.RUNNING,
        claim=claim,
        worker=this_process(),
        attempt=models.F("attempt") + 1,
        heartbeat_at=now,
        started_at=models.functions.Coalesce("started_at", now),
        sentence="Starting",
        progress=None,
        seconds_left=None,
    )
    return (
        Job.objects.select_related("organisation", "created_by").get(pk=job_id, claim=claim)
        if claimed
        else None
    )


def job_update(*, job: Job, **fields: Any) -> None:
    """Change fields of a running job that this process has claimed.

    Raises
    ------
    ClaimLostError
        If the job is no longer this process's.
    """
    changed = Job.objects.filter(pk=job.pk, state=JobState.RUNNING, claim=job.claim).update(
        **fields
    )
    if not changed:
        raise ClaimLostError(str(job.pk))


def job_succeed(*, job: Job, result: dict[str, Any]) -> None:
    """Mark a claimed job as done; call it in the transaction that writes what the job made."""
    job_update(
        job=job,
        state=JobState.SUCCEEDED,
        result=result,
        progress=1.0,
        seconds_left=None,
        sentence=str(result.get("sentence", "Done"))[:300],
        finished_at=timezone.now(),
    )


def job_fail(*, job: Job, error: str) -> None:
    """Mark a claimed job as failed, with one sentence for the user."""
    job_update(
        job=job,
        state=JobState.FAILED,
        error=error[:500],
        sentence="Failed",
        seconds_left=None,
        finished_at=timezone.now(),
    )
    job_discard_files(job=job)


def job_cancel(*, user: User, job: Job) -> bool:
    """Stop a job; return whether there was anything to stop.

    A queued job is cancelled at once; a running one is asked to stop and does within two seconds.
    """
    now = timezone.now()
    queued = Job.objects.filter(pk=job.pk, state=JobState.QUEUED).update(
        state=JobState.CANCELLED,
        cancel_requested_at=now,
        cancelled_by=user,
        finished_at=now,
        sentence="Cancelled before it started. Nothing was changed.",
    )
    running = queued or Job.objects.filter(
        pk=job.pk, state=JobState.RUNNING, cancel_requested_at=None
    ).update(cancel_requested_at=now, cancelled_by=user)
    if queued or running:
        audit(user, "cancelled", job)
    job.refresh_from_db()
    return bool(queued or running)


def job_finish_cancelled(*, job: Job) -> bool:
    """Mark a claimed job as cancelled; return False if it was over already."""
    now = timezone.now()
    seconds = (now - job.started_at).total_seconds() if job.started_at else 0.0
    kept = registry.find_kind(job.kind).kept_on_cancel
    left_behind = kept(job) if kept else "Nothing was changed."
    changed = Job.objects.filter(pk=job.pk, state=JobState.RUNNING, claim=job.claim).update(
        state=JobState.CANCELLED,
        finished_at=now,
        seconds_left=None,
        sentence=f"Cancelled after {seconds:.0f} s. {left_behind}"[:300],
    )
    if changed:
        job_discard_files(job=job)
    return bool(changed)


def job_folder(job: Job) -> Path:
    """Return the folder of a job's checkpoint and intermediate files."""
    return organisation_folder(job.organisation_id) / "jobs" / str(job.pk)


def job_discard_files(*, job: Job) -> None:
    """Remove checkpoint and intermediate files of a job that is over."""
    shutil.rmtree(job_folder(job), ignore_errors=True)


def jobs_sweep() -> dict[str, int]:
    """Put abandoned jobs back into the queue and send again what the broker lost.

    Runs when a worker starts and every few seconds after; any number may run at the same time.
    Returns how many jobs were requeued, given up and sent again.
    """
    counts = {"requeued": 0, "given_up": 0, "cancelled": 0, "sent_again": 0}
    for job in Job.objects.filter(state=JobState.RUNNING):
        if _is_orphan(job):
            counts[_requeue(job)] += 1
    for job in Job.objects.filter(state=JobState.QUEUED):
        if _is_send_due(job):
            counts["sent_again"] += job_dispatch(job_id=job.pk)
    return counts


def _is_orphan(job: Job) -> bool:
    """Whether the process that runs the job is gone, or silent for too long to be counted on."""
    alive = is_alive(job.worker)
    if alive is False:
        return True
    patience = settings.JOB_ORPHAN_SECONDS * (4 if alive else 1)
    silent_since = timezone.now() - timedelta(seconds=patience)
    return job.heartbeat_at is None or job.heartbeat_at < silent_since


def _requeue(job: Job) -> str:
    same = Job.objects.filter(pk=job.pk, state=JobState.RUNNING, claim=job.claim)
    if job.cancel_requested_at is not None:
        return "cancelled" if job_finish_cancelled(job=job) else "requeued"
    if reason := _reason_to_give_up(job):
        same.update(
            state=JobState.FAILED,
            finished_at=timezone.now(),
            seconds_left=None,
            sentence="Failed",
            error=reason,
        )
        log.error("job given up", job=str(job.pk), attempts=job.attempt)
        return "given_up"
    changed = same.update(
        state=JobState.QUEUED,
        claim=None,
        worker="",
        seconds_left=None,
        dispatched_at=None,
        dispatch_count=0,
        sentence="Interrupted; it goes on from its last checkpoint",
    )
    if changed:
        log.warning("job requeued", job=str(job.pk), attempt=job.attempt)
    return "requeued"


def _reason_to_give_up(job: Job) -> str:
    """Why an orphan is not started again; '' when it is."""
    if job.attempt >= settings.JOB_MAX_ATTEMPTS:
        return (
            f"The computation was interrupted {job.attempt} times and was given up. "
            "Nothing was changed. It may need more memory than this machine has."
        )
    if job.started_at is not None and job.heartbeat_at is not None:
        ran = (job.heartbeat_at - job.started_at).total_seconds()
        if ran > settings.JOB_HARD_TIME_LIMIT - 60:  # its process was ended by the hard limit
            return TOO_LONG
    return ""


def _is_send_due(job: Job) -> bool:
    """Whether a queued job's message may be lost; waits double, so that messages do not pile up."""
    if job.dispatched_at is None:
        return True
    wait = min(_FIRST_RESEND_SECONDS * 2 ** min(job.dispatch_count, 10), _LAST_RESEND_SECONDS)
    return job.dispatched_at < timezone.now() - timedelta(seconds=wait)
