"""Shapes to paint, which all readers of annotations return."""

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from skimage.draw import polygon

from engine.core.errors import InvalidProblemError

MOST_SHAPES = 50_000
MOST_AREA = 50_000_000  # pixels of one shape, as of one image
RUN_NUMBERS = 57_000  # limit of one stroke: row, first and last column of each run
MISFITS = (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError)
"""Errors that readers raise if a part of an entry is missing or of another type."""

UNKNOWN_NAMES = frozenset({"__ignore__", "ignore", "ignore*", "unknown", "void"})
"""Labels that mean "unknown" instead of naming a class."""

_CORNERS = 72  # corners of the polygon of an ellipse


@dataclass(frozen=True, slots=True)
class Shape:
    """One annotated area or line: its class, a painter's tool, and the tool's numbers.

    Parameters
    ----------
    name : str or None, name of the class; None means unknown: the area is wiped
    tool : str, one of `Stroke.Tool`
    points : list of float, x and y of every point, or the runs of a fill
    number : int or None, number of the class in the file
    """

    name: str | None
    tool: str
    points: list[float]
    radius: float = 1.0
    colour: str = ""
    number: int | None = None

    def stroke(self, value: int) -> dict[str, Any]:
        """Return the stroke that paints the shape with the number of a class, 0 to wipe."""
        return {
            "value": value,
            "tool": self.tool,
            "points": [round(float(number), 1) for number in self.points],
            "radius": round(float(self.radius), 1),
            "radii": [],
        }


@dataclass(slots=True)
class Annotation:
    """Shapes of one image; ``image`` and ``size`` (width, height) are as the file states them."""

    image: str
    size: tuple[int, int] | None
    shapes: list[Shape] = field(default_factory=list)


@contextmanager
def misfits_in_words(about: str) -> Iterator[None]:
    """Convert errors about an entry without a part into one sentence about that entry.

    Raises
    ------
    InvalidProblemError
        The sentence names the entry.
    """
    try:
        yield
    except InvalidProblemError:
        raise
    except MISFITS as error:
        sentence = f"{about} lacks a part, or has one of another kind."
        raise InvalidProblemError(sentence) from error


def class_name(label: Any) -> str | None:
    """Return the name of a class; None for labels that mean "unknown"."""
    name = str(label)
    return None if name.strip().casefold() in UNKNOWN_NAMES else name


def numbers_of(values: Iterable[Any]) -> list[float]:
    """Return the coordinates of points as numbers.

    Raises
    ------
    ValueError
        If one is not finite, or a point lacks its second coordinate.
    """
    found = [float(value) for value in values]
    if not all(math.isfinite(value) for value in found) or len(found) % 2:
        raise ValueError("not points")
    return found


def size_stated(width: Any, height: Any) -> tuple[int, int] | None:
    """Return an image's size as the file states it; None if the program left it out."""
    return (int(width), int(height)) if width and height else None


def enclosed(points: Sequence[float], kind: str | None) -> list[Shape]:
    """Return the pixels whose centre lies inside an outline; pixel corners have whole numbers.

    Drawn with its line, as painted polygons are, a small outline would be a pixel too large on
    every side: 15 % more area for cells 20 pixels across.

    Raises
    ------
    ValueError
        If a point is not finite, or the outline is larger than any image.
    """
    return enclosed_by([points], kind)


def enclosed_by(rings: Sequence[Sequence[float]], kind: str | None) -> list[Shape]:
    """Return the pixels inside an odd number of rings: an outline and its holes.

    Raises
    ------
    ValueError
        As `enclosed`.
    """
    outlines = [np.array(ring, dtype=np.float64).reshape(-1, 2) for ring in rings]
    corners = np.concatenate(outlines)
    if not np.isfinite(corners).all() or np.abs(corners).max() > MOST_AREA:
        raise ValueError("not points")
    first = np.floor(np.maximum(corners.min(axis=0), 0)).astype(int)
    wide, high = np.maximum(np.ceil(corners.max(axis=0)).astype(int) - first, 0)
    if wide * high > MOST_AREA:
        raise ValueError("no outline in a picture")
    mask = np.zeros((high, wide), dtype=np.bool_)
    for ring in outlines:
        rows, columns = ring[:, 1] - first[1] - 0.5, ring[:, 0] - first[0] - 0.5
        mask[polygon(rows, columns, (high, wide))] ^= True  # type: ignore[no-untyped-call]
    if not mask.any():  # thinner than a pixel
        middle = [float(number) for number in outlines[0].mean(axis=0)]
        return [Shape(kind, "brush", middle, 0.5)]
    return list(filled(mask, kind, corner=(int(first[1]), int(first[0]))))


def dots(points: Sequence[float], kind: str | None) -> list[Shape]:
    """Return single points; in one stroke, lines would join them."""
    pairs = zip(points[::2], points[1::2], strict=True)
    return [Shape(kind, "brush", [x, y]) for x, y in pairs]


def ellipse(x: float, y: float, wide: float, high: float, angle: float = 0.0) -> list[float]:
    """Return the outline of an ellipse from its centre, semi-axes, and angle in radians."""
    points = []
    for k in range(_CORNERS):
        turn = 2 * math.pi * k / _CORNERS
        across, down = wide * math.cos(turn), high * math.sin(turn)
        points.append(x + across * math.cos(angle) - down * math.sin(angle))
        points.append(y + across * math.sin(angle) + down * math.cos(angle))
    return points


def box(left: float, top: float, right: float, bottom: float) -> list[float]:
    """Return the outline of a box."""
    return [left, top, right, top, right, bottom, left, bottom]


def filled(
    mask: NDArray[np.bool_],
    kind: str | None,
    colour: str = "",
    corner: tuple[int, int] = (0, 0),
    number: int | None = None,
) -> Iterator[Shape]:
    """Yield the rows of a mask as runs, in strokes of at most RUN_NUMBERS numbers."""
    edged = np.zeros((mask.shape[0], mask.shape[1] + 2), dtype=np.int8)
    edged[:, 1:-1] = mask
    steps = np.diff(edged, axis=1)
    rows, first = np.nonzero(steps == 1)
    last = np.nonzero(steps == -1)[1] - 1
    top, left = corner
    runs: list[Any] = np.stack([rows + top, first + left, last + left], axis=1).ravel().tolist()
    for start in range(0, len(runs), RUN_NUMBERS):
        part: list[float] = runs[start : start + RUN_NUMBERS]
        yield Shape(kind, "fill", part, 1.0, colour, number)


def mask_of_runs(lengths: NDArray[np.int64], height: int, width: int) -> NDArray[np.bool_] | None:
    """Return a mask from its row-by-row runs, the first unmarked; None if they do not fill it."""
    if height < 0 or width < 0 or height * width > MOST_AREA or (lengths < 0).any():
        return None
    if lengths.sum() != height * width:
        return None
    return np.repeat(np.arange(len(lengths)) % 2 == 1, lengths).reshape(height, width)
