"""Arrays that stay in memory while there is room, and in files beyond."""

import os
import tempfile
from pathlib import Path

import numpy as np

from engine.core.arguments import FloatArray

MEMORY_BYTES = 768 * 2**20
"""Room in memory: a training set of 300 pictures of 30,000 pixels, or of 700 when only messages
are kept."""


class ArrayShelf:
    """Keeps arrays that a solver changes in place; beyond a budget they are mapped to files.

    The files have no names: the room of each is free again when its array goes, and also when the
    process is killed. Mapped arrays behave as others do; the system writes them out and reads them
    back as it sees fit, so that memory stays flat however many pictures there are.

    Parameters
    ----------
    memory_bytes : int, budget in memory.
    folder : Path, optional, where to make the files; the system's place for such files if None.
    """

    def __init__(self, memory_bytes: int = MEMORY_BYTES, folder: Path | None = None) -> None:
        self._left = memory_bytes
        self._folder = folder

    def keep(self, array: FloatArray) -> FloatArray:
        """Return the array itself, or a copy of it in a file once the memory is spent.

        Raises
        ------
        OSError
            If the disk has no room for the file.
        """
        if array.nbytes <= self._left:
            self._left -= array.nbytes
            return array
        with tempfile.TemporaryFile(dir=self._folder) as file:
            _reserve(file.fileno(), array.nbytes)
            mapped = np.memmap(file, dtype=array.dtype, mode="r+", shape=array.shape)
        mapped[:] = array
        # As plain array on the same pages: compiled code then sees one type, not two.
        return np.asarray(mapped)


def _reserve(handle: int, size: int) -> None:
    """Give an empty file zeros whose blocks the disk has granted.

    Writing to mapped pages of a sparse file ends the process without a word when the disk is
    full (SIGBUS); asked beforehand, the system answers with an error.
    """
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(handle, 0, size)
    else:
        os.truncate(handle, size)
