"""Probabilities of another program in NPY or TIFF files: read whole, or window by window."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.core.errors import InvalidProblemError
from engine.core.npz_file import read_array
from engine.crf.class_features import MOST_CLASSES
from engine.crf.picture_windows import ArrayMaps, MapSource
from engine.datasets.damage import unreadable_tiff
from engine.datasets.tiff_files import open_tiff
from engine.datasets.tiff_pictures import only_series

ROUNDING = 1e-6
"""Tolerance by which probabilities may exceed 0 and 1."""


def read_map(path: Path, *, ending: str = "") -> NDArray[np.float32]:
    """Read probabilities of another program, NPY or TIFF: (H, W, C), C is 1 for a single plane.

    ``ending`` gives the format if the path does not. Planes may come first or last:
    the axis that is much shorter holds them. Bytes and sixteen-bit numbers count as shares of their
    largest value.

    Raises
    ------
    InvalidProblemError
        If the file cannot be read or holds something else.
    """
    return _shares(_planes(_loaded(path, ending, in_parts=False), path.name), path.name)


def open_map(path: Path) -> MapSource:
    """Open probabilities of another program to read rectangles on demand.

    A TIFF is read whole nevertheless.

    Raises
    ------
    InvalidProblemError
        As `read_map`; values are checked per rectangle.
    """
    if path.suffix.casefold() != ".npy":
        return ArrayMaps(read_map(path))
    return _MapFile(_planes(_loaded(path, "", in_parts=True), path.name), path.name)


@dataclass(frozen=True, slots=True, eq=False)
class _MapFile(ArrayMaps):
    """Planes in a memory-mapped file, (H, W, C), numbers of any kind."""

    name: str

    def read(self, top: int, left: int, rows: int, columns: int) -> NDArray[np.float32]:
        part = self.planes[top : top + rows, left : left + columns]
        return _shares(np.asarray(part), self.name)


def _loaded(path: Path, ending: str, *, in_parts: bool) -> NDArray[Any]:
    try:
        if (ending or path.suffix).casefold() == ".npy":
            return read_array(path, is_mapped=in_parts)
        return _of_tiff(path)
    except unreadable_tiff() as error:
        raise InvalidProblemError(f"{path.name}: this map cannot be read.") from error


def _of_tiff(path: Path) -> NDArray[Any]:
    """Read the only picture of a TIFF; files that it refers to are never opened."""
    with open_tiff(path.read_bytes(), path.name) as file:  # a path would open other files
        series = only_series(file, path.name)
        if any(page is None for page in series.pages):
            raise ValueError("planes are missing")
        return np.asarray(series.asarray())


def _planes(values: NDArray[Any], name: str) -> NDArray[Any]:
    """Return the same numbers as (H, W, C)."""
    if values.dtype.kind not in "uif" or values.ndim not in (2, 3) or values.size == 0:
        raise InvalidProblemError(
            f"{name}: expected numbers of shape (height, width) or (height, width, planes)."
        )
    planes = values[:, :, None] if values.ndim == 2 else values
    if planes.shape[0] <= MOST_CLASSES < planes.shape[2]:
        planes = np.moveaxis(planes, 0, 2)
    if planes.shape[2] > MOST_CLASSES:
        raise InvalidProblemError(f"{name}: at most {MOST_CLASSES} planes are taken.")
    return planes


def _shares(planes: NDArray[Any], name: str) -> NDArray[np.float32]:
    """Return numbers of a file as probabilities."""
    if planes.dtype in (np.uint8, np.uint16):
        planes = planes / np.float32(np.iinfo(planes.dtype).max)
    narrow = np.asarray(planes, dtype=np.float32)
    low, high = float(narrow.min()), float(narrow.max())  # not numbers if one value is none
    if not (low >= -ROUNDING and high <= 1 + ROUNDING):
        raise InvalidProblemError(f"{name}: probabilities must lie between 0 and 1.")
    return narrow
