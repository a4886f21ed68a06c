"""The long computations of matching: learn, check, propose. Thin: rows, engine, rows."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import UUID

import numpy as np
from django.utils import timezone

from engine import (
    InvalidProblemError,
    Progress,
    ProgressCallback,
    RoommateModel,
    Survey,
    compute_partner_means,
    evaluate_roommates,
    load_roommate_model,
    propose_pairs,
    question_weights,
    train_roommates,
)
from engine import Proposal as EngineProposal
from webapp.cohorts.models import Cohort
from webapp.cohorts.selectors.surveys import cohort_choices, cohort_survey, questionnaire_of
from webapp.common import formats
from webapp.files import store
from webapp.jobs.context import JobContext
from webapp.jobs.registry import Queue, Subject, job_kind
from webapp.matching.errors import MatchingError
from webapp.matching.intervals import weight_intervals
from webapp.matching.like_students import multiples_between_groups
from webapp.matching.models import LearnedModel, Proposal
from webapp.matching.numbers import pair_probability, reasons
from webapp.matching.results import (
    evaluation_curves,
    evaluation_figures,
    learning_figures,
    weight_rows,
)
from webapp.matching.rules import number_of, proposal_rules
from webapp.matching.services.proposals import result_store, write_result

Save = Callable[[], dict[str, Any]]
SAMPLING_SECONDS = 25.0  # at most, for the standard error of pair probabilities
MODEL = Subject("model", LearnedModel, "matching:model", "model")
PROPOSAL = Subject("proposal", Proposal, "matching:proposal", "proposal")


def _find(model: Any, key: UUID | str, words: str) -> Any:
    found = model.objects.filter(pk=key).first()
    if found is None:
        raise InvalidProblemError(f"The {words} was removed while this job waited.")
    return found


@job_kind(
    "roommates.learn",
    verb="Learn",
    queue=Queue.LONG,
    subject=MODEL,
    target_gap=1e-4,
    objective_label="Objective: no weights can fit better than this",
    lower_bound_label="Log-likelihood of the weights found so far",
    axis_label="Log-likelihood of the past choices (nats)",
)
def learn(context: JobContext) -> Save:
    """Learn a model from its cohorts, then check it where a later year was chosen."""
    model = _find(LearnedModel, context.parameters["model"], "model")
    questionnaire = questionnaire_of(model.questions)
    cohorts = list(model.cohorts.order_by("created_at", "pk"))
    if len(cohorts) != len(model.sources):
        raise InvalidProblemError("A cohort of this model was removed while the job waited.")
    data = [(cohort_survey(cohort, questionnaire), cohort_choices(cohort)) for cohort in cohorts]
    options = model.options
    trained = train_roommates(
        data,
        ridge=options["ridge"],
        rho=options["rho"],
        solver=options["method"],
        relative_gap=options["relative_gap"],
        rng=context.rng,
        on_progress=context.on_progress,
        should_stop=context.should_stop,
        checkpoint=context.checkpoint,
    )
    context.raise_if_stopped()
    weights_file = context.make_folder() / "weights.npz"
    trained.model.save(weights_file)
    context.keep_file(weights_file, model.path)
    figures = learning_figures(trained, options["relative_gap"])
    context.report("Working out how sure each weight is", 0.96)
    intervals = weight_intervals(data, options["rho"], context.should_stop)
    context.raise_if_stopped()
    weights = weight_rows(question_weights(trained.model), intervals)
    checked, unchecked = _check_learned(context, trained.model, model.checked_on_id)

    def save() -> dict[str, Any]:
        found = LearnedModel.objects.filter(pk=model.pk).update(
            learned_at=timezone.now(),
            figures=figures,
            weights=weights,
            **checked,
        )
        if not found:
            raise MatchingError("The model was removed meanwhile.")
        return {"sentence": _learned_sentence(figures) + unchecked, "model": str(model.pk)}

    return save


def _check_learned(
    context: JobContext, model: RoommateModel, year: UUID | None
) -> tuple[dict[str, Any], str]:
    """Return the fields of the check, and a sentence where it failed: what was learned stays."""
    fields: dict[str, Any] = {"findings": {}, "curves": {}, "checked_name": ""}
    if year is None:
        return fields, ""
    context.report("Checking on pairs that were not learned from", 0.98)
    try:
        cohort = _find(Cohort, year, "cohort")
        fields = {**_findings(context, model, cohort), "checked_name": cohort.name}
    except InvalidProblemError as error:
        return fields, f" Not checked: {error}"
    return fields, ""


def _learned_sentence(figures: dict[str, Any]) -> str:
    gap = formats.gap(figures["relative_gap"])
    if not figures["is_certified"]:
        return f"Estimate: {gap} from the best fit."
    if figures["is_converged"]:
        return f"Certified: within {gap} of the best fit."
    if not formats.is_telling(figures["relative_gap"]):
        return "Stopped early: too early to tell how near the best fit the weights are."
    return f"Stopped early at {gap} from the best fit."


def _findings(context: JobContext, model: Any, cohort: Cohort) -> dict[str, dict[str, Any]]:
    """Return the fields ``findings`` and ``curves`` of a check."""
    survey, pairs = cohort_survey(cohort, model.questionnaire), cohort_choices(cohort)
    found = evaluate_roommates(model, survey, pairs, should_stop=context.should_stop)
    # Kept beside the figures: the cohort may be purged, or get other pairs.
    return {
        "findings": {**evaluation_figures(found), "is_simulated": cohort.is_simulated},
        "curves": evaluation_curves(found),
    }


@job_kind("roommates.check", verb="Check", subject=MODEL)
def check(context: JobContext) -> Save:
    """Compare a model with the pairs of a year that it was not learned from."""
    model = _find(LearnedModel, context.parameters["model"], "model")
    cohort = _find(Cohort, context.parameters["cohort"], "cohort")
    context.report("Comparing with pairs that were not learned from")
    fields = _findings(context, load_roommate_model(store.get(model.path)), cohort)

    def save() -> dict[str, Any]:
        if Cohort.objects.select_for_update().filter(pk=cohort.pk).first() is None:
            raise MatchingError("The cohort was removed meanwhile.")
        LearnedModel.objects.filter(pk=model.pk).update(
            **fields, checked_on=cohort, checked_name=cohort.name
        )
        auc, baseline = fields["findings"]["auc"], fields["findings"]["baseline_auc"]
        return {"sentence": f"AUC {auc:.2f} against {baseline:.2f} for plain distance."}

    return save


@job_kind("roommates.propose", verb="Propose", subject=PROPOSAL)
def propose(context: JobContext) -> Save:
    """Pair a cohort around the decisions already taken."""
    proposal = _find(Proposal, context.parameters["proposal"], "proposal")
    arrays = UUID(context.parameters["arrays"])
    model = load_roommate_model(store.get(proposal.model.path))
    survey = cohort_survey(proposal.cohort, model.questionnaire)
    result = _propose(context, proposal, model, survey)
    context.raise_if_stopped()
    between_groups = multiples_between_groups(
        survey, proposal.model, result.marginals, result.n_allowed
    )
    computed = write_result(context.make_folder(), result, between_groups)
    for written, kept in zip(computed, proposal.files_of(arrays), strict=True):
        context.keep_file(written, kept)
    values = _pair_values(proposal, model, survey, result)
    figures = {
        "weight": result.weight,
        "upper_bound": result.upper_bound,
        "gap": result.gap,
        "is_calibrated": result.is_calibrated,
        "probability_error": float(result.probability_error.max(initial=0.0)),
        "n_pairs": len(result.pairs),
        "n_single": survey.n_students - 2 * len(result.pairs),
        "seconds": context.seconds,
    }

    def save() -> dict[str, Any]:
        result_store(
            proposal_id=proposal.pk,
            arrays=arrays,
            values=values,
            figures=figures,
        )
        left = figures["n_single"]
        rest = "nobody left over" if not left else f"{left} single"
        return {"sentence": f"{len(values):,} pairs, {rest}.", "proposal": str(proposal.pk)}

    return save


def _propose(
    context: JobContext, proposal: Proposal, model: RoommateModel, survey: Survey
) -> EngineProposal:
    """Return the best pairs around those that are held, with numbers as if none were.

    A held pair is certain and leaves nobody else a chance: decisions, not what the model expects.
    Without locks the rules allow the very same pairs, so that the second run is always feasible.
    """
    rules = proposal_rules(proposal)
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
        proposal_rules(proposal, with_locks=False),
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
    )


def _part_of(context: JobContext, run: int, n_runs: int) -> ProgressCallback:
    """Return a callback for one of several runs, so that the bar never goes back."""

    def on_progress(progress: Progress) -> None:
        done = None if progress.fraction is None else (run + progress.fraction) / n_runs
        context.on_progress(replace(progress, fraction=done))

    return on_progress


def _pair_values(
    proposal: Proposal, model: RoommateModel, survey: Survey, result: EngineProposal
) -> list[dict[str, Any]]:
    """Return the row of every pair; reasons for all of them come from one pass over the cohort."""
    rules = proposal_rules(proposal, with_locks=False)
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
