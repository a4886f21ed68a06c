"""Array in a file, written and read by rectangles, without a copy in memory."""

import os
from pathlib import Path

import numpy as np
from numpy.lib import format as npy
from numpy.typing import DTypeLike, NDArray


class ArrayFile:
    """An ``.npy`` file of shape (rows, columns, ...) for arrays larger than memory.

    Rows are written by plain writes rather than through a mapping, so that written data does not
    count as memory of the process.
    """

    def __init__(self, path: Path, shape: tuple[int, ...], dtype: DTypeLike = np.float32) -> None:
        self.path, self.shape, self.dtype = path, tuple(map(int, shape)), np.dtype(dtype)
        self._item = int(np.prod(self.shape[2:], dtype=np.int64)) * self.dtype.itemsize
        with path.open("wb") as file:
            about = {
                "descr": npy.dtype_to_descr(self.dtype),
                "fortran_order": False,
                "shape": self.shape,
            }
            npy.write_array_header_2_0(file, about)
            self._start = file.tell()
            file.truncate(self._start + self._item * self.shape[0] * self.shape[1])
        self._file = path.open("r+b", buffering=0)

    def write(self, top: int, left: int, values: NDArray[np.generic]) -> None:
        """Write a rectangle whose first row and column are given."""
        rows = np.ascontiguousarray(values, dtype=self.dtype)
        for number, row in enumerate(rows):
            os.pwrite(self._file.fileno(), row.tobytes(), self._place(top + number, left))

    def read(self, top: int, left: int, rows: int, columns: int) -> NDArray[np.generic]:
        """Read a rectangle, shape (rows, columns, ...)."""
        parts = [
            os.pread(self._file.fileno(), columns * self._item, self._place(top + number, left))
            for number in range(rows)
        ]
        flat = np.frombuffer(b"".join(parts), dtype=self.dtype)
        return flat.reshape(rows, columns, *self.shape[2:])

    def _place(self, row: int, column: int) -> int:
        return self._start + (row * self.shape[1] + column) * self._item

    def close(self) -> None:
        """Close the file and keep it on the disk."""
        self._file.close()

    def __enter__(self) -> "ArrayFile":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
