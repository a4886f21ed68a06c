"""Reader of COCO panoptic: each segment is a colour of a PNG, with its category in a JSON."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from engine.core.errors import InvalidProblemError
from engine.datasets.annotations.coco import category_names, check_ids, key_of
from engine.datasets.annotations.shapes import (
    MOST_AREA,
    Annotation,
    class_name,
    filled,
    misfits_in_words,
    size_stated,
)
from engine.datasets.map_numbers import read_numbers

FindMap = Callable[[str], Path | bytes | None]


def is_panoptic(tree: Any) -> bool:
    """Return True if the JSON is COCO panoptic."""
    rows = tree.get("annotations") if isinstance(tree, dict) else None
    first = rows[0] if isinstance(rows, list) and rows else None
    return isinstance(first, dict) and "segments_info" in first


def panoptic_maps(tree: Mapping[str, Any]) -> list[str]:
    """Return the names of the PNG files of the segments."""
    return [str(one.get("file_name", "")).replace("\\", "/") for one in tree["annotations"]]


def read_panoptic(tree: Mapping[str, Any], name: str, find: FindMap) -> Iterator[Annotation]:
    """Yield the segments of every image; ``find`` returns a PNG by its name.

    Raises
    ------
    InvalidProblemError
        If a PNG is missing or damaged, or contains a segment that is not in the JSON.
    """
    names = category_names(tree, name)
    check_ids(tree.get("images", []), "images", name)
    images = {key_of(one["id"]): one for one in tree.get("images", [])}
    for one in tree["annotations"]:
        with misfits_in_words(f"{name}: an annotation"):
            path = str(one["file_name"]).replace("\\", "/")
            image = images.get(key_of(one["image_id"]), {})
            size = size_stated(image.get("width"), image.get("height"))
            annotation = Annotation(str(image.get("file_name", path)).replace("\\", "/"), size)
            content = find(path)
            if content is None:
                raise InvalidProblemError(
                    f"{name} is COCO panoptic: its segments lie in {path}, which did not come with "
                    "it. Put the JSON, its PNG files and the pictures into one ZIP."
                )
            _paint(annotation, content, one["segments_info"], names, f"{name}: {path}")
        yield annotation


def _paint(
    annotation: Annotation, content: Path | bytes, segments: Any, names: dict[str, str], about: str
) -> None:
    try:
        numbers = read_numbers(content, about, MOST_AREA)
    except InvalidProblemError as error:
        raise InvalidProblemError(str(error)) from error
    if numbers.are_colours:
        packed = numbers.values
        ids = (packed >> 16) + 256 * (packed >> 8 & 255) + 65536 * (packed & 255)
    else:  # all colours are grey: the three bytes of each are equal
        ids = numbers.values.astype(np.int64) * (1 + 256 + 65536)
    height, width = ids.shape
    if annotation.size not in (None, (width, height)):
        raise InvalidProblemError(
            f"{about} has {width} x {height} pixels, but its image {annotation.size[0]} x "
            f"{annotation.size[1]}."
        )
    annotation.size = (width, height)
    kinds = {int(one["id"]): names[key_of(one["category_id"])] for one in segments}
    strange = set(np.unique(ids).tolist()) - {0, *kinds}
    if strange:
        raise InvalidProblemError(
            f"{about} holds segment {min(strange)}, which the JSON does not name."
        )
    for number, kind in kinds.items():
        annotation.shapes += filled(ids == number, class_name(kind))
