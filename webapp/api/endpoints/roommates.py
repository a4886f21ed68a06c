"""Endpoints for cohorts and roommate models."""

from typing import Any
from uuid import UUID

from webapp.api.dispatch import page_of, read_body
from webapp.api.problems import Problem
from webapp.api.registry import Request, endpoint
from webapp.api.shapes import roommates as shapes
from webapp.api.shapes.base import Page, Paging
from webapp.cohorts.models import Cohort
from webapp.cohorts.services.drafts import (
    clean_filename,
    draft_create,
    draft_discard,
    draft_preview,
    pairs_preview,
)
from webapp.cohorts.services.imports import draft_import, pairs_import
from webapp.cohorts.services.latecomers import latecomers_import
from webapp.common.errors import Refusal
from webapp.common.selectors import get_owned_or_404, owned_by
from webapp.matching.models import LearnedModel
from webapp.matching.selectors.models import models_of
from webapp.matching.services.learning import model_learn
from webapp.matching.services.set_models import model_set

TAG = "Roommates"
SURVEY_FILE = {"type": "string", "format": "binary", "description": "CSV or XLSX with a header"}
SHOWN_PROBLEMS = 50


@endpoint("GET", "/cohorts", tag=TAG, summary="List cohorts", query=Paging)
def list_cohorts(request: Request) -> Page[shapes.Cohort]:
    """Return the organisation's cohorts."""
    return page_of(request, owned_by(Cohort, request.user), shapes.Cohort)


@endpoint(
    "POST",
    "/cohorts",
    tag=TAG,
    summary="Import a cohort",
    description="All or nothing. Columns are used as the preview on the page would suggest; what "
    "stands in the way is listed under problems, by row and column.",
    form={"file": SURVEY_FILE, "name": {"type": "string"}},
    required=("file", "name"),
    status=201,
)
def import_cohort(request: Request) -> shapes.Cohort:
    """Create a cohort from a survey file."""
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
    return shapes.Cohort.of(cohort)


@endpoint(
    "GET",
    "/cohorts/{cohort_id}",
    tag=TAG,
    summary="Look at a cohort",
)
def get_cohort(request: Request, cohort_id: UUID) -> shapes.Cohort:
    """Return one cohort."""
    return shapes.Cohort.of(get_owned_or_404(Cohort, request.user, cohort_id))


@endpoint(
    "POST",
    "/cohorts/{cohort_id}/latecomers",
    tag=TAG,
    summary="Add students who come later",
    description="A file whose columns are called as the cohort's questions and rule columns, with "
    "an id column. All or nothing; the new ones wait for a bed in each placement.",
    form={"file": SURVEY_FILE},
    required=("file",),
)
def add_latecomers(request: Request, cohort_id: UUID) -> shapes.Cohort:
    """Add the students of a file after all others of a cohort."""
    cohort = get_owned_or_404(Cohort, request.user, cohort_id)
    upload = request.FILES.get("file")
    if upload is None:
        raise Problem(400, "Send a CSV or XLSX file in the multipart field “file”.")
    latecomers_import(
        user=request.user,
        cohort=cohort,
        size=upload.size or 0,
        read=upload.read,
        filename=clean_filename(upload.name or ""),
    )
    cohort.refresh_from_db()
    return shapes.Cohort.of(cohort)


@endpoint(
    "POST",
    "/cohorts/{cohort_id}/pairs",
    tag=TAG,
    summary="Import the pairs of a past year",
    description="Two id columns. All or nothing.",
    form={"file": SURVEY_FILE},
    required=("file",),
)
def import_pairs(request: Request, cohort_id: UUID) -> shapes.Cohort:
    """Import the known roommates of a cohort."""
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
    return shapes.Cohort.of(cohort)


def _draft(request: Request, cohort: Cohort | None = None) -> Any:
    file = request.FILES.get("file")
    if file is None:
        raise Problem(400, "Send a CSV or XLSX file in the multipart field “file”.")
    return draft_create(
        user=request.user,
        filename=file.name or "",
        size=file.size or 0,
        read=file.read,
        cohort=cohort,
    )


@endpoint(
    "GET",
    "/roommate-models",
    tag=TAG,
    summary="List models",
    query=Paging,
)
def list_roommate_models(request: Request) -> Page[shapes.RoommateModel]:
    """Return the organisation's roommate models, newest first."""
    found = models_of(request.user).prefetch_related("cohorts")
    return page_of(request, found, shapes.RoommateModel)


@endpoint(
    "POST",
    "/roommate-models",
    tag=TAG,
    summary="Learn a model",
    description="Queues a job; watch it at /jobs/{job}.",
    body=shapes.NewRoommateModel,
    status=202,
)
def learn_roommate_model(request: Request) -> shapes.RoommateModel:
    """Queue learning a model from past cohorts with pairs."""
    sent = read_body(request, shapes.NewRoommateModel)
    cohorts = [get_owned_or_404(Cohort, request.user, key) for key in sent.cohorts]
    check_on = get_owned_or_404(Cohort, request.user, sent.check_on) if sent.check_on else None
    model = model_learn(
        user=request.user,
        name=sent.name,
        cohorts=cohorts,
        check_on=check_on,
        ridge=sent.ridge,
        relative_gap=sent.relative_gap,
        rho=sent.rho,
        method=sent.method,
        seed=sent.seed,
    )
    return shapes.RoommateModel.of(model)


@endpoint(
    "POST",
    "/roommate-models/set",
    tag=TAG,
    summary="Set weights by hand",
    description="Before a past year with pairs exists. Questions that are left out do not matter.",
    body=shapes.SetRoommateModel,
    status=201,
)
def set_roommate_model(request: Request) -> shapes.RoommateModel:
    """Create a model from the importance that staff give each question."""
    sent = read_body(request, shapes.SetRoommateModel)
    model = model_set(
        user=request.user,
        name=sent.name,
        cohort=get_owned_or_404(Cohort, request.user, sent.cohort),
        importance=sent.importance,
    )
    return shapes.RoommateModel.of(model)


@endpoint(
    "GET",
    "/roommate-models/{model_id}",
    tag=TAG,
    summary="Look at a model",
)
def get_roommate_model(request: Request, model_id: UUID) -> shapes.RoommateModel:
    """Return one model with its weight for each question."""
    return shapes.RoommateModel.of(get_owned_or_404(LearnedModel, request.user, model_id))
