"""Pictures larger than memory: TIFF files of up to some gigapixels, read by rectangles."""

import math
from collections import OrderedDict
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.core.arguments import ByteImage
from engine.core.errors import InvalidProblemError
from engine.datasets.damage import unreadable_tiff
from engine.datasets.images import FULL_RANGE, MAX_BYTES, TAIL, TIFF_ENDINGS
from engine.datasets.limits import MAX_PIXELS
from engine.datasets.picture_view import PictureView
from engine.datasets.samples import UPRIGHT, light_of
from engine.datasets.tiff_pictures import bytes_of_palette, meaning_of_page

MOST_PIXELS = 4_000_000_000
"""Limit of a picture's pixels: the probabilities of a larger one would take over 16 GB of disk."""

CACHE_BYTES = 192 * 2**20
"""Size of the cache of unpacked tiles or strips, so that neighbours are not unpacked again."""

LARGEST_PIECE = 256 * 2**20
"""Most bytes of a tile or strip: a picture in a single strip cannot be read in parts."""

SAMPLED_PIECES = 64
"""Number of tiles or strips whose values determine the stretch of a deep picture."""

SAMPLED_VALUES = 1_000_000

_BYTE, _DEEP = 8, 16


class LargeTiff:
    """A TIFF picture of one page that gives any rectangle of itself as 8-bit RGB.

    Grey or colour of 8 bits, and grey of 16 bits. The latter is stretched as in
    `engine.datasets.picture_view.set_view`, by the values of some of its pieces, or by the first
    channel of a ``view``.

    Raises
    ------
    InvalidProblemError
        If it cannot be opened, has another kind of values, or is packed so that it cannot be read
        in parts. One sentence, naming the file.
    """

    def __init__(self, path: Path, view: PictureView | None = None) -> None:
        from tifffile import TiffFile  # slow to import

        self._name = path.name
        self._file: Any
        self._page: Any
        try:
            self._file = TiffFile(path)
        except unreadable_tiff() as error:
            raise _no_tiff(path) from error
        try:
            self._page = self._file.pages[0]
            self._check()
            self._kept: OrderedDict[int, NDArray[Any]] = OrderedDict()
            self._kept_bytes = 0
            self._range = self._stretch(view) if self._page.bitspersample == _DEEP else None
        except BaseException as error:
            self.close()
            is_explained = isinstance(error, InvalidProblemError)
            if is_explained or not isinstance(error, unreadable_tiff()):
                raise
            raise _no_tiff(path) from error

    @property
    def shape(self) -> tuple[int, int]:
        """Return the numbers of rows and columns."""
        return int(self._page.imagelength), int(self._page.imagewidth)

    def read(self, top: int, left: int, rows: int, columns: int) -> ByteImage:
        """Return a rectangle, shape (rows, columns, 3).

        Raises
        ------
        InvalidProblemError
            If a piece of it is damaged.
        """
        out = np.zeros((rows, columns, 3), dtype=np.uint8)
        high, wide = self._piece
        for i in range(top // high, -(-(top + rows) // high)):
            for j in range(left // wide, -(-(left + columns) // wide)):
                piece = self._shown(self._load(i * self._across + j))
                y, x = i * high, j * wide
                y0, y1 = max(y, top), min(y + piece.shape[0], top + rows)
                x0, x1 = max(x, left), min(x + piece.shape[1], left + columns)
                part = piece[y0 - y : y1 - y, x0 - x : x1 - x]
                out[y0 - top : y1 - top, x0 - left : x1 - left] = part
        return out

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> "LargeTiff":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def _piece(self) -> tuple[int, int]:
        """Return the rows and columns of a tile or strip."""
        page = self._page
        if page.is_tiled:
            return int(page.tilelength), int(page.tilewidth)
        return int(min(page.rowsperstrip, page.imagelength)), int(page.imagewidth)

    @property
    def _across(self) -> int:
        return -(-self.shape[1] // self._piece[1])

    def _check(self) -> None:
        page, name = self._page, self._name
        height, width = self.shape
        if not height * width:
            raise InvalidProblemError(
                f"{name}: the file is damaged or cut off before the picture begins."
            )
        if height * width > MOST_PIXELS:
            raise InvalidProblemError(
                f"{name}: {width} x {height} pixels; at most {MOST_PIXELS / 1e9:.3g} "
                "gigapixels are accepted."
            )
        if len(self._file.pages) > 1 and not self._is_pyramid():
            raise InvalidProblemError(
                f"{name}: so large a file with several pages; save one page in a file of its own."
            )
        samples, bits = int(page.samplesperpixel), page.bitspersample
        is_byte = bits == _BYTE and samples in (1, 3, 4)
        if not (is_byte or (bits == _DEEP and samples == 1)) or page.sampleformat != 1:
            raise InvalidProblemError(
                f"{name}: {samples} channel{'s'[: samples != 1]} of {bits} bits; pictures above "
                f"{MAX_PIXELS // 10**6} megapixels are read as grey or colour of 8 bits, or grey "
                "of 16."
            )
        if samples > 1 and page.planarconfig != 1:
            raise InvalidProblemError(f"{name}: save its channels interleaved, not as planes.")
        light = getattr(page.photometric, "name", "unknown")
        if light not in ("MINISBLACK", "MINISWHITE", "RGB", "PALETTE", "SEPARATED"):
            raise InvalidProblemError(f"{name}: its colours are {light}; save it as RGB or grey.")
        sample = np.zeros((1, samples, 1, 1), dtype=page.dtype)
        palette = bytes_of_palette(page.colormap) if light == "PALETTE" else None
        self._meaning = replace(meaning_of_page(page, sample), palette=palette)
        if self._meaning.orientation != UPRIGHT:
            raise InvalidProblemError(
                f"{name}: the file notes that it is to be turned; save it upright."
            )
        size = math.prod(self._piece) * samples * bits // 8
        if size > LARGEST_PIECE:
            raise InvalidProblemError(
                f"{name}: it is saved as one strip of {size / 1e6:,.0f} MB, so that no part can be "
                "read alone; save it in tiles."
            )
        self._load_first()

    def _is_pyramid(self) -> bool:
        """Return True if all further pages are smaller copies of the first."""
        return all(int(page.imagelength) < self.shape[0] for page in list(self._file.pages)[1:])

    def _load_first(self) -> None:
        self._kept = OrderedDict()
        self._kept_bytes = 0
        self._load(0)

    def _load(self, index: int) -> NDArray[Any]:
        """Unpack a piece, (rows, columns, samples), or take it from the cache."""
        if index in self._kept:
            self._kept.move_to_end(index)
            return self._kept[index]
        piece = self._unpack(index)
        self._kept[index] = piece
        self._kept_bytes += piece.nbytes
        while self._kept_bytes > CACHE_BYTES and len(self._kept) > 1:
            _, oldest = self._kept.popitem(last=False)
            self._kept_bytes -= oldest.nbytes
        return piece

    def _unpack(self, index: int) -> NDArray[Any]:
        page = self._page
        size = int(page.databytecounts[index])
        try:
            if size > 2 * LARGEST_PIECE:
                raise ValueError("a piece larger than it can be")
            self._file.filehandle.seek(int(page.dataoffsets[index]))
            packed = self._file.filehandle.read(size)
            found, _, shape = page.decode(packed, index, jpegtables=page.jpegtables)
        except Exception as error:
            text = str(error)
            if "imagecodecs" in text:
                raise InvalidProblemError(
                    f"{self._name}: packed by {getattr(page.compression, 'name', 'its own way')}, "
                    "which is not read in parts here; save it without compression or packed by "
                    "ZIP (deflate)."
                ) from error
            raise InvalidProblemError(f"{self._name}: the file is damaged or cut off.") from error
        if found is None:  # a piece that was never written is black
            return np.zeros((*shape[1:3], int(page.samplesperpixel)), dtype=page.dtype)
        high, wide = self._piece  # samples beyond the picture are padding
        rows = self.shape[0] - index // self._across * high
        columns = self.shape[1] - index % self._across * wide
        return np.asarray(found[0][:rows, :columns])

    def _stretch(self, view: PictureView | None) -> tuple[float, float]:
        """Return the values that are shown black and white."""
        if view is not None:
            return view.channels[0].low, view.channels[0].high
        count = len(self._page.dataoffsets)
        chosen = np.unique(np.linspace(0, count - 1, min(count, SAMPLED_PIECES)).astype(int))
        stride = max(1, len(chosen) * math.prod(self._piece) // SAMPLED_VALUES)
        values = [self._light(self._load(int(k))).ravel()[::stride] for k in chosen]
        sample = np.concatenate(values)
        most = float(sample.max())
        if most <= 255:
            return 0.0, 255.0
        if most > FULL_RANGE * 65535:
            return 0.0, 65535.0
        low, high = np.quantile(sample, [TAIL, 1 - TAIL])
        return float(low), float(high) if high > low else float(low) + 1.0

    def _shown(self, piece: NDArray[Any]) -> ByteImage:
        """Return a piece as RGB."""
        light = self._light(piece)
        if self._range is not None:
            low, high = self._range
            numbers = (light.astype(np.float32) - low) * (255.0 / (high - low))
            light = np.clip(np.rint(numbers), 0, 255).astype(np.uint8)
        if light.shape[2] == 1:
            return np.repeat(light, 3, axis=2)
        return np.asarray(light[:, :, :3])

    def _light(self, piece: NDArray[Any]) -> NDArray[Any]:
        """Return the light of a piece, (rows, columns, 1 or 3)."""
        return np.moveaxis(light_of(np.moveaxis(piece, 2, 0), self._meaning), 0, 2)


def _no_tiff(path: Path) -> InvalidProblemError:
    return InvalidProblemError(f"{path.name}: this is no TIFF that can be read.")


def is_large(path: Path) -> bool:
    """Return True if a file is a TIFF too large to be read at once."""
    if path.suffix.casefold() not in TIFF_ENDINGS:
        return False
    if path.stat().st_size > MAX_BYTES:
        return True
    from tifffile import TiffFile

    try:
        with TiffFile(path) as file:
            page: Any = file.pages[0]
            return int(page.imagelength) * int(page.imagewidth) > MAX_PIXELS
    except unreadable_tiff():
        return False
