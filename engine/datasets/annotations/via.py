"""Reader of VGG Image Annotator: projects and annotations as JSON, regions as CSV."""

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from engine.core.errors import InvalidProblemError
from engine.datasets.annotations.shapes import (
    MISFITS,
    MOST_SHAPES,
    Annotation,
    Shape,
    box,
    class_name,
    ellipse,
    enclosed,
    misfits_in_words,
    numbers_of,
)

_USUAL = ("label", "class", "name", "type", "category", "object", "class_name")
"""Attributes that may name the class of a region that has several attributes."""

_COLUMNS = {"filename", "region_shape_attributes", "region_attributes"}
Region = tuple[Mapping[str, Any], Mapping[str, Any]]


def is_via(tree: Any) -> bool:
    """Return True if the JSON is of VIA 1 or 2: a project, or its annotations alone."""
    if not isinstance(tree, dict) or not tree:
        return False
    if "_via_img_metadata" in tree:
        return True
    return all(
        isinstance(one, dict) and {"filename", "regions"} <= one.keys() for one in tree.values()
    )


def is_via_3(tree: Any) -> bool:
    """Return True if the JSON is a project of VIA 3, which is another format."""
    return isinstance(tree, dict) and {"project", "metadata", "view"} <= tree.keys()


def read_via(tree: Mapping[str, Any], name: str) -> Iterator[Annotation]:
    """Yield the images of a VIA project that have regions.

    Raises
    ------
    InvalidProblemError
        If a region cannot be painted; the sentence names its number and image.
    """
    for one in tree.get("_via_img_metadata", tree).values():
        regions = one["regions"]
        listed = regions.values() if isinstance(regions, Mapping) else regions
        rows = [(row["shape_attributes"], row.get("region_attributes") or {}) for row in listed]
        if rows:
            yield _annotation(str(one["filename"]), rows, name)


def is_via_table(content: bytes) -> bool:
    """Return True if a text is VIA's table of regions."""
    head = content[:300].decode("utf-8-sig", "replace").splitlines()[:1]
    return bool(head) and set(head[0].replace("#", "").split(",")) >= _COLUMNS


def read_via_table(content: bytes, name: str) -> Iterator[Annotation]:
    """Yield the images of VIA's table of regions.

    Raises
    ------
    InvalidProblemError
        As `read_via`.
    """
    images: dict[str, list[Region]] = {}
    try:
        text = content.decode("utf-8-sig")
        for row in csv.DictReader(io.StringIO(text.removeprefix("#"))):
            shape = json.loads(row["region_shape_attributes"] or "{}")
            if shape:
                about = json.loads(row["region_attributes"] or "{}")
                images.setdefault(str(row["filename"]), []).append((shape, about))
    except (*MISFITS, csv.Error, RecursionError) as error:
        raise InvalidProblemError(f"{name}: a row of VIA's table is damaged.") from error
    yield from (_annotation(path, rows, name) for path, rows in images.items())


def _annotation(path: str, rows: list[Region], name: str) -> Annotation:
    if len(rows) > MOST_SHAPES:
        raise InvalidProblemError(f"{name} has more than {MOST_SHAPES:,} regions.")
    attribute = _attribute((about for _, about in rows), f"{name}: {path}")
    annotation = Annotation(path.replace("\\", "/"), None)
    for number, (shape, about) in enumerate(rows, start=1):
        with misfits_in_words(f"{name}: region {number} of {path}"):
            kind = class_name(_label(about, attribute))
            annotation.shapes += _drawn(shape, kind, f"{name}: region {number} of {path}")
    return annotation


def _attribute(regions: Iterable[Mapping[str, Any]], about: str) -> str:
    """Return the attribute that names classes: the only one, or the one with a usual name."""
    found: dict[str, None] = {}
    for region in regions:
        found |= dict.fromkeys(region)
    if len(found) <= 1:
        return next(iter(found), "")
    usual = [key for key in found if key.strip().casefold() in _USUAL]
    if len(usual) != 1:
        raise InvalidProblemError(
            f"{about}: its regions have the attributes {', '.join(found)}, and nobody can say "
            "which names the class. Call one “label”."
        )
    return usual[0]


def _label(about: Mapping[str, Any], attribute: str) -> str:
    value = about.get(attribute, "") if attribute else ""
    if isinstance(value, Mapping):  # checkboxes
        ticked = [key for key, is_ticked in value.items() if is_ticked]
        if len(ticked) > 1:
            raise ValueError("several classes")
        value = ticked[0] if ticked else ""
    return str(value).strip() or "Object"


def _drawn(shape: Mapping[str, Any], kind: str | None, about: str) -> list[Shape]:
    def number(key: str) -> float:
        return float(shape[key])

    drawn = shape["name"]
    if drawn in {"polygon", "polyline"}:
        pairs = zip(shape["all_points_x"], shape["all_points_y"], strict=True)
        points = numbers_of(side for pair in pairs for side in pair)
        return enclosed(points, kind) if drawn == "polygon" else [Shape(kind, "brush", points)]
    if drawn == "rect":
        left, top = number("x"), number("y")
        return enclosed(box(left, top, left + number("width"), top + number("height")), kind)
    if drawn == "circle":
        return enclosed(ellipse(number("cx"), number("cy"), number("r"), number("r")), kind)
    if drawn == "ellipse":
        middle = number("cx"), number("cy")
        angle = float(shape.get("theta", 0.0))
        return enclosed(ellipse(*middle, number("rx"), number("ry"), angle), kind)
    if drawn == "point":
        return [Shape(kind, "brush", [number("cx"), number("cy")])]
    raise InvalidProblemError(f"{about} is of the kind {drawn}, which is not read here.")
