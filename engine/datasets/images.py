"""Pictures that Pillow decodes: opened from files or bytes, or refused in words; their light."""

import struct
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

import numpy as np
from PIL import AvifImagePlugin, Image, TiffImagePlugin, WebPImagePlugin

from engine.core.arguments import ByteImage
from engine.core.errors import InvalidProblemError
from engine.datasets.foreign_files import refuse_unsupported_format, unwrapped
from engine.datasets.image_stacks import orientation_of
from engine.datasets.limits import MAX_PIXELS, check_pixels
from engine.datasets.samples import Light, Meaning, light_of, upright

# Sizes are checked here, and damage raises a readable error. The decoders' own warnings about
# either would only reach people who cannot act on them.
warnings.filterwarnings("ignore", category=Image.DecompressionBombWarning)
warnings.filterwarnings("ignore", category=UserWarning, module=r"PIL\.")

MAX_BYTES = 256 * 2**20
"""Largest file that is opened, bytes."""

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
"""Decoders that may get bytes from outside; none of them runs another program."""

TAIL = 0.001
"""Share of the pixels that a stretch may make plain black, and the same share plain white."""

FULL_RANGE = 0.5
"""Share of 65,535: sixteen-bit values that reach above it are shown unchanged."""

TILE_SIDE = 512
"""Side in pixels of the squares in which pictures are converted: the whole is never copied."""

_WITH_OPACITY = frozenset({"RGBA", "LA", "PA", "La", "RGBa"})
_GREY = frozenset({"1", "L"})

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


def picture_label(source: str | Path | bytes, name: str | None) -> str:
    """Return the name of the picture in messages."""
    if name is not None:
        return name
    return "the picture" if isinstance(source, bytes) else Path(source).name


def open_picture(source: str | Path | bytes, label: str, max_pixels: int) -> Image.Image:
    """Open a picture, check its size, and decode its first frame, which is not turned upright yet.

    Raises
    ------
    InvalidProblemError
        If the content is no picture, is cut off, or is too large. One sentence, naming the file.
    """
    stream = BytesIO(picture_bytes(source, label, max_pixels))
    try:
        picture = Image.open(stream, formats=FORMATS)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise InvalidProblemError(
            f"{label}: too large; at most {max_pixels / 1e6:.3g} megapixels are accepted."
        ) from error
    except _DECODING_ERRORS as error:
        refuse_unsupported_format(stream.getvalue(), label)
        raise InvalidProblemError(
            f"{label}: this is not a picture in a format that can be read "
            "(JPEG, JPEG 2000, HEIC, PNG, WebP, AVIF, BMP, TIFF, GIF, PNM or NPY)."
        ) from error
    check_pixels(picture.height, picture.width, label, max_pixels)
    with damage_in_words(label):
        picture.load()
    return picture


@contextmanager
def damage_in_words(label: str) -> Iterator[None]:
    """Turn errors of decoders and conversions on damaged pixels into one sentence."""
    try:
        yield
    except InvalidProblemError:
        raise
    except _DECODING_ERRORS as error:
        raise InvalidProblemError(
            f"{label}: the file is damaged or cut off before the picture ends."
        ) from error


def picture_bytes(source: str | Path | bytes, label: str, max_pixels: int = MAX_PIXELS) -> bytes:
    """Return the whole file, so that a file replaced meanwhile cannot mix two pictures.

    Kinds that no picture decoder opens are converted to TIFF: see `foreign_files.unwrapped`.
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


def has_opacity(picture: Image.Image) -> bool:
    """Return True if some pixels of a picture may be transparent."""
    return picture.mode in _WITH_OPACITY or "transparency" in picture.info


def is_deep(picture: Image.Image) -> bool:
    """Return True if a picture is grey with more than eight bits."""
    return picture.mode.startswith("I") or picture.mode == "F"


def tiles(picture: Image.Image) -> Iterator[tuple[tuple[slice, slice], Image.Image]]:
    """Cut a picture into squares; yield each with its rows and columns."""
    for top in range(0, picture.height, TILE_SIDE):
        bottom = min(top + TILE_SIDE, picture.height)
        for left in range(0, picture.width, TILE_SIDE):
            right = min(left + TILE_SIDE, picture.width)
            place = slice(top, bottom), slice(left, right)
            yield place, picture.crop((left, top, right, bottom))


def meaning_of(picture: Image.Image) -> Meaning:
    """Return the meaning of the samples that `read_tile` takes from squares of a picture."""
    orientation = orientation_of(picture)
    if has_opacity(picture) and not _is_unseen(picture):
        return Meaning(Light.COLOUR, opacity=3, orientation=orientation)
    if picture.mode == "P":
        palette = np.array(picture.getpalette("RGB") or [0, 0, 0], dtype=np.uint8).reshape(-1, 3)
        return Meaning(Light.PALETTE, palette=palette, orientation=orientation)
    if picture.mode == "CMYK":
        return Meaning(Light.INKS, orientation=orientation)
    light = Light.BLACK_IS_ZERO if picture.mode in _GREY else Light.COLOUR
    return Meaning(light, orientation=orientation)


def _is_unseen(picture: Image.Image) -> bool:
    """Return True if the opacity of a BMP is 0 everywhere: most programs do not set this byte."""
    return picture.format == "BMP" and picture.getextrema()[-1] == (0, 0)


def read_tile(tile: Image.Image, meaning: Meaning) -> ByteImage:
    """Return the light of a square of a picture that is not deep: (rows, columns, 1 or 3)."""
    if meaning.opacity >= 0:
        wanted = "RGBA"
    elif meaning.light is Light.COLOUR:
        wanted = "RGB"
    else:
        wanted = "L" if tile.mode == "1" else tile.mode
    samples = np.asarray(tile if tile.mode == wanted else tile.convert(wanted))
    planes = samples[np.newaxis] if samples.ndim == 2 else np.moveaxis(samples, 2, 0)
    return np.asarray(np.moveaxis(light_of(planes, meaning), 0, 2))


def read_plain(picture: Image.Image, label: str) -> ByteImage:
    """Return an opened picture as 8-bit RGB, upright, laid on white.

    Raises
    ------
    InvalidProblemError
        If a conversion fails: the file is damaged.
    """
    pixels = np.empty((picture.height, picture.width, 3), dtype=np.uint8)
    with damage_in_words(label):
        meaning = meaning_of(picture)
        for place, tile in tiles(picture):
            pixels[place] = read_tile(tile, meaning)
        picture.im = None  # type: ignore[assignment]  # its memory is the turned copy's
    turned = upright(np.moveaxis(pixels, 2, 0), meaning.orientation)
    return np.ascontiguousarray(np.moveaxis(turned, 0, 2))
