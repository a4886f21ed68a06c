"""Image models."""

from typing import Any
from uuid import UUID

from django.http import Http404, HttpResponseBase

from webapp.api.dispatch import page_of, read_field, read_json, read_seed
from webapp.api.endpoints.jobs import PAGING, time_json
from webapp.api.problems import Problem
from webapp.api.registry import Request, endpoint
from webapp.common.selectors import get_owned_or_404
from webapp.segmentation.file_responses import exported, file_response
from webapp.segmentation.models import ImageSet, Segmenter
from webapp.segmentation.selectors.segmenters import segmenter_of, segmenters_of
from webapp.segmentation.services.segmenters import (
    LearningChoices,
    segmenter_delete,
    segmenter_learn,
)

TAG = "Image models"


def segmenter_json(segmenter: Segmenter) -> dict[str, Any]:
    """Return a model as the interface shows it."""
    points = list(segmenter.held_out.all())
    return {
        "id": str(segmenter.pk),
        "name": segmenter.name,
        "foreground": segmenter.foreground,
        "image_sets": [str(one.pk) for one in segmenter.image_sets.all()],
        "images_learned": len(segmenter.learned_digests),
        "images_held_out": len(segmenter.held_out_digests),
        "left_out": segmenter.outcome.get("left_out", []),
        "held_out_error": points[-1].error if points else None,
        "relative_gap": segmenter.outcome.get("relative_gap"),
        "iterations": segmenter.outcome.get("steps"),
        "iterations_on_all_images": segmenter.outcome.get("iterations"),
        "is_ready": segmenter.is_ready,
        "is_certified": bool(segmenter.outcome.get("converged"))
        and segmenter.outcome.get("is_certified", True),
        "job": str(segmenter.job_id) if segmenter.job_id else None,
        "created_at": time_json(segmenter.created_at),
    }


@endpoint(
    "GET", "/image-models", tag=TAG, summary="List models", answer="SegmenterPage", queries=PAGING
)
def list_image_models(request: Request) -> dict[str, Any]:
    """Return the organisation's image models, newest first."""
    found, numbers = page_of(request, segmenters_of(request.user).prefetch_related("held_out"))
    return {"items": [segmenter_json(one) for one in found], **numbers}


@endpoint(
    "POST",
    "/image-models",
    tag=TAG,
    summary="Learn a model",
    description="Queues a job; watch it at /jobs/{job}.",
    body="NewSegmenter",
    answer="Segmenter",
    status=202,
)
def learn_image_model(request: Request) -> dict[str, Any]:
    """Queue the learning of a model from the masked images of some sets."""
    body = read_json(request)
    keys = read_field(body, "image_sets", list)
    if not keys:
        raise Problem(422, "image_sets: choose at least one set.")
    sets = [get_owned_or_404(ImageSet, request.user, key) for key in keys]
    segmenter = segmenter_learn(
        user=request.user,
        name=read_field(body, "name", str, sets[0].name),
        image_sets=sets,
        choices=_choices(body),
        seed=read_seed(body),
    )
    return segmenter_json(segmenter_of(request.user, segmenter.pk))


def _choices(body: dict[str, Any]) -> LearningChoices:
    usual = LearningChoices()
    solver = read_field(body, "solver", str, usual.solver)
    if solver not in Segmenter.Solver.values:
        raise Problem(422, f"solver: expected one of {', '.join(Segmenter.Solver.values)}.")
    return LearningChoices(
        restraint=_within(body, "restraint", float, usual.restraint, 1e-6, 1e6),
        solver=solver,
        max_side=_within(body, "max_side", int, usual.max_side, 40, 400),
        max_seconds=_within(body, "max_seconds", int, usual.max_seconds, 1, 20_000),
        holdout_percent=_within(body, "holdout_percent", int, usual.holdout_percent, 0, 50),
    )


def _within(body: dict[str, Any], name: str, kind: type, usual: Any, low: Any, high: Any) -> Any:
    value = read_field(body, name, kind, usual)
    if not low <= value <= high:
        raise Problem(422, f"{name}: expected {low} to {high}, received {value}.")
    return value


@endpoint("GET", "/image-models/{model_id}", tag=TAG, summary="Look at a model", answer="Segmenter")
def get_image_model(request: Request, model_id: UUID) -> dict[str, Any]:
    """Return one image model."""
    return segmenter_json(segmenter_of(request.user, model_id))


@endpoint("DELETE", "/image-models/{model_id}", tag=TAG, summary="Delete a model", status=204)
def delete_image_model(request: Request, model_id: UUID) -> None:
    """Delete a model and everything it predicted, for good."""
    segmenter_delete(user=request.user, segmenter=segmenter_of(request.user, model_id))


@endpoint(
    "GET",
    "/image-models/{model_id}/file",
    tag=TAG,
    summary="Download a model file",
    description="An NPZ for the command line: python -m engine segment predict --model FILE. "
    "Leaves an audit line.",
    media_type="application/octet-stream",
)
def get_image_model_file(request: Request, model_id: UUID) -> HttpResponseBase:
    """Send the learned weights."""
    segmenter = segmenter_of(request.user, model_id)
    if not segmenter.is_ready:
        raise Http404("This model is not learned yet.")
    response = file_response(
        request,
        segmenter.path,
        media_type="application/octet-stream",
        etag=str(segmenter.pk),
        filename=f"{segmenter.name}.npz",
        attachment=True,
    )
    return exported(request, segmenter, response, format="NPZ")
