"""Prediction of classes: label maps, probabilities of every class, and the viewer's layers."""

import gzip
import json
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from engine import predict_segmentation
from engine.metrics import confusion
from webapp.files.contents import FileStore
from webapp.files.storage import keep_array, keep_bytes
from webapp.segmentation.inspection import jpeg_bytes
from webapp.segmentation.measuring import (
    aspect_of,
    intensities,
    measure_row,
    object_options,
)
from webapp.segmentation.models import ObjectCorrection, PredictedImage
from webapp.segmentation.painting.raster import live_factor
from webapp.segmentation.rendering import png_bytes, reduced
from webapp.segmentation.services.known_labels import known_labels
from webapp.segmentation.services.object_corrections import note_problems
from webapp.segmentation.services.probability_maps import planes_of_row
from webapp.segmentation.uncertainty import reliability_counts

PREVIEW_SIDE = 360
MOST_PLANES = 8
GZIP_LEVEL = 4
LEAST_PROBABILITY = 1e-7


def predict_class_image(
    model: Any,
    row: PredictedImage,
    image: NDArray[np.uint8],
    corrections: list[ObjectCorrection],
) -> dict[str, Any]:
    """Predict one image, write its arrays, and return the row's fields."""
    classes = row.batch.model.classes
    wants_best = row.batch.readout == "map"
    prediction = predict_segmentation(model, image, planes_of_row(model, row), with_best=wants_best)
    labels = prediction.read_out(row.batch.readout)
    truth = known_labels(row.file, classes)
    if truth is not None and truth.shape != labels.shape:
        truth = None  # a file of another size has replaced it since it was painted
    values = np.array([one["value"] for one in classes], dtype=np.uint8)[labels]
    keep_bytes(row.mask_path, label_png(values, classes))
    keep_array(row.marginals_path, prediction.probabilities.astype(np.float16))
    keep_bytes(row.layers_path, pack_classes(labels, prediction.probabilities, classes, truth))
    step = max(1, -(-max(image.shape[:2]) // PREVIEW_SIDE))
    preview = class_overlay(reduced(image, step), reduced(values, step), classes)
    keep_bytes(row.preview_path, jpeg_bytes(preview, quality=84))
    path = FileStore(row.batch.organisation_id).fetch(row.image_digest)
    grey = intensities(path, row.view, name=row.name)
    table, summary, problems = measure_row(
        values,
        prediction.probabilities,
        grey,
        classes,
        object_options(row),
        aspect=aspect_of(row.pixel_size),
        edits=[one.edit for one in corrections],
    )
    note_problems(corrections, problems)
    keep_bytes(row.objects_path, table)
    return {
        "mean_entropy": float(prediction.doubt.mean(dtype=np.float64) / np.log(2.0)),
        "foreground_share": summary[str(classes[0]["value"])]["share"],
        "shares": summary,
    } | ({} if truth is None else compared(prediction, labels, truth))


def compared(
    prediction: Any, labels: NDArray[np.uint8], truth: NDArray[np.uint8]
) -> dict[str, Any]:
    """Return the figures that need known labels, over the pixels with a known label."""
    n_classes = len(prediction.classes)
    counts = confusion(labels, truth, n_classes)
    known = truth < n_classes
    given, sides = truth[known].astype(np.intp), prediction.probabilities[known]
    own = np.take_along_axis(sides, given[:, np.newaxis], axis=1)[:, 0]
    is_right = sides.argmax(axis=1) == given
    best = prediction.best
    return {
        "error": counts.error,
        "error_map": None if best is None else confusion(best.labels, truth, n_classes).error,
        "error_mpm": float(1.0 - is_right.mean()),
        "iou": counts.mean_overlap,
        "log_loss": float(-np.log(np.maximum(own, LEAST_PROBABILITY)).mean(dtype=np.float64)),
        "reliability": reliability_counts(sides.max(axis=1)[np.newaxis], is_right[np.newaxis]),
        "confusion": counts.counts.tolist(),
    }


def class_bytes_per_pixel(n_classes: int) -> int:
    """Return the maximum bytes per pixel of a predicted image's files."""
    return 2 * n_classes + min(n_classes, MOST_PLANES) + 4


def palette(classes: list[dict[str, Any]]) -> NDArray[np.uint8]:
    """Return the colour of every number, shape (256, 3); black without a class."""
    colours = np.zeros((256, 3), dtype=np.uint8)
    for one in classes:
        colours[one["value"]] = list(bytes.fromhex(one["colour"].removeprefix("#")))
    return colours


def label_png(values: NDArray[np.uint8], classes: list[dict[str, Any]]) -> bytes:
    """Return a map of numbers as PNG with a palette of the classes' colours."""
    picture = Image.frombytes("P", values.shape[::-1], np.ascontiguousarray(values).tobytes())
    picture.putpalette(palette(classes).tobytes())
    return png_bytes(picture)


def class_overlay(
    image: NDArray[np.uint8], values: NDArray[np.uint8], classes: list[dict[str, Any]]
) -> Image.Image:
    """Return the image under half-transparent colours of its classes."""
    return Image.fromarray(image // 2 + palette(classes)[values] // 2)


def pack_classes(
    labels: NDArray[np.uint8],
    probabilities: NDArray[np.float32],
    classes: list[dict[str, Any]],
    truth: NDArray[np.uint8] | None = None,
) -> bytes:
    """Return the viewer's data of classes: a JSON header, labels, probabilities, truth."""
    factor = live_factor(labels.shape[1], labels.shape[0])
    small, shown = reduced(labels, factor), reduced(probabilities, factor)
    has_all = len(classes) <= MOST_PLANES
    planes = np.moveaxis(shown, 2, 0) if has_all else shown.max(axis=2)[np.newaxis]
    header = {
        "width": small.shape[1],
        "height": small.shape[0],
        "factor": factor,
        "values": [one["value"] for one in classes],
        "planes": len(planes),
        "hasTruth": truth is not None,
    }
    head = json.dumps(header).encode()
    parts = [len(head).to_bytes(4, "little"), head, np.ascontiguousarray(small).tobytes()]
    parts += [np.rint(255 * plane).astype(np.uint8).tobytes() for plane in planes]
    if truth is not None:
        parts.append(np.ascontiguousarray(reduced(truth, factor)).tobytes())
    return gzip.compress(b"".join(parts), GZIP_LEVEL, mtime=0)
