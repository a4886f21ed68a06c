"""Preparing the results of the demonstration, one step at a time, and closing its tour.

The rows of results are the only state: each is changed in the transaction that creates its object
and starts its job. A process that is killed therefore leaves either nothing or a started result,
and any number of processes may prepare at the same time.
"""

import time

import structlog
from django.db import DatabaseError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from engine import InvalidProblemError
from webapp.accounts.models import Organisation, User
from webapp.audit.services import audit
from webapp.common.errors import Refusal
from webapp.common.formats import counted
from webapp.demonstration.catalogue import STEP_OF, STEPS
from webapp.demonstration.models import (
    OPEN_STATES,
    ClosedTour,
    DemonstrationResult,
    ResultState,
)
from webapp.demonstration.steps.step import Step, StepError
from webapp.files.store import StoreAwayError
from webapp.jobs.models import JobState
from webapp.translation.lazy import gettext_lazy

TURN_SECONDS = 2.0  # of one turn of the sweep, which also checks for dead workers
UNFORESEEN = gettext_lazy("It failed on our side; the log of the sweep has the reason.")

log = structlog.get_logger(__name__)


def results_load(organisation: Organisation, user: User) -> str:
    """Plan the results of the demonstration, unless they are planned; return one sentence.

    They are prepared once the server runs, so that its first page does not wait for them.
    """
    with transaction.atomic():
        for position, step in enumerate(STEPS):
            DemonstrationResult.objects.get_or_create(
                organisation=organisation,
                key=step.key,
                defaults={"created_by": user, "position": position},
            )
    return f"{counted(len(STEPS), 'result')} will be prepared once the server runs."


def results_advance() -> int:
    """Start and finish what can be started and finished now; return the number of changes.

    The sweep calls it every few seconds. A closed demonstration, whose person can no longer sign
    in, is left as it is.
    """
    waiting = DemonstrationResult.objects.filter(state__in=OPEN_STATES, created_by__is_active=True)
    keys = list(waiting.order_by("organisation", "position").values_list("pk", flat=True))
    deadline = time.monotonic() + TURN_SECONDS
    changes = 0
    while keys and time.monotonic() < deadline:
        keys = [key for key in keys if _advance(key)]  # one part of each, so that jobs start first
        changes += len(keys)
    return changes


def _advance(key: int) -> bool:
    """Do the next part of one result; return True if something changed."""
    try:
        with transaction.atomic():
            return _advance_locked(key)
    except (Refusal, InvalidProblemError) as error:
        return _fail(key, str(error))
    except (DatabaseError, StoreAwayError, OSError):
        raise  # nothing changed: it is tried again at the next turn
    except Exception:
        log.exception("a result of the demonstration failed", result=key)
        return _fail(key, str(UNFORESEEN))


def _advance_locked(key: int) -> bool:
    rows = DemonstrationResult.objects.select_for_update(of=("self",))
    row = rows.filter(pk=key, state__in=OPEN_STATES).select_related("created_by").first()
    if row is None or row.created_by is None:
        return False  # another process did it, or it was removed
    step = STEP_OF[row.key]
    if row.state == ResultState.WAITING:
        return _start(row, step, row.created_by)
    return _finish(row, step, row.created_by)


def _start(row: DemonstrationResult, step: Step, user: User) -> bool:
    needed = DemonstrationResult.objects.filter(organisation=row.organisation_id)
    ready = {one.key: one for one in needed.filter(key__in=step.needs, state=ResultState.READY)}
    if len(ready) < len(step.needs):
        return False
    objects = {}
    for name in step.needs:
        objects[name] = STEP_OF[name].find(row.organisation_id, ready[name].target)
        if objects[name] is None:
            raise StepError(
                _("%(result)s of the demonstration was removed.") % {"result": STEP_OF[name].title}
            )
    started = step.start(user, objects)
    _change(row, ResultState.STARTED, target=str(started.target.pk), job=started.job)
    return True


def _finish(row: DemonstrationResult, step: Step, user: User) -> bool:
    target = step.find(row.organisation_id, row.target)
    if target is None:
        raise StepError(_("It was removed while it was being prepared."))
    job = row.job
    if job is not None and job.is_active:
        return False
    if job is not None and job.state != JobState.SUCCEEDED:
        raise StepError(job.error or job.sentence or _("Its job ended without a result."))
    if step.finish(user, target):
        _change(row, ResultState.READY)
    return True


def _change(row: DemonstrationResult, state: ResultState, **fields: object) -> None:
    values = {"state": state, "error": "", "changed_at": timezone.now(), **fields}
    DemonstrationResult.objects.filter(pk=row.pk).update(**values)


def _fail(key: int, sentence: str) -> bool:
    """Store why a result failed; return True if it was still being prepared."""
    rows = DemonstrationResult.objects.filter(pk=key, state__in=OPEN_STATES)
    values = {"error": sentence[:500], "changed_at": timezone.now()}
    return bool(rows.update(state=ResultState.FAILED, **values))


def result_retry(*, user: User, key: str) -> str:
    """Prepare a failed result again, with the results that it needs; return one sentence.

    The remains of the failed attempt are removed first. Raises StepError if the result has not
    failed.
    """
    with transaction.atomic():
        rows = DemonstrationResult.objects.select_for_update(of=("self",))
        mine = {row.key: row for row in rows.filter(organisation=user.organisation_id)}
        row = mine.get(key)
        if row is None or not row.has_failed:
            raise StepError(_("This is being prepared already, or is ready."))
        for name in (*STEP_OF[key].needs, key):
            needed = mine.get(name)
            if needed is not None and (needed.has_failed or _is_gone(needed)):
                _reset(user, needed)
        audit(user, "prepared again", STEP_OF[key].title)
    return _("%(result)s: being prepared again.") % {"result": STEP_OF[key].title}


def _is_gone(row: DemonstrationResult) -> bool:
    """Return True if somebody removed the object of a ready result."""
    return row.is_ready and STEP_OF[row.key].find(row.organisation_id, row.target) is None


def _reset(user: User, row: DemonstrationResult) -> None:
    step = STEP_OF[row.key]
    left = step.find(row.organisation_id, row.target)
    if left is not None:
        step.discard(user, left)
    _change(row, ResultState.WAITING, target="", job=None)


def tour_close(*, user: User) -> None:
    """Close the tour for a person, for good."""
    ClosedTour.objects.get_or_create(user=user)


def tour_show(*, user: User) -> None:
    """Show the tour to a person again."""
    ClosedTour.objects.filter(user=user).delete()
