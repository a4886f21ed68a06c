"""What leaves the application: masks, probabilities, overlays, tables, whole batches."""

import csv
import io
import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from defusedcsv import csv as safe_csv
from django.http import Http404
from PIL import Image

from engine.datasets import read_image
from webapp.files import store
from webapp.files.contents import FileStore, read_chunks
from webapp.files.zip_stream import ZipMember, stream_zip, unique_names
from webapp.segmentation.measuring import coco, label_map, object_rows, unit_of
from webapp.segmentation.models import PredictedImage, PredictionBatch
from webapp.segmentation.object_tables import objects_csv
from webapp.segmentation.rendering import overlay_picture, png_bytes, read_mask_png
from webapp.segmentation.services.class_predictions import class_overlay

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
    marginals = np.load(store.get(row.marginals_path), mmap_mode="r", allow_pickle=False)
    image = read_image(contents.fetch(row.image_digest), name=row.name, view=row.view)
    if row.batch.segmenter.classes:
        return png_bytes(class_overlay(image, label_map(row), row.batch.segmenter.classes))
    return png_bytes(overlay_picture(image, marginals, read_mask_png(store.get(row.mask_path))))


def labels_tif(row: PredictedImage, *, least: float = 0.0) -> bytes:
    """Return the number of each pixel's class (of a mask 1 and 0) as a plain 8-bit TIFF.

    Of classes, pixels whose largest probability lies below ``least`` are 0.
    """
    buffer = io.BytesIO()
    labels = label_map(row)
    if least > 0 and row.batch.segmenter.classes:
        sides = np.load(store.get(row.marginals_path), mmap_mode="r", allow_pickle=False)
        labels = np.where(sides.max(axis=2) >= least, labels, 0).astype(np.uint8)
    picture = Image.fromarray(labels)
    picture.save(buffer, "TIFF", compression="tiff_adobe_deflate")
    return buffer.getvalue()


def coco_json(rows: Iterable[PredictedImage]) -> bytes:
    """Return the objects of some images as a COCO file."""
    return json.dumps(coco(rows), separators=(",", ":")).encode()


def done_rows(batch: PredictionBatch) -> list[PredictedImage]:
    """Return the predicted images of a batch, each knowing the batch that was read already."""
    rows = list(batch.images.filter(state=PredictedImage.State.DONE))
    for row in rows:
        row.batch = batch
    return rows


def numbers_rows(rows: Iterable[PredictedImage]) -> Iterator[list[object]]:
    """Yield the table of numbers, header first; blanks where no mask is known."""
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
    """Return the table of numbers as CSV, safe to open in a spreadsheet."""
    buffer = io.StringIO(newline="")
    safe_csv.writer(buffer, quoting=csv.QUOTE_MINIMAL).writerows(numbers_rows(rows))
    return buffer.getvalue().encode("utf-8-sig")


def batch_archive(batch: PredictionBatch) -> Iterator[bytes]:
    """Yield a ZIP of all masks, probabilities and the table of numbers, made while it is sent."""
    return stream_zip(_members(done_rows(batch)))


def _members(rows: list[PredictedImage]) -> Iterator[ZipMember]:
    yield ZipMember("numbers.csv", [numbers_csv(rows)], compress=True)
    if rows:
        table = objects_csv(object_rows(rows), unit=unit_of(rows[0]))
        yield ZipMember("objects.csv", [table], compress=True)
        yield ZipMember("objects.coco.json", _coco_chunks(rows), compress=True)
    names = unique_names(stem(row) for row in rows)
    for row, name in zip(rows, names, strict=True):
        yield ZipMember(f"masks/{name}.mask.png", _file_chunks(row.mask_path))
        yield ZipMember(f"labels/{name}.labels.tif", _labels_chunks(row))
        yield ZipMember(
            f"marginals/{name}.marginals.npy", _file_chunks(row.marginals_path), compress=True
        )


def _coco_chunks(rows: list[PredictedImage]) -> Iterator[bytes]:
    yield coco_json(rows)


def _labels_chunks(row: PredictedImage) -> Iterator[bytes]:
    yield labels_tif(row)


def _file_chunks(path: Path) -> Iterator[bytes]:
    with store.get(path).open("rb") as file:
        yield from read_chunks(file)


def require_done(row: PredictedImage) -> None:
    """Raise Http404 unless the image has been predicted."""
    if row.state != PredictedImage.State.DONE:
        raise Http404("This image has not been predicted yet.")
