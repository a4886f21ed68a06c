"""The job that pairs a cohort: it reads rows, calls the engine and stores a version."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import UUID

import numpy as np
from django.utils.translation import gettext as _

from engine import InvalidProblemError, Progress, Survey, load_roommate_model, propose_pairs
from engine.core.progress import ProgressCallback
from engine.learning.roommates.model import RoommateModel
from engine.learning.roommates.partner_means import compute_partner_means
from engine.learning.roommates.proposal import Proposal as EngineProposal
from webapp.cohorts.selectors.surveys import cohort_survey
from webapp.common.formats import counted
from webapp.files import store
from webapp.housing.models import Placement
from webapp.housing.pairs.placing import (
    ComputedPairs,
    result_store,
    rooms_prepare,
    write_result,
)
from webapp.housing.pairs.rules import number_of, pair_rules
from webapp.housing.services.versions import places_prepare, plan_ahead
from webapp.jobs.context import JobContext
from webapp.jobs.registry import Subject, job_kind
from webapp.matching.allowed_pairs import allowed_scores
from webapp.matching.like_students import multiples_between_groups
from webapp.matching.numbers import pair_probability, reasons
from webapp.translation.lazy import gettext_lazy, pgettext_lazy

Save = Callable[[], dict[str, Any]]
SAMPLING_SECONDS = 25.0  # time limit for sampling the standard errors of pair probabilities
ROUNDING = 1e-9  # relative gap below which the arithmetic of floats cannot tell anything
PAIRS = Subject(
    "placement",
    Placement,
    "housing:placement",
    gettext_lazy("Placement"),
    gettext_lazy("Open the placement"),
    gettext_lazy("The placement was removed."),
)


@job_kind("roommates.propose", verb=pgettext_lazy("title of a job", "Pair"), subject=PAIRS)
def propose(context: JobContext) -> Save:
    """Pair a cohort around the decisions already taken."""
    placement = _find(context)
    arrays = UUID(context.parameters["arrays"])
    model = load_roommate_model(store.get(placement.model.path))
    survey = cohort_survey(placement.cohort, model.questionnaire)
    result = _propose(context, placement, model, survey)
    context.raise_if_stopped()
    between_groups = multiples_between_groups(
        survey, placement.model, result.marginals, result.n_allowed
    )
    allowed = allowed_scores(model, survey, result.marginals)
    files = write_result(context.make_folder(), result, between_groups, allowed)
    for written, kept in zip(files, placement.files_of(arrays), strict=True):
        context.keep_file(written, kept)
    values = _pair_values(placement, model, survey, result)
    figures = {
        "weight": result.weight,
        "upper_bound": result.upper_bound,
        "gap": result.gap,
        "relative_gap": relative_gap_of(result.gap, result.weight),
        "is_calibrated": result.is_calibrated,
        "probability_error": _error_of(result),
        "method": ", ".join(result.methods),
        "n_pairs": len(result.pairs),
        "n_single": survey.n_students - 2 * len(result.pairs),
        "seconds": context.seconds,
    }
    computed = ComputedPairs(context.job, arrays, values, figures)
    rooms_prepare(placement, len(values))
    placement = places_prepare(placement)
    plan = plan_ahead(placement, computed.version(placement))

    def save() -> dict[str, Any]:
        result_store(placement, computed, plan)
        left = figures["n_single"]
        pairs = counted(len(values), "pair")
        if left:
            words = _("%(pairs)s, %(single)s single.") % {"pairs": pairs, "single": left}
        else:
            words = _("%(pairs)s, nobody left over.") % {"pairs": pairs}
        return {"sentence": words, "placement": str(placement.pk)}

    return save


def _find(context: JobContext) -> Placement:
    # A job that an earlier version queued names the proposal, whose copy has the same key.
    key = context.parameters.get("placement") or context.parameters["proposal"]
    found = Placement.objects.select_related("cohort", "model").filter(pk=key).first()
    if found is None:
        raise InvalidProblemError(_("The placement was removed while this job waited."))
    return found


def _propose(
    context: JobContext, placement: Placement, model: RoommateModel, survey: Survey
) -> EngineProposal:
    """Return the best pairs around those decided, with numbers as if none were decided.

    An accepted, locked or swapped pair has probability 1, which is a decision, not an estimate of
    the model. Without these locks the rules allow the same pairs, so the second run is feasible.
    """
    rules = pair_rules(placement)
    n_runs = 2 if rules.locks else 1
    result = propose_pairs(
        model,
        survey,
        rules,
        sampling_seconds=0.0 if rules.locks else SAMPLING_SECONDS,
        on_progress=_part_of(context, 0, n_runs),
        should_stop=context.should_stop,
    )
    if not rules.locks:
        return result
    free = propose_pairs(
        model,
        survey,
        pair_rules(placement, with_locks=False),
        sampling_seconds=SAMPLING_SECONDS,
        on_progress=_part_of(context, 1, n_runs),
        should_stop=context.should_stop,
    )
    first, second = result.pairs.T
    return replace(
        result,
        probabilities=free.marginals[first, second].astype(np.float64),
        doubt=free.doubt,
        n_allowed=free.n_allowed,
        next_best=free.next_best,
        marginals=free.marginals,
        is_exact=free.is_exact,
        probability_error=free.probability_error,
        methods=free.methods,
    )


def relative_gap_of(gap: float, weight: float) -> float:
    """Return the gap relative to the total score; 0 if it is nothing but rounding."""
    relative = gap / max(abs(weight), ROUNDING)
    return relative if relative > ROUNDING else 0.0


def _error_of(result: EngineProposal) -> float | None:
    """Return the largest standard error of a probability; None if any is unknown."""
    error = float(result.probability_error.max(initial=0.0))
    return error if math.isfinite(error) else None


def _part_of(context: JobContext, run: int, n_runs: int) -> ProgressCallback:
    """Return a progress callback for one of several runs, so that the bar never goes back."""

    def on_progress(progress: Progress) -> None:
        done = None if progress.fraction is None else (run + progress.fraction) / n_runs
        context.on_progress(replace(progress, fraction=done))

    return on_progress


def _pair_values(
    placement: Placement, model: RoommateModel, survey: Survey, result: EngineProposal
) -> list[dict[str, Any]]:
    """Return the row of every pair; one pass over the cohort gives the reasons for all."""
    rules = pair_rules(placement, with_locks=False)
    parts = model.features.pair_scores(survey, model.theta, result.pairs)
    amounts = parts - compute_partner_means(model, survey, rules).of_pairs(result.pairs)
    names = model.questionnaire.names
    return [
        {
            "first_number": number_of(survey.ids[i]),
            "second_number": number_of(survey.ids[j]),
            "score": float(result.scores[row]),
            **pair_probability(
                float(result.probabilities[row]), result.doubt[[i, j]], result.n_allowed[[i, j]]
            ),
            **reasons(dict(zip(names, amounts[row].tolist(), strict=True))),
        }
        for row, (i, j) in enumerate(result.pairs.tolist())
    ]
