"""Services that start learning and checking a model; they create rows, jobs do the work."""

from collections.abc import Iterable, Sequence
from typing import Any

from django.db import transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _

from engine import InvalidProblemError
from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.cohorts.models import Cohort
from webapp.cohorts.selectors.cohorts import share_students
from webapp.cohorts.selectors.surveys import cohort_survey, common_questionnaire, questionnaire_of
from webapp.common.formats import counted
from webapp.files.quota import with_fresh_count
from webapp.jobs.models import JobState
from webapp.jobs.services import job_cancel, job_enqueue
from webapp.matching.errors import MatchingError
from webapp.matching.models import LearnedModel
from webapp.translation.lazy import gettext_lazy

METHODS = {  # the engine's solvers, by their names in words
    "auto": gettext_lazy("Chosen automatically"),
    "theta": gettext_lazy("Ascent in the weights"),
    "frank-wolfe": gettext_lazy("Frank-Wolfe"),
    "block-coordinate": gettext_lazy("Block-coordinate Frank-Wolfe"),
    "fully-corrective": gettext_lazy("Fully corrective Frank-Wolfe"),
}
RIDGES = (10.0, 100.0, 1000.0)
GAPS = (1e-3, 1e-4, 1e-6)
MODEL_BYTES = 1_000_000  # upper bound for a few hundred weights and their names


def check_learning(cohorts: Sequence[Cohort]) -> list[dict[str, Any]]:
    """Return the questions that would be learned; raise MatchingError with one sentence."""
    if not cohorts:
        raise MatchingError(_("Choose at least one cohort with pairs."), "cohort")
    for cohort in cohorts:
        if cohort.n_pairs < 2:
            pairs = counted(cohort.n_pairs, "pair")
            raise MatchingError(
                _("%(cohort)s has %(pairs)s; at least 2 are needed.")
                % {"cohort": cohort.name, "pairs": pairs}
            )
    try:
        questionnaire = common_questionnaire(cohorts)
    except InvalidProblemError as error:
        raise MatchingError(str(error)) from error
    return [
        {"name": q.name, "kind": q.kind, "levels": list(q.levels)} for q in questionnaire.questions
    ]


@with_fresh_count
@transaction.atomic
def model_learn(
    *,
    user: User,
    name: str,
    cohorts: Sequence[Cohort],
    check_on: Cohort | None = None,
    ridge: float = 100.0,
    relative_gap: float = 1e-4,
    rho: float = 1.0,
    method: str = "auto",
    seed: int | None = None,
) -> LearnedModel:
    """Create a model and queue the job that learns it.

    Raises MatchingError with one sentence if the cohorts or settings do not allow it.
    """
    cohorts = list(dict.fromkeys(cohorts))
    name = " ".join(name.split())[:120] or " + ".join(cohort.name for cohort in cohorts)[:120]
    questions = check_learning(cohorts)
    _check_options(ridge, relative_gap, rho, method)
    if check_on is not None:
        _check_checkable(check_on, questions, cohorts)
    model = LearnedModel.objects.create(
        organisation=user.own_organisation,
        created_by=user,
        name=name,
        questions=questions,
        sources=[
            {
                "cohort": str(cohort.pk),
                "name": cohort.name,
                "students": cohort.n_students,
                "pairs": cohort.n_pairs,
                "simulated": cohort.is_simulated,
            }
            for cohort in cohorts
        ],
        options={"ridge": ridge, "relative_gap": relative_gap, "rho": rho, "method": method},
        is_simulated=any(cohort.is_simulated for cohort in cohorts),
        checked_on=check_on,
    )
    model.cohorts.set(cohorts)
    model.job = job_enqueue(
        user=user,
        kind="roommates.learn",
        parameters={"model": str(model.pk), "relative_gap": relative_gap},
        title=name,
        seed=seed,
        stores=MODEL_BYTES,
    )
    model.save(update_fields=["job"])
    audit(user, "started learning", model, cohorts=[cohort.name for cohort in cohorts])
    return model


def _check_checkable(
    cohort: Cohort, questions: Sequence[dict[str, Any]], learned_from: Iterable[Cohort]
) -> None:
    """Refuse a cohort with other questions than the model, or one that it was trained on."""
    for source in learned_from:
        if cohort == source:
            raise MatchingError(
                _("%(cohort)s cannot check the model, which learns from it.")
                % {"cohort": cohort.name},
                "check_on",
            )
        if share_students(cohort, source):
            raise MatchingError(
                _(
                    "%(cohort)s cannot check the model: it shares students with %(source)s, "
                    "which the model learns from."
                )
                % {"cohort": cohort.name, "source": source.name}
            )
    if cohort.n_pairs < 2:
        pairs = counted(cohort.n_pairs, "pair")
        raise MatchingError(
            _("%(cohort)s has %(pairs)s; at least 2 are needed to check.")
            % {"cohort": cohort.name, "pairs": pairs}
        )
    try:
        cohort_survey(cohort, questionnaire_of(questions))
    except InvalidProblemError as error:
        raise MatchingError(str(error)) from error


def _check_options(ridge: float, relative_gap: float, rho: float, method: str) -> None:
    if not 1e-6 <= ridge <= 1e9:
        raise MatchingError(_("The restraint must be a number above 0."), "ridge")
    if not 1e-9 <= relative_gap <= 0.5:
        raise MatchingError(_("The exactness must lie between 0.0000001 % and 50 %."), "gap")
    if not 0.0 <= rho <= 1.0:
        raise MatchingError(_("The reweighting must lie between 0 and 1."), "rho")
    if method not in METHODS:
        raise MatchingError(
            _("The method must be one of %(methods)s.") % {"methods": ", ".join(METHODS)}, "method"
        )


@transaction.atomic
def model_check(*, user: User, model: LearnedModel, cohort: Cohort) -> None:
    """Queue the comparison of a model with the pairs of a held-out cohort.

    One at a time: of two, the model would keep the figures of the one that ends last.
    """
    found = LearnedModel.objects.select_for_update().filter(pk=model.pk).first()
    if found is None or not found.is_learned:
        raise MatchingError(_("The model is not learned yet."))
    if found.check_job is not None and found.check_job.is_active:
        raise MatchingError(_("The model is being checked. Wait for that, or cancel it first."))
    _check_checkable(cohort, model.questions, model.cohorts.all())
    model.check_job = job_enqueue(
        user=user,
        kind="roommates.check",
        parameters={"model": str(model.pk), "cohort": str(cohort.pk)},
        title=f"{model.name}, {cohort.name}",
    )
    model.save(update_fields=["check_job"])
    audit(user, "started checking", model, cohort=cohort.name)


@transaction.atomic
def model_stop(*, user: User, model: LearnedModel) -> None:
    """Stop learning and keep the weights so far, with their gap."""
    is_running = Q(job__state=JobState.RUNNING, learned_at=None)
    asked = LearnedModel.objects.filter(is_running, pk=model.pk, stop_asked_at=None)
    if not asked.update(stop_asked_at=timezone.now()):
        raise MatchingError(_("The model is not being learned, so there is nothing to stop."))
    audit(user, "stopped learning", model)


@transaction.atomic
def model_estimate(*, user: User, model: LearnedModel) -> None:
    """Queue the intervals of a learned model's weights, for which learning does not wait."""
    found = LearnedModel.objects.select_for_update().filter(pk=model.pk).first()
    if found is None or not found.is_learned or found.is_set_by_hand:
        raise MatchingError(_("The model was not learned from choices."))
    if found.intervals_job is not None and found.intervals_job.is_active:
        raise MatchingError(_("Its confidence intervals are being computed."))
    found.intervals_job = job_enqueue(
        user=user,
        kind="roommates.intervals",
        parameters={"model": str(found.pk)},
        title=found.name,
    )
    found.save(update_fields=["intervals_job"])


@transaction.atomic
def model_rename(*, user: User, model: LearnedModel, name: str) -> None:
    """Change the name of a model."""
    name = " ".join(name.split())[:120]
    if not name:
        raise MatchingError(_("The model needs a name."))
    audit(user, "renamed", model, to=name)
    LearnedModel.objects.filter(pk=model.pk).update(name=name)


def model_delete(*, user: User, model: LearnedModel, typed_name: str) -> None:
    """Delete a model if its name was typed and no placement needs it.

    Its running jobs are cancelled.
    """
    if typed_name.strip() != model.name:
        raise MatchingError(_("The name does not match. Nothing was removed."))
    if model.placements.exists():
        placement = model.placements.first()
        raise MatchingError(
            _("%(placement)s was placed by this model. Nothing was removed.")
            % {"placement": placement}
        )
    with transaction.atomic():
        for job in (model.job, model.check_job, model.intervals_job):
            if job is not None and job.is_active:
                reason = _("The model “%(name)s” was removed.") % {"name": model.name}
                job_cancel(user=user, job=job, reason=reason)
        audit(user, "removed", model)
        model.delete()
