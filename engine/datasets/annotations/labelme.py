"""Readers of labelme's JSON, one image with labelled shapes, and of MIT LabelMe's older XML."""

import base64
import io
import math
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np
from PIL import Image

from engine.core.errors import InvalidProblemError
from engine.datasets.annotations.shapes import (
    MOST_AREA,
    MOST_SHAPES,
    Annotation,
    Shape,
    box,
    class_name,
    dots,
    enclosed,
    filled,
    misfits_in_words,
    numbers_of,
    size_stated,
)


def is_labelme(tree: Any) -> bool:
    """Return True if the JSON comes from labelme."""
    return isinstance(tree, dict) and "shapes" in tree


def read_labelme(tree: Mapping[str, Any], name: str) -> Annotation:
    """Return the shapes on the image of a file.

    Raises
    ------
    InvalidProblemError
        If a shape cannot be painted; the sentence names its number.
    """
    known = size_stated(tree.get("imageWidth"), tree.get("imageHeight"))
    path = str(tree.get("imagePath") or f"{PurePosixPath(name).stem}.png").replace("\\", "/")
    annotation = Annotation(path, known)
    if len(tree["shapes"]) > MOST_SHAPES:
        raise InvalidProblemError(f"{name} has more than {MOST_SHAPES:,} shapes.")
    for number, one in enumerate(tree["shapes"], start=1):
        with misfits_in_words(f"{name}: shape {number}"):
            if one.get("shape_type") == "mask":
                annotation.shapes += _mask(one, name)
            else:
                annotation.shapes += _shape(one, name)
    return annotation


def _mask(one: Mapping[str, Any], name: str) -> list[Shape]:
    """Return the area found by labelme's assistant, stored as a small PNG with its corner."""
    (left, top), _ = one["points"]
    try:
        content = base64.b64decode(one["mask"], validate=True)
        with Image.open(io.BytesIO(content), formats=("PNG",)) as picture:
            if picture.width * picture.height > MOST_AREA:
                raise InvalidProblemError(f"{name}: a mask is larger than any picture.")
            mask = np.asarray(picture.convert("L")) > 0
    except (OSError, ValueError, TypeError, SyntaxError) as error:
        raise InvalidProblemError(f"{name}: a mask in it is damaged.") from error
    return list(filled(mask, class_name(one["label"]), corner=(int(top), int(left))))


def _shape(one: Mapping[str, Any], name: str) -> list[Shape]:
    label, kind = class_name(one["label"]), one.get("shape_type") or "polygon"
    points = numbers_of(number for point in one["points"] for number in point)
    if kind in {"polygon", "oriented_rectangle"}:
        return [Shape(label, "polygon", points)]
    if kind == "rectangle":
        xs, ys = points[::2], points[1::2]
        return [Shape(label, "polygon", box(min(xs), min(ys), max(xs), max(ys)))]
    if kind == "circle":
        x, y, edge_x, edge_y = points[:4]
        return [Shape(label, "brush", [x, y], math.hypot(edge_x - x, edge_y - y))]
    if kind in {"point", "points"}:
        return dots(points, label)
    if kind in {"line", "linestrip"}:
        return [Shape(label, "brush", points)]
    raise InvalidProblemError(f"{name}: shapes of the kind {kind} are not read here.")


def is_mit_labelme(root: Element) -> bool:
    """Return True if the XML is MIT LabelMe's: its objects have polygons, VOC's only boxes."""
    return root.tag == "annotation" and root.find("object/polygon") is not None


def read_mit_labelme(root: Element, name: str) -> Annotation:
    """Return the polygons on the image of an XML file of MIT LabelMe.

    Raises
    ------
    InvalidProblemError
        If an object is stored in a separate file, or lacks a part.
    """
    rows, columns = root.findtext("imagesize/nrows"), root.findtext("imagesize/ncols")
    path = (root.findtext("filename") or f"{PurePosixPath(name).stem}.jpg").strip()
    size = size_stated(int(columns), int(rows)) if rows and columns else None
    annotation = Annotation(path.replace("\\", "/"), size)
    for number, one in enumerate(root.findall("object"), start=1):
        if (one.findtext("deleted") or "0").strip() == "1":
            continue
        corners = one.findall("polygon/pt")
        if not corners:
            raise InvalidProblemError(
                f"{name}: object {number} has no polygon; its mask lies in a file of its own. "
                "Give that file as a mask picture."
            )
        with misfits_in_words(f"{name}: object {number}"):
            points = numbers_of(
                float(corner.findtext(axis, "nan")) for corner in corners for axis in "xy"
            )
            label = class_name((one.findtext("name") or "").strip())
            annotation.shapes += enclosed(points, label)
    return annotation
