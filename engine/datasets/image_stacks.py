"""TIFF files of several pages, channels or planes, as microscopes and cameras write them."""

from dataclasses import dataclass
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from engine.core.errors import InvalidProblemError

TIFF_HEADS = (b"II*\x00", b"MM\x00*", b"II+\x00", b"MM\x00+")
MAX_STACK_BYTES = 800_000_000
"""Stacks that unpack to more are refused: one process must not take the memory of all."""

MAX_CHANNELS = 32
FEWEST_COLOUR_SAMPLES = 3
_SINGLE, _COLOUR = frozenset({"bool", "uint8", "uint16"}), frozenset({"bool", "uint8"})
"""Numbers that the picture decoder reads as they are, in one channel and in several."""

_UNREADABLE = (ValueError, KeyError, IndexError, TypeError, OSError, RuntimeError, OverflowError)
_MICROMETRES = {"µm": 1.0, "um": 1.0, "micron": 1.0, "\\u00B5m": 1.0, "nm": 1e-3, "mm": 1e3}
_CENTIMETRE, _INCH = 1e4, 2.54e4  # micrometres
_FINEST, _COARSEST = 1e-3, 1e3
"""Pixel sizes outside, micrometres, are what printers and screens note of a file."""


@dataclass(frozen=True, slots=True, eq=False)
class ImageStack:
    """What a file holds, before anybody chose how to look at it.

    Parameters
    ----------
    planes : ndarray, shape (n_pages, n_channels, height, width), any real type
    pixel_size : float or None, micrometres, where the file says so
    is_colour : bool, three or four channels that are red, green, blue (and opacity) by the file
    """

    planes: NDArray[Any]
    pixel_size: float | None = None
    is_colour: bool = False


def is_tiff(content: bytes) -> bool:
    """Whether bytes begin as TIFF or BigTIFF files do."""
    return content[:4] in TIFF_HEADS


def read_stack(content: bytes, label: str, max_pixels: int) -> ImageStack | None:
    """Read a TIFF that is more than one plain picture; None for all that a viewer shows as it is.

    Plain are one page of eight bits and one page of a single deep channel.

    Raises
    ------
    InvalidProblemError
        If it is too large, holds complex or other numbers than real ones, or is packed in a way
        that only its own program unpacks.
    """
    from tifffile import TiffFile, TiffFileError  # slow to import

    try:
        with TiffFile(BytesIO(content)) as file:
            series = file.series[0]
            if _is_plain(series):
                return None
            if series.dtype.kind not in "buif":
                raise InvalidProblemError(
                    f"{label}: its values are {series.dtype}, not real numbers."
                )
            _check_size(series, label, max_pixels)
            planes = _planes(series, _numbers(series, content, label))
            size = _pixel_size(file, series)
            is_colour = _is_colour(series)
    except InvalidProblemError:
        raise
    except TiffFileError:
        return None  # the picture decoder says in words what is wrong
    except _UNREADABLE as error:
        if "requires the 'imagecodecs'" in str(error) and not _is_single_byte(content):
            raise _unpacked_nowhere(label, error) from error
        return None
    return ImageStack(planes, size, is_colour)


def tiff_pixel_size(content: bytes) -> float | None:
    """Micrometres a pixel, where a TIFF file of any kind says so."""
    from tifffile import TiffFile, TiffFileError

    try:
        with TiffFile(BytesIO(content)) as file:
            return _pixel_size(file, file.series[0])
    except (TiffFileError, *_UNREADABLE):
        return None


def _is_plain(series: Any) -> bool:
    """Whether any viewer shows it right: one page of bytes, or one page of one channel."""
    page = series.keyframe
    if len(series.pages) > 1 or "Z" in series.axes or "C" in series.axes or "T" in series.axes:
        return False
    is_single = page.samplesperpixel == 1
    return page.dtype is not None and page.dtype.name in (_SINGLE if is_single else _COLOUR)


def _is_single_byte(content: bytes) -> bool:
    """Whether the picture decoder reads the first page without losing depth."""
    from tifffile import TiffFile

    with TiffFile(BytesIO(content)) as file:
        page: Any = file.pages[0]
        return bool(page.samplesperpixel == 1 or page.bitspersample <= 8)


def _unpacked_nowhere(label: str, error: Exception) -> InvalidProblemError:
    kind = str(error).partition(">")[0].rpartition(".")[2] or "its own way"
    return InvalidProblemError(
        f"{label}: several channels of 16 bits are packed by {kind}, which is not read here; save "
        "it without compression or packed by ZIP (deflate)."
    )


def _check_size(series: Any, label: str, max_pixels: int) -> None:
    sizes = dict(zip(series.axes, series.shape, strict=True))
    height, width = sizes.get("Y", 0), sizes.get("X", 0)
    if not height or not width:
        raise InvalidProblemError(f"{label}: the picture has no pixels.")
    if height * width > max_pixels:
        raise InvalidProblemError(
            f"{label}: {width} x {height} pixels is too large; at most "
            f"{max_pixels / 1e6:.3g} megapixels are accepted."
        )
    total = int(np.prod(series.shape, dtype=np.float64) * series.dtype.itemsize)
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


def _numbers(series: Any, content: bytes, label: str) -> NDArray[Any]:
    """All numbers of a series, in its own order of axes.

    Pages of one channel that are packed in a way that only the picture decoder knows, LZW for one,
    are unpacked by that, page by page.
    """
    try:
        return np.asarray(series.asarray())
    except ValueError as error:
        if "requires the 'imagecodecs'" not in str(error) or series.keyframe.samplesperpixel > 1:
            raise
    pages = []
    try:
        with Image.open(BytesIO(content), formats=("TIFF",)) as picture:
            for page in series.pages:
                picture.seek(page.index)
                pages.append(np.asarray(picture))
        return np.stack(pages).astype(series.dtype)
    except (*_UNREADABLE, EOFError, SyntaxError) as error:
        raise InvalidProblemError(
            f"{label}: page {len(pages) + 1} of {len(series.pages)} is damaged."
        ) from error


def _planes(series: Any, given: NDArray[Any]) -> NDArray[Any]:
    """All numbers, in the order pages, channels, rows, columns."""
    axes = series.axes
    numbers = given.reshape(series.shape)
    pages = [k for k, axis in enumerate(axes) if axis not in "CSYX"]
    channels = [k for k, axis in enumerate(axes) if axis in "CS"]
    ordered = numbers.transpose(*pages, *channels, axes.index("Y"), axes.index("X"))
    height, width = ordered.shape[-2:]
    n_channels = int(np.prod([numbers.shape[k] for k in channels], dtype=int))
    return np.ascontiguousarray(ordered.reshape(-1, n_channels, height, width))


def _is_colour(series: Any) -> bool:
    """Whether the file says that its samples are red, green and blue."""
    page = series.keyframe
    name = getattr(page.photometric, "name", "")
    return name in {"RGB", "YCBCR"} and page.samplesperpixel >= FEWEST_COLOUR_SAMPLES


def _pixel_size(file: Any, series: Any) -> float | None:
    """Micrometres a pixel by OME-XML, ImageJ's unit, or the resolution in centimetres."""
    if file.is_ome and file.ome_metadata:
        from tifffile import xml2dict

        found = _of_ome(xml2dict(file.ome_metadata))
        if found is not None:
            return found
    page = series.keyframe
    tag = page.tags.get("XResolution")
    if tag is None or not isinstance(tag.value, tuple) or not tag.value[0]:
        return None
    length = tag.value[1] / tag.value[0]
    unit_tag = page.tags.get("ResolutionUnit")
    unit = int(unit_tag.value) if unit_tag is not None else 2
    imagej = (file.imagej_metadata or {}).get("unit", "") if file.is_imagej else ""
    factor = _MICROMETRES.get(str(imagej).strip())
    if factor is None:
        # Inches are what printers note (72 or 300 a picture); only centimetres are trusted.
        factor = {3: _CENTIMETRE}.get(unit)
    size = length * factor if factor else None
    return size if size is not None and _FINEST <= size <= _COARSEST else None


def _of_ome(tree: Any) -> float | None:
    try:
        image = tree["OME"]["Image"]
        pixels = (image[0] if isinstance(image, list) else image)["Pixels"]
        size = float(pixels["PhysicalSizeX"])
        factor = _MICROMETRES.get(pixels.get("PhysicalSizeXUnit", "µm"))
    except (*_UNREADABLE, AttributeError):
        return None
    return size * factor if factor and size > 0 else None
