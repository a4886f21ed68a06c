"""States, certificates and listings of models for pages."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict, cast
from urllib.parse import urlencode

from django.db.models import QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from webapp.accounts.models import User
from webapp.cohorts.models import Cohort
from webapp.cohorts.selectors.cohorts import share_students, wholes_of
from webapp.common import formats
from webapp.common.listing import ArrayLength, Listing, light, list_page
from webapp.common.selectors import owned_by
from webapp.jobs.models import JobState
from webapp.matching.models import LearnedModel

if TYPE_CHECKING:
    from django_stubs_ext import WithAnnotations


class Counted(TypedDict):
    """Numbers that the query of a list adds to a model."""

    n_questions: int


@dataclass(frozen=True, slots=True)
class ModelState:
    """Badge of a model: its words, tone and icon."""

    key: str
    words: str
    tone: str
    icon: str


@dataclass(frozen=True, slots=True)
class Certificate:
    """Upper bound of the weights' distance from the best ones, and the target.

    ``position`` and ``target_position`` are places on a log scale from 100 % (0) to the end (1).
    """

    relative_gap: float
    target: float
    is_certified: bool
    is_met: bool
    position: float
    target_position: float

    @property
    def is_telling(self) -> bool:
        """Return True if the bounds are close enough to say anything about the weights."""
        return formats.is_telling(self.relative_gap)


def models_of(user: User) -> QuerySet[LearnedModel]:
    """Return the models of the user's organisation, newest first."""
    return owned_by(LearnedModel, user).select_related("job")


def _listed(user: User, *related: str) -> QuerySet[LearnedModel]:
    models = light(owned_by(LearnedModel, user), *related)
    return models.annotate(n_questions=ArrayLength("questions"))


def model_listing(user: User, parameters: Mapping[str, str]) -> Listing[LearnedModel]:
    """Return a page of the models, newest first; each has ``n_questions``."""
    return list_page(_listed(user, "job"), parameters)


def learned_models(user: User) -> QuerySet[LearnedModel]:
    """Return the models that can propose, for a form: newest first, without jobs."""
    return _listed(user).filter(learned_at__isnull=False)


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """One model of a field that chooses one: its key, its name, and what it was learned from."""

    value: str
    name: str
    about: str
    is_simulated: bool

    @property
    def words(self) -> str:
        """The name and what the model was learned from, in one line."""
        return _("%(name)s: %(about)s") % {"name": self.name, "about": self.about}


def model_choices(user: User) -> list[ModelChoice]:
    """Return the models that can propose, newest first."""
    models = learned_models(user).only(
        "name", "is_simulated", "sources", "options", "findings", "checked_name"
    )
    return [
        ModelChoice(str(model.pk), model.name, _about(model), model.is_simulated)
        for model in cast("list[WithAnnotations[LearnedModel, Counted]]", list(models))
    ]


def _about(model: "WithAnnotations[LearnedModel, Counted]") -> str:
    """Return how many pairs and questions a model knows, and how well it did in its check."""
    if model.is_set_by_hand:
        return _("set by hand, not learned")
    if model.is_simulated:
        pairs = ngettext(
            "%(count)s simulated pair", "%(count)s simulated pairs", model.n_pairs
        ) % {"count": f"{model.n_pairs:,}"}  # fmt: skip
    else:
        pairs = formats.counted(model.n_pairs, "pair")
    facts = {"pairs": pairs, "questions": formats.counted(model.n_questions, "question")}
    if not model.is_checked:
        return _("%(pairs)s, %(questions)s, not checked yet") % facts
    auc = formats.number(model.findings["auc"], 2)
    return _("%(pairs)s, %(questions)s, AUC %(auc)s on %(checked_pairs)s") % {
        **facts, "auc": auc, "checked_pairs": model.checked_pairs
    }  # fmt: skip


def learned_since(model: LearnedModel) -> LearnedModel | None:
    """Return the newest model of real pairs that could replace a model set by hand.

    It has no question that ``model`` lacks; None if ``model`` was itself learned.
    """
    if not model.is_set_by_hand:
        return None
    asked = {question["name"] for question in model.questions}
    others = LearnedModel.objects.filter(
        organisation=model.organisation_id, learned_at__isnull=False, is_simulated=False
    )
    for other in others.exclude(options__has_key="importance"):
        if {question["name"] for question in other.questions} <= asked:
            return other
    return None


def compared_weights(model: LearnedModel, other: LearnedModel | None) -> list[dict[str, Any]]:
    """Return the weights of a model, each with that of another model for the same question."""
    known = {row["question"]: row["effect"] for row in other.weights} if other else {}
    return [{**row, "learned": known.get(row["question"])} for row in model.weights]


def model_state(model: LearnedModel) -> ModelState:
    """Return the state of a model, from queued to certified or stopped early."""
    if model.is_set_by_hand:
        return ModelState("set", _("Set by hand"), "warning", "pencil")
    if not model.is_learned:
        return _unlearned(model)
    figures = model.figures
    gap = formats.gap(figures["relative_gap"])
    if not figures["is_certified"]:
        return ModelState(
            "estimate", _("Estimate: %(gap)s from the best fit") % {"gap": gap}, "", "circle-dashed"
        )
    if not figures["is_converged"]:
        if formats.is_telling(figures["relative_gap"]):
            words = _("Stopped early at %(gap)s") % {"gap": gap}
        else:
            words = _("Stopped early before it could tell")
        return ModelState("stopped", words, "warning", "circle-pause")
    return ModelState(
        "certified", _("Certified: within %(gap)s of the best fit") % {"gap": gap}, "accent", _CHECK
    )


_CHECK = "circle-check"


def worth_learning(cohorts: Sequence[Cohort]) -> list[Cohort]:
    """Return cohorts of real pairs, else of simulated ones, without halves of those returned."""
    real = [cohort for cohort in cohorts if not cohort.is_simulated]
    kept = real or list(cohorts)
    return [cohort for cohort in kept if not any(whole in kept for whole in wholes_of(cohort))]


def suggest_sources(cohorts: Sequence[Cohort]) -> tuple[list[str], str]:
    """Return the keys of cohorts to learn from, and of one to check on, out of those with pairs.

    The latest is held out for the check if earlier ones have the same questions: only pairs that
    the model was not trained on show how well it ranks.
    """
    cohorts = worth_learning(cohorts)
    latest = max(cohorts, key=lambda cohort: cohort.created_at, default=None)
    if latest is None:
        return [], ""
    alike = [c for c in cohorts if c.questions == latest.questions and c.pk != latest.pk]
    if not alike:
        return [str(latest.pk)], ""
    return [str(cohort.pk) for cohort in alike], str(latest.pk)


def suggest_check(cohorts: Sequence[Cohort], chosen: Sequence[str]) -> str:
    """Return the key of the latest other cohort that can check the new model; '' if none.

    It has the questions of a chosen cohort, none of its students, and real pairs if that one has.
    """
    sources = [cohort for cohort in cohorts if str(cohort.pk) in chosen]
    others = [c for c in cohorts if any(_can_check(c, source) for source in sources)]
    apart = [c for c in others if not any(share_students(c, source) for source in sources)]
    latest = max(apart, key=lambda cohort: cohort.created_at, default=None)
    return str(latest.pk) if latest else ""


def cohorts_to_check(user: User, model: LearnedModel) -> list[Cohort]:
    """Return the cohorts with pairs that share no student with the model's training cohorts."""
    sources = list(light(model.cohorts.all(), "half_of"))
    past = light(owned_by(Cohort, user).filter(n_pairs__gt=1), "half_of")
    return [c for c in past if not any(share_students(c, source) for source in sources)]


def _can_check(cohort: Cohort, source: Cohort) -> bool:
    return cohort.questions == source.questions and (source.is_simulated or not cohort.is_simulated)


def again_query(model: LearnedModel) -> str:
    """Return the URL query that fills the form for a new model with this model's settings."""
    options = model.options
    fields = {
        "cohort": [source["cohort"] for source in model.sources],
        "check_on": str(model.checked_on_id or ""),
        "name": model.name,
        "ridge": options["ridge"],
        "gap": options["relative_gap"],
        "method": options["method"],
        "rho": options["rho"],
    }
    return urlencode(fields, doseq=True)


def _unlearned(model: LearnedModel) -> ModelState:
    state = model.job.state if model.job else JobState.FAILED
    return {
        JobState.QUEUED: ModelState("queued", _("Waiting to learn"), "", "clock"),
        JobState.RUNNING: ModelState("learning", _("Learning"), "accent", "loader-circle"),
        JobState.CANCELLED: ModelState("cancelled", _("Cancelled"), "", "circle-slash"),
        JobState.FAILED: ModelState("failed", _("Failed"), "danger", "circle-x"),
        JobState.SUCCEEDED: ModelState("learning", _("Finishing"), "accent", "loader-circle"),
    }[JobState(state)]


def certificate_of(model: LearnedModel) -> Certificate:
    """Return the certificate of a learned model."""
    figures = model.figures
    return _certificate(
        figures["relative_gap"],
        figures["target_gap"],
        is_certified=figures["is_certified"],
        is_met=figures["is_converged"] and figures["is_certified"],
    )


def live_certificate_of(model: LearnedModel) -> Certificate | None:
    """Return the current certificate of the running job; None before its first bounds."""
    if model.job is None:
        return None
    last = model.job.trace.filter(relative_gap__isnull=False).order_by("-iteration").first()
    if last is None or last.relative_gap is None:
        return None
    target = model.options["relative_gap"]
    return _certificate(last.relative_gap, target, is_certified=False, is_met=False)


def _certificate(gap: float, target: float, *, is_certified: bool, is_met: bool) -> Certificate:
    depth = max(4.0, -math.log10(target) + 1)

    def place(value: float) -> float:
        return min(1.0, max(0.0, -math.log10(max(value, 1e-16)) / depth))

    return Certificate(
        relative_gap=gap,
        target=target,
        is_certified=is_certified,
        is_met=is_met,
        position=place(gap),
        target_position=place(target),
    )
