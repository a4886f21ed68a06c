"""Pictures as planes of numbers: pages, channels, rows and columns, as microscopes write them."""

import struct
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from engine.core.errors import InvalidProblemError
from engine.datasets.calibration import PixelSize, size_of_info
from engine.datasets.damage import UNREADABLE
from engine.datasets.limits import MAX_STACK_BYTES, check_planes
from engine.datasets.samples import Light, Meaning, light_of, upright
from engine.datasets.tiff_pictures import is_tiff, read_tiff_samples

_PNG_HEAD = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"
_PNG_SAMPLES = {2: (Light.COLOUR, 3, -1), 4: (Light.BLACK_IS_ZERO, 2, 1), 6: (Light.COLOUR, 4, 3)}
"""Light, samples per pixel and index of the opacity of PNG files with several samples, by kind."""
_KEY_LENGTHS = {0: 1, 2: 3}
"""Samples of the transparent colour, of grey and of colour PNG files."""

_N_COLOURS = 3
FRAMED_FORMATS = frozenset({"GIF", "WEBP", "PNG", "AVIF"})
"""Formats whose frames are pages; further pictures in a JPEG are previews."""


@dataclass(frozen=True, slots=True, eq=False)
class ImageStack:
    """Light of a picture, before a view is chosen.

    Parameters
    ----------
    planes : ndarray, shape (n_pages, n_channels, height, width), any real type
    pixel_size : PixelSize or None, if the file states it
    is_colour : bool, True if the first three channels are red, green and blue
    """

    planes: NDArray[Any]
    pixel_size: PixelSize | None = None
    is_colour: bool = False

    @property
    def is_plain(self) -> bool:
        """Return True for one page of bytes, grey or colour, which any viewer shows correctly."""
        n_pages, n_channels = self.planes.shape[:2]
        is_usual = n_channels == 1 or (self.is_colour and n_channels == _N_COLOURS)
        return n_pages == 1 and is_usual and self.planes.dtype == np.uint8

    def pixels(self) -> NDArray[np.uint8]:
        """Return a plain picture as red, green and blue, shape (height, width, 3)."""
        colours = np.moveaxis(self.planes[0], 0, 2)
        wanted = (*colours.shape[:2], _N_COLOURS)
        return np.ascontiguousarray(np.broadcast_to(colours, wanted))


def read_stack(content: bytes, label: str, max_pixels: int) -> ImageStack | None:
    """Read a TIFF, or a PNG of sixteen bits; None for files of the picture decoder.

    Raises
    ------
    InvalidProblemError
        If it is too large, holds complex or other numbers than real ones, or is packed so that only
        its own program unpacks it.
    """
    if content.startswith(_PNG_HEAD):
        return _read_png(content, label, max_pixels)
    if not is_tiff(content):
        return None
    samples = read_tiff_samples(content, label, max_pixels)
    if samples is None:
        return None
    return ImageStack(samples.light(), samples.upright_size, samples.is_colour)


def _read_png(content: bytes, label: str, max_pixels: int) -> ImageStack | None:
    """Read a PNG of sixteen bits with several samples, or with a transparent colour.

    The picture decoder keeps only eight bits of several samples, and shows transparent pixels of
    sixteen.
    """
    head = content[len(_PNG_HEAD) :]
    if len(head) < 10 or head[8] != 16:
        return None
    transparent = _transparent_colour(content, _KEY_LENGTHS.get(head[9], 0))
    if head[9] not in _PNG_SAMPLES and not transparent:
        return None
    light, samples, opacity = _PNG_SAMPLES.get(head[9], (Light.BLACK_IS_ZERO, 1, -1))
    width, height = struct.unpack(">II", head[:8])
    check_planes({"Y": height, "X": width, "S": samples}, np.uint16, label, max_pixels)
    from imagecodecs import png_decode  # slow to import

    try:
        numbers = np.asarray(png_decode(content))
    except UNREADABLE:
        return None  # the picture decoder explains the fault in its message
    planes = np.moveaxis(numbers.reshape(height, width, -1), 2, 0)[np.newaxis]
    if transparent:
        planes = planes[:, : len(transparent)].copy()
        key = np.array(transparent, dtype=planes.dtype)[:, np.newaxis, np.newaxis]
        planes = np.where(
            (planes == key).all(axis=1, keepdims=True), planes.dtype.type(65535), planes
        )
    meaning = Meaning(light, 65535.0, opacity=opacity)
    with Image.open(BytesIO(content), formats=("PNG",)) as opened:
        size = size_of_info(opened.info)
        orientation = orientation_of(opened) if b"eXIf" in content else 1
    shown = np.ascontiguousarray(upright(light_of(planes, meaning), orientation))
    is_sideways = Meaning(orientation=orientation).is_sideways
    size = size.turned(sideways=is_sideways) if size else None
    return ImageStack(shown, size, light is Light.COLOUR)


def _transparent_colour(content: bytes, count: int) -> tuple[int, ...]:
    """Return the samples of a PNG's transparent colour; none if it notes no such colour."""
    at = 8
    while count and at + 8 <= len(content):
        length, kind = struct.unpack_from(">I4s", content, at)
        if kind == b"IDAT":
            break
        if kind == b"tRNS" and length >= 2 * count:
            return struct.unpack_from(f">{count}H", content, at + 8)
        at += 12 + length
    return ()


def stack_of_frames(picture: Image.Image, label: str, max_pixels: int) -> ImageStack | None:
    """Return the frames of an opened GIF, WebP, APNG or AVIF as pages; None for a single one.

    Each frame is the visible picture at that moment, laid on white.

    Raises
    ------
    InvalidProblemError
        If all frames together are too large.
    """
    count = int(getattr(picture, "n_frames", 1))
    if picture.format not in FRAMED_FORMATS or count < 2:
        return None
    width, height = picture.size
    sizes = {"Q": count, "S": _N_COLOURS, "Y": height, "X": width}
    if count * _N_COLOURS * height * width > MAX_STACK_BYTES:
        raise InvalidProblemError(
            f"{label}: its {count} frames unpack to {count * 3 * height * width / 1e6:,.0f} MB; at "
            f"most {MAX_STACK_BYTES // 10**6} MB are accepted. Save the frames that matter as TIFF."
        )
    check_planes(sizes, np.uint8, label, max_pixels)
    planes = np.empty((count, _N_COLOURS, height, width), dtype=np.uint8)
    meaning = Meaning(Light.COLOUR, opacity=3)
    for number in range(count):
        picture.seek(number)
        frame = np.moveaxis(np.asarray(picture.convert("RGBA")), 2, 0)
        planes[number] = light_of(frame, meaning)
    is_grey = bool((planes[:, :1] == planes[:, 1:]).all())
    if is_grey:
        planes = np.ascontiguousarray(planes[:, :1])
    planes = np.ascontiguousarray(upright(planes, orientation_of(picture)))
    return ImageStack(planes, None, not is_grey)


def orientation_of(picture: Image.Image) -> int:
    """Return the orientation of a picture; a damaged note of it is ignored, as viewers do."""
    try:
        number = int(picture.getexif().get(0x0112, 1))
    except UNREADABLE:
        return 1
    return number if 1 <= number <= 8 else 1
