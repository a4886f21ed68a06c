"""Exports of segmentation: masks, probabilities, overlays, tables, whole predictions."""

import io
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from django.http import Http404
from numpy.typing import NDArray
from PIL import Image

from engine import InvalidProblemError
from engine.core.npz_file import read_array
from engine.datasets import read_image
from engine.datasets.object_files import cellpose_seg, geojson, imagej_rois, label_tiff
from webapp.files import store
from webapp.files.contents import FileStore, read_chunks
from webapp.files.zip_stream import ZipMember, stream_zip, unique_names
from webapp.segmentation.measuring import (
    classes_by_number,
    coco,
    label_map,
    object_numbers,
    object_rows,
    unit_of,
)
from webapp.segmentation.models import PredictedImage, PredictionBatch
from webapp.segmentation.object_tables import objects_csv
from webapp.segmentation.rendering import overlay_picture, png_bytes, read_mask_png
from webapp.segmentation.services.class_predictions import class_overlay
from webapp.segmentation.services.known_labels import UNKNOWN
from webapp.segmentation.services.painting import export_number
from webapp.tabular.tables_out import as_csv

COLUMNS = [
    "name",
    "width",
    "height",
    "learned_from",
    "accuracy",
    "iou",
    "log_loss_nats",
    "error_map",
    "error_mpm",
    "mean_entropy_bits",
    "foreground_share",
    "sentence",
]


def stem(row: PredictedImage) -> str:
    """Return the name of the image without its suffix."""
    return Path(row.name).stem or row.name


def overlay_png(row: PredictedImage) -> bytes:
    """Return the image under its probabilities with the mask's outline, at full size."""
    contents = FileStore(row.batch.organisation_id)
    marginals = read_array(store.get(row.marginals_path), is_mapped=True)
    image = read_image(contents.fetch(row.image_digest), name=row.name, view=row.view)
    if row.batch.model.classes:
        return png_bytes(class_overlay(image, label_map(row), row.batch.model.classes))
    return png_bytes(overlay_picture(image, marginals, read_mask_png(store.get(row.mask_path))))


def labels_tif(row: PredictedImage, *, least: float = 0.0) -> bytes:
    """Return the number of each pixel's class (of a mask 1 and 0) as a plain TIFF.

    Classes have the numbers of the label files that they came from. Pixels whose largest
    probability is below ``least`` are 0, or 255 if 0 is a class.
    """
    buffer = io.BytesIO()
    labels = label_map(row)
    if least > 0 and row.batch.model.classes:
        sides = read_array(store.get(row.marginals_path), is_mapped=True)
        labels = np.where(sides.max(axis=2) >= least, labels, 0).astype(np.uint8)
    labels = _numbered(labels, row.batch.model.classes)
    picture = Image.fromarray(labels)
    picture.save(buffer, "TIFF", compression="tiff_adobe_deflate")
    return buffer.getvalue()


def _numbered(labels: NDArray[np.uint8], classes: list[dict[str, Any]]) -> NDArray[Any]:
    """Return labels as the numbers of classes in files; 255 is unknown if 0 is a class."""
    numbers = {one["value"]: export_number(one) for one in classes}
    if all(value == number for value, number in numbers.items()):
        return labels
    table = np.zeros(256, dtype=np.uint16)
    for value, number in numbers.items():
        table[value] = number
    table[0] = UNKNOWN if 0 in numbers.values() else 0
    found = table[labels]
    return found.astype(np.uint8) if max(numbers.values()) <= UNKNOWN else found


def objects_tif(row: PredictedImage) -> bytes:
    """Return the number of the object at every pixel, as in the table, as a TIFF."""
    return label_tiff(object_numbers(row))


def objects_rois(row: PredictedImage) -> bytes:
    """Return the outlines of the objects as an ImageJ ROI set.

    Raises
    ------
    Http404
        If the image is larger than ImageJ's coordinates.
    """
    try:
        return imagej_rois(object_numbers(row))
    except InvalidProblemError as error:
        raise Http404(str(error)) from error


def objects_geojson(row: PredictedImage) -> bytes:
    """Return the outlines of the objects with their classes as GeoJSON of QuPath."""
    classes = {key: (one["name"], one["colour"]) for key, one in classes_by_number(row).items()}
    return geojson(object_numbers(row), classes)


def objects_cellpose(row: PredictedImage) -> bytes:
    """Return the objects as Cellpose's ``_seg.npy``."""
    return cellpose_seg(object_numbers(row), row.name)


def coco_json(rows: Sequence[PredictedImage]) -> bytes:
    """Return the objects of some images as a COCO file."""
    return json.dumps(coco(rows), separators=(",", ":")).encode()


def done_rows(batch: PredictionBatch) -> list[PredictedImage]:
    """Return the predicted images of a batch, each linked to this batch object."""
    rows = list(batch.images.done())
    for row in rows:
        row.batch = batch
    return rows


def numbers_rows(rows: Iterable[PredictedImage]) -> Iterator[list[object]]:
    """Yield the table of figures, header first; cells are blank without a known mask."""
    yield list(COLUMNS)
    for row in rows:
        numbers = [row.accuracy, row.iou, row.log_loss, row.error_map, row.error_mpm]
        yield [
            row.name,
            row.width,
            row.height,
            "yes" if row.learned_from else "no",
            *["" if value is None else f"{value:.6g}" for value in numbers],
            "" if row.mean_entropy is None else f"{row.mean_entropy:.6g}",
            "" if row.foreground_share is None else f"{row.foreground_share:.6g}",
            row.sentence,
        ]


def numbers_csv(rows: Iterable[PredictedImage]) -> bytes:
    """Return the table of figures as CSV."""
    return as_csv(numbers_rows(rows))


def batch_archive(batch: PredictionBatch) -> Iterator[bytes]:
    """Yield a ZIP of all masks, probabilities and the table of figures, made while it is sent."""
    return stream_zip(_members(done_rows(batch)))


def _members(rows: list[PredictedImage]) -> Iterator[ZipMember]:
    yield ZipMember("numbers.csv", [numbers_csv(rows)], compress=True)
    if rows:
        table = objects_csv(object_rows(rows), unit=unit_of(rows))
        yield ZipMember("objects.csv", [table], compress=True)
        yield ZipMember("objects.coco.json", _coco_chunks(rows), compress=True)
    names = unique_names(stem(row) for row in rows)
    for row, name in zip(rows, names, strict=True):
        yield ZipMember(f"masks/{name}.mask.png", _file_chunks(row.mask_path))
        yield ZipMember(f"labels/{name}.labels.tif", _labels_chunks(row))
        if row.shares:
            yield ZipMember(f"objects/{name}.objects.tif", _objects_chunks(row))
        yield ZipMember(
            f"marginals/{name}.marginals.npy", _file_chunks(row.marginals_path), compress=True
        )


def _coco_chunks(rows: list[PredictedImage]) -> Iterator[bytes]:
    yield coco_json(rows)


def _objects_chunks(row: PredictedImage) -> Iterator[bytes]:
    yield objects_tif(row)


def _labels_chunks(row: PredictedImage) -> Iterator[bytes]:
    yield labels_tif(row)


def _file_chunks(path: Path) -> Iterator[bytes]:
    with store.get(path).open("rb") as file:
        yield from read_chunks(file)


def require_done(row: PredictedImage) -> None:
    """Raise Http404 unless the image has been predicted."""
    if row.state != PredictedImage.State.DONE:
        raise Http404("This image has not been predicted yet.")
