"""The job that checks a placement: it reads rows and stores figures."""

from typing import Any
from uuid import UUID

from django.utils.translation import gettext as _

from engine import InvalidProblemError
from webapp.housing.errors import HousingError
from webapp.housing.models import Placement
from webapp.housing.problem import placement_problem
from webapp.jobs.context import JobContext
from webapp.jobs.registry import Outcome, Subject, job_kind
from webapp.reports.figures import (
    drift_figures,
    held_out_years,
    pair_scores,
    parity_figures,
    uncertainty_figures,
    veto_figures,
)
from webapp.reports.services import check_store
from webapp.translation.lazy import gettext_lazy, pgettext_lazy

CHECKED = Subject(
    "placement",
    Placement,
    "reports:checks",
    gettext_lazy("Checks"),
    gettext_lazy("Open the checks"),
    gettext_lazy("The checks were removed."),
)


@job_kind("reports.check", verb=pgettext_lazy("title of a job", "Check"), subject=CHECKED)
def check(context: JobContext) -> Outcome:
    """Compute uncertainty, veto, parity and drift of the current rooms."""
    key = UUID(context.parameters["placement"])
    placements = Placement.objects.select_related("cohort", "model", "buildings")
    placement = placements.filter(pk=key).first()
    if placement is None:
        raise HousingError(_("The placement was removed meanwhile."))
    if placement.version != context.parameters["version"]:
        raise HousingError(_("The placement was changed before its check began. Check it again."))
    context.report(_("Reading students, rooms and requests"), 0.0)
    problem = placement_problem(placement)
    weights = problem.scores.model
    scores = weights.scores(problem.survey)
    figures: dict[str, Any] = {"pairs": pair_scores(problem, scores)}
    context.report(_("Comparing groups"), 0.1)
    figures["parity"] = parity_figures(problem, scores, placement.cohort.constraints)
    context.raise_if_stopped()
    context.report(_("Reading past roommates"), 0.2)
    try:
        years = held_out_years(placement.model)
        figures["veto"] = veto_figures(placement.model, weights, years)
    except InvalidProblemError as error:
        figures["veto"] = {"error": str(error)}
    context.raise_if_stopped()
    context.report(_("Drawing placements at random"), 0.3)
    figures["doubt"] = uncertainty_figures(problem, scores, context.rng, context.should_stop)
    context.raise_if_stopped()
    try:
        figures["drift"] = drift_figures(placement.model, context.should_stop, context.on_progress)
    except InvalidProblemError as error:
        figures["drift"] = {"error": str(error)}
    context.raise_if_stopped()

    def save() -> dict[str, Any]:
        check_store(
            placement_id=placement.pk, version=context.parameters["version"], figures=figures
        )
        return {"sentence": _("Uncertainty, vetoes, groups and drift are computed.")}

    return save
