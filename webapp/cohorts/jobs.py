"""The long computation of cohorts: simulated pairs for practice."""

from collections.abc import Callable
from typing import Any

from engine import InvalidProblemError
from engine.datasets import simulate_pairs
from webapp.cohorts.models import Cohort, PairsOrigin
from webapp.cohorts.selectors.surveys import cohort_survey
from webapp.cohorts.services.cohorts import cohort_set_pairs
from webapp.common.formats import counted
from webapp.jobs.context import JobContext
from webapp.jobs.registry import Subject, job_kind


@job_kind(
    "roommates.simulate",
    verb="Simulate pairs",
    subject=Subject("cohort", Cohort, "cohorts:cohort", "cohort"),
)
def simulate(context: JobContext) -> Callable[[], dict[str, Any]]:
    """Draw pairs for a cohort from the model itself, with invented weights."""
    cohort = Cohort.objects.filter(pk=context.parameters["cohort"]).first()
    if cohort is None:
        raise InvalidProblemError("The cohort was removed while this job waited.")
    same = context.parameters["same"]
    context.report("Drawing pairs from invented weights")
    drawn = simulate_pairs(
        cohort_survey(cohort), rng=context.rng, same=same, should_stop=context.should_stop
    )
    context.raise_if_stopped()
    pairs = [(int(a), int(b)) for a, b in drawn.pairs]

    def save() -> dict[str, Any]:
        fresh = Cohort.objects.select_for_update().filter(pk=cohort.pk).first()
        if fresh is None:
            raise InvalidProblemError("The cohort was removed meanwhile.")
        if fresh.has_pairs and not fresh.is_simulated:
            raise InvalidProblemError("Real pairs were imported meanwhile.")
        rule = f", the same {' and '.join(same)}" if same else ""
        cohort_set_pairs(
            user=context.job.created_by,
            cohort=fresh,
            pairs=pairs,
            origin=PairsOrigin.SIMULATED,
            note=f"Drawn at random from invented weights (seed {context.job.seed}{rule}).",
            seed=context.job.seed,
        )
        left = counted(len(drawn.single), "student")
        return {"sentence": f"{counted(len(pairs), 'pair')} simulated, {left} left over."}

    return save
