"""Pairs for practice: simulated by the model itself, and labelled as such wherever they appear."""

from collections.abc import Sequence
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from webapp.accounts.models import User
from webapp.cohorts.models import Cohort
from webapp.cohorts.services.cohorts import CohortError
from webapp.jobs.models import ACTIVE_STATES, Job
from webapp.jobs.services import job_enqueue


@transaction.atomic
def pairs_simulation_start(
    *, user: User, cohort: Cohort, same: Sequence[str] = (), seed: int | None = None
) -> Job:
    """Queue the job that draws pairs for a cohort without real ones.

    Raises CohortError if the cohort has imported pairs, or a simulation is running.
    """
    Cohort.objects.select_for_update().get(pk=cohort.pk)
    if cohort.has_pairs and not cohort.is_simulated:
        raise CohortError(
            _("%(cohort)s has real pairs; simulated ones would replace them.")
            % {"cohort": cohort.name}
        )
    if cohort.n_students < 4:
        raise CohortError(_("At least 4 students are needed to simulate pairs."))
    unknown = [column for column in same if column not in cohort.constraints]
    if unknown:
        raise CohortError(
            _("%(unknown)s is not a constraint column of %(cohort)s.")
            % {"unknown": unknown[0], "cohort": cohort.name}
        )
    parameters: dict[str, Any] = {"cohort": str(cohort.pk), "same": list(same)}
    running = Job.objects.filter(
        kind="roommates.simulate", state__in=ACTIVE_STATES, parameters__cohort=str(cohort.pk)
    )
    if running.exists():
        raise CohortError(_("Pairs are being simulated already."))
    return job_enqueue(
        user=user,
        kind="roommates.simulate",
        parameters=parameters,
        title=cohort.name,
        seed=seed,
    )
