"""Windows and tiles of a picture at the size of its model, read as needed."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from engine.core.arguments import ByteImage
from engine.crf.image_grid import map_log_odds

MARGIN = 112
"""Pixels of the model around a tile's core: the context depends on pixels up to 68 away, and three
widest Gaussians reach about as far."""

READ_PIXELS = 16_000_000
"""Pixels of the picture that are read at once for shrinking: 48 MB."""


class Tile(NamedTuple):
    """Core of a tile, and the window around it that is read; all in pixels of the model."""

    top: int
    left: int
    rows: int
    columns: int
    window: tuple[int, int, int, int]

    @property
    def inside(self) -> tuple[slice, slice]:
        """Position of the core within the window."""
        top, left = self.top - self.window[0], self.left - self.window[1]
        return slice(top, top + self.rows), slice(left, left + self.columns)

    @property
    def place(self) -> tuple[slice, slice]:
        """Position of the window within the model."""
        top, left, rows, columns = self.window
        return slice(top, top + rows), slice(left, left + columns)


def tile_of(core: tuple[int, int, int, int], shape: tuple[int, int], margin: int = MARGIN) -> Tile:
    """Return the tile of a core (first row and column, rows and columns) of a model of ``shape``.

    Its window is cut off at the borders of the model.
    """
    top, left, rows, columns = core
    first, begin = max(top - margin, 0), max(left - margin, 0)
    last, end = min(top + rows + margin, shape[0]), min(left + columns + margin, shape[1])
    return Tile(top, left, rows, columns, (first, begin, last - first, end - begin))


def cut_tiles(shape: tuple[int, int], core: int, margin: int = MARGIN) -> list[Tile]:
    """Cut a grid into cores of about equal sides, at most ``core``, each with its window."""
    rows, columns = shape
    tops = np.linspace(0, rows, -(-rows // core) + 1).astype(int).tolist()
    lefts = np.linspace(0, columns, -(-columns // core) + 1).astype(int).tolist()
    return [
        tile_of((top, left, bottom - top, right - left), shape, margin)
        for top, bottom in pairwise(tops)
        for left, right in pairwise(lefts)
    ]


class PictureSource(Protocol):
    """Protocol of a picture from which any rectangle can be read as 8-bit RGB."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""

    def read(self, top: int, left: int, rows: int, columns: int) -> ByteImage:
        """Read a rectangle, shape (rows, columns, 3)."""


@dataclass(frozen=True, slots=True, eq=False)
class ArraySource:
    """Picture in memory, (H, W, 3) uint8."""

    image: ByteImage

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return int(self.image.shape[0]), int(self.image.shape[1])

    def read(self, top: int, left: int, rows: int, columns: int) -> ByteImage:
        """Return a view of a rectangle."""
        return self.image[top : top + rows, left : left + columns]


@dataclass(frozen=True, slots=True, eq=False)
class ShrunkPicture:
    """Picture averaged over the pixels of a model of ``shape``, window by window.

    A window equals that part of the whole picture shrunk at once, because the boundaries of model
    pixels are those of the whole. If a boundary falls on the middle of a pixel, rounding may give
    that pixel to either side.
    """

    source: PictureSource
    shape: tuple[int, int]

    def window(self, top: int, left: int, rows: int, columns: int) -> ByteImage:
        """Return a window of the model's pixels, shape (rows, columns, 3)."""
        return _shrunk(self.source, self.shape, (top, left, rows, columns))


class MapSource(Protocol):
    """Protocol of maps of probabilities from which any rectangle can be read."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns, which may differ from those of the picture."""

    @property
    def n_planes(self) -> int:
        """Number of planes."""

    def read(self, top: int, left: int, rows: int, columns: int) -> NDArray[np.float32]:
        """Read a rectangle, shape (rows, columns, n_planes)."""


@dataclass(frozen=True, slots=True, eq=False)
class ArrayMaps:
    """Maps in memory, (H', W', C) float32."""

    planes: NDArray[np.float32]

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return int(self.planes.shape[0]), int(self.planes.shape[1])

    @property
    def n_planes(self) -> int:
        """Number of planes."""
        return int(self.planes.shape[2])

    def read(self, top: int, left: int, rows: int, columns: int) -> NDArray[np.float32]:
        """Return a view of a rectangle."""
        return self.planes[top : top + rows, left : left + columns]


@dataclass(frozen=True, slots=True, eq=False)
class ShrunkMaps:
    """Maps averaged over the pixels of a model of ``shape``, as log-odds, window by window."""

    source: MapSource
    shape: tuple[int, int]

    def window(self, top: int, left: int, rows: int, columns: int) -> NDArray[np.float32]:
        """Return a window of the model's pixels, shape (rows, columns, C); see `shrink_maps`."""
        if not self.source.n_planes:
            return np.zeros((rows, columns, 0), dtype=np.float32)
        return map_log_odds(_shrunk(self.source, self.shape, (top, left, rows, columns)))


def _shrunk(
    source: PictureSource | MapSource, shape: tuple[int, int], window: tuple[int, int, int, int]
) -> NDArray[Any]:
    """Return a window (first row and column, rows and columns), read and shrunk in bands."""
    top, left, rows, columns = window
    if source.shape == shape:
        return np.ascontiguousarray(source.read(*window))
    down, across = source.shape[0] / shape[0], source.shape[1] / shape[1]
    step = max(1, int(READ_PIXELS / max(columns * across * down, 1.0)))
    parts = [
        _shrunk_band(source, shape, (first, left, min(step, top + rows - first), columns))
        for first in range(top, top + rows, step)
    ]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _shrunk_band(
    source: PictureSource | MapSource, shape: tuple[int, int], window: tuple[int, int, int, int]
) -> NDArray[Any]:
    top, left, rows, columns = window
    height, width = source.shape
    down, across = height / shape[0], width / shape[1]
    shrinks = down >= 1 and across >= 1
    method = Image.Resampling.BOX if shrinks else Image.Resampling.BILINEAR
    more = 0 if shrinks else 2  # neighbours that interpolation uses
    y0, y1 = top * down, min((top + rows) * down, height)
    x0, x1 = left * across, min((left + columns) * across, width)
    first, last = max(int(y0) - more, 0), min(int(np.ceil(y1)) + more, height)
    begin, end = max(int(x0) - more, 0), min(int(np.ceil(x1)) + more, width)
    box = (x0 - begin, y0 - first, x1 - begin, y1 - first)
    part = source.read(first, begin, last - first, end - begin)

    def resized(plane: NDArray[Any]) -> NDArray[Any]:
        picture = Image.fromarray(np.ascontiguousarray(plane))
        return np.asarray(picture.resize((columns, rows), method, box=box))

    if part.dtype == np.uint8:
        return resized(part)
    return np.stack([resized(part[:, :, k]) for k in range(part.shape[2])], axis=2)
