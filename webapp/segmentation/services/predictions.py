"""Predicting sets and correcting masks."""

import io
import time
from pathlib import Path
from typing import Any

import numpy as np
from django.db import transaction
from numpy.typing import NDArray

from engine import (
    InvalidProblemError,
    StoppedError,
    evaluate_mask,
    match_mask,
    predict_segmentation,
    read_image,
    read_mask,
)
from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.common.quota import with_fresh_count
from webapp.common.storage import remove_path
from webapp.jobs.models import Job
from webapp.jobs.services import job_cancel, job_enqueue, job_store
from webapp.segmentation.errors import SegmentationError
from webapp.segmentation.inspection import jpeg_bytes
from webapp.segmentation.models import (
    ImageFile,
    ImageSet,
    PredictedImage,
    PredictionBatch,
    Segmenter,
)
from webapp.segmentation.rendering import (
    mask_png,
    overlay_picture,
    pack_layers,
    reduced,
)
from webapp.segmentation.services.image_sets import (
    contents_release,
    prediction_paths,
)
from webapp.segmentation.store import FileStore, full_disk_explained
from webapp.segmentation.uncertainty import reliability_counts

PREVIEW_SIDE = 360  # pixels
BYTES_PER_PIXEL = 5  # 4 of the marginals; mask and layers are smooth and shrink to less than one
BYTES_PER_IMAGE = 150_000  # preview, headers, and the layers of images too small to be smooth


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
        If the set has no images, the model is not learned yet, or there is no room.
    """
    images = list(image_set.files.filter(role=ImageFile.Role.IMAGE).select_related("mask"))
    if not images:
        raise SegmentationError(f"{image_set.name} has no images yet. Upload some first.")
    if not segmenter.is_ready:
        raise SegmentationError(f"{segmenter.name} is not learned yet.")
    learned = set(segmenter.learned_digests)
    with transaction.atomic():
        batch = PredictionBatch.objects.create(
            organisation=user.organisation,
            created_by=user,
            name=image_set.name,
            segmenter=segmenter,
            image_set=image_set,
            readout=readout,
        )
        PredictedImage.objects.bulk_create([_waiting(batch, file, learned) for file in images])
        _enqueue(user, batch)
    return batch


@with_fresh_count
def prediction_go_on(*, user: User, batch: PredictionBatch) -> int:
    """Queue the images that a failed or cancelled job left; return how many.

    Raises
    ------
    SegmentationError, QuotaError
        If nothing is left, the batch is being predicted, or there is no room.
    """
    with transaction.atomic():
        batch = PredictionBatch.objects.select_for_update().get(pk=batch.pk)
        left = batch.images.filter(state=PredictedImage.State.WAITING).count()
        if batch.job is not None and batch.job.is_active:
            raise SegmentationError("These images are being predicted already.")
        if not left:
            raise SegmentationError("Every image of this prediction is settled.")
        _enqueue(user, batch)
    return left


def _enqueue(user: User, batch: PredictionBatch) -> None:
    waiting = batch.images.filter(state=PredictedImage.State.WAITING)
    batch.job = job_enqueue(
        user=user,
        kind="segmentation.predict",
        parameters={"batch": str(batch.pk)},
        title=f"{batch.name} by {batch.segmenter.name}",
        stores=sum(predicted_bytes(*size) for size in waiting.values_list("width", "height")),
    )
    batch.save(update_fields=["job"])


def predicted_bytes(width: int, height: int) -> int:
    """Return what the files of one predicted image take at most, unless it is mere noise."""
    return BYTES_PER_PIXEL * width * height + BYTES_PER_IMAGE


def _waiting(batch: PredictionBatch, file: ImageFile, learned: set[str]) -> PredictedImage:
    return PredictedImage(
        batch=batch,
        file=file,
        name=file.name,
        image_digest=file.digest,
        mask_digest=file.paired_mask.digest if file.paired_mask else "",
        width=file.width,
        height=file.height,
        learned_from=file.digest in learned,
    )


def predict_image(*, model: Any, row: PredictedImage, job: Job) -> None:
    """Predict one image and keep its arrays and numbers; a bad file gets a sentence instead.

    ``job`` is the claimed one that reserved room for the files of the image.
    """
    started = time.monotonic()
    store = FileStore(row.batch.organisation_id)
    try:
        image = read_image(store.path(row.image_digest), name=row.name)
        prediction = predict_segmentation(model, image)
        truth, note = _known_mask(store, row, image.shape[:2])
        with full_disk_explained():
            mask = prediction.read_out(row.batch.readout)
            _write_arrays(row, prediction, mask, truth)
            _write_preview(row, image, prediction, mask)
        fields = _fields(prediction, mask, truth, row.batch.readout)
    except InvalidProblemError as error:
        _settle(row, job, state=PredictedImage.State.REFUSED, sentence=str(error)[:300])
        return
    _settle(
        row,
        job,
        state=PredictedImage.State.DONE,
        sentence=note,
        seconds=time.monotonic() - started,
        **fields,
    )


def _settle(row: PredictedImage, job: Job, **fields: Any) -> None:
    paths = prediction_paths(row)
    reserved = predicted_bytes(row.width, row.height)
    written = sum(path.stat().st_size for path in paths if path.exists())
    with transaction.atomic():
        job_store(job=job, reserved=reserved, written=written)
        found = PredictedImage.objects.filter(pk=row.pk).update(**fields)
    if not found:
        for path in paths:
            remove_path(path)
        raise StoppedError("The prediction was removed meanwhile.")


def _known_mask(
    store: FileStore, row: PredictedImage, shape: tuple[int, int]
) -> tuple[NDArray[np.bool_] | None, str]:
    """Return the known mask, or None and why it cannot be compared with."""
    if not row.mask_digest:
        return None, ""
    try:
        mask = read_mask(store.path(row.mask_digest), name=f"The mask of {row.name}")
        return match_mask(mask, shape, name=f"The mask of {row.name}"), ""
    except InvalidProblemError as error:
        return None, str(error)[:300]


def _write_arrays(
    row: PredictedImage,
    prediction: Any,
    mask: NDArray[np.bool_],
    truth: NDArray[np.bool_] | None,
) -> None:
    marginals = np.ascontiguousarray(prediction.marginals, dtype=np.float32)
    buffer = io.BytesIO()
    np.save(buffer, marginals, allow_pickle=False)
    replace_file(row.marginals_path, buffer.getbuffer())
    replace_file(row.mask_path, mask_png(mask))
    replace_file(row.layers_path, pack_layers(marginals, mask, truth))


def _write_preview(
    row: PredictedImage, image: NDArray[np.uint8], prediction: Any, mask: NDArray[np.bool_]
) -> None:
    step = max(1, -(-max(image.shape[:2]) // PREVIEW_SIDE))
    picture = overlay_picture(
        reduced(image, step), reduced(prediction.marginals, step), reduced(mask, step)
    )
    replace_file(row.preview_path, jpeg_bytes(picture, quality=84))


def replace_file(path: Path, content: bytes | memoryview) -> None:
    """Write a file whole or not at all."""
    part = path.with_suffix(path.suffix + ".part")
    try:
        part.write_bytes(content)
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def _fields(
    prediction: Any, mask: NDArray[np.bool_], truth: NDArray[np.bool_] | None, readout: str
) -> dict[str, Any]:
    """The numbers of one image; the ones that need a known mask only with it."""
    nats = float(prediction.entropy.mean(dtype=np.float64))
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
    """Delete a batch and its arrays; images and models stay. A running job is cancelled."""
    rows = list(batch.images.all())
    for row in rows:
        row.batch = batch
    paths = [path for row in rows for path in prediction_paths(row)]
    digests = {row.image_digest for row in rows} | {row.mask_digest for row in rows} - {""}
    with transaction.atomic():
        if batch.job is not None and batch.job.is_active:
            job_cancel(user=user, job=batch.job)
        audit(user, "removed", batch, images=len(rows))
        organisation_id = batch.organisation_id
        batch.delete()
    for path in paths:
        remove_path(path)
    contents_release(organisation_id=organisation_id, digests=digests - {""})
