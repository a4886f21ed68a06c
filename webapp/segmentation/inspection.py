"""Inspection of an uploaded file, decoded once: by its content, never by its name."""

import io
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from django.utils.translation import gettext as _
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from engine import InvalidProblemError
from engine.datasets.foreign_files import HEIC, JPEG_2000, NUMPY, unsupported_kind
from engine.datasets.image_names import mask_stem
from engine.datasets.image_stacks import ImageStack
from engine.datasets.label_maps import count_labels
from engine.datasets.masks import MaskReading, understand_mask
from engine.datasets.picture_view import PictureView, picture_facts, read_picture
from engine.datasets.probability_maps import read_map

THUMBNAIL_SIDE = 320
MEDIA_TYPES = {
    "JPEG": "image/jpeg",
    "MPO": "image/jpeg",
    "PNG": "image/png",
    "WEBP": "image/webp",
    "GIF": "image/gif",
    "BMP": "image/bmp",
    "TIFF": "image/tiff",
    "PPM": "image/x-portable-anymap",
    "AVIF": "image/avif",
    JPEG_2000: "image/jp2",
    HEIC: "image/heic",
    NUMPY: "application/x-npy",
}
# MPO, several JPEGs in one file, is opened by the JPEG reader.
OPENED_FORMATS = tuple(kind for kind in MEDIA_TYPES if kind not in {"MPO", JPEG_2000, NUMPY, HEIC})
LOSSLESS_FORMATS = {"PNG", "GIF", "BMP", "TIFF", "PPM", NUMPY}


@dataclass(frozen=True, slots=True)
class FileFacts:
    """Upright size in pixels, media type, whether it reads as a mask, and a thumbnail JPEG.

    ``facts`` is stored as ``ImageFile.facts``.
    """

    width: int
    height: int
    media_type: str
    mask_like: bool
    thumbnail: bytes
    facts: dict[str, Any] = field(default_factory=dict)


ChooseView = Callable[[Any], PictureView | None]


def inspect_file(path: Path, name: str, choose: ChooseView = lambda stack: None) -> FileFacts:
    """Decode a whole image, so that a truncated file is found now and not during learning.

    ``choose`` gets the values of a deep image and returns the view of its set.

    Raises
    ------
    InvalidProblemError
        If it is not a readable image; the sentence names it.
    """
    width, height, thumbnail, facts = _size_and_thumbnail(path, name, choose)
    kind = picture_format(path)
    is_named_so = mask_stem(name) is not None
    mask, reason = None, ""
    if kind in LOSSLESS_FORMATS or is_named_so:
        mask, reason = _as_mask(path, name)
    if mask is not None:
        facts["mask"] = {
            "pixels": mask.n_pixels,
            "objects": mask.n_objects,
            "numbered": mask.n_numbered >= 0,
        }
    elif kind in LOSSLESS_FORMATS:
        facts["labels"] = count_labels(path, name)
    if is_named_so and mask is None:
        facts["not_mask"] = reason
    elif is_named_so and mask is not None:  # its values may be so small that it would look black
        thumbnail = _thumbnail(mask.mask.astype(np.uint8) * 255)
    return FileFacts(
        width=width,
        height=height,
        media_type=MEDIA_TYPES.get(kind, "application/octet-stream"),
        mask_like=mask is not None,
        thumbnail=thumbnail,
        facts=facts,
    )


def inspect_map(path: Path, name: str) -> FileFacts:
    """Read another program's probabilities as a whole; ``facts`` holds their planes.

    Raises
    ------
    InvalidProblemError
        If it holds no probabilities; the sentence names the file.
    """
    try:
        planes = read_map(path, ending=Path(name).suffix)
    except InvalidProblemError as error:
        raise InvalidProblemError(str(error).replace(path.name, name)) from error
    height, width, n_planes = planes.shape
    shown = planes[:, :, :3] if n_planes >= 3 else np.repeat(planes[:, :, :1], 3, axis=2)
    return FileFacts(
        width=width,
        height=height,
        media_type="application/x-npy" if name.casefold().endswith(".npy") else "image/tiff",
        mask_like=False,
        thumbnail=_thumbnail(np.rint(255.0 * np.clip(shown, 0.0, 1.0)).astype(np.uint8)),
        facts={"planes": n_planes},
    )


def _size_and_thumbnail(
    path: Path, name: str, choose: ChooseView
) -> tuple[int, int, bytes, dict[str, Any]]:
    """Return width, height, thumbnail and facts; the pixels are freed before the mask is read."""
    picture = read_picture(path, name=name)
    facts: dict[str, Any] = {"bits": 8}
    size, stack = picture.pixel_size, picture.stack
    if stack is None:
        pixels = picture.shown()
    else:
        found = picture_facts(stack)
        facts = {
            "kind": found.kind,
            "bits": found.bits,
            "channels": found.n_channels,
            "pages": found.n_pages,
        }
        if not np.isfinite(stack.planes).any():
            raise InvalidProblemError(_("%(name)s: holds no finite number.") % {"name": name})
        pixels = picture.shown(choose(stack))
        if plain := _plain_as(stack, pixels):
            facts["plain"] = plain
    facts["pixel_size"] = [size.x, size.y] if size else None
    return pixels.shape[1], pixels.shape[0], _thumbnail(pixels), facts


def picture_format(path: Path) -> str:
    """Return Pillow's name of the format of an image, from the file's header.

    A stack that only the reader of deep images can open is a TIFF.
    """
    with path.open("rb") as file:
        foreign = unsupported_kind(file.read(64))
    if foreign:
        return foreign
    try:
        with Image.open(path, formats=OPENED_FORMATS) as picture:
            return picture.format or ""
    except UnidentifiedImageError:
        return "TIFF"


def small_copy(picture: Image.Image, side: int) -> Image.Image:
    """Return the picture shrunk so that no side is longer than ``side`` pixels."""
    picture.thumbnail((side, side), Image.Resampling.BICUBIC, reducing_gap=2.0)
    return picture


def jpeg_bytes(picture: Image.Image, *, quality: int, full_colour: bool = False) -> bytes:
    """Return the picture as a JPEG without any of its metadata.

    With ``full_colour`` every pixel has a colour of its own (4:4:4): a label of one pixel in one
    channel stays visible.
    """
    buffer = io.BytesIO()
    subsampling = "4:4:4" if full_colour else "4:2:0"
    picture.save(buffer, "JPEG", quality=quality, optimize=False, subsampling=subsampling)
    return buffer.getvalue()


def _as_mask(path: Path, name: str) -> tuple[MaskReading | None, str]:
    """Return a file as a mask, or the reason why it is not one, without its name."""
    try:
        return understand_mask(path, name=name), ""
    except InvalidProblemError as error:
        reason = str(error).removeprefix(f"{name}: ")
        return None, reason[:1].upper() + reason[1:]


def _plain_as(stack: ImageStack, pixels: NDArray[np.uint8]) -> str:
    """Return the single colour of a deep image under its set's range, though its values differ."""
    if pixels.min() < pixels.max() or stack.planes.min() == stack.planes.max():
        return ""
    return "black" if pixels.max() < 128 else "white"


def _thumbnail(pixels: NDArray[np.uint8]) -> bytes:
    return jpeg_bytes(small_copy(Image.fromarray(pixels), THUMBNAIL_SIDE), quality=82)
