"""Running one job from claim to end. A task calls this and nothing else."""

import contextlib
import time
import traceback
import uuid
from collections.abc import Callable
from functools import partial
from typing import Any

import structlog
from billiard.exceptions import SoftTimeLimitExceeded
from django.db import InterfaceError, OperationalError, connection, transaction
from django.db.models.functions import Now

from engine import InfeasibleError, InvalidProblemError, StoppedError
from webapp.audit.services import audit
from webapp.common.errors import Refusal
from webapp.common.frames import with_room_for_frames
from webapp.common.full_disk import is_full_disk
from webapp.files import store
from webapp.jobs import endings, registry, services
from webapp.jobs.claims import ClaimLostError, job_claim, job_claim_next, job_update
from webapp.jobs.context import JobContext
from webapp.jobs.failures import DISK_FULL, OUR_FAULT, OUT_OF_MEMORY, TOO_LONG, Failure
from webapp.jobs.models import Job
from webapp.jobs.pieces import pieces_deal, spread_advance, spread_report
from webapp.jobs.watchdog import Watchdog

log = structlog.get_logger(__name__)
lines = structlog.get_logger("bethe_hall.lines")

AWAY_SECONDS = 600.0  # that a process waits for the database; after that the sweep has the job
LOOK_SECONDS = 1.0
SPARE_BYTES = 8 << 20  # kept while a job runs, to record that there was no more memory
WAS_AWAY = "The database did not answer; it goes on from its last checkpoint"


def run_job(job_id: uuid.UUID, *, watched: bool = True) -> None:
    """Claim and run a job; return at once when somebody else has it or it is over.

    ``watched=False`` leaves the watchdog out, for tests that run a job in their own transaction.
    """
    job = job_claim(job_id=job_id)
    if job is None:
        log.info("job is not waiting", job=str(job_id))
        return
    _run(job, watched=watched)


def run_next(job_id: uuid.UUID) -> None:
    """Run the job whose turn it is in the queue of the given one, which is often itself.

    A message says that there is work, not which: else whoever sends a thousand jobs first would
    have all workers for as long.
    """
    kind = Job.objects.filter(pk=job_id).values_list("kind", flat=True).first()
    if kind is None:
        return
    queue = registry.queue_of(kind)
    job = job_claim_next(kinds=[*{kind, *registry.kinds_of(queue)}])
    if job is None:
        log.info("no job may run", job=str(job_id), queue=queue)
        return
    _run(job, watched=True)
    services.wake_for_waiting(organisation_id=job.organisation_id, queue=queue)


@with_room_for_frames
def _run(job: Job, *, watched: bool) -> None:
    """Run a claimed job.

    All that is logged meanwhile, by the engine too, carries the ids of the job and of the request
    that started it; a piece has its own id beside that of the job it belongs to.
    """
    started = time.perf_counter()
    ids = {"job": str(job.parent_id or job.pk), "request": job.request_id}
    if job.parent_id:
        ids["piece"] = str(job.pk)
    with structlog.contextvars.bound_contextvars(**ids):
        log.info("job starts", kind=job.kind, attempt=job.attempt)
        pieces: list[uuid.UUID] = []
        with Watchdog(job) if watched else contextlib.nullcontext():
            try:
                pieces = _run_claimed(job)
            except ClaimLostError:
                log.warning("job was taken over")
            except (OperationalError, InterfaceError) as error:
                log.warning("database away, the job goes on when it is back", error=str(error))
                _give_back(job)
        _log_line(job, time.perf_counter() - started)
        for key in pieces:
            services.job_dispatch(job_id=key)
        if pieces or job.parent_id:
            spread_advance(job_id=job.parent_id or job.pk)


def _give_back(job: Job) -> None:
    """Wait for the database, then put a claimed job back into the queue; the sweep sends it.

    Without that the sweep would count minutes of silence before it gives the job to anybody.
    """
    deadline = time.monotonic() + AWAY_SECONDS
    while time.monotonic() < deadline:
        try:
            connection.close()
            services.job_requeue(job=job, sentence=WAS_AWAY)
        except (OperationalError, InterfaceError):
            time.sleep(LOOK_SECONDS)
        else:
            return


def _log_line(job: Job, seconds: float) -> None:
    """One line of JSON for one attempt."""
    lines.info(
        "job",
        kind=job.kind,
        state=Job.objects.filter(pk=job.pk).values_list("state", flat=True).first(),
        attempt=job.attempt,
        seconds=round(seconds, 3),
        user=job.created_by_id,
        organisation=job.organisation_id,
    )


def _run_claimed(job: Job) -> list[uuid.UUID]:
    """Run the function of the job's kind and record how it ended, or return its pieces."""
    context = JobContext(job)
    if job.parent_id:
        context = JobContext(job, partial(spread_report, job_id=job.parent_id))
    spare: bytearray | None = None
    try:
        spare = bytearray(SPARE_BYTES)
        with store.persevering(context.wait_for_store):
            outcome = registry.find_kind(job.kind).run(context)
        context.flush()
        context.raise_if_stopped()
        if isinstance(outcome, registry.Pieces):
            return pieces_deal(job=job, outcome=outcome)
        _finish(job, outcome if callable(outcome) else lambda: outcome)
    except (ClaimLostError, OperationalError, InterfaceError):
        raise  # whoever has it now, or goes on with it, may have stored the same files
    except Exception as error:
        del spare
        if isinstance(error, MemoryError):
            traceback.clear_frames(error.__traceback__)  # they hold what was too much
        _end(job, error)
        context.discard_kept()
    return []


def _end(job: Job, error: Exception) -> None:
    """Record how a job ended that did not succeed."""
    if isinstance(error, StoppedError):
        endings.job_finish_cancelled(job=job)
    elif isinstance(error, InvalidProblemError | InfeasibleError | Refusal):
        _fail(job, Failure(str(error)))
    elif isinstance(error, SoftTimeLimitExceeded):
        _fail(job, TOO_LONG)
    elif is_full_disk(error):
        log.error("the disk is full", job=str(job.pk), exc_info=error)
        _fail(job, DISK_FULL)
    elif isinstance(error, MemoryError):
        log.error("job out of memory", job=str(job.pk), exc_info=error)
        _fail(job, OUT_OF_MEMORY)
    else:
        log.error("job failed", job=str(job.pk), kind=job.kind, exc_info=error)
        _fail(job, OUR_FAULT)


def _fail(job: Job, failure: Failure) -> None:
    """Record a failure; after somebody cancelled the job it is what the cancellation led to.

    Whoever deletes what a job works on cancels it, and its next step may find nothing there.
    """
    if Job.objects.filter(pk=job.pk, cancel_requested_at__isnull=False).exists():
        endings.job_finish_cancelled(job=job)
    else:
        endings.job_fail(job=job, failure=failure)


def _finish(job: Job, save: Callable[[], dict[str, Any] | None]) -> None:
    """Write what the job made and its success in one transaction.

    The row of the job is locked first: nobody ends the job while what it made is being kept.
    """
    with transaction.atomic():
        job_update(job=job, heartbeat_at=Now())
        result = save() or {}
        endings.job_succeed(job=job, result=result)
        if job.parent_id is None:  # else the whole is noted when it is done
            audit(job.created_by, "finished", job, organisation=job.organisation, kind=job.kind)
    endings.job_discard_files(job=job)
