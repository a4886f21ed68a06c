"""Jobs of matching: learn, check, intervals. They read rows, call the engine and store rows."""

import contextlib
from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.utils import timezone
from django.utils.translation import gettext as _

from engine import (
    InvalidProblemError,
    Survey,
    evaluate_roommates,
    load_roommate_model,
    question_weights,
    train_roommates,
)
from webapp.charts import ConvergenceWords
from webapp.cohorts.models import Cohort
from webapp.cohorts.selectors.surveys import cohort_choices, cohort_survey, questionnaire_of
from webapp.common import formats
from webapp.common.limits import TooManyError
from webapp.files import store
from webapp.jobs.context import JobContext
from webapp.jobs.registry import Queue, Subject, job_kind
from webapp.matching.errors import MatchingError
from webapp.matching.intervals import weight_intervals
from webapp.matching.models import LearnedModel
from webapp.matching.results import (
    evaluation_curves,
    evaluation_figures,
    learning_figures,
    weight_rows,
)
from webapp.matching.services.learning import model_check, model_estimate
from webapp.matching.stopping import stop_asked
from webapp.translation.lazy import gettext_lazy, pgettext_lazy

TOO_SHORT = gettext_lazy("A minute did not suffice to tell how sure each weight is.")
NO_MODEL = gettext_lazy("The model was removed while this job waited.")
NO_COHORT = gettext_lazy("The cohort was removed while this job waited.")
Save = Callable[[], dict[str, Any]]
MODEL = Subject(
    "model",
    LearnedModel,
    "matching:model",
    gettext_lazy("Model"),
    gettext_lazy("Open the model"),
    gettext_lazy("The model was removed."),
)


def _find(model: Any, key: UUID | str, refusal: str) -> Any:
    found = model.objects.filter(pk=key).first()
    if found is None:
        raise InvalidProblemError(str(refusal))
    return found


@job_kind(
    "roommates.learn",
    verb=pgettext_lazy("title of a job", "Learn"),
    queue=Queue.LONG,
    subject=MODEL,
    target_gap=1e-4,
    words=ConvergenceWords(
        upper=gettext_lazy("Objective: no weights can fit better than this"),
        lower=gettext_lazy("Log-likelihood of the weights found so far"),
        axis=gettext_lazy("Log-likelihood of the past choices (nats)"),
    ),
)
def learn(context: JobContext) -> Save:
    """Learn a model from its cohorts.

    Its check and its intervals are separate jobs: cancelling those loses no weights.
    """
    model = _find(LearnedModel, context.parameters["model"], NO_MODEL)
    data, options = _read_cohorts(model), model.options
    wants_to_stop = stop_asked(context, model)
    trained = train_roommates(
        data,
        ridge=options["ridge"],
        rho=options["rho"],
        solver=options["method"],
        relative_gap=options["relative_gap"],
        rng=context.rng,
        on_progress=context.on_progress,
        should_stop=wants_to_stop,
        checkpoint=context.checkpoint,
    )
    context.raise_if_stopped()
    weights_file = context.make_folder() / "weights.npz"
    trained.model.save(weights_file)
    context.keep_file(weights_file, model.path)
    figures = learning_figures(trained, options["relative_gap"])
    weights = weight_rows(question_weights(trained.model))

    def save() -> dict[str, Any]:
        found = LearnedModel.objects.filter(pk=model.pk).update(
            learned_at=timezone.now(),
            figures=figures,
            weights=weights,
            findings={},
            curves={},
            checked_name="",
        )
        if not found:
            raise MatchingError(_("The model was removed meanwhile."))
        unchecked = _queue_check(context, model)
        _queue_intervals(context, model)
        return {
            "sentence": f"{_learned_sentence(figures)} {unchecked}".strip(),
            "model": str(model.pk),
        }

    return save


def _read_cohorts(model: LearnedModel) -> list[tuple[Survey, Any]]:
    """Return the survey and choices of every year that a model learns from, in order."""
    questionnaire = questionnaire_of(model.questions)
    cohorts = list(model.cohorts.order_by("created_at", "pk"))
    if len(cohorts) != len(model.sources):
        raise InvalidProblemError(_("A cohort of this model was removed while the job waited."))
    return [(cohort_survey(cohort, questionnaire), cohort_choices(cohort)) for cohort in cohorts]


def _queue_intervals(context: JobContext, model: LearnedModel) -> None:
    """Queue the intervals once the weights are stored; if the queue is full, staff may later."""
    if context.job.created_by is None:
        return
    with contextlib.suppress(TooManyError):
        model_estimate(user=context.job.created_by, model=model)


@job_kind(
    "roommates.intervals",
    verb=pgettext_lazy("title of a job", "Work out intervals"),
    queue=Queue.LONG,  # it fits many years again, and nobody waits for it
    subject=MODEL,
)
def estimate_intervals(context: JobContext) -> Save:
    """Estimate the confidence interval of each weight of a learned model, and its drift."""
    model = _find(LearnedModel, context.parameters["model"], NO_MODEL)
    context.report(_("Working out how sure each weight is"))
    known = weight_intervals(
        _read_cohorts(model), model.options["rho"], context.should_stop, context.checkpoint
    )
    context.raise_if_stopped()

    def save() -> dict[str, Any]:
        found = LearnedModel.objects.select_for_update().filter(pk=model.pk).first()
        if found is None:
            raise MatchingError(_("The model was removed meanwhile."))
        found.weights = [{**row, **known.get(row["question"], {})} for row in found.weights]
        found.save(update_fields=["weights"])
        if not known:
            return {"sentence": str(TOO_SHORT)}
        return {"sentence": _("Confidence intervals of the weights are ready.")}

    return save


def _queue_check(context: JobContext, model: LearnedModel) -> str:
    """Queue the check if a later year was chosen; return a sentence if that is impossible."""
    if model.checked_on_id is None or context.job.created_by is None:
        return ""
    try:
        year = _find(Cohort, model.checked_on_id, NO_COHORT)
        model_check(
            user=context.job.created_by, model=LearnedModel.objects.get(pk=model.pk), cohort=year
        )
    except (TooManyError, MatchingError, InvalidProblemError) as error:
        return _("Not checked: %(reason)s") % {"reason": error}
    return ""


def _learned_sentence(figures: dict[str, Any]) -> str:
    gap = formats.gap(figures["relative_gap"])
    if not figures["is_certified"]:
        return _("Estimate: %(gap)s from the best fit.") % {"gap": gap}
    if figures["is_converged"]:
        return _("Certified: within %(gap)s of the best fit.") % {"gap": gap}
    if not formats.is_telling(figures["relative_gap"]):
        return _("Stopped early: too early to tell how near the best fit the weights are.")
    return _("Stopped early at %(gap)s from the best fit.") % {"gap": gap}


def _findings(context: JobContext, model: Any, cohort: Cohort) -> dict[str, dict[str, Any]]:
    """Return the fields ``findings`` and ``curves`` of a check."""
    survey, pairs = cohort_survey(cohort, model.questionnaire), cohort_choices(cohort)
    found = evaluate_roommates(model, survey, pairs, should_stop=context.should_stop)
    # Stored with the figures: the cohort may be purged, or get other pairs.
    return {
        "findings": {**evaluation_figures(found), "is_simulated": cohort.is_simulated},
        "curves": evaluation_curves(found),
    }


@job_kind("roommates.check", verb=pgettext_lazy("title of a job", "Check"), subject=MODEL)
def check(context: JobContext) -> Save:
    """Compare a model with the pairs of a year that it was not trained on."""
    model = _find(LearnedModel, context.parameters["model"], NO_MODEL)
    cohort = _find(Cohort, context.parameters["cohort"], NO_COHORT)
    context.report(_("Comparing with pairs that were not learned from"))
    fields = _findings(context, load_roommate_model(store.get(model.path)), cohort)

    def save() -> dict[str, Any]:
        if Cohort.objects.select_for_update().filter(pk=cohort.pk).first() is None:
            raise MatchingError(_("The cohort was removed meanwhile."))
        LearnedModel.objects.filter(pk=model.pk).update(
            **fields, checked_on=cohort, checked_name=cohort.name
        )
        auc, baseline = fields["findings"]["auc"], fields["findings"]["baseline_auc"]
        words = _("AUC %(auc)s against %(baseline)s for plain distance.")
        return {"sentence": words % {"auc": f"{auc:.2f}", "baseline": f"{baseline:.2f}"}}

    return save
