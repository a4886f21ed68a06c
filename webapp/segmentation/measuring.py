"""Measurement of the objects of predicted images, once, on the files' own values."""

import io
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from engine.core.npz_file import ArrayFile, read_array
from engine.datasets import read_image
from engine.datasets.calibration import PixelSize
from engine.datasets.object_files import coco_shape, object_windows
from engine.datasets.picture_view import PictureView, read_deep
from engine.metrics import (
    ObjectEdit,
    ObjectEditor,
    ObjectTable,
    apply_edits,
    kept_objects,
    measure_objects,
    object_planes,
    separate_objects,
)
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
Columns = dict[str, NDArray[np.float64]]
Summary = dict[str, dict[str, float]]


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
    """Return the classes of a prediction that are objects, without background and edges."""
    no_objects = object_options(row).no_objects
    return [one for one in classes_of_row(row) if one["value"] not in no_objects]


def object_options(row: PredictedImage) -> ObjectOptions:
    """Return what counts as an object of an image."""
    return options_of(row.batch.object_options, classes_of_row(row))


def separated(
    labels: NDArray[np.uint8],
    probabilities: NDArray[np.floating[Any]],
    classes: list[dict[str, Any]],
    options: ObjectOptions,
) -> Iterator[tuple[dict[str, Any], Numbers, NDArray[np.float32]]]:
    """Yield every class that has objects, its numbered objects and its probabilities."""
    values = [one["value"] for one in classes]
    for place, one in enumerate(classes):
        if one["value"] in options.no_objects:
            continue
        edge: NDArray[np.floating[Any]] | None = None
        given = probabilities if probabilities.ndim == 2 else probabilities[:, :, place]
        mask = labels == one["value"]
        if options.edge in values:
            places = [values.index(value) for value in options.background]
            at = values.index(options.edge)
            mask, given, edge = object_planes(probabilities, place, at, places)
        own = np.asarray(given, dtype=np.float32)
        numbers = separate_objects(
            mask, own, edge=edge, splits=options.splits, typical_area=options.typical_area
        )
        yield one, numbers, own


def numbered(
    labels: NDArray[np.uint8],
    probabilities: NDArray[np.floating[Any]],
    classes: list[dict[str, Any]],
    options: ObjectOptions,
) -> tuple[Numbers, dict[int, int]]:
    """Return the number of the object at every pixel, and the class of every number.

    Numbers run through all classes, of each from the largest object to the smallest.
    """
    whole = np.zeros(labels.shape, dtype=np.int32)
    owners: dict[int, int] = {}
    for one, numbers, _ in separated(labels, probabilities, classes, options):
        kept = kept_objects(numbers, min_pixels=options.min_pixels, drop_border=options.drop_border)
        first, count = len(owners), int(kept.max(initial=0))
        np.add(kept, first, out=whole, where=kept > 0)
        owners |= dict.fromkeys(range(first + 1, first + count + 1), one["value"])
    return whole, owners


def columns_of(
    numbers: Numbers,
    owners: Mapping[int, int],
    values: NDArray[Any],
    probabilities: NDArray[np.floating[Any]],
    classes: list[dict[str, Any]],
    aspect: float,
) -> Columns:
    """Return the measures of numbered objects: one array a column, class by class, largest first.

    Lengths are in widths of a pixel, places in pixels of the arrays.
    """
    class_of = np.zeros(max(owners, default=0) + 1, dtype=np.int64)
    for number, value in owners.items():
        class_of[number] = value
    parts: list[Columns] = []
    for place, one in enumerate(classes):
        own = np.where(class_of[numbers] == one["value"], numbers, 0)
        given = probabilities if probabilities.ndim == 2 else probabilities[:, :, place]
        table = measure_objects(
            own,
            values,
            np.asarray(given, dtype=np.float32),
            pixel_size=(1.0, aspect),
            with_shape=True,
        )
        by_size = np.zeros(len(table) + 1, dtype=np.int64)
        by_size[table.labels] = own
        parts.append(_columns(one["value"], table, by_size[1:], aspect))
    return {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}


def summary_of(
    labels: NDArray[np.uint8],
    columns: Columns,
    classes: list[dict[str, Any]],
    options: ObjectOptions,
) -> Summary:
    """Return by class number the share of pixels, and number and areas of objects."""
    summary = {
        str(one["value"]): {"share": float((labels == one["value"]).mean())} for one in classes
    }
    count_again(summary, columns, [one["value"] for one in classes], options)
    return summary


def count_again(
    summary: Summary, columns: Columns, values: Sequence[int], options: ObjectOptions
) -> None:
    """Set number, total and median area of the objects of every class that has any."""
    for value in values:
        if value in options.no_objects:
            continue
        area = columns["area"][columns["value"] == value]
        summary[str(value)] |= {
            "count": len(area),
            "area": float(area.sum()),
            "median": float(np.median(area)) if len(area) else 0.0,
        }


def editor_of(
    numbers: Numbers,
    owners: Mapping[int, int],
    classes: list[dict[str, Any]],
    options: ObjectOptions,
) -> ObjectEditor:
    """Return what applies corrections to the numbered objects of an image."""
    values = {one["value"] for one in classes} - set(options.no_objects)
    return ObjectEditor(numbers, owners, min_pixels=options.min_pixels, values=values)


def columns_after(
    columns: Columns,
    editor: ObjectEditor,
    changed: set[int],
    inputs: tuple[NDArray[Any], NDArray[np.floating[Any]]],
    classes: list[dict[str, Any]],
    aspect: float,
) -> Columns:
    """Return the measures after some objects changed, the others as they were.

    ``inputs`` are the intensities and the probabilities of the whole image.
    """
    window = editor.window_of(changed)
    keep = ~np.isin(columns["number"], list(changed))
    merged = {key: own[keep] for key, own in columns.items()}
    if window is not None:
        part = editor.numbers[window]
        own = np.where(np.isin(part, list(changed)), part, 0)
        values, probabilities = (given[window] for given in inputs)
        fresh = columns_of(own, editor.classes, values, probabilities, classes, aspect)
        fresh["row"] += window[0].start
        fresh["column"] += window[1].start
        merged = {key: np.concatenate([merged[key], fresh[key]]) for key in merged}
    places = {one["value"]: place for place, one in enumerate(classes)}
    place = np.array([places[int(value)] for value in merged["value"]])
    order = np.lexsort((merged["number"], -merged["area"], place))
    return {key: own[order] for key, own in merged.items()}


@dataclass(frozen=True, slots=True, eq=False)
class StoredObjects:
    """Objects of a predicted image as stored, and those before corrections by hand."""

    numbers: Numbers
    columns: Columns
    base: Numbers
    base_owners: dict[int, int]

    @property
    def owners(self) -> dict[int, int]:
        """Class of every number."""
        pairs = zip(self.columns["number"], self.columns["value"], strict=True)
        return {int(number): int(value) for number, value in pairs}


def stored_objects(row: PredictedImage) -> StoredObjects | None:
    """Return the stored objects of an image; None if an older version measured them."""
    with objects_file(row) as kept:
        is_current = {"labels", "aspect", *SHAPES, f"{CHANNELS}0"} <= set(kept)
        if not is_current or not math.isclose(float(kept["aspect"]), aspect_of(row.pixel_size)):
            return None
        besides = {"labels", "aspect", "base", "base_owners"}
        columns = {name: kept[name] for name in kept if name not in besides}
        numbers = kept["labels"].astype(np.int32)
        has_base = "base" in kept
        base = kept["base"].astype(np.int32) if has_base else numbers
        owners = dict(kept["base_owners"].tolist()) if has_base else {}
    found = StoredObjects(numbers, columns, base, owners)
    return found if has_base else replace(found, base_owners=found.owners)


def packed(
    numbers: Numbers, columns: Columns, aspect: float, base: tuple[Numbers, dict[int, int]] | None
) -> bytes:
    """Return the ``.npz`` of a predicted image: columns, numbers, and those before corrections."""
    arrays: dict[str, NDArray[Any]] = {"labels": _short(numbers), "aspect": np.array(aspect)}
    if base is not None:
        owners = np.array(sorted(base[1].items()), dtype=np.int64).reshape(-1, 2)
        arrays |= {"base": _short(base[0]), "base_owners": owners}
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **columns, **arrays)
    return buffer.getvalue()


def _short(numbers: Numbers) -> NDArray[Any]:
    is_small = numbers.max(initial=0) <= np.iinfo(np.uint16).max
    return numbers.astype(np.uint16 if is_small else np.uint32)


def measure_row(
    labels: NDArray[np.uint8],
    probabilities: NDArray[np.floating[Any]],
    values: NDArray[Any],
    classes: list[dict[str, Any]],
    options: ObjectOptions | None = None,
    *,
    aspect: float = 1.0,
    edits: Sequence[ObjectEdit] = (),
) -> tuple[bytes, Summary, list[str]]:
    """Measure the objects of every class but background, with corrections by hand.

    Lengths are in pixels of the image; ``aspect`` is the height of a pixel over its width.

    Returns
    -------
    (bytes, dict, list)
        An ``.npz`` with one array per column, the map of numbers and the aspect; by class number
        the share of pixels, the number of objects, their total area and their median area; and why
        each correction could not be applied, empty where it was.
    """
    options = options or ObjectOptions()
    numbers, owners = numbered(labels, probabilities, classes, options)
    base, problems = None, []
    if edits:
        editor = editor_of(numbers, owners, classes, options)
        problems = apply_edits(editor, edits)
        base, numbers, owners = (numbers, owners), editor.numbers, editor.classes
    columns = columns_of(numbers, owners, values, probabilities, classes, aspect)
    summary = summary_of(labels, columns, classes, options)
    return packed(numbers, columns, aspect, base), summary, problems


def _columns(value: int, table: ObjectTable, numbers: NDArray[np.int64], aspect: float) -> Columns:
    count = len(table)
    channels = {f"{CHANNELS}{k}": own for k, own in enumerate(table.channels.T)}
    return {
        "value": np.full(count, float(value)),
        "number": numbers.astype(np.float64),
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


def stored_inputs(
    row: PredictedImage,
) -> tuple[NDArray[np.uint8], NDArray[np.floating[Any]], NDArray[Any]]:
    """Return the labels, probabilities and intensities of a predicted image."""
    path = FileStore(row.batch.organisation_id).fetch(row.image_digest)
    return (
        label_map(row),
        read_array(store.get(row.marginals_path), is_mapped=True),
        intensities(path, row.view, name=row.name),
    )


def measure_stored(
    row: PredictedImage, options: ObjectOptions, edits: Sequence[ObjectEdit] = ()
) -> tuple[bytes, Summary, list[str]]:
    """Measure the objects of a predicted image again, from its stored mask and probabilities."""
    return measure_row(
        *stored_inputs(row),
        classes_of_row(row),
        options,
        aspect=aspect_of(row.pixel_size),
        edits=edits,
    )


@contextmanager
def objects_file(row: PredictedImage) -> Iterator[ArrayFile]:
    """Open the stored objects of an image, also if they were replaced since the row was read."""
    try:
        kept = ArrayFile(store.get(row.objects_path))
    except FileNotFoundError:
        row.refresh_from_db(fields=["objects_key"])
        kept = ArrayFile(store.get(row.objects_path))
    with kept:
        yield kept


def object_numbers(row: PredictedImage) -> Numbers:
    """Return the number of the object at every pixel, 0 for none, as in the table."""
    with objects_file(row) as kept:
        if "labels" in kept:
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
    with objects_file(row) as kept:
        columns = {name: kept[name] for name in COLUMNS}
        steps = [kept[name] for name in STEPS if name in kept]
        shapes = {name: kept[name] for name in SHAPES if name in kept}
        channels = {name: kept[name] for name in kept if name.startswith(CHANNELS)}
        aspect = float(kept["aspect"]) if "aspect" in kept else 1.0
    no_objects = object_options(row).no_objects
    is_object = ~np.isin(columns["value"], no_objects)
    if "labels" not in kept:
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
