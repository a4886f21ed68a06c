"""Endpoints for image models."""

from uuid import UUID

from django.http import Http404, HttpResponseBase

from webapp.api.dispatch import page_of, read_body
from webapp.api.problems import Problem
from webapp.api.registry import Request, endpoint
from webapp.api.shapes import images as shapes
from webapp.api.shapes.base import Page, Paging
from webapp.common.selectors import get_owned_or_404
from webapp.files.file_responses import exported, file_response
from webapp.segmentation.models import ImageSet
from webapp.segmentation.selectors.segmenters import segmenter_of, segmenters_of
from webapp.segmentation.services.segmenters import (
    LearningChoices,
    segmenter_delete,
    segmenter_learn,
)

TAG = "Image models"


@endpoint("GET", "/image-models", tag=TAG, summary="List models", query=Paging)
def list_image_models(request: Request) -> Page[shapes.Segmenter]:
    """Return the organisation's image models, newest first."""
    found = segmenters_of(request.user).prefetch_related("held_out")
    return page_of(request, found, shapes.Segmenter)


@endpoint(
    "POST",
    "/image-models",
    tag=TAG,
    summary="Learn a model",
    description="Queues a job; watch it at /jobs/{job}.",
    body=shapes.NewSegmenter,
    status=202,
)
def learn_image_model(request: Request) -> shapes.Segmenter:
    """Queue learning a model from the masked images of given image sets."""
    sent = read_body(request, shapes.NewSegmenter)
    if not sent.image_sets:
        raise Problem(422, "image_sets: choose at least one set.")
    sets = [get_owned_or_404(ImageSet, request.user, key) for key in sent.image_sets]
    segmenter = segmenter_learn(
        user=request.user,
        name=sets[0].name if sent.name is None else sent.name,
        image_sets=sets,
        choices=LearningChoices(
            restraint=sent.restraint,
            solver=sent.solver,
            max_side=sent.max_side,
            max_seconds=sent.max_seconds,
            holdout_percent=sent.holdout_percent,
        ),
        seed=sent.seed,
    )
    return shapes.Segmenter.of(segmenter_of(request.user, segmenter.pk))


@endpoint(
    "GET",
    "/image-models/{model_id}",
    tag=TAG,
    summary="Look at a model",
)
def get_image_model(request: Request, model_id: UUID) -> shapes.Segmenter:
    """Return one image model."""
    return shapes.Segmenter.of(segmenter_of(request.user, model_id))


@endpoint("DELETE", "/image-models/{model_id}", tag=TAG, summary="Delete a model", status=204)
def delete_image_model(request: Request, model_id: UUID) -> None:
    """Delete a model and all its predictions, for good."""
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
    """Send a file of the learned weights."""
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
