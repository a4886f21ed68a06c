"""Measurement of the objects of predicted images, once, on the files' own values."""

import io
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from engine.datasets import read_image
from engine.datasets.calibration import PixelSize
from engine.datasets.picture_view import PictureView, read_deep
from engine.metrics import ObjectTable, measure_objects
from engine.metrics.objects import perimeter_of
from webapp.files import store
from webapp.segmentation.models import PredictedImage
from webapp.segmentation.rendering import read_mask_png

PIXELS, MICROMETRES = "px", "um"
LEAST_PIXELS = 10  # smaller specks are not objects
COLUMNS = ("value", "number", "area", "perimeter", "row", "column", "mean", "sureness")
STEPS = ("across", "down", "diagonal")
"""Columns of a perimeter's steps in pixels; older tables lack them."""


def intensities(path: Path | str, view: PictureView | None, *, name: str) -> NDArray[Any]:
    """Return the intensities of an image, shape (height, width).

    For a deep image of one channel they are the file's own values on the page shown; otherwise the
    mean of red, green and blue as shown, 0 to 255.
    """
    stack = read_deep(path, name=name)
    if stack is not None and stack.planes.shape[1] == 1:
        page, planes = view.page if view else 0, stack.planes[:, 0]
        return np.asarray(planes.max(axis=0) if page < 0 else planes[min(page, len(planes) - 1)])
    return np.asarray(read_image(path, name=name, view=view).mean(axis=2))


def classes_of_row(row: PredictedImage) -> list[dict[str, Any]]:
    """Return the classes of a prediction; a mask has one, its foreground."""
    segmenter = row.batch.model
    return segmenter.classes or [{"value": 1, "name": segmenter.foreground, "colour": "#17695a"}]


def measure_row(
    labels: NDArray[np.uint8],
    probabilities: NDArray[np.floating[Any]],
    values: NDArray[Any],
    classes: list[dict[str, Any]],
) -> tuple[bytes, dict[str, dict[str, float]]]:
    """Measure the objects of every class; lengths are in pixels of the image.

    Returns
    -------
    (bytes, dict)
        An ``.npz`` with one array per column of `COLUMNS`, and by class number the share of pixels,
        the number of objects, their total area and their median area.
    """
    parts: list[list[NDArray[np.float64]]] = []
    summary = {}
    for place, one in enumerate(classes):
        own = probabilities if probabilities.ndim == 2 else probabilities[:, :, place]
        mask = labels == one["value"]
        table = measure_objects(mask, values, own, min_pixels=LEAST_PIXELS)
        parts.append(_columns(one["value"], table))
        summary[str(one["value"])] = {
            "share": float(mask.mean()),
            "count": len(table),
            "area": float(table.area.sum()),
            "median": float(np.median(table.area)) if len(table) else 0.0,
        }
    joined = [np.concatenate(column) for column in zip(*parts, strict=True)]
    buffer = io.BytesIO()
    np.savez_compressed(
        buffer, allow_pickle=False, **dict(zip((*COLUMNS, *STEPS), joined, strict=True))
    )
    return buffer.getvalue(), summary


def _columns(value: int, table: ObjectTable) -> list[NDArray[np.float64]]:
    count = len(table)
    return [
        np.full(count, float(value)),
        np.arange(1.0, count + 1),
        table.area,
        table.perimeter,
        table.centre[:, 0],
        table.centre[:, 1],
        table.mean,
        table.sureness,
        *table.steps.T,
    ]


def object_rows(rows: Sequence[PredictedImage]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield image and object, class by class, of every image; lengths in the unit of the table."""
    is_measured = unit_of(rows) != PIXELS
    for row in rows:
        names = {float(one["value"]): one["name"] for one in classes_of_row(row)}
        if not row.shares:
            continue  # predicted before objects were measured
        size = row.pixel_size
        for found in _kept_objects(row, size if is_measured else None):
            found["class"] = names.get(found["value"], "")
            found["pixel_size"] = size
            yield row.name, found


def _kept_objects(row: PredictedImage, size: PixelSize | None) -> Iterator[dict[str, Any]]:
    """Yield the stored objects of an image, areas and lengths by the size of a pixel."""
    with np.load(store.get(row.objects_path), allow_pickle=False) as kept:
        columns = {name: kept[name] for name in COLUMNS}
        steps = [kept[name] for name in STEPS if name in kept.files]
    if size is not None:
        columns["area"] = columns["area"] * size.area
        if steps:
            columns["perimeter"] = perimeter_of(np.stack(steps, axis=1), size.x, size.y)
        else:
            columns["perimeter"] = columns["perimeter"] * math.sqrt(size.area)
    for line in zip(*(values.tolist() for values in columns.values()), strict=True):
        found = dict(zip(columns, line, strict=True))
        yield {key: None if value != value else value for key, value in found.items()}


def unit_of(rows: Sequence[PredictedImage]) -> str:
    """Return the unit of lengths in a table of images: um if all state a pixel size, else px."""
    return MICROMETRES if rows and all(row.pixel_size for row in rows) else PIXELS


def sides_of(size: PixelSize | None) -> list[float] | None:
    """Return the width and height of a pixel for pages and the API."""
    return [size.x, size.y] if size else None


def label_map(row: PredictedImage) -> NDArray[np.uint8]:
    """Return the number of each pixel's class; for a mask 1 for foreground, else 0."""
    if not row.batch.model.classes:
        return read_mask_png(store.get(row.mask_path)).astype(np.uint8)
    with Image.open(store.get(row.mask_path), formats=("PNG",)) as picture:
        return np.asarray(picture, dtype=np.uint8)


def coco(rows: Sequence[PredictedImage]) -> dict[str, Any]:
    """Return objects in COCO format: run-length masks, boxes, areas in pixels."""
    categories: dict[str, int] = {}
    images: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    for number, row in enumerate(rows, start=1):
        image: dict[str, Any] = {
            "id": number,
            "file_name": row.name,
            "width": row.width,
            "height": row.height,
        }
        if size := row.pixel_size:
            image["pixel_size_um"] = [size.x, size.y]
        images.append(image)
        labels = label_map(row)
        for one in classes_of_row(row):
            category = categories.setdefault(one["name"], len(categories) + 1)
            mask = labels == one["value"]
            table = measure_objects(mask, labels, min_pixels=LEAST_PIXELS)
            for index in range(1, len(table) + 1):
                about = {"image_id": number, "category_id": category}
                shape = _shape(table.labels == index)
                annotations.append({"id": len(annotations) + 1, **about, **shape})
    named = [{"id": key, "name": name} for name, key in categories.items()]
    return {
        "info": _info(rows),
        "licenses": [],
        "images": images,
        "annotations": annotations,
        "categories": named,
    }


def _info(rows: Sequence[PredictedImage]) -> dict[str, Any]:
    """Return the head of a file that COCO's own tools expect."""
    about: dict[str, Any] = {
        "description": "Objects",
        "version": "1.0",
        "contributor": "Bethe Hall",
        "url": "",
    }
    if rows:
        made = rows[0].batch.created_at
        about["description"] = f"Objects of {rows[0].batch.name}"
        about |= {"year": made.year, "date_created": made.strftime("%Y/%m/%d")}
    return about


def _shape(mask: NDArray[np.bool_]) -> dict[str, Any]:
    """Return column-wise run lengths, starting with unmarked pixels; box and area."""
    flat = mask.ravel(order="F")
    borders = np.flatnonzero(np.diff(flat)) + 1
    counts = np.diff(np.concatenate([[0], borders, [len(flat)]])).tolist()
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    box = [columns[0], rows[0], columns[-1] - columns[0] + 1, rows[-1] - rows[0] + 1]
    return {
        "segmentation": {"counts": [0, *counts] if flat[0] else counts, "size": list(mask.shape)},
        "bbox": [int(side) for side in box],
        "area": int(mask.sum()),
        "iscrowd": 0,
    }
