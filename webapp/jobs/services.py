"""Changes of jobs. Every change of state is a compare-and-set on the row."""

import secrets
import shutil
import uuid
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import structlog
from django.conf import settings
from django.db import IntegrityError, models, transaction
from django.db.models.functions import Greatest, Now
from django.utils import timezone
from django.utils.translation import gettext as _

from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.common.limits import TooManyError
from webapp.files.quota import add_stored, check_quota, lock_organisation
from webapp.jobs import dispatch, endings, queues, registry
from webapp.jobs.claims import change_if_claimed, job_update, n_processes
from webapp.jobs.doubles import next_request_key, refuse_double
from webapp.jobs.endings import job_discard_files, job_fail, job_finish_cancelled
from webapp.jobs.failures import GIVEN_UP, INTERRUPTED, TOO_LONG, Failure
from webapp.jobs.liveness import is_alive, is_at_work, memory_kills
from webapp.jobs.models import ACTIVE_STATES, Job, JobState
from webapp.jobs.pieces import spread_advance
from webapp.monitoring.request_lines import current_request_id
from webapp.version import code_version

log = structlog.get_logger(__name__)

SECONDS_TILL_A_JOB_ENDS = 60  # an estimate of the time that a refused program should wait
MANY_RUNNING = 1000  # a limit this high is never reached: no job waits because of it
_FIRST_RESEND_SECONDS = 10
_LAST_RESEND_SECONDS = 300
_CLOCK_SLACK = timedelta(seconds=5)  # a heartbeat this far ahead means that a clock was set back


@transaction.atomic
def job_enqueue(
    *,
    user: User,
    kind: str,
    parameters: dict[str, Any],
    title: str = "",
    seed: int | None = None,
    stores: int = 0,
) -> Job:
    """Create a queued job and send it to the workers once the transaction has committed.

    A failed send loses nothing: the row stays queued, and the sweep sends it again.

    Parameters
    ----------
    kind : str
        A registered kind; KeyError otherwise.
    parameters : dict
        Ids and plain values only.
    title : str, optional
        Such as "Returning 2023-2025"; shown after the verb of the kind.
    seed : int, optional
        Seed of the job's random numbers; made and stored when None.
    stores : int
        Bytes that its result may take. They are reserved until they are written (``job_store``)
        or the job is over, so that it is refused now rather than passing the quota later.

    Raises
    ------
    TooManyError
        If the organisation's queue of waiting jobs is full.
    QuotaError
        If the organisation has no room for the job's result.
    SentTwiceError
        If the same request started it already: the form was sent twice.
    """
    entry = registry.find_kind(kind)
    job = _create(
        organisation=user.own_organisation,
        created_by=user,
        kind=kind,
        title=registry.stored_title(entry, title),
        parameters=parameters,
        seed=secrets.randbelow(2**31) if seed is None else seed,
        code_version=code_version(),
        sentence=_("Waiting for a free worker"),
        stores_bytes=stores,
        request_id=current_request_id()[:64],
    )
    _check_waiting(job.organisation_id)
    if stores:
        check_quota(job.organisation_id)
    audit(user, "started", job, kind=kind)
    transaction.on_commit(lambda: job_dispatch(job_id=job.pk))
    return job


def _create(**fields: Any) -> Job:
    """Create a job, unless the same request has already created it."""
    key = next_request_key()
    job = Job(**fields, request_key=key.text)
    if not key.text:
        job.save()
        return job
    refuse_double(job.organisation_id, key)
    try:
        with transaction.atomic():
            job.save()
    except IntegrityError:  # another process is serving the same request right now
        refuse_double(job.organisation_id, key)
        raise
    return job


def _check_waiting(organisation_id: int) -> None:
    """Refuse a job beyond the limit of waiting ones; simultaneous jobs are counted in turn."""
    lock_organisation(organisation_id)
    jobs = Job.objects.filter(organisation_id=organisation_id, parent=None)
    waiting = jobs.filter(state=JobState.QUEUED).count()
    allowed = settings.ORGANISATION_MAX_WAITING_JOBS
    if waiting > allowed:
        raise TooManyError(
            _(
                "%(allowed)s jobs of your organisation are waiting already, as many as may. "
                "Cancel some, or wait until some are done. This one was not started."
            )
            % {"allowed": f"{allowed:,}"},
            retry_after=SECONDS_TILL_A_JOB_ENDS,
        )


def job_dispatch(*, job_id: uuid.UUID) -> bool:
    """Send a queued job to the broker; return True if the broker took it.

    Otherwise the sweep sends it as soon as the broker answers.
    """
    queued = Job.objects.filter(pk=job_id, state=JobState.QUEUED)
    # The time is written first: if the send succeeds and this process dies, the sweep waits.
    queued.update(dispatched_at=Now(), dispatch_count=models.F("dispatch_count") + 1)
    kind = Job.objects.filter(pk=job_id).values_list("kind", flat=True).first()
    if dispatch.send(job_id, queues.queue_now(kind or "")):
        return True
    queued.update(dispatched_at=None, dispatch_count=0)
    return False


def wake_for_waiting(*, organisation_id: int, queue: registry.Queue) -> None:
    """Send the next waiting job of an organisation when one of its own has ended."""
    if settings.ORGANISATION_MAX_RUNNING_JOBS >= MANY_RUNNING:
        return
    waiting = Job.objects.filter(
        organisation_id=organisation_id, state=JobState.QUEUED, kind__in=queues.kinds_now(queue)
    )
    key = waiting.order_by("created_at").values_list("pk", flat=True).first()
    if key is not None:
        job_dispatch(job_id=key)


def job_store(*, job: Job, reserved: int, written: int) -> None:
    """Convert a part of a claimed job's reservation into stored bytes.

    Call it in the transaction that keeps the files. Raises ClaimLostError as job_update.
    """
    left = Greatest(models.F("stores_bytes") - reserved, 0)
    job_update(job=job, stores_bytes=left)
    add_stored(job.organisation_id, written)


def job_cancel(*, user: User, job: Job, reason: str = "") -> bool:
    """Stop a job; return True if it was waiting or running.

    A queued job is cancelled at once; a running one is asked to stop and does within two seconds.
    ``reason`` is a sentence for its page, such as why there is nothing left to work on.
    """
    now = timezone.now()
    asked = {"cancel_requested_at": now, "cancelled_by": user, "cancel_reason": reason[:200]}
    queued = Job.objects.filter(pk=job.pk, state=JobState.QUEUED).update(
        state=JobState.CANCELLED,
        finished_at=now,
        sentence=endings.cancelled_sentence(_("Cancelled while it waited."), reason, job),
        **asked,
    )
    if queued:
        # Files of an interrupted attempt. A cancellation that is rolled back leaves them.
        transaction.on_commit(lambda: job_discard_files(job=job))
    running = queued or Job.objects.filter(
        pk=job.pk, state=JobState.RUNNING, cancel_requested_at=None
    ).update(**asked)
    if queued or running:
        audit(user, "cancelled", job)
    if running and not queued:  # if it was split, its pieces end
        spread_advance(job_id=job.pk)
    job.refresh_from_db()
    return bool(queued or running)


def jobs_sweep() -> dict[str, int]:
    """Put abandoned jobs back into the queue and send messages again that the broker lost.

    Files left behind by jobs that are over are removed. Runs when a worker starts and every few
    seconds after; any number may run at the same time. Returns the numbers of jobs requeued, given
    up and sent again.
    """
    counts = {"requeued": 0, "given_up": 0, "cancelled": 0, "sent_again": 0}
    # Times of the database's clock, since the clocks of the hosts that wrote the rows differ.
    jobs = Job.objects.annotate(now=Now(output_field=models.DateTimeField()))
    for job in jobs.filter(state=JobState.RUNNING, n_pieces=0):
        if _is_orphan(job, now=job.now):
            counts[_requeue(job)] += 1
    spread = Job.objects.filter(state=JobState.RUNNING, n_pieces__gt=0)
    for key in spread.values_list("pk", flat=True):
        spread_advance(job_id=key)
    for job in jobs.filter(state=JobState.QUEUED):
        if _is_send_due(job, now=job.now):
            counts["sent_again"] += job_dispatch(job_id=job.pk)
    for queue in registry.Queue:
        counts["sent_again"] += _wake_idle_process(queue)
    _discard_left_files()
    if any(counts.values()):
        log.info("swept", **counts)
    return counts


def _wake_idle_process(queue: registry.Queue) -> bool:
    """Send a job of a queue whose messages were lost while a process is free; True if sent.

    Without it, a job that was sent many times would wait for its next turn beside an idle worker.
    One message suffices, since it reports only that there is work, and a free process takes it at
    once: messages do not pile up.
    """
    jobs = queues.jobs_now(queue)
    late = Now() - timedelta(seconds=_FIRST_RESEND_SECONDS)
    waiting = jobs.filter(state=JobState.QUEUED)
    if not waiting.exists() or waiting.filter(dispatched_at__gt=late).exists():
        return False
    n_running = jobs.filter(state=JobState.RUNNING, n_pieces=0).count()
    if n_running >= n_processes(queue):
        return False
    key = waiting.order_by("created_at", "pk").values_list("pk", flat=True).first()
    return key is not None and job_dispatch(job_id=key)


def _discard_left_files() -> None:
    """Remove the folders of jobs whose process ended before it could remove them.

    They are listed before the rows are read: no job that is over ever runs again.
    """
    folders = list(Path(settings.MEDIA_ROOT).glob("organisation-*/jobs/*"))
    active = Job.objects.filter(state__in=ACTIVE_STATES).values_list("pk", flat=True)
    kept = {str(key) for key in active} if folders else set()
    for folder in folders:
        if folder.name not in kept:
            shutil.rmtree(folder, ignore_errors=True)


def _is_orphan(job: Job, *, now: datetime) -> bool:
    """Return True if the process that runs the job is gone, or silent for too long."""
    alive = is_alive(job.worker)
    if alive is False or job.heartbeat_at is None:
        return True
    patience = timedelta(seconds=settings.JOB_ORPHAN_SECONDS * (4 if alive else 1))
    if job.heartbeat_at > now + _CLOCK_SLACK:  # the clock was set back: count from now on
        Job.objects.filter(pk=job.pk, heartbeat_at=job.heartbeat_at).update(heartbeat_at=now)
        return False
    return job.heartbeat_at < now - patience


def _requeue(job: Job) -> str:
    _count_death(job)
    failure = _reason_to_give_up(job)
    _close_attempt(job)
    if job.cancel_requested_at is not None:
        return "cancelled" if job_finish_cancelled(job=job) else "requeued"
    if failure:
        job_fail(job=job, failure=failure)
        log.error("job given up", job=str(job.pk), attempts=job.attempt, deaths=job.deaths)
        return "given_up"
    if job_requeue(job=job, sentence=_("Interrupted; it goes on from its last checkpoint")):
        log.warning("job requeued", job=str(job.pk), attempt=job.attempt)
    return "requeued"


def _count_death(job: Job) -> None:
    """Count an attempt whose process died by itself while the worker that forked it continued.

    A worker that was stopped, restarted or ended with its machine does not count against the job,
    unless the machine killed processes for lack of memory meanwhile: then it may have killed the
    worker beside, or instead of, the process of the job.
    """
    if is_alive(job.worker) is not False:
        return  # the worker lives, or ran on another machine
    kills = memory_kills()
    lacked_memory = None not in (kills, job.memory_kills) and kills != job.memory_kills
    if lacked_memory or is_at_work(job.worker_parent):
        job.deaths += 1
        change_if_claimed(job, deaths=job.deaths)


def job_requeue(*, job: Job, sentence: str) -> bool:
    """Put a claimed job back into the queue; return False if another process has it by now."""
    return change_if_claimed(
        job,
        state=JobState.QUEUED,
        claim=None,
        worker="",
        seconds_left=None,
        dispatched_at=None,
        dispatch_count=0,
        sentence=sentence,
    )


def _reason_to_give_up(job: Job) -> Failure | None:
    """Return the reason not to start an orphan again; None if it is started again."""
    if job.deaths >= settings.JOB_MAX_DEATHS:
        return GIVEN_UP
    if job.attempt >= settings.JOB_MAX_ATTEMPTS:
        return INTERRUPTED
    if _attempt_seconds(job) > settings.JOB_HARD_TIME_LIMIT - 60:
        return TOO_LONG  # its process was killed by the hard limit of one attempt
    return None


def _close_attempt(job: Job) -> None:
    """Count an orphan's attempt up to its last sign of life, after which it did not run."""
    job.ran_before += _attempt_seconds(job)
    job.attempt_started_at = None
    change_if_claimed(job, ran_before=job.ran_before, attempt_started_at=None)


def _attempt_seconds(job: Job) -> float:
    if job.attempt_started_at is None or job.heartbeat_at is None:
        return 0.0
    return max((job.heartbeat_at - job.attempt_started_at).total_seconds(), 0.0)


def _is_send_due(job: Job, *, now: datetime) -> bool:
    """Return True if a queued job's message may be lost; intervals double to avoid a pile-up."""
    if job.dispatched_at is None:
        return True
    wait = min(_FIRST_RESEND_SECONDS * 2 ** min(job.dispatch_count, 10), _LAST_RESEND_SECONDS)
    # An hour ahead of the clock means as much as an hour behind it: one of the clocks was set.
    return abs(now - job.dispatched_at) > timedelta(seconds=wait)
