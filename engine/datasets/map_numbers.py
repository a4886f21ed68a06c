"""Masks and label maps as the numbers that their programs meant, in any file format.

A mask means its numbers, not its light: tifffile notes of yes and no, and ImageJ of masks made
while "Black background" is off, that 0 is shown white, and writes inverted palettes into PNG and
GIF. Objects still have the larger number.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from engine.core.errors import InvalidProblemError
from engine.datasets.image_stacks import FRAMED_FORMATS, orientation_of
from engine.datasets.images import (
    damage_in_words,
    is_deep,
    meaning_of,
    open_picture,
    picture_bytes,
    tiles,
)
from engine.datasets.samples import Light, upright
from engine.datasets.tiff_pictures import TiffSamples, is_tiff, read_tiff_samples

LOSSY_FORMATS = frozenset({"JPEG", "MPO", "WEBP", "AVIF"})
_PACK = np.array([65536, 256, 1])


@dataclass(frozen=True, slots=True, eq=False)
class MapNumbers:
    """The number of every pixel of a mask or label map, upright.

    Parameters
    ----------
    values : ndarray, shape (height, width), any real type
    are_colours : bool, True if numbers are packed colours: 65536 r + 256 g + b
    palette : ndarray, shape (n, 3), uint8, if numbers are indices into one
    is_lossy : bool, True if the format changes numbers
    """

    values: NDArray[Any]
    are_colours: bool = False
    palette: NDArray[np.uint8] | None = None
    is_lossy: bool = False


def read_numbers(source: str | Path | bytes, label: str, max_pixels: int) -> MapNumbers:
    """Read the numbers of a mask or a map of labels.

    Whole numbers of floats become whole numbers; grey saved as colour becomes grey; transparent
    pixels are 0, and opacity itself is the number if all visible pixels have one colour.

    Raises
    ------
    InvalidProblemError
        As `open_picture`; or if it has several pages, or several channels that are no colours.
    """
    content = picture_bytes(source, label, max_pixels)
    samples = read_tiff_samples(content, label, max_pixels) if is_tiff(content) else None
    if samples is not None:
        return _of_tiff(samples, label)
    picture = open_picture(content, label, max_pixels)
    with damage_in_words(label):
        return _of_picture(picture, label)


def _several_pages(label: str, count: int, noun: str) -> InvalidProblemError:
    return InvalidProblemError(
        f"{label}: it has {count} {noun}s, but a mask belongs to one picture; save the {noun} that "
        "belongs to the picture as a file of its own."
    )


def _of_tiff(samples: TiffSamples, label: str) -> MapNumbers:
    planes, meaning = samples.numbers(), samples.meaning
    if len(planes) > 1:
        if any(not np.array_equal(planes[0], page) for page in planes[1:]):
            raise _several_pages(label, len(planes), "page")
        planes = planes[:1]
    page = planes[0]
    if meaning.opacity >= 0 and _varies(page[meaning.opacity]):
        light = _bytes(samples.light()[0], meaning.most)
        colours = np.broadcast_to(np.moveaxis(light, 0, 2), (*light.shape[1:], 3))
        opacity = _bytes(page[meaning.opacity], meaning.most)
        return _laid_on_nothing(np.ascontiguousarray(colours), opacity)
    if meaning.opacity >= 0:
        page = np.delete(page, meaning.opacity, axis=0)
    if meaning.light is Light.PALETTE:
        return MapNumbers(
            _whole(page[0]), palette=samples.palettes[0] if samples.palettes else None
        )
    if samples.is_colour:
        shown = _bytes(samples.light()[0], 65535.0 if planes.dtype.itemsize > 1 else 255.0)
        return _of_colours(np.moveaxis(shown[:3], 0, 2))
    if any(not np.array_equal(page[0], other) for other in page[1:]):
        raise InvalidProblemError(
            f"{label}: it has {len(page)} channels, but a mask has one; save the channel that "
            "marks the objects as a file of its own."
        )
    is_turned = meaning.light is Light.WHITE_IS_ZERO and not samples.is_by_number
    values = page[0]
    if is_turned and values.dtype.kind in "bu":
        values = ~values if values.dtype.kind == "b" else values.dtype.type(meaning.most) - values
    return MapNumbers(_whole(values))


def _varies(values: NDArray[Any]) -> bool:
    return bool(values.min() < values.max())


def _bytes(values: NDArray[Any], most: float) -> NDArray[np.uint8]:
    if values.dtype == np.uint8:
        return values
    return np.clip(values.astype(np.float64) * (255.0 / most), 0, 255).round().astype(np.uint8)


def _whole(values: NDArray[Any]) -> NDArray[Any]:
    """Return booleans as 1 and 0, and floats with whole values as whole numbers."""
    if values.dtype.kind == "b":
        return values.astype(np.uint8)
    if values.dtype.kind != "f":
        return np.asarray(values.astype(values.dtype.newbyteorder("="), copy=False))
    is_whole = np.isfinite(values).all() and np.array_equal(values, np.rint(values))
    if is_whole and np.abs(values).max(initial=0) < 2**53:
        return values.astype(np.int64)
    return np.asarray(values.astype(np.float64, copy=False))


def _of_picture(picture: Image.Image, label: str) -> MapNumbers:
    """Return the numbers of a picture that Pillow decoded."""
    count = int(getattr(picture, "n_frames", 1))
    if count > 1 and picture.format in FRAMED_FORMATS:
        raise _several_pages(label, count, "frame")
    is_lossy, orientation = picture.format in LOSSY_FORMATS, orientation_of(picture)
    meaning = meaning_of(picture)
    if meaning.opacity >= 0:
        found = _of_transparent(picture)
    elif is_deep(picture) or picture.mode in {"1", "L", "P"}:
        found = MapNumbers(_whole(np.asarray(picture)), palette=meaning.palette)
    else:
        found = _packed(picture)
    turned = np.ascontiguousarray(upright(found.values, orientation))
    return MapNumbers(turned, found.are_colours, found.palette, is_lossy)


def _packed(picture: Image.Image) -> MapNumbers:
    """Return packed colours, converted square by square so that the whole is never copied."""
    values = np.empty((picture.height, picture.width), dtype=np.int32)
    is_grey = True
    for place, tile in tiles(picture):
        colours = np.asarray(tile if tile.mode == "RGB" else tile.convert("RGB"))
        is_grey = is_grey and bool(np.ptp(colours, axis=2).max(initial=0) == 0)
        values[place] = colours.astype(np.int32) @ _PACK
    return MapNumbers((values & 255).astype(np.uint8)) if is_grey else MapNumbers(values, True)


def _of_colours(colours: NDArray[np.uint8]) -> MapNumbers:
    if (np.ptp(colours, axis=2) == 0).all():  # grey saved as colour
        return MapNumbers(np.ascontiguousarray(colours[:, :, 0]))
    return MapNumbers(colours.astype(np.int32) @ _PACK, True)


def _of_transparent(picture: Image.Image) -> MapNumbers:
    """Return colours laid on 0 where transparent; or the opacity, if only that varies."""
    seen: set[int] = set()
    is_grey, least, most = True, 255, 0
    for _, tile in tiles(picture):
        colours, alpha = _layers(tile)
        least, most = min(least, int(alpha.min())), max(most, int(alpha.max()))
        if len(seen) < 2:
            seen.update(np.unique((colours @ _PACK)[alpha > 0])[:2].tolist())
        is_grey = is_grey and bool(np.ptp(colours[alpha > 0], axis=1).max(initial=0) == 0)
    is_opacity = len(seen) <= 1 and least < most
    is_narrow = is_opacity or is_grey
    values = np.empty((picture.height, picture.width), np.uint8 if is_narrow else np.int32)
    for place, tile in tiles(picture):
        colours, alpha = _layers(tile)
        laid = (colours * alpha[:, :, np.newaxis] + 127) // 255
        values[place] = alpha if is_opacity else laid[:, :, 0] if is_grey else laid @ _PACK
    return MapNumbers(values, not is_narrow)


def _layers(tile: Image.Image) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
    """Return colours and opacity of a square."""
    layered = np.asarray(tile if tile.mode == "RGBA" else tile.convert("RGBA"))
    return layered[:, :, :3].astype(np.int32), layered[:, :, 3]


def _laid_on_nothing(colours: NDArray[np.uint8], opacity: NDArray[np.uint8]) -> MapNumbers:
    """Do the same for an array whose light was laid on white: mostly transparent pixels are 0."""
    packed = colours.astype(np.int32) @ _PACK
    is_seen = opacity >= 128
    if len(np.unique(packed[opacity == 255])) <= 1:
        return MapNumbers(opacity)
    return _of_colours(np.where(is_seen[:, :, np.newaxis], colours, np.uint8(0)))
