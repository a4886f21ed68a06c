"""Endpoints for predictions of image sets and their files."""

from typing import Literal
from uuid import UUID

from django.http import Http404, HttpResponseBase, StreamingHttpResponse

from webapp.api.dispatch import page_of, read_body, read_query
from webapp.api.registry import Request, endpoint
from webapp.api.shapes import images as shapes
from webapp.api.shapes.base import Page, Paging
from webapp.common.selectors import get_owned_or_404
from webapp.files.file_headers import as_attachment
from webapp.files.file_responses import exported
from webapp.segmentation.exports import batch_archive
from webapp.segmentation.models import ImageSet
from webapp.segmentation.selectors.predictions import (
    batch_of,
    batches_of,
    count_images,
    images_in_order,
    predicted_image_of,
)
from webapp.segmentation.selectors.segmenters import segmenter_of
from webapp.segmentation.services.predictions import prediction_delete, prediction_start
from webapp.segmentation.views.predicted_images import EXPORTS, exported_file

TAG = "Predictions"
Kind = Literal[
    "mask.png",
    "marginals.npy",
    "overlay.png",
    "labels.tif",
    "objects.csv",
    "objects.xlsx",
    "objects.tif",
    "rois.zip",
    "objects.geojson",
    "seg.npy",
    "coco.json",
]


@endpoint(
    "GET",
    "/predictions",
    tag=TAG,
    summary="List predictions",
    query=Paging,
)
def list_predictions(request: Request) -> Page[shapes.Prediction]:
    """Return the organisation's predictions, newest first."""
    return page_of(request, batches_of(request.user), shapes.Prediction, count_images)


@endpoint(
    "POST",
    "/predictions",
    tag=TAG,
    summary="Predict a set",
    description="Queues a job; watch it at /jobs/{job}.",
    body=shapes.NewPrediction,
    status=202,
)
def start_prediction(request: Request) -> shapes.Prediction:
    """Queue the prediction of every image of an image set."""
    sent = read_body(request, shapes.NewPrediction)
    batch = prediction_start(
        user=request.user,
        image_set=get_owned_or_404(ImageSet, request.user, sent.image_set),
        segmenter=segmenter_of(request.user, sent.model),
        readout=sent.readout,
    )
    return shapes.Prediction.of(batch_of(request.user, batch.pk))


@endpoint(
    "GET",
    "/predictions/{prediction_id}",
    tag=TAG,
    summary="Look at a prediction",
)
def get_prediction(request: Request, prediction_id: UUID) -> shapes.Prediction:
    """Return one prediction with its figures."""
    return shapes.Prediction.of(batch_of(request.user, prediction_id))


@endpoint(
    "DELETE", "/predictions/{prediction_id}", tag=TAG, summary="Delete a prediction", status=204
)
def delete_prediction(request: Request, prediction_id: UUID) -> None:
    """Delete the masks and probabilities of a prediction; images and model stay."""
    prediction_delete(user=request.user, batch=batch_of(request.user, prediction_id))


@endpoint(
    "GET",
    "/predictions/{prediction_id}/images",
    tag=TAG,
    summary="List images with their numbers",
    query=shapes.ImageQuery,
)
def list_predicted_images(request: Request, prediction_id: UUID) -> Page[shapes.PredictedImage]:
    """Return the images of a prediction."""
    batch = batch_of(request.user, prediction_id)
    order = read_query(request, shapes.ImageQuery).order
    return page_of(request, images_in_order(batch, order), shapes.PredictedImage)


@endpoint(
    "GET",
    "/predictions/{prediction_id}/images/{image_id}/{kind}",
    tag=TAG,
    summary="Download mask, probabilities, overlay or objects",
    description="kind is mask.png (0 and 255), marginals.npy (float32, height by width), "
    "overlay.png, labels.tif (numbers of classes), objects.csv or objects.xlsx (a line for each "
    "object), objects.tif (the number of the object at every pixel), rois.zip (ImageJ), "
    "objects.geojson (QuPath), seg.npy (Cellpose) or coco.json. Leaves an audit line.",
    media_type="application/octet-stream",
)
def get_predicted_file(
    request: Request, prediction_id: UUID, image_id: UUID, kind: Kind
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
    """Send a ZIP of the whole prediction."""
    batch = batch_of(request.user, prediction_id)
    response = StreamingHttpResponse(batch_archive(batch), content_type="application/zip")
    exported(request, batch, response, images=batch.n_done, format="ZIP")
    return as_attachment(response, f"{batch.name}.zip")
