"""Limits on the size of pictures, checked by every reader before unpacking."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from engine.core.errors import InvalidProblemError

MAX_PIXELS = 50_000_000
"""Largest picture that is decoded.

Decoding takes eight bytes per pixel, 400 MB for 50 megapixels: four for the decoded picture, and
three for the result or four for the copy that is turned upright. Formats that are decoded as a
whole take up to twice that, WebP for one.
"""

MAX_STACK_BYTES = 800_000_000
"""Limit of an unpacked stack in bytes: one process must not take the memory of all."""

MAX_CHANNELS = 32


def check_pixels(height: int, width: int, label: str, max_pixels: int) -> None:
    """Refuse a picture without pixels, or with too many.

    Raises
    ------
    InvalidProblemError
        Naming the picture and its size.
    """
    if height < 1 or width < 1:
        raise InvalidProblemError(f"{label}: the picture has no pixels.")
    if height * width > max_pixels:
        raise InvalidProblemError(
            f"{label}: {width} x {height} pixels is too large; at most "
            f"{max_pixels / 1e6:.3g} megapixels are accepted."
        )


def check_planes(sizes: Mapping[str, int], dtype: Any, label: str, max_pixels: int) -> None:
    """Refuse a stack whose planes are too large, too many, or have too many channels.

    Parameters
    ----------
    sizes : length of every axis by its letter: Y and X rows and columns, C and S channels.
    dtype : type of its numbers.

    Raises
    ------
    InvalidProblemError
        Naming the picture and the size that is too large.
    """
    check_pixels(sizes.get("Y", 0), sizes.get("X", 0), label, max_pixels)
    total = int(np.prod(list(sizes.values()), dtype=np.float64) * np.dtype(dtype).itemsize)
    if total > MAX_STACK_BYTES:
        raise InvalidProblemError(
            f"{label}: the stack unpacks to {total / 1e6:,.0f} MB; at most "
            f"{MAX_STACK_BYTES // 10**6} MB are accepted. Save its pages one by one."
        )
    channels = sizes.get("C", 1) * sizes.get("S", 1)
    if channels > MAX_CHANNELS:
        raise InvalidProblemError(
            f"{label}: {channels} channels; at most {MAX_CHANNELS} are accepted."
        )
