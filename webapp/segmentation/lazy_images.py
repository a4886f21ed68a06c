"""Stored pictures as a sequence that is decoded one at a time: memory does not grow with a set."""

from collections.abc import Sequence
from pathlib import Path
from typing import overload

import numpy as np
from numpy.typing import NDArray

from engine import match_mask, read_image, read_mask


class StoredImages(Sequence):
    """RGB pictures, each shape (height, width, 3) uint8, read anew whenever asked for."""

    def __init__(self, sources: Sequence[tuple[Path, str]]) -> None:
        self._sources = tuple(sources)

    def __len__(self) -> int:
        return len(self._sources)

    @overload
    def __getitem__(self, index: int) -> NDArray[np.uint8]: ...

    @overload
    def __getitem__(self, index: slice) -> "StoredImages": ...

    def __getitem__(self, index):
        """Read picture ``index``; InvalidProblemError names the file if it cannot be read."""
        if isinstance(index, slice):
            return StoredImages(self._sources[index])
        path, name = self._sources[index]
        return read_image(path, name=name)


class StoredMasks(Sequence):
    """Masks, each shape (height, width) bool, at the size of their pictures."""

    def __init__(self, sources: Sequence[tuple[Path, str, tuple[int, int]]]) -> None:
        self._sources = tuple(sources)

    def __len__(self) -> int:
        return len(self._sources)

    @overload
    def __getitem__(self, index: int) -> NDArray[np.bool_]: ...

    @overload
    def __getitem__(self, index: slice) -> "StoredMasks": ...

    def __getitem__(self, index):
        """Read mask ``index``; InvalidProblemError names the file if it cannot be read."""
        if isinstance(index, slice):
            return StoredMasks(self._sources[index])
        path, name, shape = self._sources[index]
        return match_mask(read_mask(path, name=name), shape, name=name)
