"""Objects of predicted images: measured once, on the files' own values, and kept as arrays."""

import io
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from engine.datasets import read_image
from engine.datasets.picture_view import PictureView, read_deep
from engine.metrics import ObjectTable, measure_objects
from webapp.files import store
from webapp.segmentation.models import PredictedImage
from webapp.segmentation.rendering import read_mask_png

LEAST_PIXELS = 10  # smaller specks are no objects
COLUMNS = ("value", "number", "area", "perimeter", "row", "column", "mean", "sureness")


def intensities(path: Path | str, view: PictureView | None, *, name: str) -> NDArray[Any]:
    """Return what a mean intensity is the mean of, shape (height, width).

    Of a deep picture of one channel the file's own values on the page that is shown; of others the
    mean of red, green and blue as shown, 0 to 255.
    """
    stack = read_deep(path, name=name)
    if stack is not None and stack.planes.shape[1] == 1:
        page, planes = view.page if view else 0, stack.planes[:, 0]
        return np.asarray(planes.max(axis=0) if page < 0 else planes[min(page, len(planes) - 1)])
    return np.asarray(read_image(path, name=name, view=view).mean(axis=2))


def classes_of_row(row: PredictedImage) -> list[dict[str, Any]]:
    """Return the classes that a prediction tells apart; a mask has one, its foreground."""
    segmenter = row.batch.segmenter
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
        An ``.npz`` of one array a column of `COLUMNS`, and by the number of the class its share of
        the pixels, its objects, their area in all and the median one.
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
    np.savez_compressed(buffer, **dict(zip(COLUMNS, joined, strict=True)))
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
    ]


def object_rows(rows: Iterable[PredictedImage]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield image and object, class by class, of every image; lengths in the unit of the set."""
    for row in rows:
        size = row.batch.image_set.pixel_size or 1.0
        names = {float(one["value"]): one["name"] for one in classes_of_row(row)}
        if not row.shares:
            continue  # predicted before objects were measured
        with np.load(store.get(row.objects_path), allow_pickle=False) as kept:
            columns = [kept[name].tolist() for name in COLUMNS]
        for line in zip(*columns, strict=True):
            found = dict(zip(COLUMNS, line, strict=True))
            found["class"] = names.get(found["value"], "")
            found["area"] *= size**2
            found["perimeter"] *= size
            if found["sureness"] != found["sureness"]:
                found["sureness"] = None
            yield row.name, found


def unit_of(row: PredictedImage) -> str:
    """Return the unit of lengths in tables: um where the size of a pixel is known, else px."""
    return "um" if row.batch.image_set.pixel_size else "px"


def label_map(row: PredictedImage) -> NDArray[np.uint8]:
    """Return the number of each pixel's class; of a mask 1 for what was marked, else 0."""
    if not row.batch.segmenter.classes:
        return read_mask_png(store.get(row.mask_path)).astype(np.uint8)
    with Image.open(store.get(row.mask_path), formats=("PNG",)) as picture:
        return np.asarray(picture, dtype=np.uint8)


def coco(rows: Iterable[PredictedImage]) -> dict[str, Any]:
    """Return objects as COCO does: run-length masks, boxes, areas in pixels."""
    categories: dict[str, int] = {}
    images, annotations = [], []
    for number, row in enumerate(rows, start=1):
        images.append(
            {"id": number, "file_name": row.name, "width": row.width, "height": row.height}
        )
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
    return {"images": images, "annotations": annotations, "categories": named}


def _shape(mask: NDArray[np.bool_]) -> dict[str, Any]:
    """Counts of runs down the columns, beginning with what is not marked; box and area."""
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
