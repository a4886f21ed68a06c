"""The long computation of cohorts: simulated pairs for practice."""

from collections.abc import Callable
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from engine import InvalidProblemError
from engine.datasets import simulate_pairs
from webapp.cohorts.models import Cohort, PairsOrigin
from webapp.cohorts.selectors.surveys import cohort_survey
from webapp.cohorts.services.cohorts import cohort_set_pairs
from webapp.common.formats import counted
from webapp.jobs.context import JobContext
from webapp.jobs.registry import Subject, job_kind
from webapp.translation.lazy import gettext_lazy, pgettext_lazy


@job_kind(
    "roommates.simulate",
    verb=pgettext_lazy("title of a job", "Simulate pairs"),
    subject=Subject(
        "cohort",
        Cohort,
        "cohorts:cohort",
        gettext_lazy("Cohort"),
        gettext_lazy("Open the cohort"),
        gettext_lazy("The cohort was removed."),
    ),
)
def simulate(context: JobContext) -> Callable[[], dict[str, Any]]:
    """Draw pairs for a cohort from the model itself, with invented weights."""
    cohort = Cohort.objects.filter(pk=context.parameters["cohort"]).first()
    if cohort is None:
        raise InvalidProblemError(_("The cohort was removed while this job waited."))
    same = context.parameters["same"]
    context.report(_("Drawing pairs from invented weights"))
    drawn = simulate_pairs(
        cohort_survey(cohort), rng=context.rng, same=same, should_stop=context.should_stop
    )
    context.raise_if_stopped()
    pairs = [(int(a), int(b)) for a, b in drawn.pairs]

    def save() -> dict[str, Any]:
        fresh = Cohort.objects.select_for_update().filter(pk=cohort.pk).first()
        if fresh is None:
            raise InvalidProblemError(_("The cohort was removed meanwhile."))
        if fresh.has_pairs and not fresh.is_simulated:
            raise InvalidProblemError(_("Real pairs were imported meanwhile."))
        note = _("Drawn at random from invented weights (seed %(seed)s).")
        if same:
            note = _("Drawn at random from invented weights (seed %(seed)s, the same %(columns)s).")
        columns = ""
        for name in same:
            columns = (
                _("%(some)s and %(other)s") % {"some": columns, "other": name} if columns else name
            )
        cohort_set_pairs(
            user=context.job.created_by,
            cohort=fresh,
            pairs=pairs,
            origin=PairsOrigin.SIMULATED,
            note=note % {"seed": context.job.seed, "columns": columns},
            seed=context.job.seed,
        )
        left = counted(len(drawn.single), "student")
        words = ngettext(
            "%(pairs)s simulated, %(left)s left over.",
            "%(pairs)s simulated, %(left)s left over.",
            len(pairs),
        )
        return {"sentence": words % {"pairs": counted(len(pairs), "pair"), "left": left}}

    return save
