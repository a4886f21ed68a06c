"""Photographs and masks from files or bytes: as a viewer would show them, or refused in words."""

import struct
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, TiffImagePlugin, WebPImagePlugin

from engine.core.errors import InvalidProblemError

ByteImage = NDArray[np.uint8]
MaskArray = NDArray[np.bool_]

# Sizes are checked here and damage is refused in words; the decoders' own remarks on either would
# only reach the screen of somebody who cannot act on them.
warnings.filterwarnings("ignore", category=Image.DecompressionBombWarning)
warnings.filterwarnings("ignore", category=UserWarning, module=r"PIL\.")

MAX_PIXELS = 50_000_000
"""Largest picture that is decoded: 50 megapixels need 150 MB, well within a worker's budget."""

MAX_BYTES = 256 * 2**20
"""Largest file that is opened at all."""

FORMATS = (
    "JPEG",
    "PNG",
    "BMP",
    "GIF",
    "PPM",
    TiffImagePlugin.TiffImageFile.format,
    WebPImagePlugin.WebPImageFile.format,
)
"""Decoders that may see foreign bytes; none of them runs another program."""

MIDDLE_SHARE = 0.2
"""A mask whose share of mid-grey pixels is larger is taken for a photograph and refused."""

MIN_MASK_SIDE = 8
"""A mask with a shorter side is resized only if its picture has so short a side too, pixels."""

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


def read_image(
    source: str | Path | bytes, *, name: str | None = None, max_pixels: int = MAX_PIXELS
) -> ByteImage:
    """Read a picture as 8-bit RGB, upright, flattened on white, first frame only.

    The orientation noted by the camera is applied; transparency is laid on white; CMYK, palette,
    grey, bilevel and 16-bit pictures become RGB. The format is told from the content, so a wrong
    extension does no harm.

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
    label = _label(source, name)
    picture = _open(source, label, max_pixels)
    with _damage_in_words(label):
        return np.ascontiguousarray(np.asarray(_to_rgb(picture, label), dtype=np.uint8))


def read_mask(
    source: str | Path | bytes, *, name: str | None = None, max_pixels: int = MAX_PIXELS
) -> MaskArray:
    """Read a mask: True where the picture is light, or opaque when only its opacity varies.

    Two-valued masks of any two values (0/255, 0/1, two palette colours) split between them;
    others at half their range, so that smoothed edges fall on the nearer side. A mask of one
    value is empty when that value is 0 and full when it is 1 or light.

    Parameters
    ----------
    source, name, max_pixels
        As for `read_image`.

    Returns
    -------
    ndarray, shape (height, width), bool

    Raises
    ------
    InvalidProblemError
        As for `read_image`, and if more than a fifth of the pixels is neither dark nor light:
        such a file is a photograph.
    """
    label = _label(source, name)
    picture = _open(source, label, max_pixels)
    with _damage_in_words(label):
        values = _mask_values(picture, label)
    low, high = float(values.min()), float(values.max())
    if low == high:
        return np.full(values.shape, high == 1.0 or high >= 128.0)
    share = (values - np.float32(low)) / np.float32(high - low)
    middle = float(np.mean((share > 0.25) & (share < 0.75)))
    if middle > MIDDLE_SHARE:
        raise InvalidProblemError(
            f"{label}: this does not look like a mask, since {middle:.0%} of its pixels are "
            "neither dark nor light."
        )
    return np.asarray(share >= 0.5)


def match_mask(mask: MaskArray, shape: tuple[int, int], *, name: str = "mask") -> MaskArray:
    """Return the mask at the size of its image; a smaller or larger copy of it is resized.

    Raises
    ------
    InvalidProblemError
        If the proportions differ by more than 2 % (and by more than one pixel): then the mask
        belongs to another picture or was cropped. Also if a side of the mask is shorter than
        `MIN_MASK_SIDE` and than its picture: one pixel more or less then fits any proportions.
    """
    height, width = shape
    if mask.shape == (height, width):
        return mask
    rows, columns = mask.shape
    is_tiny = min(rows, columns) < min(MIN_MASK_SIDE, height, width)
    if is_tiny or abs(rows * width - columns * height) > max(0.02 * rows * width, width, height):
        raise InvalidProblemError(
            f"{name}: the mask is {columns} x {rows} pixels but its image is {width} x {height}; "
            "draw the mask on the same picture."
        )
    picture = Image.fromarray(mask.astype(np.uint8) * 255)
    resized = picture.resize((width, height), Image.Resampling.NEAREST)
    return np.asarray(resized) >= 128


def write_mask(path: Path, mask: MaskArray) -> None:
    """Write a mask as a grey PNG with values 0 and 255."""
    Image.fromarray(mask.astype(np.uint8) * 255).save(path, format="PNG")


def _label(source: str | Path | bytes, name: str | None) -> str:
    """How messages call the picture."""
    if name is not None:
        return name
    return "the picture" if isinstance(source, bytes) else Path(source).name


def _open(source: str | Path | bytes, label: str, max_pixels: int) -> Image.Image:
    """Open, check the size, decode the first frame and turn it upright."""
    stream = _read_bytes(source, label)
    try:
        picture = Image.open(stream, formats=FORMATS)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise InvalidProblemError(
            f"{label}: too large; at most {max_pixels / 1e6:.3g} megapixels are accepted."
        ) from error
    except _DECODING_ERRORS as error:
        raise InvalidProblemError(
            f"{label}: this is not a picture in a format that can be read "
            "(JPEG, PNG, WebP, BMP, TIFF, GIF or PNM)."
        ) from error
    width, height = picture.size
    if width * height > max_pixels:
        raise InvalidProblemError(
            f"{label}: {width} x {height} pixels is too large; at most "
            f"{max_pixels / 1e6:.3g} megapixels are accepted."
        )
    if width < 1 or height < 1:
        raise InvalidProblemError(f"{label}: the picture has no pixels.")
    with _damage_in_words(label):
        picture.load()
    return _upright(picture)


@contextmanager
def _damage_in_words(label: str) -> Iterator[None]:
    """Turn what decoders and conversions raise on damaged pixels into one sentence."""
    try:
        yield
    except InvalidProblemError:
        raise
    except _DECODING_ERRORS as error:
        raise InvalidProblemError(
            f"{label}: the file is damaged or cut off before the picture ends."
        ) from error


def _read_bytes(source: str | Path | bytes, label: str) -> BytesIO:
    """The whole file, so that a file replaced meanwhile cannot mix two pictures."""
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
    return BytesIO(content)


def _upright(picture: Image.Image) -> Image.Image:
    """Apply the camera's orientation; a damaged note of it is ignored, as viewers do."""
    try:
        return ImageOps.exif_transpose(picture)
    except _DECODING_ERRORS:
        return picture


def _to_rgb(picture: Image.Image, label: str) -> Image.Image:
    """Eight-bit RGB of any mode; transparency on white."""
    if picture.mode.startswith("I") or picture.mode == "F":
        return Image.fromarray(_to_bytes(np.asarray(picture), label)).convert("RGB")
    if picture.mode in {"RGBA", "LA", "PA", "La", "RGBa"} or "transparency" in picture.info:
        layered = picture.convert("RGBA")
        white = Image.new("RGBA", layered.size, (255, 255, 255, 255))
        return Image.alpha_composite(white, layered).convert("RGB")
    return picture.convert("RGB")


def _mask_values(picture: Image.Image, label: str) -> NDArray[np.float32]:
    """Lightness of a mask, or its opacity when only that varies."""
    if picture.mode.startswith("I") or picture.mode == "F":
        return np.asarray(_to_bytes(np.asarray(picture), label), dtype=np.float32)
    if picture.mode in {"RGBA", "LA", "PA", "La", "RGBa"} or "transparency" in picture.info:
        layered = picture.convert("RGBA")
        alpha = np.asarray(layered.getchannel("A"), dtype=np.float32)
        light = np.asarray(layered.convert("RGB").convert("L"), dtype=np.float32)
        visible = light[alpha > 0]
        if alpha.min() < alpha.max() and (visible.size == 0 or visible.min() == visible.max()):
            return alpha
        return light * alpha / np.float32(255)
    if picture.mode not in {"1", "L"}:
        picture = picture.convert("RGB")  # the only way to grey from some modes, LAB for one
    return np.asarray(picture.convert("L"), dtype=np.float32)


def _to_bytes(values: NDArray[Any], label: str) -> ByteImage:
    """Deep grey values on 0..255: 16-bit by their full range, fractions from 0..1."""
    numbers = values.astype(np.float32)
    if not np.isfinite(numbers).all():
        raise InvalidProblemError(f"{label}: holds values that are not finite numbers.")
    top = float(numbers.max())
    if values.dtype.kind == "f" and top <= 1.0:
        numbers *= np.float32(255)
    elif top > 255:
        numbers *= np.float32(255 / max(65535.0, top))
    return np.asarray(np.clip(np.rint(numbers), 0, 255), dtype=np.uint8)
