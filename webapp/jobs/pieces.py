"""Jobs beyond one host: split into pieces, each claimed by any worker on any host.

A piece is a `Job` of its own with everything that a job has: claim and heartbeat, watchdog, turns
and limits of organisations, attempts, resuming after its process was killed. No process runs the
whole job meanwhile. It has no claim, so any worker or sweep that finds a piece ended may check that
all are over and end the job; its row is locked for that, and it ends once.
"""

import uuid
from datetime import timedelta

from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone
from django.utils.translation import gettext as _

from webapp.audit.services import audit
from webapp.common import formats
from webapp.jobs import registry
from webapp.jobs.claims import job_update
from webapp.jobs.endings import job_fail, job_finish_cancelled, job_succeed
from webapp.jobs.failures import Failure
from webapp.jobs.models import ACTIVE_STATES, Job, JobState

_REPORT_EVERY = timedelta(seconds=2)
_A_STATEMENT = 200  # rows per statement; SQLite takes 32,766 values in one


def pieces_deal(*, job: Job, outcome: registry.Pieces) -> list[uuid.UUID]:
    """Make the pieces of a claimed job and give up its claim, all at once; return their keys.

    From then on the pieces hold the room that the job reserved.
    """
    kind = registry.find_kind(outcome.kind)
    pieces = [
        Job(
            parent=job,
            organisation_id=job.organisation_id,
            created_by_id=job.created_by_id,
            kind=kind.name,
            title=job.title,
            parameters=piece.parameters,
            seed=job.seed,
            code_version=job.code_version,
            stores_bytes=piece.stores,
            request_id=job.request_id,
        )
        for piece in outcome.pieces
    ]
    with transaction.atomic():
        done, total = _standing(job)
        job_update(
            job=job,
            claim=None,
            worker="",
            n_pieces=len(pieces),
            stores_bytes=0,
            sentence=_sentence(done, total, 0),
            progress=done / max(total, 1),
            seconds_left=outcome.seconds_left,
            heartbeat_at=Now(),
            result={"done_before": done},
        )
        Job.objects.bulk_create(pieces, batch_size=_A_STATEMENT)
    return [piece.pk for piece in pieces]


def spread_report(*, job_id: uuid.UUID) -> None:
    """Report the progress of a job in pieces; the first caller in every two seconds writes it."""
    whole = Job.objects.filter(pk=job_id, state=JobState.RUNNING, n_pieces__gt=0)
    if not whole.filter(heartbeat_at__lt=Now() - _REPORT_EVERY).update(heartbeat_at=Now()):
        return
    job = whole.first()
    if job is None:
        return
    done, total = _standing(job)
    done_here = done - job.result.get("done_before", 0)
    told: dict[str, float] = {}
    if done_here > 0 and job.attempt_started_at is not None:
        seconds = (timezone.now() - job.attempt_started_at).total_seconds()
        told["seconds_left"] = max(seconds, 0.0) / done_here * (total - done)
    running = job.pieces.filter(state=JobState.RUNNING).count()
    whole.update(sentence=_sentence(done, total, running), progress=done / max(total, 1), **told)


def spread_advance(*, job_id: uuid.UUID) -> None:
    """End a job in pieces if all of them are over; stop the others when one failed.

    Calling it at any time and repeatedly is harmless.
    """
    with transaction.atomic():
        rows = Job.objects.select_for_update().filter(pk=job_id)
        job = rows.filter(state=JobState.RUNNING, n_pieces__gt=0).first()
        if job is None:
            return
        failed = job.pieces.filter(state=JobState.FAILED).order_by("finished_at").first()
        if failed is not None or job.cancel_requested_at is not None:
            _stop(job)
        if job.pieces.filter(state__in=ACTIVE_STATES).exists():
            return
        if job.cancel_requested_at is not None:
            job_finish_cancelled(job=job)
        elif failed is not None:
            job_fail(job=job, failure=Failure(failed.error))
        else:
            _conclude(job)
        job.pieces.all().delete()


def _conclude(job: Job) -> None:
    conclude = registry.find_kind(job.kind).conclude
    job_succeed(job=job, result=conclude(job) if conclude else {})
    audit(job.created_by, "finished", job, organisation=job.organisation, kind=job.kind)


def _stop(job: Job) -> None:
    """Stop all pieces: waiting ones end at once, running ones as every cancelled job does."""
    now = timezone.now()
    job.pieces.filter(state=JobState.QUEUED).update(
        state=JobState.CANCELLED, cancel_requested_at=now, finished_at=now
    )
    running = job.pieces.filter(state=JobState.RUNNING, cancel_requested_at=None)
    running.update(cancel_requested_at=now)


def _standing(job: Job) -> tuple[int, int]:
    """Return the amount of work done, and the total."""
    standing = registry.find_kind(job.kind).standing
    return standing(job) if standing else (0, 1)


def _sentence(done: int, total: int, running: int) -> str:
    values = {"done": f"{done:,}", "total": f"{total:,}"}
    if running <= 1:
        return _("%(done)s of %(total)s so far") % values
    values["workers"] = formats.counted(running, "worker")
    return _("%(done)s of %(total)s so far, %(workers)s at it") % values
