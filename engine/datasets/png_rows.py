"""Writer of a grey or palette PNG row by row, for maps larger than memory."""

import struct
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

_MAGIC = b"\x89PNG\r\n\x1a\n"
_GREY, _PALETTE = 0, 3
_LEVEL = 4


def write_png_rows(
    path: Path,
    shape: tuple[int, int],
    bands: Iterable[NDArray[np.uint8]],
    palette: NDArray[np.uint8] | None = None,
) -> None:
    """Write bands of whole rows, (rows, width) uint8 from the top down, as an 8-bit PNG.

    Values are grey, or indices into a ``palette`` of shape (256, 3).
    """
    height, width = shape
    kind = _GREY if palette is None else _PALETTE
    packer = zlib.compressobj(_LEVEL)
    with path.open("wb") as file:
        file.write(_MAGIC)
        _chunk(file, b"IHDR", struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0))
        if palette is not None:
            _chunk(file, b"PLTE", palette.tobytes())
        for band in bands:
            rows = np.zeros(
                (len(band), width + 1), dtype=np.uint8
            )  # each begins with its filter: 0
            rows[:, 1:] = band
            if packed := packer.compress(rows.tobytes()):
                _chunk(file, b"IDAT", packed)
        _chunk(file, b"IDAT", packer.flush())
        _chunk(file, b"IEND", b"")


def _chunk(file: BinaryIO, kind: bytes, content: bytes) -> None:
    write = file.write
    write(struct.pack(">I", len(content)))
    write(kind + content)
    write(struct.pack(">I", zlib.crc32(kind + content)))
