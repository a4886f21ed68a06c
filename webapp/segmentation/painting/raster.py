"""Strokes as maps of labels: what was painted last counts, the eraser takes away."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

LabelMap = NDArray[np.uint8]
MOST_LIVE_PIXELS = 1_100_000
"""Pictures are learned from and answered at this many pixels at most while somebody paints."""


def live_factor(width: int, height: int) -> int:
    """Return how many pixels of the picture one of the live picture spans along a side."""
    factor = 1
    while (width // factor) * (height // factor) > MOST_LIVE_PIXELS:
        factor += 1
    return factor


def live_size(width: int, height: int) -> tuple[int, int]:
    """Return width and height of the live picture."""
    factor = live_factor(width, height)
    return max(1, width // factor), max(1, height // factor)


def paint_strokes(
    strokes: Sequence[Mapping[str, Any]], size: tuple[int, int], factor: int
) -> LabelMap:
    """Return the label of every pixel, 0 where nothing is painted; shape (height, width).

    Parameters
    ----------
    strokes : of keys tool, value, radius, points and radii, in the picture's pixels
    size : width and height of the map
    factor : pixels of the picture that one of the map spans
    """
    picture = Image.new("L", size, 0)
    drawing = ImageDraw.Draw(picture)
    for stroke in strokes:
        _paint(drawing, stroke, factor)
    return np.asarray(picture, dtype=np.uint8)


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
    """A round brush along a path; at least one pixel wide."""
    for (x, y), radius in zip(points, radii, strict=True):
        if radius < 0.75:
            drawing.point((int(x), int(y)), fill=value)
        else:
            drawing.ellipse((x - radius, y - radius, x + radius, y + radius), fill=value)
    steps = zip(points[:-1], points[1:], radii[:-1], radii[1:], strict=True)
    for start, end, first, last in steps:
        width = max(1, round(first + last))
        drawing.line([start, end], fill=value, width=width)
