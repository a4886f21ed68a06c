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
from engine.datasets.object_files import coco_shape, object_windows
from engine.datasets.picture_view import PictureView, read_deep
from engine.metrics import ObjectTable, measure_objects, separate_objects
from engine.metrics.objects import perimeter_of
from webapp.files import store
from webapp.files.contents import FileStore
from webapp.segmentation.models import PredictedImage
from webapp.segmentation.object_options import LEAST_PIXELS, ObjectOptions, options_of
from webapp.segmentation.rendering import read_mask_png

PIXELS, MICROMETRES = "px", "um"
COLUMNS = ("value", "number", "area", "perimeter", "row", "column", "mean", "sureness")
STEPS = ("across", "down", "diagonal")
"""Columns of a perimeter's steps in pixels; older tables lack them."""
SHAPES = ("eccentricity", "solidity", "feret")
"""Columns of shapes, lengths in widths of a pixel; older tables lack them."""
CHANNELS = "channel_"
"""Start of the columns of mean intensities by channel; older tables lack them."""
Numbers = NDArray[np.int32]


def intensities(path: Path | str, view: PictureView | None, *, name: str) -> NDArray[Any]:
    """Return the intensities of an image, shape (height, width, n_channels).

    For a deep image of one channel they are the file's own values on the page shown; otherwise red,
    green and blue as shown, 0 to 255.
    """
    stack = read_deep(path, name=name)
    if stack is not None and stack.planes.shape[1] == 1:
        page, planes = view.page if view else 0, stack.planes[:, 0]
        shown = planes.max(axis=0) if page < 0 else planes[min(page, len(planes) - 1)]
        return np.asarray(shown)[:, :, np.newaxis]
    return np.asarray(read_image(path, name=name, view=view))


def classes_of_row(row: PredictedImage) -> list[dict[str, Any]]:
    """Return the classes of a prediction; a mask has one, its foreground."""
    segmenter = row.batch.model
    return segmenter.classes or [{"value": 1, "name": segmenter.foreground, "colour": "#17695a"}]


def object_classes(row: PredictedImage) -> list[dict[str, Any]]:
    """Return the classes of a prediction that are objects, without background."""
    background = object_options(row).background
    return [one for one in classes_of_row(row) if one["value"] not in background]


def object_options(row: PredictedImage) -> ObjectOptions:
    """Return what counts as an object of an image."""
    return options_of(row.batch.object_options, classes_of_row(row))


def separated(
    labels: NDArray[np.uint8],
    probabilities: NDArray[np.floating[Any]],
    classes: list[dict[str, Any]],
    options: ObjectOptions,
) -> Iterator[tuple[dict[str, Any], Numbers, NDArray[np.float32]]]:
    """Yield every class that is no background, its numbered objects and its probabilities."""
    for place, one in enumerate(classes):
        if one["value"] in options.background:
            continue
        own = probabilities if probabilities.ndim == 2 else probabilities[:, :, place]
        own = np.asarray(own, dtype=np.float32)
        mask = labels == one["value"]
        numbers = separate_objects(
            mask, own, splits=options.splits, typical_area=options.typical_area
        )
        yield one, numbers, own


def measure_row(
    labels: NDArray[np.uint8],
    probabilities: NDArray[np.floating[Any]],
    values: NDArray[Any],
    classes: list[dict[str, Any]],
    options: ObjectOptions | None = None,
    *,
    aspect: float = 1.0,
) -> tuple[bytes, dict[str, dict[str, float]]]:
    """Measure the objects of every class but background; lengths are in pixels of the image.

    ``aspect`` is the height of a pixel over its width. Numbers run through all classes.

    Returns
    -------
    (bytes, dict)
        An ``.npz`` with one array per column, the map of numbers and the aspect, and by class
        number the share of pixels, the number of objects, their total area and their median area.
    """
    options = options or ObjectOptions()
    summary = {str(one["value"]): {"share": _share(labels, one)} for one in classes}
    whole = np.zeros(labels.shape, dtype=np.int32)
    parts: list[dict[str, NDArray[Any]]] = []
    first = 0
    for one, numbers, own in separated(labels, probabilities, classes, options):
        table = measure_objects(
            numbers,
            values,
            own,
            pixel_size=(1.0, aspect),
            min_pixels=options.min_pixels,
            drop_border=options.drop_border,
            with_shape=True,
        )
        np.add(table.labels, first, out=whole, where=table.labels > 0)
        parts.append(_columns(one["value"], table, first, aspect))
        first += len(table)
        area = parts[-1]["area"]
        summary[str(one["value"])] |= {
            "count": len(table),
            "area": float(area.sum()),
            "median": float(np.median(area)) if len(table) else 0.0,
        }
    columns = {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}
    dtype = np.uint16 if first <= np.iinfo(np.uint16).max else np.uint32
    maps = {"labels": whole.astype(dtype), "aspect": np.array(aspect)}
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **columns, **maps)
    return buffer.getvalue(), summary


def _share(labels: NDArray[np.uint8], one: dict[str, Any]) -> float:
    """Return the share of pixels of a class."""
    return float((labels == one["value"]).mean())


def _columns(
    value: int, table: ObjectTable, first: int, aspect: float
) -> dict[str, NDArray[np.float64]]:
    count = len(table)
    channels = {f"{CHANNELS}{k}": own for k, own in enumerate(table.channels.T)}
    return {
        "value": np.full(count, float(value)),
        "number": np.arange(first + 1.0, first + count + 1),
        "area": np.rint(table.area / aspect),
        "perimeter": perimeter_of(table.steps, 1.0, 1.0),
        "row": table.centre[:, 0],
        "column": table.centre[:, 1],
        "mean": table.mean,
        "sureness": table.sureness,
        **dict(zip(STEPS, table.steps.T, strict=True)),
        **dict(zip(SHAPES, table.shape[:, 1:].T, strict=True)),
        **channels,
    }


def aspect_of(size: PixelSize | None) -> float:
    """Return the height of a pixel over its width; 1 where its size is unknown."""
    return size.y / size.x if size else 1.0


def measure_stored(
    row: PredictedImage, options: ObjectOptions
) -> tuple[bytes, dict[str, dict[str, float]]]:
    """Measure the objects of a predicted image again, from its stored mask and probabilities."""
    path = FileStore(row.batch.organisation_id).fetch(row.image_digest)
    return measure_row(
        label_map(row),
        np.load(store.get(row.marginals_path), mmap_mode="r", allow_pickle=False),
        intensities(path, row.view, name=row.name),
        classes_of_row(row),
        options,
        aspect=aspect_of(row.pixel_size),
    )


def object_numbers(row: PredictedImage) -> Numbers:
    """Return the number of the object at every pixel, 0 for none, as in the table."""
    with np.load(store.get(row.objects_path), allow_pickle=False) as kept:
        if "labels" in kept.files:
            return np.asarray(kept["labels"], dtype=np.int32)
    # A table from before objects had numbers of their own: joined pixels, class by class.
    labels = label_map(row)
    whole = np.zeros(labels.shape, dtype=np.int32)
    for one in object_classes(row):
        own = measure_objects(labels == one["value"], labels, min_pixels=LEAST_PIXELS).labels
        np.add(own, int(whole.max()), out=whole, where=own > 0)
    return whole


def classes_by_number(row: PredictedImage) -> dict[int, dict[str, Any]]:
    """Return the class of every numbered object."""
    classes = {one["value"]: one for one in object_classes(row)}
    return {
        int(found["number"]): classes[int(found["value"])] for found in _kept_objects(row, None)
    }


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
    """Yield the stored objects of an image, areas and lengths by the size of a pixel.

    Shapes are blank where the pixels have other proportions now than when they were measured.
    """
    with np.load(store.get(row.objects_path), allow_pickle=False) as kept:
        columns = {name: kept[name] for name in COLUMNS}
        steps = [kept[name] for name in STEPS if name in kept.files]
        shapes = {name: kept[name] for name in SHAPES if name in kept.files}
        channels = {name: kept[name] for name in kept.files if name.startswith(CHANNELS)}
        aspect = float(kept["aspect"]) if "aspect" in kept.files else 1.0
    background = object_options(row).background
    is_object = ~np.isin(columns["value"], background)
    if "labels" not in kept.files:
        columns["number"] = np.cumsum(is_object).astype(np.float64)
    if shapes and not math.isclose(aspect, aspect_of(row.pixel_size)):
        for name in ("eccentricity", "feret"):
            shapes[name] = np.full_like(shapes[name], np.nan)
    if size is not None:
        columns["area"] = columns["area"] * size.area
        if "feret" in shapes:
            shapes["feret"] = shapes["feret"] * size.x
        if steps:
            columns["perimeter"] = perimeter_of(np.stack(steps, axis=1), size.x, size.y)
        else:
            columns["perimeter"] = columns["perimeter"] * math.sqrt(size.area)
    columns["diameter"] = (4 * columns["area"] / math.pi) ** 0.5
    columns |= shapes | channels
    lists = [values[is_object].tolist() for values in columns.values()]
    for line in zip(*lists, strict=True):
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
        numbers, classes = object_numbers(row), classes_by_number(row)
        for one in object_classes(row):
            categories.setdefault(one["name"], len(categories) + 1)
        for found in object_windows(numbers):
            category = categories[classes[found.number]["name"]]
            about = {"image_id": number, "category_id": category}
            shape = coco_shape(found, numbers.shape)
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
