"""Arrays kept in memory up to a budget, and in files beyond it."""

import os
import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from engine.core.arguments import FloatArray
from engine.core.spill_folder import spill_folder

MEMORY_BYTES = 768 * 2**20
"""Memory budget: enough for a training set of 300 pictures of 30,000 pixels, or of 700 if only
messages are kept."""

FILE_BYTES = 64 * 2**20
"""Size of a file shared by many arrays: each file holds a descriptor, and these are limited."""

_LINE_BYTES = 64  # of a cache line, to which arrays are aligned


class ArrayStore:
    """Store of arrays that a solver changes in place; beyond a budget they are mapped to files.

    The files have no names: their space is freed when their arrays are deleted, and also when the
    process is killed. Mapped arrays behave as others do. The system writes them out and reads them
    back as needed, so that memory use stays constant however many pictures there are.

    Parameters
    ----------
    memory_bytes : int, budget in memory.
    folder : Path, optional, folder of the files; `spill_folder` if None.
    """

    def __init__(self, memory_bytes: int = MEMORY_BYTES, folder: Path | None = None) -> None:
        self._left = memory_bytes
        self._folder = folder
        self._pages = np.empty(0, np.uint8)  # of the last file
        self._used = 0  # bytes of them

    def keep(self, array: FloatArray) -> FloatArray:
        """Return the array itself, or a copy of it in a file once the memory budget is spent.

        Raises
        ------
        OSError
            If the disk has no space for the file.
        """
        if array.nbytes <= self._left:
            self._left -= array.nbytes
            return array
        if self._used + array.nbytes > self._pages.size:
            self._pages, self._used = self._next_pages(array.nbytes), 0
        end = self._used + array.nbytes
        kept = self._pages[self._used : end].view(array.dtype).reshape(array.shape)
        self._used = -(-end // _LINE_BYTES) * _LINE_BYTES
        kept[:] = array
        return kept

    def _next_pages(self, needed: int) -> NDArray[np.uint8]:
        size = max(needed, FILE_BYTES)
        with tempfile.TemporaryFile(dir=self._folder or spill_folder()) as file:
            _reserve(file.fileno(), size)
            mapped = np.memmap(file, dtype=np.uint8, mode="r+", shape=(size,))
        # As a plain array on the same pages: compiled code then sees one type, not two.
        return np.asarray(mapped)


def _reserve(handle: int, size: int) -> None:
    """Fill an empty file with zeros, with disk space allocated for them.

    Writing to mapped pages of a sparse file ends the process without a message when the disk is
    full (SIGBUS); an allocation beforehand returns an error.
    """
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(handle, 0, size)
    else:
        os.truncate(handle, size)
