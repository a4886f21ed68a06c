"""Annotations that other programs draw: COCO, labelme, maps of classes; as shapes to paint."""

import base64
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from skimage.draw import polygon

from engine import InvalidProblemError
from engine.datasets.map_numbers import open_map
from webapp.common.json_text import read_json
from webapp.segmentation.errors import SegmentationError

MOST_BYTES = 64 * 1024**2
MOST_SHAPES = 50_000
MOST_AREA = 50_000_000  # pixels of one shape, as of one picture
MOST_CLASSES = 32
RUN_NUMBERS = 57_000  # of one stroke: rows, first and last columns
UNKNOWN = 255
_MISFITS = (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError)
VOC = (
    "Background", "Aeroplane", "Bicycle", "Bird", "Boat", "Bottle", "Bus", "Car", "Cat", "Chair",
    "Cow", "Dining table", "Dog", "Horse", "Motorbike", "Person", "Potted plant", "Sheep", "Sofa",
    "Train", "TV monitor",
)  # fmt: skip
_VOC_BORDER = 0xE0E0C0
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
        tree = read_json(content)
    except ValueError as error:
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
    raise SegmentationError(_not_read(tree, name))


def _not_read(tree: Any, name: str) -> str:
    """Say which program's file this is, and what to save with it instead."""
    first = tree[0] if isinstance(tree, list) and tree else {}
    if isinstance(first, dict) and {"image_id", "segmentation"} & first.keys():
        return (
            f"{name} holds results of COCO without their images; give the file with images, "
            "categories and annotations."
        )
    geometric = isinstance(first, dict) and first.get("type") == "Feature"
    if geometric or (isinstance(tree, dict) and tree.get("type") == "FeatureCollection"):
        return (
            f"{name} is GeoJSON (QuPath), which is not read here; export the annotations as a "
            "labelled image (TIFF)."
        )
    if isinstance(tree, dict) and "_via_img_metadata" in tree:
        return f"{name} is a project of VIA, which is not read here; export it as COCO."
    return f"{name} is neither COCO nor labelme: it has no images or shapes."


def _of_coco(tree: Mapping[str, Any], name: str) -> Iterator[Annotation]:
    names = {one["id"]: str(one["name"]) for one in tree.get("categories", [])}
    found = {
        one["id"]: Annotation(
            PurePosixPath(str(one["file_name"]).replace("\\", "/")).name,
            _size_said(one.get("width"), one.get("height")),
        )
        for one in tree["images"]
    }
    if len(tree["annotations"]) > MOST_SHAPES:
        raise SegmentationError(f"{name} has more than {MOST_SHAPES:,} annotations.")
    for one in tree["annotations"]:
        if one["image_id"] not in found:
            raise SegmentationError(
                f"{name}: annotation {one.get('id')} is of image {one['image_id']}, which is not "
                "in its list of images."
            )
        annotation = found[one["image_id"]]
        kind = names.get(one["category_id"], f"Class {one['category_id']}")
        drawn = one.get("segmentation")
        if not drawn:
            raise SegmentationError(f"{name}: annotation {one.get('id')} is a box without outline.")
        if isinstance(drawn, dict):
            annotation.shapes += _of_runs(drawn, kind, name)
        else:
            for part in drawn:
                annotation.shapes += enclosed(_numbers(part), kind)
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


def _size_said(width: Any, height: Any) -> tuple[int, int] | None:
    """What a file says of an image's size; some programs leave it out."""
    return (int(width), int(height)) if width and height else None


def _of_labelme(tree: Mapping[str, Any], name: str) -> Annotation:
    known = _size_said(tree.get("imageWidth"), tree.get("imageHeight"))
    path = str(tree.get("imagePath") or f"{PurePosixPath(name).stem}.png").replace("\\", "/")
    annotation = Annotation(PurePosixPath(path).name, known)
    for one in tree["shapes"][:MOST_SHAPES]:
        if one.get("shape_type") == "mask":
            annotation.shapes += _labelme_mask(one, name)
        else:
            annotation.shapes.append(_labelme_shape(one, name))
    return annotation


def _labelme_mask(one: Mapping[str, Any], name: str) -> list[Shape]:
    """The area that labelme's assistant found: a small PNG, and where its corner lies."""
    (left, top), _ = one["points"]
    try:
        content = base64.b64decode(one["mask"], validate=True)
        with Image.open(io.BytesIO(content), formats=("PNG",)) as picture:
            if picture.width * picture.height > MOST_AREA:
                raise SegmentationError(f"{name}: a mask is larger than any picture.")
            mask = np.asarray(picture.convert("L")) > 0
    except (OSError, ValueError, TypeError, SyntaxError) as error:
        raise SegmentationError(f"{name}: a mask in it is damaged.") from error
    return list(_filled(mask, str(one["label"]), corner=(int(top), int(left))))


def _labelme_shape(one: Mapping[str, Any], name: str) -> Shape:
    label, kind = str(one["label"]), one.get("shape_type") or "polygon"
    points = _numbers([number for point in one["points"] for number in point])
    if kind in {"polygon", "oriented_rectangle"}:
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


def read_class_map(path: Path, name: str, *, is_of_objects: bool = False) -> Annotation | None:
    """Read a map of classes: few whole numbers, 255 unknown, or few colours, black the background.

    None where the file is neither. In a file named as scribbles 0 is not painted, in all others it
    is the background. Where the numbers count objects, all of these are one class.
    """
    try:
        picture = open_map(path, name, MOST_AREA)
    except InvalidProblemError:
        return None
    is_whole = picture.format in {"PNG", "TIFF", "BMP", "GIF", None}  # None: opened by its numbers
    found = _numbers_and_colours(picture) if is_whole else None
    if found is None:
        return None
    values, colours, is_by_colour = found
    present = [int(value) for value in np.unique(values) if value != UNKNOWN]
    is_voc = colours[:4] == _VOC_COLOURS and not is_by_colour
    if is_of_objects or (is_voc and _counts_objects(present)):
        values = np.where((values == 0) | (values == UNKNOWN), values, 1)
        present, is_of_objects = [value for value in (0, 1) if (values == value).any()], True
    if not 1 <= len(present) <= MOST_CLASSES + 1 or present[0] < 0 or present[-1] > UNKNOWN:
        return None
    is_scribble = "scribble" in name.casefold()
    height, width = values.shape
    annotation = Annotation(name, (width, height))
    for value in present:
        if value == 0 and is_scribble:
            continue
        kind = "Background" if value == 0 else f"Class {value}"
        if is_of_objects and value:
            kind = "Object"
        elif is_voc and present[-1] < len(VOC):
            kind = VOC[value]
        known = value < len(colours) and any(colours[value])
        colour = "#{:02x}{:02x}{:02x}".format(*colours[value]) if known else ""
        if is_by_colour and kind.startswith("Class"):
            kind = f"Colour {colour}"  # numbers would differ from picture to picture
        annotation.shapes += _filled(values == value, kind, colour)
    return annotation if annotation.shapes else None


def _numbers_and_colours(
    picture: Image.Image,
) -> tuple[NDArray[Any], list[list[int]], bool] | None:
    """Numbers of a map, their colours where it has some, and whether only these tell.

    None for photographs.
    """
    if picture.mode in {"L", "I;16", "I"}:
        return np.asarray(picture), [], False
    if picture.mode == "P":
        palette = np.array((picture.getpalette() or [])[: 3 * 256], dtype=int)
        return np.asarray(picture), palette.reshape(-1, 3).tolist(), False
    if picture.mode not in {"RGB", "RGBA"}:
        return None
    packed = np.asarray(picture.convert("RGB")).astype(np.int32) @ np.array([65536, 256, 1])
    used = sorted({0, *np.unique(packed).tolist()} - {_VOC_BORDER})
    if len(used) > MOST_CLASSES + 1:
        return None
    numbers = np.searchsorted(used, packed).astype(np.uint8)
    numbers[packed == _VOC_BORDER] = UNKNOWN
    return numbers, [[one >> 16, one >> 8 & 255, one & 255] for one in used], True


def _counts_objects(present: list[int]) -> bool:
    """Whether a VOC map numbers objects from 1 on, instead of naming their classes.

    Numbers of three and more objects would mean aeroplane, bicycle, bird and so on in one picture.
    """
    objects = [value for value in present if value]
    return len(objects) >= 3 and objects == list(range(1, len(objects) + 1))


def enclosed(points: Sequence[float], kind: str) -> list[Shape]:
    """The pixels whose middle an outline encloses; corners of pixels have whole numbers.

    Drawn with its line, as painted polygons are, a small outline would be a pixel too large all
    around: 15 % more area for cells of 20 pixels across.

    Raises
    ------
    ValueError
        If a point is not finite, or the outline spans more than any picture.
    """
    corners = np.array(points, dtype=np.float64).reshape(-1, 2)
    if not np.isfinite(corners).all() or np.abs(corners).max() > MOST_AREA:
        raise ValueError("not points")
    first = np.floor(np.maximum(corners.min(axis=0), 0)).astype(int)
    wide, high = np.maximum(np.ceil(corners.max(axis=0)).astype(int) - first, 0)
    if wide * high > MOST_AREA:
        raise ValueError("no outline in a picture")
    places = polygon(corners[:, 1] - first[1] - 0.5, corners[:, 0] - first[0] - 0.5, (high, wide))
    mask = np.zeros((high, wide), dtype=np.bool_)
    mask[places] = True
    if not mask.any():  # thinner than a pixel
        return [Shape(kind, "brush", [float(number) for number in corners.mean(axis=0)], 0.5)]
    return list(_filled(mask, kind, corner=(int(first[1]), int(first[0]))))


def _filled(
    mask: NDArray[np.bool_], kind: str, colour: str = "", corner: tuple[int, int] = (0, 0)
) -> Iterator[Shape]:
    """Runs along the rows of a mask, in strokes of a length that is kept."""
    edged = np.zeros((mask.shape[0], mask.shape[1] + 2), dtype=np.int8)
    edged[:, 1:-1] = mask
    steps = np.diff(edged, axis=1)
    rows, first = np.nonzero(steps == 1)
    last = np.nonzero(steps == -1)[1] - 1
    top, left = corner
    runs = np.stack([rows + top, first + left, last + left], axis=1).ravel().tolist()
    for start in range(0, len(runs), RUN_NUMBERS):
        yield Shape(kind, "fill", runs[start : start + RUN_NUMBERS], 1.0, colour)
