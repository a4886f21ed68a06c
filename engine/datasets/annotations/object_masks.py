"""Joining of masks of one object each, as data sets of nuclei have them, into one map."""

import io
import re
from collections.abc import Iterable

import numpy as np
from PIL import Image

from engine.core.errors import InvalidProblemError
from engine.datasets.image_names import picture_stem
from engine.datasets.masks import read_mask

MOST_OBJECTS = 65_534
_NUMBERED = re.compile(
    r"(?P<stem>.+?)[._-](?:mask|object|obj|cell|instance|roi|nucleus)s?[._-]?(?P<number>\d+)"
)


def numbered_stem(name: str) -> str | None:
    """Return the image name in the file name of a numbered object mask; None for other names.

    Examples
    --------
    >>> numbered_stem("A_mask_12.png"), numbered_stem("a-object7.tif"), numbered_stem("a_mask.png")
    ('a', 'a', None)
    """
    found = _NUMBERED.fullmatch(picture_stem(name))
    return found["stem"] if found else None


def joined_masks(masks: Iterable[tuple[str, bytes]]) -> tuple[bytes, int]:
    """Return a PNG that numbers the objects, and their count.

    Raises
    ------
    InvalidProblemError
        If a mask cannot be read or differs in size from the first; the sentence names it.
    """
    numbers: np.ndarray | None = None
    count = 0
    for name, content in masks:
        try:
            mask = read_mask(content, name=name)
        except InvalidProblemError as error:
            raise InvalidProblemError(str(error)) from error
        if numbers is None:
            numbers = np.zeros(mask.shape, dtype=np.uint16)
        if mask.shape != numbers.shape:
            rows, columns = mask.shape
            raise InvalidProblemError(
                f"{name}: its {columns} x {rows} pixels are not the {numbers.shape[1]} x "
                f"{numbers.shape[0]} of the other masks of its picture."
            )
        if mask.any():
            count += 1
            numbers[mask] = count
    if numbers is None or count > MOST_OBJECTS:
        raise InvalidProblemError(f"1 to {MOST_OBJECTS:,} masks are joined into one.")
    buffer = io.BytesIO()
    Image.fromarray(numbers).save(buffer, "PNG", compress_level=3)
    return buffer.getvalue(), count
