"""Reader of CVAT's XML 1.1: images, and tasks whose tracks name frames."""

from collections.abc import Iterator
from xml.etree.ElementTree import Element

import numpy as np

from engine.core.errors import InvalidProblemError
from engine.datasets.annotations.shapes import (
    MOST_SHAPES,
    Annotation,
    Shape,
    box,
    class_name,
    dots,
    ellipse,
    enclosed,
    filled,
    mask_of_runs,
    misfits_in_words,
    numbers_of,
    size_stated,
)

_DRAWN = ("polygon", "box", "mask", "polyline", "points", "ellipse")
_UNREAD = ("cuboid", "skeleton")
FRAME = "frame_{:06d}"
"""Names of the image files that CVAT writes for the frames of a task."""


def is_cvat(root: Element) -> bool:
    """Return True if the XML comes from CVAT."""
    return root.tag == "annotations" and (
        root.find("version") is not None or root.find("image") is not None
    )


def read_cvat(root: Element, name: str) -> Iterator[Annotation]:
    """Yield the images of a CVAT file that have shapes, and the frames of tracks.

    Raises
    ------
    InvalidProblemError
        If a shape is of an unsupported kind, or lacks a part; the sentence names its image.
    """
    count = 0
    for image in root.findall("image"):
        path = str(image.get("name", "")).replace("\\", "/")
        size = size_stated(image.get("width"), image.get("height"))
        annotation = Annotation(path, size)
        ordered = sorted(image, key=lambda one: int(one.get("z_order", "0")))
        for one in ordered:
            annotation.shapes += _shape(one, one.get("label", ""), f"{name}: {path}")
            count += 1
        _check_count(count, name)
        if annotation.shapes:
            yield annotation
    yield from _of_tracks(root, name)


def _check_count(count: int, name: str) -> None:
    if count > MOST_SHAPES:
        raise InvalidProblemError(f"{name} has more than {MOST_SHAPES:,} shapes.")


def _of_tracks(root: Element, name: str) -> Iterator[Annotation]:
    """Yield the shapes on each frame from the tracks of a task, without those outside the frame."""
    frames: dict[int, Annotation] = {}
    count = 0
    for track in root.findall("track"):
        for one in track:
            if one.get("outside") == "1":
                continue
            number = int(one.get("frame", "0"))
            annotation = frames.setdefault(number, Annotation(FRAME.format(number), None))
            annotation.shapes += _shape(one, track.get("label", ""), f"{name}: frame {number}")
            count += 1
        _check_count(count, name)
    yield from (frames[number] for number in sorted(frames))


def _shape(one: Element, label: str, about: str) -> list[Shape]:
    if one.tag in _UNREAD:
        raise InvalidProblemError(
            f"{about}: a {one.tag} is no area of pixels; draw it as a polygon."
        )
    if one.tag not in _DRAWN:
        return []  # tags of the whole image
    with misfits_in_words(f"{about}: a {one.tag}"):
        return _drawn(one, class_name(label))


def _drawn(one: Element, kind: str | None) -> list[Shape]:
    def number(key: str) -> float:
        return float(one.attrib[key])

    if one.tag == "box":
        corners = [number(key) for key in ("xtl", "ytl", "xbr", "ybr")]
        outline = _turned(box(*corners), float(one.get("rotation", "0")))
        return enclosed(outline, kind)
    if one.tag == "ellipse":
        angle = np.deg2rad(float(one.get("rotation", "0")))
        middle = number("cx"), number("cy")
        return enclosed(ellipse(*middle, number("rx"), number("ry"), float(angle)), kind)
    if one.tag == "mask":
        return _mask(one, kind)
    points = numbers_of(
        side for corner in one.attrib["points"].split(";") for side in corner.split(",")
    )
    if one.tag == "polygon":
        return enclosed(points, kind)
    return dots(points, kind) if one.tag == "points" else [Shape(kind, "brush", points)]


def _turned(points: list[float], degrees: float) -> list[float]:
    """Return a box rotated around its centre, clockwise as in CVAT."""
    if not degrees:
        return points
    corners = np.array(points).reshape(-1, 2)
    middle, angle = corners.mean(axis=0), np.deg2rad(degrees)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    return [float(side) for side in ((corners - middle) @ turn.T + middle).ravel()]


def _mask(one: Element, kind: str | None) -> list[Shape]:
    """Return the shapes of a mask given as row-by-row runs within a box."""
    left, top, width, height = (int(one.attrib[key]) for key in ("left", "top", "width", "height"))
    lengths = np.array([int(length) for length in one.attrib["rle"].split(",")], dtype=np.int64)
    mask = mask_of_runs(lengths, height, width)
    if mask is None or left < 0 or top < 0:
        raise ValueError("runs that do not fill their box")
    return list(filled(mask, kind, corner=(top, left)))
