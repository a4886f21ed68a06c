"""Windows of pictures whose models are too large to be learned from whole.

Trees learn from sampled pixels of a window's core, weights from the whole core. The margin around
the core covers the reach of the filters, so features in the core equal those of the whole picture.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.crf.class_features import UNKNOWN, ClassLabels
from engine.crf.filter_bank import Frame
from engine.crf.picture_windows import tile_of
from engine.learning.segmentation.class_pictures import ReadPicture
from engine.learning.segmentation.labelled_pictures import LabelledPicture

WHOLE_SIDE = 1000
"""Longest side in pixels of models that are learned from whole; larger ones are cut in windows."""

CORE = 288
"""Side in pixels of a window's core; 512 with its margins."""

WINDOWS = 16
"""Largest total number of windows if there are fewer pictures than this."""


def windows_each(n_pictures: int) -> int:
    """Return the number of windows for each of ``n_pictures`` pictures."""
    return max(1, WINDOWS // n_pictures)


@dataclass(slots=True)
class WindowDraw:
    """Random choice of window places: alternately at a border between labels, and anywhere.

    Marked objects may be small, and places anywhere might all miss them; borders alone would make
    them seem more common than they are.
    """

    rng: np.random.Generator
    is_border_next: bool = True

    def corner(self, labels: NDArray[np.generic], side: int) -> tuple[int, int]:
        """Return the first row and column of a square of ``side`` pixels within labels, (H, W)."""
        rows, columns = labels.shape
        middle = self._border(labels) if self.is_border_next else None
        if middle is None:
            middle = int(self.rng.integers(rows)), int(self.rng.integers(columns))
            self.is_border_next = True
        else:
            self.is_border_next = False
        top, left = middle[0] - side // 2, middle[1] - side // 2
        return min(max(top, 0), max(rows - side, 0)), min(max(left, 0), max(columns - side, 0))

    def _border(self, labels: NDArray[np.generic]) -> tuple[int, int] | None:
        """Return a random pixel next to another label on its right (or else below); or None."""
        for ends in (labels, labels.T):
            by_row = np.array([np.count_nonzero(row[1:] != row[:-1]) for row in ends])
            if by_row.any():
                row = int(self.rng.choice(len(by_row), p=by_row / by_row.sum()))
                places = np.flatnonzero(ends[row, 1:] != ends[row, :-1])
                column = int(self.rng.choice(places))
                return (row, column) if ends is labels else (column, row)
        return None


def is_cut(shape: Sequence[int]) -> bool:
    """Return True if a model of this shape is learned from windows."""
    return max(shape) > WHOLE_SIDE


def cut_windows(picture: LabelledPicture, count: int, draw: WindowDraw) -> list[ReadPicture]:
    """Return ``count`` windows of a large picture; any other picture is returned whole.

    Parameters
    ----------
    picture : LabelledPicture
    count : int
    draw : random choice of window places

    Returns
    -------
    list of ReadPicture
        Labels outside a window's core are unknown.
    """
    colours, labels, maps, _ = picture
    rows, columns = labels.shape
    if not is_cut(labels.shape):
        return [ReadPicture(colours, maps, labels.view(np.uint8), Frame(0, 0, rows, columns))]
    windows = []
    for _ in range(count):
        top, left = draw.corner(labels, CORE)
        core = top, left, min(CORE, rows), min(CORE, columns)
        tile = tile_of(core, (rows, columns))
        known = np.full(tile.window[2:], UNKNOWN, dtype=np.uint8)
        known[tile.inside] = labels[tile.place][tile.inside]
        own = colours[tile.place].copy(), maps[tile.place].copy()  # views would keep the picture
        frame = Frame(*tile.window[:2], rows, columns)
        windows.append(ReadPicture(*own, known, frame))
    return windows


def core_of(labels: ClassLabels) -> tuple[slice, slice]:
    """Return the bounding box of the known labels of a window, or of a whole picture."""
    known = labels != UNKNOWN
    places = (np.flatnonzero(known.any(axis=axis)) for axis in (1, 0))
    rows, columns = (slice(int(one[0]), int(one[-1]) + 1) for one in places)
    return rows, columns
