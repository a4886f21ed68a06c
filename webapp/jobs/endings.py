"""Endings of jobs: the final state of their rows, and the removal of their files."""

import shutil
from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from webapp.common.events import send_event
from webapp.files import store
from webapp.jobs import registry
from webapp.jobs.claims import change_if_claimed, job_update
from webapp.jobs.failures import Failure
from webapp.jobs.models import Job, JobState

MAX_SENTENCE = Job._meta.get_field("sentence").max_length
MAX_REASON = Job._meta.get_field("cancel_reason").max_length
MAX_ERROR: int = Job._meta.get_field("error").max_length or 0


def job_succeed(*, job: Job, result: dict[str, Any]) -> None:
    """Mark a claimed job as done; call it in the transaction that writes the job's results."""
    job_update(
        job=job,
        state=JobState.SUCCEEDED,
        result=result,
        progress=1.0,
        seconds_left=None,
        sentence=str(result.get("sentence", _("Done")))[:300],
        finished_at=timezone.now(),
    )


def job_fail(*, job: Job, failure: Failure) -> bool:
    """Mark a claimed job as failed; return False if it was over already."""
    ending = f"{registry.kept_results_sentence(job)} {failure.advice}".strip()
    reason = failure.reason  # without the last sentence: the ending mentions what is kept
    for last in (_("Nothing was saved."), "Nothing was saved."):
        reason = reason.removesuffix(f" {last}")
    reason = reason if reason.endswith((".", "?")) else f"{reason}."
    error = f"{reason[: MAX_ERROR - len(ending) - 1]} {ending}".rstrip()
    with transaction.atomic():
        ended = _end(job, state=JobState.FAILED, sentence=_("Failed"), error=error)
        if ended and job.parent_id is None and not job.is_of_installation:
            send_event(
                job.organisation_id,
                "job.failed",
                job=str(job.pk),
                kind=job.kind,
                title=job.title,
                error=error,
            )
    return ended


def job_finish_cancelled(*, job: Job) -> bool:
    """Mark a claimed job as cancelled; return False if it was over already."""
    seconds = f"{job.elapsed.total_seconds():.0f}"
    beginning = _("Cancelled after %(seconds)s s.") % {"seconds": seconds}
    reasons = Job.objects.filter(pk=job.pk).values_list("cancel_reason", flat=True)
    sentence = cancelled_sentence(beginning, reasons.first() or "", job)
    return _end(job, state=JobState.CANCELLED, sentence=sentence)


def job_finish_without(*, job: Job, subject: registry.Subject) -> bool:
    """Mark a claimed job as cancelled because its subject was removed."""
    reason = str(subject.removed)[:MAX_REASON]
    Job.objects.filter(pk=job.pk, cancel_reason="").update(cancel_reason=reason)
    return job_finish_cancelled(job=job)


def cancelled_sentence(beginning: str, reason: str, job: Job) -> str:
    """Return the sentence of a cancelled job: when it ended, why, and what is kept."""
    words = [beginning, reason, registry.kept_results_sentence(job)]
    return " ".join(filter(None, words))[:MAX_SENTENCE]


def _end(job: Job, **fields: Any) -> bool:
    """End a claimed job that did not succeed, and remove its intermediate files."""
    ended = change_if_claimed(job, seconds_left=None, finished_at=timezone.now(), **fields)
    if ended:
        job_discard_files(job=job)
    return ended


def job_discard_files(*, job: Job) -> None:
    """Remove checkpoint and intermediate files of a job that is over."""
    shutil.rmtree(job.folder, ignore_errors=True)
    if job.attempt:
        store.remove(job.checkpoint_path)
