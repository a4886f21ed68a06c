"""Queries about the results of the demonstration and its tour."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from zlib import crc32

from django.utils.translation import gettext as _

from webapp.accounts.models import User
from webapp.common.selectors import owned_by
from webapp.demonstration.catalogue import STEP_OF
from webapp.demonstration.models import (
    OPEN_STATES,
    ClosedTour,
    DemonstrationResult,
    ResultState,
)
from webapp.demonstration.steps.step import Step
from webapp.translation.lazy import gettext_lazy

GONE = gettext_lazy("Somebody removed it.")


@dataclass(frozen=True, slots=True)
class ShownResult:
    """One result as Home lists it; ``url`` is empty while there is nothing to look at."""

    row: DemonstrationResult
    step: Step
    sentence: str
    url: str = ""

    @property
    def is_open(self) -> bool:
        """Return True if the result is still being prepared."""
        return self.row.state in OPEN_STATES

    @property
    def percent(self) -> int | None:
        """Progress of the running job; None if it is unknown or nothing runs."""
        job = self.row.job
        return job.percent if self.is_open and job is not None and job.is_active else None


def demonstration_results(user: User) -> list[ShownResult]:
    """Return the results of the user's organisation in order; none outside a demonstration.

    A demonstration that was closed, whose person can no longer sign in, shows none either.
    """
    if user.organisation_id is None:
        return []
    rows = owned_by(DemonstrationResult, user).filter(created_by__is_active=True)
    found = list(rows.select_related("job").defer("job__result", "job__parameters"))
    ready = {row.key for row in found if row.is_ready}
    return [_shown(row, ready) for row in found]


def _shown(row: DemonstrationResult, ready: set[str]) -> ShownResult:
    step = STEP_OF[row.key]
    if not row.is_ready:
        return ShownResult(row, step, _sentence(row, step, ready))
    target = step.find(row.organisation_id, row.target)
    if target is None:
        return ShownResult(row, step, GONE)
    return ShownResult(row, step, str(target), step.url(row.target))


def _sentence(row: DemonstrationResult, step: Step, ready: set[str]) -> str:
    if row.has_failed:
        return row.error
    lacking = [STEP_OF[key].title.lower() for key in step.needs if key not in ready]
    if lacking:
        return _("Waits for %(lacking)s.") % {"lacking": " and ".join(lacking)}
    if row.state == ResultState.WAITING:
        return _("Starts in a few seconds.")
    if row.job is not None and row.job.is_active:
        return f"{row.job.sentence.rstrip('.')}."
    return f"{step.doing}."


def doing_now(results: Sequence[ShownResult]) -> str:
    """Return in words what is being prepared now; '' if nothing is."""
    doing = [one.step.doing for one in results if one.row.state == ResultState.STARTED]
    return f"{doing[0]}." if doing else ""


def mark_of(results: Sequence[ShownResult]) -> str:
    """Return a short text that differs whenever Home would show other results."""
    shown: list[Any] = [(one.row.state, one.sentence, one.url, one.percent) for one in results]
    return f"{crc32(repr(shown).encode()):x}"


def has_demonstration(user: User) -> bool:
    """Return True if the organisation of a person has the results of a demonstration."""
    if user.organisation_id is None:
        return False
    rows = owned_by(DemonstrationResult, user)
    return rows.filter(created_by__is_active=True).exists()


def has_closed_tour(user: User) -> bool:
    """Return True if a person closed the tour."""
    return ClosedTour.objects.filter(user=user).exists()
