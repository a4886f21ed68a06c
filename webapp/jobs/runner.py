"""Runner of one job from claim to end. A task calls this and nothing else."""

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
from webapp.collector import no_collection
from webapp.common.errors import Refusal
from webapp.database.full_disk import is_full_disk
from webapp.files import store
from webapp.jobs import endings, queues, registry, services
from webapp.jobs.claims import ClaimLostError, job_claim, job_claim_next, job_update
from webapp.jobs.context import JobContext
from webapp.jobs.failures import DISK_FULL, OUR_FAULT, OUT_OF_MEMORY, TOO_LONG, Failure
from webapp.jobs.models import Job
from webapp.jobs.pieces import pieces_deal, spread_advance, spread_report
from webapp.jobs.priority import at_usual_priority
from webapp.jobs.watchdog import Watchdog
from webapp.translation.lazy import gettext_lazy

log = structlog.get_logger(__name__)
lines = structlog.get_logger("bethe_hall.lines")

AWAY_SECONDS = 600.0  # seconds that a process waits for the database; then the sweep takes the job
LOOK_SECONDS = 1.0
MAX_STORE_FAULTS = 5  # per attempt; the store recovered after each
SPARE_BYTES = 8 << 20  # kept while a job runs, to record a lack of memory
WAS_AWAY = gettext_lazy("The database did not answer; it goes on from its last checkpoint")


def run_job(job_id: uuid.UUID, *, watched: bool = True) -> None:
    """Claim and run a job; return at once if another process has it or it is over.

    ``watched=False`` leaves the watchdog out, for tests that run a job in their own transaction.
    """
    job = job_claim(job_id=job_id)
    if job is None:
        log.info("job is not waiting", job=str(job_id))
        return
    _run(job, watched=watched)


def run_next(job_id: uuid.UUID, *, queue: registry.Queue | None = None) -> None:
    """Run the next job in the queue of the given one, which is often the given one itself.

    A message only reports that there is work. Otherwise an organisation that sends a thousand
    jobs first would occupy all workers.

    Parameters
    ----------
    job_id : UUID
    queue : Queue, optional
        That of the worker, which takes no job that waits for other workers by now; by default
        that of the given job.
    """
    kind = Job.objects.filter(pk=job_id).values_list("kind", flat=True).first()
    if kind is None:
        return
    queue = queue or queues.queue_now(kind)
    job = job_claim_next(kinds=queues.kinds_taken(queue, kind), queue=queue)
    if job is None:
        log.info("no job may run", job=str(job_id), queue=queue)
        return
    _run(job, watched=True)
    services.wake_for_waiting(organisation_id=job.organisation_id, queue=queue)


def _run(job: Job, *, watched: bool) -> None:
    """Run a claimed job.

    All log lines meanwhile, of the engine too, carry the ids of the job and of the request that
    started it; a piece has its own id beside that of the job it belongs to.
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

    Otherwise the sweep would count minutes of silence before it requeues the job.
    """
    deadline = time.monotonic() + AWAY_SECONDS
    while time.monotonic() < deadline:
        try:
            connection.close()
            services.job_requeue(job=job, sentence=str(WAS_AWAY))
        except (OperationalError, InterfaceError):
            time.sleep(LOOK_SECONDS)
        else:
            return


def _log_line(job: Job, seconds: float) -> None:
    """Write one line of JSON for one attempt."""
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
    """Run the function of the job's kind and record its ending, or return its pieces."""
    context = JobContext(job)
    if job.parent_id:
        context = JobContext(job, partial(spread_report, job_id=job.parent_id))
    spare: bytearray | None = None
    if (gone := registry.gone_subject(job)) is not None:
        endings.job_finish_without(job=job, subject=gone)
        return []
    try:
        spare = bytearray(SPARE_BYTES)
        return _work(job, context)
    except (ClaimLostError, OperationalError, InterfaceError):
        raise  # the process that has or resumes it may have stored the same files
    except Exception as error:
        del spare
        if isinstance(error, MemoryError):
            traceback.clear_frames(error.__traceback__)  # they hold the data that was too large
        _end(job, error)
        context.discard_kept()
    return []


def _work(job: Job, context: JobContext) -> list[uuid.UUID]:
    """Call the function of a job and keep its results; call it again after a fault of the store."""
    for left in range(MAX_STORE_FAULTS, -1, -1):
        try:
            with store.persevering(context.wait_for_store):
                outcome = registry.find_kind(job.kind).run(context)
            context.flush()
            context.raise_if_stopped()
            if isinstance(outcome, registry.Pieces):
                return pieces_deal(job=job, outcome=outcome)
            _finish(job, outcome)
            return []
        except (OSError, store.StoreAwayError) as error:
            if not left or not store.is_fault(error):
                raise
            log.warning("the store failed within a job", job=str(job.pk), error=str(error))
        _wait_until_the_store_works(context)
        context.begin_again()
    return []


def _wait_until_the_store_works(context: JobContext) -> None:
    """Wait, with a report, while files cannot be written; StoppedError if the job is cancelled."""
    while True:
        context.wait_for_store()
        try:
            store.check()
        except store.StoreAwayError:
            continue
        return


def _end(job: Job, error: Exception) -> None:
    """Record the ending of a job that did not succeed."""
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
    """Record a failure; after a cancellation it is a consequence of the cancellation.

    Deleting the subject of a job cancels the job, and its next step may not find the subject.
    """
    if failure is OUR_FAULT and (gone := registry.gone_subject(job)) is not None:
        endings.job_finish_without(job=job, subject=gone)
    elif Job.objects.filter(pk=job.pk, cancel_requested_at__isnull=False).exists():
        endings.job_finish_cancelled(job=job)
    else:
        endings.job_fail(job=job, failure=failure)


def _finish(job: Job, outcome: dict[str, Any] | Callable[[], dict[str, Any] | None] | None) -> None:
    """Write the job's results and its success in one transaction.

    The row of the job is locked first: no other process ends the job while its results are kept.
    """
    with no_collection(), at_usual_priority(), transaction.atomic():
        job_update(job=job, heartbeat_at=Now())
        result = (outcome() if callable(outcome) else outcome) or {}
        endings.job_succeed(job=job, result=result)
        if job.parent_id is None:  # otherwise the whole is recorded when it is done
            audit(job.created_by, "finished", job, organisation=job.organisation, kind=job.kind)
    endings.job_discard_files(job=job)
