"""Annotations that other programs draw: COCO, labelme, maps of classes; as shapes to paint."""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from webapp.segmentation.errors import SegmentationError

MOST_BYTES = 64 * 1024**2
MOST_SHAPES = 50_000
MOST_CLASSES = 32
RUN_NUMBERS = 57_000  # of one stroke: rows, first and last columns
UNKNOWN = 255
_MISFITS = (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError)
VOC = (
    "Background", "Aeroplane", "Bicycle", "Bird", "Boat", "Bottle", "Bus", "Car", "Cat", "Chair",
    "Cow", "Dining table", "Dog", "Horse", "Motorbike", "Person", "Potted plant", "Sheep", "Sofa",
    "Train", "TV monitor",
)  # fmt: skip
_VOC_COLOURS = [[0, 0, 0], [128, 0, 0], [0, 128, 0], [128, 128, 0]]


@dataclass(frozen=True, slots=True)
class Shape:
    """One annotated area or line: the name of its class, a painter's tool, and its numbers."""

    name: str
    tool: str
    points: list[float]
    radius: float = 1.0
    colour: str = ""


@dataclass(slots=True)
class Annotation:
    """The shapes of one image; ``size`` is what the file says of it, width and height."""

    image: str
    size: tuple[int, int] | None
    shapes: list[Shape] = field(default_factory=list)


def read_annotations(content: bytes, name: str) -> list[Annotation]:
    """Read COCO or labelme.

    Raises
    ------
    SegmentationError
        If it is neither, or holds something that cannot be painted; the sentence says what.
    """
    if len(content) > MOST_BYTES:
        raise SegmentationError(f"{name} is larger than {MOST_BYTES // 1024**2} MB.")
    try:
        tree = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise SegmentationError(f"{name} is not whole JSON.") from error
    is_tree = isinstance(tree, dict)
    try:
        if is_tree and "annotations" in tree and "images" in tree:
            return list(_of_coco(tree, name))
        if is_tree and "shapes" in tree:
            return [_of_labelme(tree, name)]
    except SegmentationError:
        raise
    except _MISFITS as error:
        sentence = f"{name}: an entry lacks a part, or has one that is none."
        raise SegmentationError(sentence) from error
    raise SegmentationError(f"{name} is neither COCO nor labelme: it has no images or shapes.")


def _of_coco(tree: Mapping[str, Any], name: str) -> Iterator[Annotation]:
    names = {one["id"]: str(one["name"]) for one in tree.get("categories", [])}
    found = {
        one["id"]: Annotation(
            PurePosixPath(str(one["file_name"]).replace("\\", "/")).name,
            (int(one["width"]), int(one["height"])),
        )
        for one in tree["images"]
    }
    if len(tree["annotations"]) > MOST_SHAPES:
        raise SegmentationError(f"{name} has more than {MOST_SHAPES:,} annotations.")
    for one in tree["annotations"]:
        annotation = found[one["image_id"]]
        kind = names.get(one["category_id"], f"Class {one['category_id']}")
        drawn = one.get("segmentation")
        if not drawn:
            raise SegmentationError(f"{name}: annotation {one.get('id')} is a box without outline.")
        if isinstance(drawn, dict):
            annotation.shapes += _of_runs(drawn, kind, name)
        else:
            annotation.shapes += [Shape(kind, "polygon", _numbers(part)) for part in drawn]
    yield from (one for one in found.values() if one.shapes)


def _of_runs(drawn: Mapping[str, Any], kind: str, name: str) -> list[Shape]:
    counts, (height, width) = drawn["counts"], drawn["size"]
    if isinstance(counts, str):
        counts = _unpacked_runs(counts, name)
    lengths = np.array(counts, dtype=np.int64)
    if (lengths < 0).any() or lengths.sum() != height * width or height * width > 50_000_000:
        raise SegmentationError(f"{name}: the runs of a mask do not fill its picture.")
    mask = np.repeat(np.arange(len(lengths)) % 2 == 1, lengths).reshape(width, height).T
    return list(_filled(mask, kind))


def _unpacked_runs(packed: str, name: str) -> list[int]:
    """Run lengths that COCO's own tools pack as text: five bits and a sign or more, a character.

    From the fourth on each is the difference to the one two before it.
    """
    lengths: list[int] = []
    value = shift = 0
    for letter in packed:
        code = ord(letter) - 48
        if not 0 <= code < 64 or shift > 40:
            raise SegmentationError(f"{name}: the packed runs of a mask are damaged.")
        value |= (code & 31) << shift
        shift += 5
        if code & 32:
            continue  # more of this number follows
        if code & 16:
            value -= 1 << shift
        lengths.append(value + (lengths[-2] if len(lengths) > 2 else 0))
        value = shift = 0
    if shift:
        raise SegmentationError(f"{name}: the packed runs of a mask are damaged.")
    return lengths


def _of_labelme(tree: Mapping[str, Any], name: str) -> Annotation:
    size = tree.get("imageWidth"), tree.get("imageHeight")
    known = (int(size[0]), int(size[1])) if all(size) else None
    path = str(tree.get("imagePath") or f"{PurePosixPath(name).stem}.png").replace("\\", "/")
    annotation = Annotation(PurePosixPath(path).name, known)
    for one in tree["shapes"][:MOST_SHAPES]:
        annotation.shapes.append(_labelme_shape(one, name))
    return annotation


def _labelme_shape(one: Mapping[str, Any], name: str) -> Shape:
    label, kind = str(one["label"]), one.get("shape_type") or "polygon"
    points = _numbers([number for point in one["points"] for number in point])
    if kind == "polygon":
        return Shape(label, "polygon", points)
    if kind == "rectangle":
        left, top, right, bottom = points[:4]
        return Shape(label, "polygon", [left, top, right, top, right, bottom, left, bottom])
    if kind == "circle":
        x, y, edge_x, edge_y = points[:4]
        return Shape(label, "brush", [x, y], math.hypot(edge_x - x, edge_y - y))
    if kind in {"line", "linestrip", "point", "points"}:
        return Shape(label, "brush", points)
    raise SegmentationError(f"{name}: shapes of the kind {kind} are not read here.")


def _numbers(values: Any) -> list[float]:
    found = [float(value) for value in values]
    if not all(math.isfinite(value) for value in found) or len(found) % 2:
        raise ValueError("not points")
    return found


def read_class_map(path: Path, name: str) -> Annotation | None:
    """Read a map of classes: few whole numbers, 255 unknown; None where the file is none.

    In a file named as scribbles 0 is not painted, in all others it is the background.
    """
    try:
        with Image.open(path, formats=("PNG", "TIFF", "BMP", "GIF")) as picture:
            if picture.mode not in {"L", "P", "I;16", "I"}:
                return None
            values, palette = np.asarray(picture), picture.getpalette() or []
            is_indexed = picture.mode == "P"
    except (OSError, ValueError, SyntaxError):
        return None
    present = [int(value) for value in np.unique(values) if value != UNKNOWN]
    if not 1 <= len(present) <= MOST_CLASSES + 1 or present[0] < 0 or present[-1] > UNKNOWN:
        return None
    is_scribble = "scribble" in name.casefold()
    height, width = values.shape
    annotation = Annotation(name, (width, height))
    colours = np.array(palette[: 3 * 256], dtype=int).reshape(-1, 3).tolist() if is_indexed else []
    is_voc = colours[:4] == _VOC_COLOURS and present[-1] < len(VOC)
    for value in present:
        if value == 0 and is_scribble:
            continue
        kind = VOC[value] if is_voc else ("Background" if value == 0 else f"Class {value}")
        known = value < len(colours) and any(colours[value])
        colour = "#{:02x}{:02x}{:02x}".format(*colours[value]) if known else ""
        annotation.shapes += _filled(values == value, kind, colour)
    return annotation if annotation.shapes else None


def _filled(mask: NDArray[np.bool_], kind: str, colour: str = "") -> Iterator[Shape]:
    """Runs along the rows of a mask, in strokes of a length that is kept."""
    edged = np.zeros((mask.shape[0], mask.shape[1] + 2), dtype=np.int8)
    edged[:, 1:-1] = mask
    steps = np.diff(edged, axis=1)
    rows, first = np.nonzero(steps == 1)
    last = np.nonzero(steps == -1)[1] - 1
    runs = np.stack([rows, first, last], axis=1).ravel().tolist()
    for start in range(0, len(runs), RUN_NUMBERS):
        yield Shape(kind, "fill", runs[start : start + RUN_NUMBERS], 1.0, colour)
