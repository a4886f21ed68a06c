"""Pictures deeper than a screen, as microscopes, cameras and satellites write them: TIFF, PNG."""

import struct
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.core.errors import InvalidProblemError
from engine.datasets.damage import UNREADABLE, unreadable_tiff

_BIG_BIGTIFF = b"MM\x00+"
TIFF_HEADS = (b"II*\x00", b"MM\x00*", b"II+\x00", _BIG_BIGTIFF)
_PNG_HEAD = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"
_PNG_COLOURS = {2: 3, 6: 4}
"""Samples a pixel of colour PNG files, by their kind: with and without opacity."""

MAX_STACK_BYTES = 800_000_000
"""Stacks that unpack to more are refused: one process must not take the memory of all."""

MOST_CHANNELS_LAST, NARROWEST = 8, 4
"""What is last of an array counts channels if it is so few, and both sides are so many times it."""

MAX_CHANNELS = 32
FEWEST_COLOUR_SAMPLES = 3
_MOST_COLOUR_SAMPLES = 4
_SINGLE, _COLOUR = frozenset({"bool", "uint8", "uint16"}), frozenset({"bool", "uint8"})
"""Numbers that the picture decoder reads as they are, in one channel and in several."""

_JPEG_2000 = frozenset({33003, 33005, 34712})  # the first two of Aperio's slides
_NOT_OF_VIEWERS = _JPEG_2000 | {50001}  # WebP
_PACKED = frozenset({0, 1, 5, 7, 8, 32773, 32946, 34925, 50000}) | _NOT_OF_VIEWERS
"""Packings that are opened: none, LZW, JPEG, ZIP, PackBits, LZMA, Zstandard, and those above."""

_NO_DATA_TAG = 42113  # of GDAL
_CIE_LIGHTEST = 100.0

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
    """Read a picture that is more than a viewer's; None for all that a viewer shows as it is.

    Plain are one page of eight bits and one page of a single deep channel.

    Raises
    ------
    InvalidProblemError
        If it is too large, holds complex or other numbers than real ones, or is packed in a way
        that only its own program unpacks.
    """
    if content.startswith(_PNG_HEAD):
        return _read_png(content, label, max_pixels)
    return _read_tiff(content, label, max_pixels) if is_tiff(content) else None


def _read_png(content: bytes, label: str, max_pixels: int) -> ImageStack | None:
    """Read the sixteen bits of a colour PNG, of which the picture decoder keeps the upper eight."""
    head = content[len(_PNG_HEAD) :]
    if len(head) < 10 or head[8] != 16 or head[9] not in _PNG_COLOURS:
        return None
    width, height = struct.unpack(">II", head[:8])
    _check_size((height, width, _PNG_COLOURS[head[9]]), "YXS", 2, label, max_pixels)
    from imagecodecs import png_decode  # slow to import

    try:
        numbers = np.asarray(png_decode(content))
    except UNREADABLE:
        return None  # the picture decoder says in words what is wrong
    opacity = numbers[:, :, FEWEST_COLOUR_SAMPLES:]
    if opacity.size and opacity.min() < np.iinfo(np.uint16).max:
        return None
    colours = numbers[:, :, :FEWEST_COLOUR_SAMPLES].transpose(2, 0, 1)
    return ImageStack(np.ascontiguousarray(colours)[np.newaxis], None, is_colour=True)


def _read_tiff(content: bytes, label: str, max_pixels: int) -> ImageStack | None:
    from tifffile import TiffFile  # slow to import

    try:
        with TiffFile(BytesIO(content)) as file:
            series = file.series[0]
            is_known = int(series.keyframe.compression) not in _NOT_OF_VIEWERS
            if is_known and _is_plain(series) and not content.startswith(_BIG_BIGTIFF):
                return None
            if series.dtype.kind not in "buif":
                raise InvalidProblemError(
                    f"{label}: its values are {series.dtype}, not real numbers."
                )
            if int(series.keyframe.compression) not in _PACKED:
                raise _unpacked_nowhere(series, label)
            _check_size(series.shape, meant_axes(series), series.dtype.itemsize, label, max_pixels)
            planes = _as_meant(series.keyframe, _planes(series, _numbers(series, label)))
            return ImageStack(planes, _pixel_size(file, series), _is_colour(series))
    except InvalidProblemError:
        raise
    except unreadable_tiff():
        return None  # the picture decoder says in words what is wrong


def tiff_pixel_size(content: bytes) -> float | None:
    """Micrometres a pixel, where a TIFF file of any kind says so."""
    from tifffile import TiffFile

    try:
        with TiffFile(BytesIO(content)) as file:
            return _pixel_size(file, file.series[0])
    except unreadable_tiff():
        return None


def meant_axes(series: Any) -> str:
    """Return the axes of a series of tifffile's.

    Of an array (height, width, few) it makes a page of each row; the last are channels.
    """
    if series.kind != "shaped" or series.axes != "QYX":
        return str(series.axes)
    *sides, last = series.shape
    is_channel = last <= MOST_CHANNELS_LAST and min(sides) >= NARROWEST * last
    return "YXC" if is_channel else "QYX"


def _is_plain(series: Any) -> bool:
    """Whether any viewer shows it right: one page of bytes, or one page of one channel."""
    page = series.keyframe
    if len(series.pages) > 1 or "Z" in series.axes or "C" in series.axes or "T" in series.axes:
        return False
    kind, light = getattr(page.dtype, "name", ""), getattr(page.photometric, "name", "")
    if page.samplesperpixel == 1:
        return kind in _SINGLE and not (kind == "uint16" and light == "MINISWHITE")
    return kind in _COLOUR and page.samplesperpixel <= _MOST_COLOUR_SAMPLES and light != "CIELAB"


def _unpacked_nowhere(series: Any, label: str) -> InvalidProblemError:
    kind = getattr(series.keyframe.compression, "name", "its own way")
    return InvalidProblemError(
        f"{label}: packed by {kind}, which is not read here; save it without compression or "
        "packed by LZW or ZIP (deflate)."
    )


def _check_size(
    shape: tuple[int, ...], axes: str, itemsize: int, label: str, max_pixels: int
) -> None:
    sizes = dict(zip(axes, shape, strict=True))
    height, width = sizes.get("Y", 0), sizes.get("X", 0)
    if not height or not width:
        raise InvalidProblemError(f"{label}: the picture has no pixels.")
    if height * width > max_pixels:
        raise InvalidProblemError(
            f"{label}: {width} x {height} pixels is too large; at most "
            f"{max_pixels / 1e6:.3g} megapixels are accepted."
        )
    total = int(np.prod(shape, dtype=np.float64) * itemsize)
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


def _numbers(series: Any, label: str) -> NDArray[Any]:
    """All numbers of a series, in its own order of axes; a damaged page is named."""
    try:
        return np.asarray(series.asarray())
    except UNREADABLE:
        pass
    for number, page in enumerate(series.pages, start=1):
        try:
            page.asarray()
        except Exception as error:  # whatever a codec raises of damaged bytes
            raise InvalidProblemError(
                f"{label}: page {number} of {len(series.pages)} is damaged."
            ) from error
    raise InvalidProblemError(f"{label}: its pages do not belong together.")


def _as_meant(page: Any, planes: NDArray[Any]) -> NDArray[Any]:
    """Return planes as light: whites that are noted as 0, gaps and CIELAB turned into that."""
    light = getattr(page.photometric, "name", "")
    if light == "MINISWHITE" and planes.dtype.kind == "u":
        return np.asarray(np.iinfo(planes.dtype).max - planes)
    if light == "CIELAB" and planes.shape[1] == FEWEST_COLOUR_SAMPLES:
        return _of_cielab(planes)
    tag = page.tags.get(_NO_DATA_TAG)
    gaps = planes == float(str(tag.value).strip("\x00 ")) if tag is not None else np.False_
    if not np.any(gaps) or np.all(gaps):
        return planes
    known = planes.astype(np.float32)
    known[gaps] = np.nan
    return known


def _of_cielab(planes: NDArray[Any]) -> NDArray[Any]:
    """Return red, green and blue of 0 to 1; whole numbers are CIE's as TIFF 6.0 packs them."""
    from skimage.color import lab2rgb

    lab = planes.astype(np.float64)
    if planes.dtype.kind == "u":
        most = float(np.iinfo(planes.dtype).max)
        lab[:, 1:] = np.where(lab[:, 1:] > most / 2, lab[:, 1:] - most - 1.0, lab[:, 1:])
        lab[:, 1:] /= (most + 1.0) / 256.0
        lab[:, 0] *= _CIE_LIGHTEST / most
    return np.asarray(lab2rgb(lab, channel_axis=1), dtype=np.float32)


def _planes(series: Any, given: NDArray[Any]) -> NDArray[Any]:
    """All numbers, in the order pages, channels, rows, columns."""
    axes = meant_axes(series)
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
    return name in {"RGB", "YCBCR", "CIELAB"} and page.samplesperpixel >= FEWEST_COLOUR_SAMPLES


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
    except AttributeError:  # no such elements
        return None
    except UNREADABLE:
        return None
    return size * factor if factor and size > 0 else None
