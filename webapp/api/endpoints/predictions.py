"""Endpoints for predictions of image sets and their files."""

from dataclasses import replace
from typing import Literal
from uuid import UUID

from django.http import Http404, HttpResponseBase, StreamingHttpResponse

from webapp.api.dispatch import page_of, read_body, read_query
from webapp.api.problems import Problem
from webapp.api.registry import Request, endpoint
from webapp.api.shapes import images as shapes
from webapp.api.shapes.base import Page, Paging
from webapp.api.shapes.jobs import Job
from webapp.common.selectors import get_owned_or_404
from webapp.files.file_headers import as_attachment
from webapp.files.file_responses import exported
from webapp.segmentation.exports import batch_archive, require_done
from webapp.segmentation.models import ImageSet, ObjectCorrection, PredictedImage
from webapp.segmentation.object_options import options_of
from webapp.segmentation.selectors.predictions import (
    batch_of,
    batches_of,
    count_images,
    images_in_order,
    predicted_image_of,
)
from webapp.segmentation.selectors.segmenters import segmenter_of
from webapp.segmentation.services.object_corrections import (
    correction_add,
    correction_arguments,
    correction_undo,
    key_of,
)
from webapp.segmentation.services.objects import objects_measure, usual_area
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
    "/predictions/{prediction_id}/objects",
    tag=TAG,
    summary="Look at what counts as an object",
)
def get_object_choices(request: Request, prediction_id: UUID) -> shapes.ObjectChoices:
    """Return the choices by which objects were counted."""
    return shapes.ObjectChoices.of(batch_of(request.user, prediction_id))


@endpoint(
    "POST",
    "/predictions/{prediction_id}/objects",
    tag=TAG,
    summary="Measure objects by other choices",
    description="Queues a job for all images; watch it at /jobs/{job}. Corrections are applied "
    "again.",
    body=shapes.NewObjectChoices,
    status=202,
)
def measure_objects(request: Request, prediction_id: UUID) -> Job:
    """Store what counts as an object, and queue measuring every image."""
    sent = read_body(request, shapes.NewObjectChoices)
    batch = batch_of(request.user, prediction_id)
    classes = batch.model.classes
    options = options_of(batch.object_options, classes)
    if sent.background is not None and not set(sent.background) <= {c["value"] for c in classes}:
        raise Problem(422, "background: expected numbers of the model's classes.")
    if sent.edge is not None and sent.edge not in {c["value"] for c in classes}:
        raise Problem(422, "edge: expected the number of one of the model's classes.")
    chosen = {key: value for key, value in sent.model_dump().items() if value is not None}
    if "background" in chosen:
        chosen["background"] = tuple(chosen["background"])
    chosen["typical_area"] = usual_area(batch, options.typical_area)
    job = objects_measure(user=request.user, batch=batch, options=replace(options, **chosen))
    return Job.model_validate(job)


def _corrected(
    row: PredictedImage, correction: ObjectCorrection, lost: list[str]
) -> shapes.Corrected:
    counts = PredictedImage.objects.values_list("shares", flat=True).get(pk=row.pk)
    return shapes.Corrected(
        correction=shapes.Correction.of(correction),
        objects=sum(one.get("count", 0) for one in counts.values()),
        lost=lost,
    )


def _image_of(request: Request, prediction_id: UUID, image_id: UUID) -> PredictedImage:
    row = predicted_image_of(request.user, prediction_id, image_id)
    require_done(row)
    return row


@endpoint(
    "GET",
    "/predictions/{prediction_id}/images/{image_id}/corrections",
    tag=TAG,
    summary="List corrections of objects",
    query=Paging,
)
def list_corrections(
    request: Request, prediction_id: UUID, image_id: UUID
) -> Page[shapes.Correction]:
    """Return the corrections of the objects of an image, in order."""
    rows = _image_of(request, prediction_id, image_id).corrections.select_related("created_by")
    return page_of(request, rows, shapes.Correction)


@endpoint(
    "POST",
    "/predictions/{prediction_id}/images/{image_id}/corrections",
    tag=TAG,
    summary="Correct objects",
    description="Deletes, joins, splits, renumbers or redraws objects; files and counts follow.",
    body=shapes.NewCorrection,
    status=201,
)
def correct_objects(request: Request, prediction_id: UUID, image_id: UUID) -> shapes.Corrected:
    """Correct objects of an image by one act."""
    sent = read_body(request, shapes.NewCorrection)
    row = _image_of(request, prediction_id, image_id)
    arguments = correction_arguments(sent.model_dump())
    return _corrected(row, correction_add(user=request.user, row=row, **arguments), [])


@endpoint(
    "POST",
    "/predictions/{prediction_id}/images/{image_id}/corrections/undo",
    tag=TAG,
    summary="Undo or redo a correction",
    body=shapes.UndoneCorrection,
)
def undo_correction(request: Request, prediction_id: UUID, image_id: UUID) -> shapes.Corrected:
    """Undo a correction, by default the caller's own last one, or redo it."""
    sent = read_body(request, shapes.UndoneCorrection)
    row = _image_of(request, prediction_id, image_id)
    key = None if sent.id is None else key_of(sent.id)
    return _corrected(row, *correction_undo(user=request.user, row=row, key=key, redo=sent.redo))


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
