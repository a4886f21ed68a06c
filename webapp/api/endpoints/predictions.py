"""Predictions of image sets and their files."""

from typing import Any
from uuid import UUID

from django.http import Http404, HttpResponseBase, StreamingHttpResponse

from webapp.api.dispatch import page_of, read_field, read_json
from webapp.api.endpoints.jobs import PAGING, time_json
from webapp.api.problems import Problem
from webapp.api.registry import Query, Request, endpoint
from webapp.common.file_headers import as_attachment
from webapp.common.selectors import get_owned_or_404
from webapp.segmentation.exports import batch_archive
from webapp.segmentation.file_responses import exported
from webapp.segmentation.models import ImageSet, PredictedImage, PredictionBatch
from webapp.segmentation.selectors.predictions import (
    batch_numbers,
    batch_of,
    batches_of,
    count_images,
    images_in_order,
    predicted_image_of,
)
from webapp.segmentation.selectors.segmenters import segmenter_of
from webapp.segmentation.services.predictions import prediction_delete, prediction_start
from webapp.segmentation.uncertainty import Interval
from webapp.segmentation.views.predicted_images import EXPORTS, exported_file

TAG = "Predictions"


def prediction_json(batch: PredictionBatch) -> dict[str, Any]:
    """Return a counted batch with its numbers as the interface shows it."""
    numbers = batch_numbers(batch)
    return {
        "id": str(batch.pk),
        "name": batch.name,
        "image_set": str(batch.image_set_id),
        "model": str(batch.segmenter_id),
        "images": batch.n_images,
        "done": batch.n_done,
        "refused": batch.n_refused,
        "job": str(batch.job_id) if batch.job_id else None,
        "accuracy": interval_json(numbers.accuracy) if numbers else None,
        "iou": interval_json(numbers.iou) if numbers else None,
        "log_loss": interval_json(numbers.log_loss) if numbers else None,
        "created_at": time_json(batch.created_at),
    }


def interval_json(interval: Interval) -> dict[str, Any]:
    """Return a mean with its 95 % range."""
    return {
        "mean": interval.mean,
        "low": interval.low,
        "high": interval.high,
        "images": interval.n_images,
    }


def predicted_image_json(row: PredictedImage) -> dict[str, Any]:
    """Return a predicted image as the interface shows it."""
    numbers = (
        "width",
        "height",
        "learned_from",
        "accuracy",
        "iou",
        "log_loss",
        "error_map",
        "error_mpm",
        "mean_entropy",
        "foreground_share",
    )
    return {
        "id": str(row.pk),
        "name": row.name,
        "state": row.state,
        "sentence": row.sentence,
        **{name: getattr(row, name) for name in numbers},
    }


@endpoint(
    "GET",
    "/predictions",
    tag=TAG,
    summary="List predictions",
    answer="PredictionPage",
    queries=PAGING,
)
def list_predictions(request: Request) -> dict[str, Any]:
    """Return the organisation's predictions, newest first."""
    found, numbers = page_of(request, batches_of(request.user))
    count_images(found)
    return {"items": [prediction_json(batch) for batch in found], **numbers}


def _readout(body: dict[str, Any]) -> str:
    """How masks are read out: by the larger marginal unless the caller says "map"."""
    wanted = read_field(body, "readout", str, PredictionBatch.Readout.MARGINAL)
    if wanted not in PredictionBatch.Readout.values:
        names = ", ".join(PredictionBatch.Readout.values)
        raise Problem(422, f"readout: expected one of {names}.")
    return wanted


@endpoint(
    "POST",
    "/predictions",
    tag=TAG,
    summary="Predict a set",
    description="Queues a job; watch it at /jobs/{job}.",
    body="NewPrediction",
    answer="Prediction",
    status=202,
)
def start_prediction(request: Request) -> dict[str, Any]:
    """Queue the prediction of every image of a set."""
    body = read_json(request)
    batch = prediction_start(
        user=request.user,
        image_set=get_owned_or_404(ImageSet, request.user, read_field(body, "image_set", str)),
        segmenter=segmenter_of(request.user, read_field(body, "model", str)),
        readout=_readout(body),
    )
    return prediction_json(batch_of(request.user, batch.pk))


@endpoint(
    "GET",
    "/predictions/{prediction_id}",
    tag=TAG,
    summary="Look at a prediction",
    answer="Prediction",
)
def get_prediction(request: Request, prediction_id: UUID) -> dict[str, Any]:
    """Return one prediction with its numbers."""
    return prediction_json(batch_of(request.user, prediction_id))


@endpoint(
    "DELETE", "/predictions/{prediction_id}", tag=TAG, summary="Delete a prediction", status=204
)
def delete_prediction(request: Request, prediction_id: UUID) -> None:
    """Delete masks and probabilities; images and model stay."""
    prediction_delete(user=request.user, batch=batch_of(request.user, prediction_id))


@endpoint(
    "GET",
    "/predictions/{prediction_id}/images",
    tag=TAG,
    summary="List images with their numbers",
    answer="PredictedImagePage",
    queries=(*PAGING, Query("order", "worst (default), best, entropy or name")),
)
def list_predicted_images(request: Request, prediction_id: UUID) -> dict[str, Any]:
    """Return the images of a prediction."""
    batch = batch_of(request.user, prediction_id)
    found, numbers = page_of(request, images_in_order(batch, request.GET.get("order", "worst")))
    return {"items": [predicted_image_json(row) for row in found], **numbers}


@endpoint(
    "GET",
    "/predictions/{prediction_id}/images/{image_id}/{kind}",
    tag=TAG,
    summary="Download mask, probabilities or overlay",
    description="kind is mask.png (0 and 255), marginals.npy (float32, height by width) or "
    "overlay.png. Leaves an audit line.",
    media_type="application/octet-stream",
)
def get_predicted_file(
    request: Request, prediction_id: UUID, image_id: UUID, kind: str
) -> HttpResponseBase:
    """Send one file of a predicted image."""
    row = predicted_image_of(request.user, prediction_id, image_id)
    if kind not in EXPORTS:
        raise Http404("There is no such file.")
    return exported_file(request, row, kind)


@endpoint(
    "GET",
    "/predictions/{prediction_id}/archive",
    tag=TAG,
    summary="Download everything as a ZIP",
    description="Made while it is sent: masks, probabilities and numbers.csv. Leaves an audit "
    "line.",
    media_type="application/zip",
)
def get_prediction_archive(request: Request, prediction_id: UUID) -> HttpResponseBase:
    """Send a ZIP of the whole batch."""
    batch = batch_of(request.user, prediction_id)
    response = StreamingHttpResponse(batch_archive(batch), content_type="application/zip")
    exported(request, batch, response, images=batch.n_done, format="ZIP")
    return as_attachment(response, f"{batch.name}.zip")
