"""Rendering of probabilities and masks: layers, overlays, previews."""

import gzip
import io
import struct
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from webapp.segmentation.colours import CIVIDIS

MAX_VIEW_PIXELS = 8_000_000
LEVELS = 65535
HAS_TRUTH = 1
GZIP_LEVEL = 4  # smooth planes shrink to about a tenth; higher levels gain 5 % for twice the time


def view_factor(width: int, height: int) -> int:
    """Return how many image pixels a layer pixel spans along a side: 1 up to 8 megapixels."""
    factor = 1
    while (width // factor) * (height // factor) > MAX_VIEW_PIXELS:
        factor += 1
    return factor


def reduced(array: NDArray, factor: int) -> NDArray:
    """Return every ``factor``-th row and column, from the middle of each block."""
    if factor == 1:
        return array
    height, width = array.shape[0] // factor * factor, array.shape[1] // factor * factor
    return array[factor // 2 : height : factor, factor // 2 : width : factor]


def pack_layers(
    marginals: NDArray[np.float32], mask: NDArray[np.bool_], truth: NDArray[np.bool_] | None
) -> bytes:
    """Return the viewer's layers as one gzip file, which ``static/segmentation/layers.js`` reads.

    Probabilities keep 16 bits. They are stored as differences along each row, with high and low
    bytes separate, which makes upsampled probabilities compress well.
    """
    height, width = marginals.shape
    factor = view_factor(width, height)
    levels = np.rint(reduced(marginals, factor) * LEVELS).astype(np.uint16)
    steps = np.diff(levels, axis=1, prepend=np.uint16(0))
    bits = reduced(mask, factor).astype(np.uint8)
    if truth is not None:
        bits |= reduced(truth, factor).astype(np.uint8) << 1
    rows, columns = levels.shape
    flags = HAS_TRUTH if truth is not None else 0
    buffer = io.BytesIO()
    with gzip.GzipFile(fileobj=buffer, mode="wb", compresslevel=GZIP_LEVEL, mtime=0) as file:
        file.write(b"BHL1" + struct.pack("<4I", columns, rows, factor, flags))
        file.write((steps >> 8).astype(np.uint8).tobytes())
        file.write((steps & 255).astype(np.uint8).tobytes())
        file.write(np.ascontiguousarray(bits).tobytes())
    return buffer.getvalue()


def probability_picture(marginals: NDArray[np.float32]) -> Image.Image:
    """Return probabilities in the colours of cividis, 0 dark blue to 1 yellow."""
    return Image.fromarray(CIVIDIS[np.rint(marginals * 255).astype(np.uint8)])


def overlay_picture(
    image: NDArray[np.uint8], marginals: NDArray[np.float32], mask: NDArray[np.bool_]
) -> Image.Image:
    """Return the image under half-transparent probabilities with the mask's outline in white."""
    mixed = image // 2 + np.asarray(probability_picture(marginals)) // 2
    mixed[outline(mask)] = 255
    return Image.fromarray(mixed)


def outline(mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the pixels of the mask that touch a pixel outside it."""
    padded = np.pad(mask, 1, mode="edge")
    inner = padded[:-2, 1:-1] & padded[2:, 1:-1] & padded[1:-1, :-2] & padded[1:-1, 2:]
    return mask & ~inner


def mask_png(mask: NDArray[np.bool_]) -> bytes:
    """Return a mask as a grey PNG of 0 and 255."""
    return png_bytes(Image.fromarray(mask.astype(np.uint8) * 255))


def png_bytes(picture: Image.Image) -> bytes:
    """Return an image as PNG, compressed for speed rather than size."""
    buffer = io.BytesIO()
    picture.save(buffer, "PNG", compress_level=3)
    return buffer.getvalue()


def read_mask_png(path: Path) -> NDArray[np.bool_]:
    """Return a mask that this application wrote."""
    with Image.open(path, formats=("PNG",)) as picture:
        return np.asarray(picture.convert("L")) >= 128
