"""Masks and maps of labels opened by the numbers that their programs meant.

Scripts write labels with 64 bits a pixel, which no picture decoder opens, and ImageJ's plugins
write them as floats. tifffile notes of yes and no, and ImageJ of masks made while "Black
background" is off, that 0 is shown white: objects have the larger number all the same.
"""

from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from engine.datasets.damage import unreadable_tiff
from engine.datasets.image_stacks import is_tiff
from engine.datasets.images import open_picture, picture_bytes

_WIDE_BYTES = 8
_WRITER = "tifffile"


def open_map(source: str | Path | bytes, label: str, max_pixels: int) -> Image.Image:
    """Open a mask or map of labels; as `open_picture`, but for kinds that change its numbers.

    Whole numbers of floats and of 64 bits are of mode "I", other numbers of 64 bits of mode "F".

    Raises
    ------
    InvalidProblemError
        As `open_picture`.
    """
    content = picture_bytes(source, label, max_pixels)
    numbers = _meant_numbers(content, max_pixels) if is_tiff(content) else None
    return open_picture(content, label, max_pixels) if numbers is None else Image.fromarray(numbers)


def _meant_numbers(content: bytes, max_pixels: int) -> NDArray[Any] | None:
    """Numbers of one page of one channel in a kind that pictures have; None where it has one."""
    from tifffile import TiffFile  # slow to import

    try:
        with TiffFile(BytesIO(content)) as file:
            page = file.series[0].keyframe
            is_single = len(file.series[0].pages) == 1 and page.samplesperpixel == 1
            is_small = page.imagewidth * page.imagelength <= max_pixels
            if not is_single or not is_small or not (_is_turned_over(file, page) or _is_wide(page)):
                return None
            return _narrowed(page.asarray())
    except unreadable_tiff():
        return None  # the picture decoder says in words what is wrong


def _is_turned_over(file: Any, page: Any) -> bool:
    """Whether 0 is noted as white by a program whose objects have the larger number."""
    is_noted = getattr(page.photometric, "name", "") == "MINISWHITE"
    return is_noted and (file.is_imagej or str(page.software).startswith(_WRITER))


def _is_wide(page: Any) -> bool:
    return page.dtype.kind in "iuf" and (page.dtype.kind == "f" or page.dtype.itemsize > 4)


def _narrowed(numbers: NDArray[Any]) -> NDArray[Any] | None:
    """The same numbers in a kind that Pillow holds; None where there is none."""
    if numbers.dtype.kind == "b":
        return np.where(numbers, np.uint8(255), np.uint8(0))
    if numbers.dtype.kind == "f" and not np.array_equal(numbers, np.rint(numbers)):
        is_wide = numbers.dtype.itemsize == _WIDE_BYTES
        return numbers.astype(np.float32) if is_wide else None
    if numbers.dtype in (np.uint8, np.uint16):
        return numbers
    limits = np.iinfo(np.int32)
    is_within = limits.min <= numbers.min() and numbers.max() <= limits.max
    return numbers.astype(np.int32) if is_within else None
