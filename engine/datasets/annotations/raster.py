"""Strokes as label maps: later strokes overwrite earlier ones, the eraser removes labels."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from engine.core.errors import InvalidProblemError

LabelMap = NDArray[np.uint8]
BRUSH, POLYGON, FILL = "brush", "polygon", "fill"
MOST_STROKES = 3_000
"""Number of strokes of one image."""

MOST_NUMBERS = 60_000  # of one stroke: a filled area has some thousand runs of three
LARGEST_RADIUS = 2_000.0


def checked_geometry(stroke: Mapping[str, Any], size: tuple[int, int]) -> dict[str, Any]:
    """Return the points, radii and radius of a stroke on an image, with one decimal.

    Parameters
    ----------
    stroke : mapping with tool, points, radius and radii
    size : width and height of the image

    Raises
    ------
    InvalidProblemError
        If a number is missing or not finite, or the stroke is too long or outside of the image.
    """
    points, radii = (_numbers(stroke.get(key, [])) for key in ("points", "radii"))
    (radius,) = _numbers([stroke.get("radius", 1)])
    step = 3 if stroke["tool"] == FILL else 2
    fewest = 3 if stroke["tool"] == POLYGON else 1
    if len(points) % step or len(points) < step * fewest:
        raise InvalidProblemError("The stroke has no points.")
    if not 0 <= radius <= LARGEST_RADIUS or any(not 0 <= r <= LARGEST_RADIUS for r in radii):
        raise InvalidProblemError("The brush is too large.")
    reach = max(size) + 2 * LARGEST_RADIUS
    if any(abs(number) > reach for number in points):
        raise InvalidProblemError("The stroke lies outside the picture.")
    return {"points": points, "radii": radii, "radius": radius}


def _numbers(values: Any) -> list[float]:
    """Return a list of finite numbers with one decimal; refuse one that is too long."""
    if not isinstance(values, Sequence) or isinstance(values, str) or len(values) > MOST_NUMBERS:
        raise InvalidProblemError("The stroke is too long; paint it in parts.")
    found = []
    for value in values:
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not math.isfinite(value)
        ):
            raise InvalidProblemError("The stroke holds something that is not a number.")
        found.append(round(float(value), 1))
    return found


def paint_strokes(
    strokes: Sequence[Mapping[str, Any]], size: tuple[int, int], factor: int
) -> LabelMap:
    """Return the label of every pixel, 0 if unpainted; shape (height, width).

    Parameters
    ----------
    strokes : mappings with tool, value, radius, points and radii, in pixels of the image
    size : width and height of the map
    factor : pixels of the image that one pixel of the map spans
    """
    picture = Image.new("L", size, 0)
    drawing = ImageDraw.Draw(picture)
    for stroke in strokes:
        _paint(drawing, stroke, factor)
    return np.asarray(picture, dtype=np.uint8)


def reaches_into(stroke: Mapping[str, Any], size: tuple[int, int]) -> bool:
    """Return True if a stroke paints at least one pixel of an image of this width and height."""
    width, height = size
    points = np.array(stroke["points"], dtype=np.float64)
    if stroke["tool"] == FILL:
        rows, first, last = points.reshape(-1, 3).T
        return bool(((rows >= 0) & (rows < height) & (last >= 0) & (first < width)).any())
    x, y = points.reshape(-1, 2).T
    if ((x >= 0) & (x < width) & (y >= 0) & (y < height)).any():
        return True
    reach = float(stroke["radius"]) + 1
    if x.max() < -reach or y.max() < -reach or x.min() > width + reach or y.min() > height + reach:
        return False
    return bool(paint_strokes([{**stroke, "value": 1}], size, 1).any())


def _paint(drawing: ImageDraw.ImageDraw, stroke: Mapping[str, Any], factor: int) -> None:
    value, tool = int(stroke["value"]), stroke["tool"]
    flat = [number / factor for number in stroke["points"]]
    if tool == "fill":
        for row, first, last in zip(flat[::3], flat[1::3], flat[2::3], strict=False):
            drawing.line([(int(first), int(row)), (int(last), int(row))], fill=value)
        return
    points = list(zip(flat[::2], flat[1::2], strict=False))
    if tool == "polygon" and len(points) > 2:
        drawing.polygon(points, fill=value)
        return
    radii = [r / factor for r in stroke.get("radii") or []]
    if len(radii) != len(points):
        radii = [stroke["radius"] / factor] * len(points)
    _draw_path(drawing, points, radii, value)


def _draw_path(
    drawing: ImageDraw.ImageDraw,
    points: list[tuple[float, float]],
    radii: list[float],
    value: int,
) -> None:
    """Draw a round brush along a path, at least one pixel wide."""
    for (x, y), radius in zip(points, radii, strict=True):
        if radius < 0.75:
            drawing.point((int(x), int(y)), fill=value)
        else:
            drawing.ellipse((x - radius, y - radius, x + radius, y + radius), fill=value)
    steps = zip(points[:-1], points[1:], radii[:-1], radii[1:], strict=True)
    for start, end, first, last in steps:
        width = max(1, round(first + last))
        drawing.line([start, end], fill=value, width=width)
