"""Pictures from files or bytes: as a viewer would show them, or refused in words."""

import struct
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BytesIO
from pathlib import Path

import numpy as np
from PIL import AvifImagePlugin, Image, ImageOps, TiffImagePlugin, WebPImagePlugin

from engine.core.arguments import ByteImage
from engine.core.errors import InvalidProblemError
from engine.datasets.foreign_files import refuse_stranger, unwrapped

# Sizes are checked here and damage is refused in words; the decoders' own remarks on either would
# only reach the screen of somebody who cannot act on them.
warnings.filterwarnings("ignore", category=Image.DecompressionBombWarning)
warnings.filterwarnings("ignore", category=UserWarning, module=r"PIL\.")

MAX_PIXELS = 50_000_000
"""Largest picture that is decoded.

Decoding takes eight bytes a pixel, 400 MB for 50 megapixels: four for the decoded picture, and
three for the result or four for the copy that is turned upright. Formats that are decoded as a
whole take up to twice that, WebP for one.
"""

MAX_BYTES = 256 * 2**20
"""Largest file that is opened at all."""

TIFF_ENDINGS = frozenset({".tif", ".tiff"})

FORMATS = (
    "JPEG",
    "PNG",
    "BMP",
    "GIF",
    "PPM",
    TiffImagePlugin.TiffImageFile.format,
    WebPImagePlugin.WebPImageFile.format,
    AvifImagePlugin.AvifImageFile.format,
)
"""Decoders that may see foreign bytes; none of them runs another program."""

TAIL = 0.001
"""Share of the pixels that a stretch may make plain black, and the same again plain white."""

FULL_RANGE = 0.5
"""Sixteen-bit values that reach above this share of 65,535 are shown as they are."""

TILE_SIDE = 512
"""Pictures are converted in squares of this many pixels a side: no copy of the whole is made."""

_WITH_OPACITY = frozenset({"RGBA", "LA", "PA", "La", "RGBa"})

_DECODING_ERRORS = (
    OSError,
    SyntaxError,
    ValueError,
    EOFError,
    IndexError,
    KeyError,
    TypeError,
    struct.error,
    zlib.error,
    OverflowError,
    MemoryError,
)


def read_plain_image(
    source: str | Path | bytes, *, name: str | None = None, max_pixels: int = MAX_PIXELS
) -> ByteImage:
    """Read a picture as 8-bit RGB, upright, flattened on white, first frame only.

    The orientation noted by the camera is applied; transparency is laid on white; CMYK, palette,
    grey, bilevel and deep grey pictures become RGB, the last as `deep_tiles` says. The format is
    told from the content, so a wrong extension does no harm.

    Parameters
    ----------
    source : str, Path or bytes
        File path, or the content of a file.
    name : str, optional
        What to call the picture in messages; the file name by default.
    max_pixels : int
        Refuse larger pictures, before any pixel is decoded.

    Returns
    -------
    ndarray, shape (height, width, 3), uint8

    Raises
    ------
    InvalidProblemError
        If the content is no picture, is cut off, or is too large. One sentence, naming the file.
    """
    label = picture_label(source, name)
    picture = open_picture(source, label, max_pixels)
    pixels = np.empty((picture.height, picture.width, 3), dtype=np.uint8)
    with damage_in_words(label):
        if is_deep(picture):
            for place, grey in deep_tiles(picture, label):
                pixels[place] = grey[:, :, np.newaxis]
        else:
            for place, tile in tiles(picture):
                pixels[place] = np.asarray(_to_rgb(tile))
    return pixels


def picture_label(source: str | Path | bytes, name: str | None) -> str:
    """How messages call the picture."""
    if name is not None:
        return name
    return "the picture" if isinstance(source, bytes) else Path(source).name


def open_picture(source: str | Path | bytes, label: str, max_pixels: int) -> Image.Image:
    """Open, check the size, decode the first frame and turn it upright."""
    stream = BytesIO(picture_bytes(source, label, max_pixels))
    try:
        picture = Image.open(stream, formats=FORMATS)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise InvalidProblemError(
            f"{label}: too large; at most {max_pixels / 1e6:.3g} megapixels are accepted."
        ) from error
    except _DECODING_ERRORS as error:
        refuse_stranger(stream.getvalue(), label)
        raise InvalidProblemError(
            f"{label}: this is not a picture in a format that can be read "
            "(JPEG, JPEG 2000, HEIC, PNG, WebP, AVIF, BMP, TIFF, GIF, PNM or NPY)."
        ) from error
    width, height = picture.size
    if width * height > max_pixels:
        raise InvalidProblemError(
            f"{label}: {width} x {height} pixels is too large; at most "
            f"{max_pixels / 1e6:.3g} megapixels are accepted."
        )
    if width < 1 or height < 1:
        raise InvalidProblemError(f"{label}: the picture has no pixels.")
    with damage_in_words(label):
        picture.load()
    return _upright(picture)


@contextmanager
def damage_in_words(label: str) -> Iterator[None]:
    """Turn what decoders and conversions raise on damaged pixels into one sentence."""
    try:
        yield
    except InvalidProblemError:
        raise
    except _DECODING_ERRORS as error:
        raise InvalidProblemError(
            f"{label}: the file is damaged or cut off before the picture ends."
        ) from error


def picture_bytes(source: str | Path | bytes, label: str, max_pixels: int = MAX_PIXELS) -> bytes:
    """The whole file, so that a file replaced meanwhile cannot mix two pictures.

    Kinds that no picture decoder opens are unwrapped to TIFF: see `foreign_files.unwrapped`.
    """
    if isinstance(source, bytes):
        content = source
    else:
        try:
            with open(source, "rb") as file:
                content = file.read(MAX_BYTES + 1)
        except OSError as error:
            reason = error.strerror or "it cannot be read"
            raise InvalidProblemError(f"{label}: cannot be opened ({reason}).") from error
    if not content:
        raise InvalidProblemError(f"{label}: the file is empty.")
    if len(content) > MAX_BYTES:
        raise InvalidProblemError(f"{label}: larger than {MAX_BYTES // 2**20} MB.")
    return unwrapped(content, label, max_pixels)


def _upright(picture: Image.Image) -> Image.Image:
    """Apply the camera's orientation; a damaged note of it is ignored, as viewers do."""
    with suppress(*_DECODING_ERRORS):
        ImageOps.exif_transpose(picture, in_place=True)  # copies only what has to be turned
    return picture


def has_opacity(picture: Image.Image) -> bool:
    """Whether some pixels of a picture may be transparent."""
    return picture.mode in _WITH_OPACITY or "transparency" in picture.info


def is_deep(picture: Image.Image) -> bool:
    """Whether a picture is grey with more than eight bits."""
    return picture.mode.startswith("I") or picture.mode == "F"


def tiles(picture: Image.Image) -> Iterator[tuple[tuple[slice, slice], Image.Image]]:
    """Cut a picture into squares, each with its place: rows and columns."""
    for top in range(0, picture.height, TILE_SIDE):
        bottom = min(top + TILE_SIDE, picture.height)
        for left in range(0, picture.width, TILE_SIDE):
            right = min(left + TILE_SIDE, picture.width)
            place = slice(top, bottom), slice(left, right)
            yield place, picture.crop((left, top, right, bottom))


def deep_tiles(picture: Image.Image, label: str) -> Iterator[tuple[tuple[slice, slice], ByteImage]]:
    """Squares of deep grey values on 0..255.

    Fractions of 0..1, values up to 255 and sixteen-bit values that use their range are shown by
    it. All others, such as the 12 bits of a camera in a 16-bit file, counts, or floats of any
    unit, are stretched from their .1 % to their 99.9 % point: shown by the range of the file they
    would be black.
    """
    low, high = _range_of(picture, label)
    factor = 255.0 / (high - low)
    for place, tile in tiles(picture):
        numbers = (np.asarray(tile, dtype=np.float64) - low) * factor
        yield place, np.clip(np.rint(numbers), 0, 255).astype(np.uint8)


def _range_of(picture: Image.Image, label: str) -> tuple[float, float]:
    """The values that are shown black and white."""
    least, most, sample = np.inf, -np.inf, []
    stride = max(1, picture.width * picture.height // 1_000_000)
    for _, tile in tiles(picture):
        values = np.asarray(tile)
        if not np.isfinite(values).all():
            raise InvalidProblemError(f"{label}: holds values that are not finite numbers.")
        least, most = min(least, float(values.min())), max(most, float(values.max()))
        sample.append(values.ravel()[::stride])
    if least >= 0 and picture.mode == "F" and most <= 1.0:
        return 0.0, 1.0
    if least >= 0 and most <= 255:
        return 0.0, 255.0
    if least >= 0 and FULL_RANGE * 65535 < most <= 65535 and picture.mode != "F":
        return 0.0, 65535.0
    low, high = np.quantile(np.concatenate(sample), [TAIL, 1 - TAIL])
    if high <= low:  # nearly plain: only the rare values differ
        low, high = least, most
    return float(low), float(high) if high > low else float(low) + 1.0


def _to_rgb(picture: Image.Image) -> Image.Image:
    """Eight-bit RGB of any mode that is not deep; transparency on white."""
    if has_opacity(picture):
        layered = picture.convert("RGBA")
        white = Image.new("RGBA", layered.size, (255, 255, 255, 255))
        return Image.alpha_composite(white, layered).convert("RGB")
    return picture.convert("RGB")
