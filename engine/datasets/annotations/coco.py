"""Reader of COCO instances: outlines and runs, by image and category."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from engine.core.errors import InvalidProblemError
from engine.datasets.annotations.shapes import (
    MOST_SHAPES,
    Annotation,
    Shape,
    box,
    class_name,
    enclosed,
    filled,
    mask_of_runs,
    misfits_in_words,
    numbers_of,
    size_stated,
)

_BOX_NUMBERS = 4
_FEWEST_POINTS = 3


def is_coco(tree: Any) -> bool:
    """Return True if the JSON holds COCO instances."""
    return isinstance(tree, dict) and "annotations" in tree and "images" in tree


def read_coco(tree: Mapping[str, Any], name: str) -> Iterator[Annotation]:
    """Yield the images of a COCO file that have shapes.

    Raises
    ------
    InvalidProblemError
        If an annotation cannot be painted; the sentence names its number.
    """
    names = category_names(tree, name)
    check_ids(tree["images"], "images", name)
    found = {key_of(one["id"]): _image(one) for one in tree["images"]}
    if len(tree["annotations"]) > MOST_SHAPES:
        raise InvalidProblemError(f"{name} has more than {MOST_SHAPES:,} annotations.")
    for place, one in enumerate(tree["annotations"], start=1):
        number = one.get("id", place) if isinstance(one, Mapping) else place
        with misfits_in_words(f"{name}: annotation {number}"):
            annotation = found.get(key_of(one["image_id"]))
            if annotation is None:
                raise InvalidProblemError(
                    f"{name}: annotation {number} is of image {one['image_id']}, which is not in "
                    "its list of images."
                )
            key = key_of(one["category_id"])
            kind = class_name(names.get(key, f"Class {one['category_id']}"))
            annotation.shapes += _shapes(one, kind, annotation.size, f"{name}: annotation {number}")
    yield from (one for one in found.values() if one.shapes)


def check_ids(rows: Iterable[Mapping[str, Any]], noun: str, name: str) -> None:
    """Raise InvalidProblemError if two images or categories have one id, and nobody knows which.

    Rows that repeat each other are one.
    """
    known: dict[str, Mapping[str, Any]] = {}
    for row in rows:
        key = key_of(row["id"])
        if known.setdefault(key, row) != row:
            raise InvalidProblemError(
                f"{name}: two {noun} have the id {key}, and nobody can say which is meant."
            )


def category_names(tree: Mapping[str, Any], name: str) -> dict[str, str]:
    """Return the names of the categories by their ids.

    Raises
    ------
    InvalidProblemError
        If two categories have one id.
    """
    check_ids(tree.get("categories", []), "categories", name)
    return {key_of(one["id"]): str(one["name"]) for one in tree.get("categories", [])}


def key_of(value: Any) -> str:
    """Return an id as text: some programs write numbers in one place and text in another."""
    if isinstance(value, bool | float) or not isinstance(value, int | str):
        raise ValueError("no key")
    return str(value)


def _image(one: Mapping[str, Any]) -> Annotation:
    path = str(one["file_name"]).replace("\\", "/")
    return Annotation(path, size_stated(one.get("width"), one.get("height")))


def _shapes(
    one: Mapping[str, Any], kind: str | None, size: tuple[int, int] | None, about: str
) -> list[Shape]:
    drawn = one.get("segmentation")
    if not drawn:
        raise InvalidProblemError(f"{about} is a box without outline.")
    if isinstance(drawn, dict):
        return _of_runs(drawn, kind, size, about)
    shapes: list[Shape] = []
    if isinstance(drawn, list) and not any(isinstance(part, list) for part in drawn):
        drawn = [drawn]  # some programs omit the outer list around a single outline
    for part in drawn:
        if not isinstance(part, list):
            raise InvalidProblemError(
                f"{about}: its outline is no list of outlines, each a list of x and y."
            )
        shapes += _of_outline(numbers_of(part), kind, one.get("bbox"), about)
    return shapes


def _of_outline(points: list[float], kind: str | None, bounds: Any, about: str) -> list[Shape]:
    """Return the shape of an outline; four numbers are a box: two corners, or as in the "bbox"."""
    if len(points) == _BOX_NUMBERS:
        left, top, right, bottom = points
        if [float(side) for side in bounds or []] == points:
            right, bottom = left + right, top + bottom
        if right <= left or bottom <= top:
            raise InvalidProblemError(f"{about}: its outline of four numbers is no box.")
        return enclosed(box(left, top, right, bottom), kind)
    if len(points) < 2 * _FEWEST_POINTS:
        raise InvalidProblemError(f"{about}: an outline has {_FEWEST_POINTS} points at least.")
    return enclosed(points, kind)


def _of_runs(
    drawn: Mapping[str, Any], kind: str | None, size: tuple[int, int] | None, about: str
) -> list[Shape]:
    counts, (height, width) = drawn["counts"], drawn["size"]
    if size is not None and size != (width, height):
        raise InvalidProblemError(
            f"{about}: its mask has {width} x {height} pixels, but its image {size[0]} x {size[1]}."
        )
    if isinstance(counts, str):
        counts = unpacked_runs(counts, about)
    mask = mask_of_runs(np.array(counts, dtype=np.int64), int(width), int(height))
    if mask is None:
        raise InvalidProblemError(f"{about}: the runs of a mask do not fill its picture.")
    return list(filled(mask.T, kind))


def unpacked_runs(packed: str, about: str) -> list[int]:
    """Return the run lengths in COCO's packed text: five bits and a sign per character.

    From the fourth on, each is the difference to the run length two before it.

    Raises
    ------
    InvalidProblemError
        If the text is damaged.
    """
    lengths: list[int] = []
    value = shift = 0
    for letter in packed:
        code = ord(letter) - 48
        if not 0 <= code < 64 or shift > 40:
            raise InvalidProblemError(f"{about}: the packed runs of a mask are damaged.")
        value |= (code & 31) << shift
        shift += 5
        if code & 32:
            continue  # the number continues
        if code & 16:
            value -= 1 << shift
        lengths.append(value + (lengths[-2] if len(lengths) > 2 else 0))
        value = shift = 0
    if shift:
        raise InvalidProblemError(f"{about}: the packed runs of a mask are damaged.")
    return lengths
