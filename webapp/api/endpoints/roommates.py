"""Cohorts and models of roommates."""

from typing import Any
from uuid import UUID

from webapp.api.dispatch import page_of, read_field, read_json, read_seed
from webapp.api.endpoints.jobs import PAGING, time_json
from webapp.api.problems import Problem
from webapp.api.registry import Request, endpoint
from webapp.cohorts.models import Cohort
from webapp.cohorts.services.cohorts import draft_import, pairs_import
from webapp.cohorts.services.drafts import (
    draft_create,
    draft_discard,
    draft_preview,
    pairs_preview,
)
from webapp.common.errors import Refusal
from webapp.common.selectors import get_owned_or_404, owned_by
from webapp.matching.models import LearnedModel
from webapp.matching.selectors.models import models_of
from webapp.matching.services.learning import model_learn

TAG = "Roommates"
SURVEY_FILE = {"type": "string", "format": "binary", "description": "CSV or XLSX with a header"}
SHOWN_PROBLEMS = 50


def cohort_json(cohort: Cohort) -> dict[str, Any]:
    """Return a cohort as the interface shows it; never an answer of a student."""
    return {
        "id": str(cohort.pk),
        "name": cohort.name,
        "students": cohort.n_students,
        "pairs": cohort.n_pairs,
        "is_simulated": cohort.is_simulated,
        "questions": [
            {"name": q["name"], "kind": q["kind"], "levels": list(q["levels"])}
            for q in cohort.questions
        ],
        "constraints": [str(name) for name in cohort.constraints],
    }


@endpoint("GET", "/cohorts", tag=TAG, summary="List cohorts", answer="CohortPage", queries=PAGING)
def list_cohorts(request: Request) -> dict[str, Any]:
    """Return the organisation's cohorts."""
    found, numbers = page_of(request, owned_by(Cohort, request.user))
    return {"items": [cohort_json(cohort) for cohort in found], **numbers}


@endpoint(
    "POST",
    "/cohorts",
    tag=TAG,
    summary="Import a cohort",
    description="All or nothing. Columns are used as the preview on the page would suggest; what "
    "stands in the way is listed under problems, by row and column.",
    form={"file": SURVEY_FILE, "name": {"type": "string"}},
    required=("file", "name"),
    answer="Cohort",
    status=201,
)
def import_cohort(request: Request) -> dict[str, Any]:
    """Import a survey."""
    draft = _draft(request)
    try:
        problems = [problem.sentence for problem in draft_preview(draft).errors]
        if problems:
            raise Problem(422, f"{problems[0]} Nothing was imported.", problems[:SHOWN_PROBLEMS])
        name = request.POST.get("name", "")
        cohort = draft_import(user=request.user, draft=draft, name=name, version=draft.version)
    except (Problem, Refusal):
        draft_discard(user=request.user, draft=draft)
        raise
    return cohort_json(cohort)


@endpoint("GET", "/cohorts/{cohort_id}", tag=TAG, summary="Look at a cohort", answer="Cohort")
def get_cohort(request: Request, cohort_id: UUID) -> dict[str, Any]:
    """Return one cohort."""
    return cohort_json(get_owned_or_404(Cohort, request.user, cohort_id))


@endpoint(
    "POST",
    "/cohorts/{cohort_id}/pairs",
    tag=TAG,
    summary="Import the pairs of a past year",
    description="Two id columns. All or nothing.",
    form={"file": SURVEY_FILE},
    required=("file",),
    answer="Cohort",
)
def import_pairs(request: Request, cohort_id: UUID) -> dict[str, Any]:
    """Import who shared a room."""
    cohort = get_owned_or_404(Cohort, request.user, cohort_id)
    draft = _draft(request, cohort)
    try:
        problems = [problem.sentence for problem in pairs_preview(draft).errors]
        if problems:
            raise Problem(422, f"{problems[0]} Nothing was imported.", problems[:SHOWN_PROBLEMS])
        cohort = pairs_import(user=request.user, draft=draft, version=draft.version)
    except (Problem, Refusal):
        draft_discard(user=request.user, draft=draft)
        raise
    return cohort_json(cohort)


def _draft(request: Request, cohort: Cohort | None = None) -> Any:
    file = request.FILES.get("file")
    if file is None:
        raise Problem(400, "Send a CSV or XLSX file in the multipart field “file”.")
    return draft_create(
        user=request.user, filename=file.name, size=file.size, read=file.read, cohort=cohort
    )


def model_json(model: LearnedModel) -> dict[str, Any]:
    """Return a model of choices as the interface shows it."""
    return {
        "id": str(model.pk),
        "name": model.name,
        "cohorts": [str(cohort.pk) for cohort in model.cohorts.all()],
        "is_learned": model.is_learned,
        "is_checked": model.is_checked,
        "is_simulated": model.is_simulated,
        "figures": model.figures,
        "weights": model.weights,
        "job": str(model.job_id) if model.job_id else None,
        "created_at": time_json(model.created_at),
    }


@endpoint(
    "GET",
    "/roommate-models",
    tag=TAG,
    summary="List models",
    answer="RoommateModelPage",
    queries=PAGING,
)
def list_roommate_models(request: Request) -> dict[str, Any]:
    """Return the organisation's models of choices, newest first."""
    found, numbers = page_of(request, models_of(request.user).prefetch_related("cohorts"))
    return {"items": [model_json(model) for model in found], **numbers}


@endpoint(
    "POST",
    "/roommate-models",
    tag=TAG,
    summary="Learn a model",
    description="Queues a job; watch it at /jobs/{job}.",
    body="NewRoommateModel",
    answer="RoommateModel",
    status=202,
)
def learn_roommate_model(request: Request) -> dict[str, Any]:
    """Queue the learning of a model from past cohorts with pairs."""
    body = read_json(request)
    cohorts = [
        get_owned_or_404(Cohort, request.user, key) for key in read_field(body, "cohorts", list)
    ]
    check_on = body.get("check_on")
    model = model_learn(
        user=request.user,
        name=read_field(body, "name", str, ""),
        cohorts=cohorts,
        check_on=get_owned_or_404(Cohort, request.user, check_on) if check_on else None,
        ridge=read_field(body, "ridge", float, 100.0),
        relative_gap=read_field(body, "relative_gap", float, 1e-4),
        rho=read_field(body, "rho", float, 1.0),
        method=read_field(body, "method", str, "auto"),
        seed=read_seed(body),
    )
    return model_json(model)


@endpoint(
    "GET",
    "/roommate-models/{model_id}",
    tag=TAG,
    summary="Look at a model",
    answer="RoommateModel",
)
def get_roommate_model(request: Request, model_id: UUID) -> dict[str, Any]:
    """Return one model with its weights per question."""
    return model_json(get_owned_or_404(LearnedModel, request.user, model_id))
