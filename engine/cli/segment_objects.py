"""Objects of predicted masks and label maps for the verb ``segment``: counts, tables and files."""

import argparse
import csv
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from engine.cli.failures import Failures, name_skipped
from engine.cli.option_types import number, whole_number_from
from engine.cli.output_paths import make_folder
from engine.cli.picture_files import read_each
from engine.core.errors import InvalidProblemError
from engine.core.npz_file import read_array
from engine.datasets.image_folder import ImageFile, list_images
from engine.datasets.image_names import MASK_SUFFIX
from engine.datasets.object_files import (
    cellpose_seg,
    coco_shape,
    geojson,
    imagej_rois,
    label_tiff,
    object_windows,
)
from engine.metrics.object_separation import (
    object_planes,
    separate_objects,
    typical_area_of,
)
from engine.metrics.objects import ObjectTable, measure_objects

MIN_PIXELS = 10
"""Objects of fewer pixels are specks, unless an option says otherwise."""
FORMATS = ("imagej", "geojson", "cellpose", "coco")
Numbers = NDArray[np.int32]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``segment objects``."""
    parser.add_argument("--images", type=Path, required=True, help="folder of images")
    parser.add_argument(
        "--predictions", type=Path, required=True, help="folder that predict wrote its results to"
    )
    parser.add_argument("--out", type=Path, required=True, help="folder for tables and files")
    parser.add_argument(
        "--splits",
        type=number(at_least=-1.0, at_most=1.0),
        default=0.0,
        help="-1: pixels that touch are one object; up to 1: more splits (default 0)",
    )
    parser.add_argument(
        "--typical-area",
        type=number(above=0.0),
        help="pixels of a usual object (default: measured)",
    )
    parser.add_argument(
        "--known",
        type=Path,
        help="folder of label TIFFs of numbered objects, whose median area is the typical one",
    )
    parser.add_argument(
        "--background",
        type=whole_number_from(0),
        default=0,
        help="value of label maps that is no object (default 0)",
    )
    parser.add_argument(
        "--edge",
        type=whole_number_from(0),
        help="value of label maps that marks the edges of objects (2 after segment train --edges); "
        "its pixels belong to the objects, and separate them",
    )
    parser.add_argument(
        "--min-pixels",
        type=whole_number_from(1),
        default=MIN_PIXELS,
        help=f"leave out smaller objects (default {MIN_PIXELS})",
    )
    parser.add_argument("--max-pixels", type=whole_number_from(1), help="leave out larger objects")
    parser.add_argument(
        "--drop-border", action="store_true", help="leave out objects at the border of an image"
    )
    parser.add_argument(
        "--pixel-size",
        type=number(above=0.0),
        default=1.0,
        help="side of a pixel in the unit of the table (default 1: pixels)",
    )
    parser.add_argument(
        "--format",
        action="append",
        choices=FORMATS,
        default=[],
        help="also write ImageJ ROIs, QuPath GeoJSON, Cellpose _seg.npy or COCO; may be repeated",
    )


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Write the numbered objects of each image as a label TIFF, and one table of all objects.

    Raises
    ------
    InvalidProblemError
        If no prediction can be used.
    """
    if args.known is not None and args.typical_area is not None:
        raise InvalidProblemError("--known measures the typical area; leave out --typical-area.")
    typical = args.typical_area or (_typical_area(args.known) if args.known else None)
    files = list_images(args.images)
    make_folder(args.out)
    skipped: Failures = []

    def count(file: ImageFile) -> tuple[Numbers, list[dict[str, Any]]]:
        return _objects_of(file, args, typical)

    images: list[dict[str, Any]] = []
    rows: list[dict[str, Any]] = []
    annotations: list[tuple[str, Numbers, list[dict[str, Any]]]] = []
    for file, (numbers, found) in read_each(files, "Counting", args, skipped, count):
        path = args.out / f"{file.name}.objects.tif"
        path.write_bytes(label_tiff(numbers))
        for kind in args.format:
            if kind == "coco":
                annotations.append((file.image_path.name, numbers, found))
            else:
                suffix, make = _WRITERS[kind]
                (args.out / f"{file.name}{suffix}").write_bytes(make(numbers, file))
        rows += found
        images.append({"name": file.name, "objects": len(found), "labels": str(path)})
    if annotations:
        (args.out / "objects.coco.json").write_text(json.dumps(_coco(annotations)))
    table = args.out / "objects.csv"
    _write_table(table, rows)
    return {
        "n_images": len(images),
        "n_objects": len(rows),
        "images": images,
        "table": str(table),
        "skipped": name_skipped(skipped),
    }


_WRITERS: dict[str, tuple[str, Callable[[Numbers, ImageFile], bytes]]] = {
    "imagej": (".rois.zip", lambda numbers, file: imagej_rois(numbers)),
    "geojson": (".geojson", lambda numbers, file: geojson(numbers)),
    "cellpose": ("_seg.npy", lambda numbers, file: cellpose_seg(numbers, file.image_path.name)),
}


def _objects_of(
    file: ImageFile, args: argparse.Namespace, typical: float | None
) -> tuple[Numbers, list[dict[str, Any]]]:
    """Return numbered objects of all classes of an image, and a row for each."""
    values = file.read_image()
    numbers = np.zeros(values.shape[:2], dtype=np.int32)
    rows: list[dict[str, Any]] = []
    for value, mask, probability, edge in _predicted_classes(file, args):
        if mask.shape != numbers.shape:
            raise InvalidProblemError(
                f"{file.image_path.name}: its prediction has another size. Predict it again."
            )
        separated = separate_objects(
            mask, probability, edge=edge, splits=args.splits, typical_area=typical
        )
        table: ObjectTable = measure_objects(
            separated,
            values,
            probability,
            pixel_size=args.pixel_size,
            min_pixels=args.min_pixels,
            max_pixels=args.max_pixels,
            drop_border=args.drop_border,
            with_shape=True,
        )
        first = len(rows)
        numbers[table.labels > 0] = table.labels[table.labels > 0] + first
        for row, channels in zip(table.rows(), table.channels.tolist(), strict=True):
            shades = dict(zip(("mean_red", "mean_green", "mean_blue"), channels, strict=True))
            own = {"number": int(row["number"]) + first}
            rows.append({"image": file.image_path.name, "class": value} | row | own | shades)
    return numbers, rows


Plane = NDArray[np.floating]
Planes = tuple[int, NDArray[np.bool_], Plane | None, Plane | None]
"""Value of a class, its mask, its probability, and the probability of its edge."""


def _predicted_classes(file: ImageFile, args: argparse.Namespace) -> Iterator[Planes]:
    """Yield every class of a prediction that counts as objects."""
    folder: Path = args.predictions
    labels = folder / f"{file.name}.labels.png"
    mask = folder / f"{file.name}{MASK_SUFFIX}.png"
    if mask.exists():
        if args.edge is not None:
            raise InvalidProblemError(
                f"{file.image_path.name}: --edge belongs to label maps, and {mask.name} is a mask. "
                "Leave it out."
            )
        marginals = folder / f"{file.name}.marginals.npy"
        own = read_array(marginals, is_mapped=True) if marginals.exists() else None
        yield 1, _read(mask) > 0, own, None
    elif labels.exists():
        probabilities = folder / f"{file.name}.probabilities.npy"
        planes = read_array(probabilities, is_mapped=True) if probabilities.exists() else None
        yield from _classes_of_map(file, _read(labels), planes, args)
    else:
        raise InvalidProblemError(
            f"{file.image_path.name}: {folder.name} has no {mask.name} or {labels.name}. "
            "Predict it first."
        )


def _classes_of_map(
    file: ImageFile, labels: NDArray[Any], planes: Plane | None, args: argparse.Namespace
) -> Iterator[Planes]:
    """Yield every class of a label map that counts as objects.

    Columns of the probabilities are in the order of the model's values, which the map may use only
    in part: separation then goes by the mask, unless edges ask for the probabilities.
    """
    present = [int(value) for value in np.unique(labels)]
    is_whole = planes is not None and planes.shape[2] == len(present)
    if args.edge is not None:
        if planes is None:
            raise InvalidProblemError(
                f"{file.image_path.name}: --edge needs its probabilities. Predict it again."
            )
        # Values from 0 on, as segment train --edges writes them, are their own columns.
        values = present if is_whole else list(range(planes.shape[2]))
        if args.edge not in values or not {*present} <= {*values}:
            raise InvalidProblemError(
                f"{file.image_path.name}: --edge {args.edge} is no class of its prediction. Give "
                "the value that marks edges."
            )
        background = [place for place, value in enumerate(values) if value == args.background]
        for place, value in enumerate(values):
            if value not in (args.edge, args.background):
                found = object_planes(planes, place, values.index(args.edge), background)
                yield (value, *found)
        return
    for place, value in enumerate(present):
        if value != args.background:
            own = np.asarray(planes[:, :, place]) if is_whole and planes is not None else None
            yield value, labels == value, own, None


def _read(path: Path) -> NDArray[Any]:
    """Return the values of a label PNG."""
    with Image.open(path, formats=("PNG",)) as picture:
        return np.asarray(picture)


def _typical_area(folder: Path) -> float:
    """Return the median area of the numbered objects of all label TIFFs of a folder."""
    import tifffile

    areas: list[int] = []
    for path in sorted([*folder.glob("*.tif"), *folder.glob("*.tiff")]):
        try:
            numbers = tifffile.imread(path)
        except (ValueError, OSError) as error:
            raise InvalidProblemError(f"{path.name} is not a readable TIFF.") from error
        _, counts = np.unique(numbers[numbers > 0], return_counts=True)
        areas += counts.tolist()
    typical = typical_area_of(np.array(areas))
    if typical is None:
        raise InvalidProblemError(
            f"{folder}: expected label TIFFs with at least 5 numbered objects, found {len(areas)}."
        )
    return typical


def _coco(pictures: list[tuple[str, Numbers, list[dict[str, Any]]]]) -> dict[str, Any]:
    """Return the objects of all images in COCO format."""
    images: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    for place, (name, numbers, rows) in enumerate(pictures, start=1):
        height, width = numbers.shape
        images.append({"id": place, "file_name": name, "width": width, "height": height})
        for one in object_windows(numbers):
            about = {"id": len(annotations) + 1, "image_id": place}
            category = {"category_id": rows[one.number - 1]["class"]}
            annotations.append(about | category | coco_shape(one, numbers.shape))
    values = sorted({row["class"] for _, _, rows in pictures for row in rows})
    return {
        "info": {"description": "Objects", "version": "1.0", "contributor": "", "url": ""},
        "licenses": [],
        "images": images,
        "annotations": annotations,
        "categories": [{"id": value, "name": str(value)} for value in values],
    }


def _write_table(path: Path, rows: list[dict[str, Any]]) -> None:
    """Write one line per object."""
    columns = list(rows[0]) if rows else ["image", "class", "number"]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(rows)
