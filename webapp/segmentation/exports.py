"""What leaves the application: masks, probabilities, overlays, tables, whole batches."""

import csv
import io
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from defusedcsv import csv as safe_csv
from django.http import Http404

from engine import read_image
from webapp.segmentation.models import PredictedImage, PredictionBatch
from webapp.segmentation.rendering import overlay_picture, png_bytes, read_mask_png
from webapp.segmentation.store import FileStore, read_chunks
from webapp.segmentation.zip_stream import ZipMember, stream_zip, unique_names

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
    store = FileStore(row.batch.organisation_id)
    marginals = np.load(row.marginals_path, mmap_mode="r", allow_pickle=False)
    image = read_image(store.path(row.image_digest), name=row.name)
    return png_bytes(overlay_picture(image, marginals, read_mask_png(row.mask_path)))


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
    rows = list(batch.images.filter(state=PredictedImage.State.DONE))
    for row in rows:
        row.batch = batch
    return stream_zip(_members(rows))


def _members(rows: list[PredictedImage]) -> Iterator[ZipMember]:
    yield ZipMember("numbers.csv", [numbers_csv(rows)], compress=True)
    names = unique_names(stem(row) for row in rows)
    for row, name in zip(rows, names, strict=True):
        yield ZipMember(f"masks/{name}.mask.png", _file_chunks(row.mask_path))
        yield ZipMember(
            f"marginals/{name}.marginals.npy", _file_chunks(row.marginals_path), compress=True
        )


def _file_chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        yield from read_chunks(file)


def require_done(row: PredictedImage) -> None:
    """Raise Http404 unless the image has been predicted."""
    if row.state != PredictedImage.State.DONE:
        raise Http404("This image has not been predicted yet.")
