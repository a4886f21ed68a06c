"""Services that start, compute and delete predictions."""

import time
from typing import Any

import numpy as np
from django.conf import settings
from django.db import transaction
from django.utils.translation import gettext as _
from numpy.typing import NDArray

from engine import InvalidProblemError, StoppedError, evaluate_mask, predict_segmentation
from engine.datasets import read_image, read_mask
from engine.datasets.masks import match_mask
from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.files import store
from webapp.files.contents import FileStore, full_disk_explained
from webapp.files.quota import with_fresh_count
from webapp.files.storage import keep_array, keep_bytes
from webapp.jobs.models import Job
from webapp.jobs.registry import Piece
from webapp.jobs.services import job_cancel, job_enqueue, job_store
from webapp.segmentation.errors import SegmentationError
from webapp.segmentation.inspection import jpeg_bytes
from webapp.segmentation.measuring import (
    aspect_of,
    classes_of_row,
    intensities,
    measure_row,
    object_options,
)
from webapp.segmentation.models import (
    ImageSet,
    ObjectCorrection,
    PredictedImage,
    PredictionBatch,
    Segmenter,
)
from webapp.segmentation.object_options import ObjectOptions, background_of, edge_of
from webapp.segmentation.rendering import (
    mask_png,
    overlay_picture,
    pack_layers,
    reduced,
)
from webapp.segmentation.selectors.corrections import corrected_area
from webapp.segmentation.services.class_predictions import (
    predict_class_image,
)
from webapp.segmentation.services.object_corrections import (
    carried,
    note_problems,
)
from webapp.segmentation.services.objects import typical_area
from webapp.segmentation.services.probability_maps import check_maps_beside, planes_of_row
from webapp.segmentation.services.removals import (
    contents_release,
    is_large,
    prediction_paths,
    removal_start,
    removed_reason,
)
from webapp.segmentation.services.waiting_images import (
    bytes_to_come,
    predicted_bytes,
    rows_make,
    waiting_count,
)
from webapp.segmentation.uncertainty import reliability_counts

PREVIEW_SIDE = 360  # pixels
PIECE_PIXELS = 50_000_000  # of one piece, if reached before its number of images


@with_fresh_count
def prediction_start(
    *,
    user: User,
    segmenter: Segmenter,
    image_set: ImageSet,
    readout: str = PredictionBatch.Readout.MARGINAL,
) -> PredictionBatch:
    """Queue the prediction of every image of a set.

    Raises
    ------
    SegmentationError, QuotaError
        If the set has no images, or none with the probability map that the model needs, the model
        is not learned yet, or there is no space.
    """
    n_images = image_set.files.images().count()
    if not n_images:
        raise SegmentationError(
            _("%(image_set)s has no images yet. Upload some first.") % {"image_set": image_set.name}
        )
    if not segmenter.is_ready:
        raise SegmentationError(
            _("%(segmenter)s is not learned yet.") % {"segmenter": segmenter.name}
        )
    check_maps_beside(segmenter=segmenter, image_set=image_set)
    learned = set(segmenter.learned_digests)
    with transaction.atomic():
        batch = PredictionBatch.objects.create(
            organisation=user.own_organisation,
            created_by=user,
            name=image_set.name,
            segmenter=segmenter,
            image_set=image_set,
            readout=readout,
            n_unlisted=n_images,
            object_options=ObjectOptions(
                background=background_of(segmenter.classes),
                edge=edge_of(segmenter.classes),
                typical_area=_usual_area(image_set, segmenter),
            ).as_json(),
        )
        rows_make(batch=batch, learned=learned)
        _enqueue(user, batch)
    return batch


def _usual_area(image_set: ImageSet, segmenter: Segmenter) -> float | None:
    """Return the usual pixels of an object: of corrected objects, else of numbered masks."""
    corrected = corrected_area(image_set)
    if corrected is not None:
        return corrected[0]
    return typical_area([image_set, *segmenter.image_sets.all()])


@with_fresh_count
def prediction_go_on(*, user: User, batch: PredictionBatch) -> int:
    """Queue the images that a failed or cancelled job left; return their number.

    Raises
    ------
    SegmentationError, QuotaError
        If no images are left, the batch is being predicted, or there is no space.
    """
    with transaction.atomic():
        batch = PredictionBatch.objects.select_for_update().get(pk=batch.pk)
        left = waiting_count(batch)
        if batch.job is not None and batch.job.is_active:
            raise SegmentationError(_("These images are being predicted already."))
        if not left:
            raise SegmentationError(_("Every image of this prediction is settled."))
        _enqueue(user, batch)
    return left


def _enqueue(user: User, batch: PredictionBatch) -> None:
    batch.job = job_enqueue(
        user=user,
        kind="segmentation.predict",
        parameters={"batch": str(batch.pk)},
        title=f"{batch.name}, {batch.model.name}",
        stores=bytes_to_come(batch),
    )
    batch.save(update_fields=["job"])


def prediction_pieces(batch: PredictionBatch) -> list[Piece]:
    """Divide the remaining images of a batch into pieces of about a minute, in order of names.

    A piece is named by its first and last image. Names are unique in a batch and never change, so
    a piece means the same images on every host.
    """
    waiting = batch.images.waiting().order_by("name")
    n_classes = len(batch.model.classes)
    pieces: list[Piece] = []
    names: list[str] = []
    pixels = stores = 0
    for name, width, height in waiting.values_list("name", "width", "height").iterator():
        is_full = len(names) >= settings.PIECE_IMAGES or pixels + width * height > PIECE_PIXELS
        if names and is_full:
            pieces.append(_piece(batch, names, stores))
            names, pixels, stores = [], 0, 0
        names.append(name)
        pixels += width * height
        stores += predicted_bytes(width, height, n_classes)
    if names:
        pieces.append(_piece(batch, names, stores))
    return pieces


def _piece(batch: PredictionBatch, names: list[str], stores: int) -> Piece:
    return Piece({"batch": str(batch.pk), "first": names[0], "last": names[-1]}, stores)


def predict_image(*, model: Any, row: PredictedImage, job: Job) -> None:
    """Predict one image and store its arrays and figures; a bad file gets a sentence instead.

    ``job`` is the claimed job that reserved space for the files of the image.
    """
    started = time.monotonic()
    contents = FileStore(row.batch.organisation_id)
    try:
        image = read_image(contents.fetch(row.image_digest), name=row.name, view=row.view)
        if row.batch.model.classes:
            with full_disk_explained():
                corrections = carried(row)
                fields = predict_class_image(model, row, image, corrections)
            seconds = time.monotonic() - started
            done = PredictedImage.State.DONE
            _settle(row, job, corrections, state=done, sentence="", seconds=seconds, **fields)
            return
        prediction = predict_segmentation(model, image, planes_of_row(model, row))
        truth, note = _known_mask(contents, row, image.shape[:2])
        with full_disk_explained():
            mask = prediction.read_out(row.batch.readout) == 1
            _write_arrays(row, prediction, mask, truth)
            corrections = carried(row)
            summary = _write_objects(row, contents, prediction, mask, corrections)
            _write_preview(row, image, prediction, mask)
        fields = _fields(prediction, mask, truth, row.batch.readout) | {"shares": summary}
    except InvalidProblemError as error:
        _settle(row, job, [], state=PredictedImage.State.REFUSED, sentence=str(error)[:300])
        return
    _settle(
        row,
        job,
        corrections,
        state=PredictedImage.State.DONE,
        sentence=note,
        seconds=time.monotonic() - started,
        **fields,
    )


def _settle(
    row: PredictedImage, job: Job, corrections: list[ObjectCorrection], **fields: Any
) -> None:
    paths = prediction_paths(row)
    reserved = predicted_bytes(row.width, row.height, len(row.batch.model.classes))
    written = sum(path.stat().st_size for path in paths if path.exists())
    with transaction.atomic():
        job_store(job=job, reserved=reserved, written=written)
        found = PredictedImage.objects.filter(pk=row.pk).update(**fields)
        if found and corrections:
            row.corrections.all().delete()  # of a job that was killed before it could go on
            ObjectCorrection.objects.bulk_create(corrections)
    if not found:
        for path in paths:
            store.remove(path)
        raise StoppedError(_("The prediction was removed meanwhile."))


def _known_mask(
    contents: FileStore, row: PredictedImage, shape: tuple[int, int]
) -> tuple[NDArray[np.bool_] | None, str]:
    """Return the known mask, or None and the reason why it cannot be compared."""
    if not row.mask_digest:
        return None, ""
    try:
        mask = read_mask(
            contents.fetch(row.mask_digest), name=_("The mask of %(name)s") % {"name": row.name}
        )
        return match_mask(mask, shape, name=_("The mask of %(name)s") % {"name": row.name}), ""
    except InvalidProblemError as error:
        return None, str(error)[:300]


def _write_arrays(
    row: PredictedImage,
    prediction: Any,
    mask: NDArray[np.bool_],
    truth: NDArray[np.bool_] | None,
) -> None:
    marginals = np.ascontiguousarray(prediction.marginals, dtype=np.float32)
    keep_array(row.marginals_path, marginals)
    keep_bytes(row.mask_path, mask_png(mask))
    keep_bytes(row.layers_path, pack_layers(marginals, mask, truth))


def _write_objects(
    row: PredictedImage,
    contents: FileStore,
    prediction: Any,
    mask: NDArray[np.bool_],
    corrections: list[ObjectCorrection],
) -> dict[str, Any]:
    """Measure the marked objects with corrections, store their table, and return the counts."""
    grey = intensities(contents.fetch(row.image_digest), row.view, name=row.name)
    classes = classes_of_row(row)
    table, summary, problems = measure_row(
        mask.astype(np.uint8),
        prediction.marginals,
        grey,
        classes,
        object_options(row),
        aspect=aspect_of(row.pixel_size),
        edits=[one.edit for one in corrections],
    )
    note_problems(corrections, problems)
    keep_bytes(row.objects_path, table)
    return summary


def _write_preview(
    row: PredictedImage, image: NDArray[np.uint8], prediction: Any, mask: NDArray[np.bool_]
) -> None:
    step = max(1, -(-max(image.shape[:2]) // PREVIEW_SIDE))
    picture = overlay_picture(
        reduced(image, step), reduced(prediction.marginals, step), reduced(mask, step)
    )
    keep_bytes(row.preview_path, jpeg_bytes(picture, quality=84))


def _fields(
    prediction: Any, mask: NDArray[np.bool_], truth: NDArray[np.bool_] | None, readout: str
) -> dict[str, Any]:
    """Return the figures of one image; those that need a known mask only if there is one."""
    nats = float(prediction.doubt.mean(dtype=np.float64))
    fields: dict[str, Any] = {
        "mean_entropy": nats / float(np.log(2.0)),
        "foreground_share": float(mask.mean()),
    }
    if truth is None:
        return fields
    scores = evaluate_mask(prediction, truth, readout=readout)
    return fields | {
        "error": float((mask != truth).mean()),
        "error_map": float(scores.error_map),
        "error_mpm": float(scores.error_mpm),
        "iou": float(scores.iou),
        "log_loss": float(scores.log_loss),
        "extra_share": float((mask & ~truth).mean()),
        "missed_share": float((~mask & truth).mean()),
        "reliability": reliability_counts(prediction.marginals, truth),
    }


def prediction_delete(*, user: User, batch: PredictionBatch) -> None:
    """Delete a batch and its arrays; images and models stay. A running job is cancelled.

    A large batch disappears at once and a job deletes its data.
    """
    if is_large(batch):
        removal_start(user=user, target=batch)
        return
    rows = list(batch.images.all())
    for row in rows:
        row.batch = batch
    paths = [path for row in rows for path in prediction_paths(row)]
    digests = {row.image_digest for row in rows} | {row.mask_digest for row in rows} - {""}
    with transaction.atomic():
        if batch.job is not None and batch.job.is_active:
            job_cancel(user=user, job=batch.job, reason=removed_reason(batch))
        audit(user, "removed", batch, images=len(rows))
        organisation_id = batch.organisation_id
        batch.delete()
    for path in paths:
        store.remove(path)
    contents_release(organisation_id=organisation_id, digests=digests - {""})
