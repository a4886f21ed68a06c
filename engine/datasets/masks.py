"""Masks from files or bytes: read as True and False, fitted to their pictures, written."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from engine.core.arguments import ByteImage, IntArray
from engine.core.errors import InvalidProblemError
from engine.datasets.images import (
    MAX_PIXELS,
    damage_in_words,
    deep_tiles,
    has_opacity,
    is_deep,
    picture_label,
    tiles,
)
from engine.datasets.map_numbers import open_map

MaskArray = NDArray[np.bool_]

MIDDLE_SHARE = 0.2
"""A mask whose share of mid-grey pixels is larger is taken for a photograph and refused."""

FEW_VALUES = 32
"""Masks of more values than this are not searched for labels: they come from lossy formats."""

NOISE = 16
"""A lossy format moves plain black and white areas by fewer levels than this."""

FEWEST_INSTANCES, FEWEST_DEEP_INSTANCES = 6, 2
"""With fewer numbers beside 0 a map is taken for one of classes; few classes need sixteen bits."""

MOST_INSTANCES = 20_000
"""Maps of more numbers are taken for photographs."""

MOST_GAPS, MOST_CLASS_NUMBER = 4, 255
"""The largest number of a map of instances is at most so many times as large as their count, unless
it is too large for a class: what is cut from a larger map keeps its numbers."""

WHOLE_INSTANCES = 0.9
"""Share of the numbers of a map of instances that lie in one piece."""

NO_TWO_VALUES = "a mask has two values, but"
"""What is said of every map of labels that stands in place of a mask."""

LOSSY_FORMATS = frozenset({"JPEG", "MPO", "WEBP", "AVIF"})

LEAST_CONTRAST = 64
"""Levels between the darkest and the lightest pixel of a mask in a lossy format."""

PLAIN_MIDDLE_SHARE = 0.01
"""A mask in a lossy format with a larger share of even mid-grey is a map of labels."""

MIN_MASK_SIDE = 8
"""A mask with a shorter side is resized only if its picture has so short a side too, pixels."""


def read_mask(
    source: str | Path | bytes, *, name: str | None = None, max_pixels: int = MAX_PIXELS
) -> MaskArray:
    """Read a mask: True where the picture is light, or opaque when only its opacity varies.

    Two-valued masks of any two values (0/255, 0/1, two palette colours) split between them;
    others at half their range, so that smoothed edges fall on the nearer side. A mask of one
    value is empty when that value is 0 and full when it is 1 or light. A map of instances (0, and
    a number of its own for every object) is True at all objects.

    Parameters
    ----------
    source : str, Path or bytes
        File path, or the content of a file.
    name : str, optional
        What to call the mask in messages; the file name by default.
    max_pixels : int
        Refuse larger masks, before any pixel is decoded.

    Returns
    -------
    ndarray, shape (height, width), bool

    Raises
    ------
    InvalidProblemError
        As for `read_image`; if more than a fifth of the pixels is neither dark nor light: such a
        file is a photograph; and if whole areas have a third value: such a file is a map of
        labels, and nobody has said which of them are to be found.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "mask.png"
    >>> write_mask(path, np.array([[True, False]]))
    >>> read_mask(path).tolist()
    [[True, False]]
    """
    label = picture_label(source, name)
    picture = open_map(source, label, max_pixels)
    with damage_in_words(label):
        objects = _instances(picture)
        if objects is not None:
            return objects
        _check_colours(picture, label)
        values = _mask_values(picture, label)
    counts = np.array(Image.fromarray(values).histogram())
    used = np.flatnonzero(counts)
    low, high = int(used[0]), int(used[-1])
    if low == high:
        return np.full(values.shape, high == 1 or high >= 128)
    height_over_low = 4 * (used - low)
    is_middle = (height_over_low > high - low) & (height_over_low < 3 * (high - low))
    middle = float(counts[used[is_middle]].sum() / values.size)
    if middle > MIDDLE_SHARE:
        raise InvalidProblemError(
            f"{label}: this does not look like a mask, since {middle:.0%} of its pixels are "
            "neither dark nor light."
        )
    if picture.format in LOSSY_FORMATS:
        _check_lossy(values, (low, high), label)
    if 2 < len(used) <= FEW_VALUES:
        _check_two_values(values, counts, label)
    return np.asarray(values >= (low + high + 1) // 2)


def _instances(picture: Image.Image) -> MaskArray | None:
    """Where a map of instances has objects; None for all other pictures.

    What tells it from a photograph and from a map of classes: whole numbers from 0 without large
    gaps or too large for classes, several of them, and nearly every number in one piece.
    """
    if picture.mode not in {"L", "P", "I", "I;16", "I;16B", "I;16L"} or has_opacity(picture):
        return None
    numbers = np.asarray(picture)
    if numbers.min() != 0:
        return None
    values, places = np.unique(numbers, return_inverse=True)
    fewest = FEWEST_DEEP_INSTANCES if is_deep(picture) else FEWEST_INSTANCES
    is_count_plausible = fewest < len(values) <= MOST_INSTANCES
    is_of_classes = values[-1] <= MOST_CLASS_NUMBER or len(values) <= FEWEST_INSTANCES
    has_gaps = is_of_classes and values[-1] > MOST_GAPS * len(values)
    if not is_count_plausible or has_gaps:
        return None
    labels = places.reshape(numbers.shape).astype(np.int32)  # 0 stays 0: it is the least
    starts = _pieces(labels)
    pieces = np.bincount(labels[starts], minlength=len(values))[1:]
    is_whole = np.mean(pieces == 1) >= WHOLE_INSTANCES
    return np.asarray(labels > 0) if is_whole else None


def _check_colours(picture: Image.Image, label: str) -> None:
    """Refuse a palette of three colours and more: each means something, however small its areas."""
    if picture.mode != "P" or has_opacity(picture):
        return
    colours = np.array(picture.getpalette("RGB"), dtype=np.int64).reshape(-1, 3)
    used = np.flatnonzero(np.bincount(np.asarray(picture).ravel(), minlength=len(colours)))
    used = used[used < len(colours)]
    is_coloured = np.ptp(colours[used], axis=1).max(initial=0) > NOISE
    if is_coloured and len(used) > 2:
        raise InvalidProblemError(
            f"{label}: {NO_TWO_VALUES} this one has {len(used)} colours; draw what is "
            "to be found in white and all else in black."
        )


def _pieces(labels: NDArray[np.int32]) -> tuple[IntArray, IntArray]:
    """One pixel of every connected area of equal labels (by sides and corners)."""
    from skimage.measure import label as connected  # slow to import

    areas = connected(labels, background=-1, connectivity=2)  # type: ignore[no-untyped-call]
    _, first = np.unique(areas, return_index=True)
    rows, columns = np.unravel_index(first, labels.shape)
    return rows, columns


def mask_fits(mask_shape: tuple[int, int], shape: tuple[int, int]) -> bool:
    """Whether a mask may be a smaller or larger copy of its picture's frame; (height, width) each.

    The proportions may differ by 2 % or by one pixel, unless a side of the mask is shorter than
    `MIN_MASK_SIDE` and than its picture: one pixel more or less then fits any proportions.
    """
    if mask_shape == shape:
        return True
    (rows, columns), (height, width) = mask_shape, shape
    if min(mask_shape) < min(MIN_MASK_SIDE, *shape):
        return False
    return abs(rows * width - columns * height) <= max(0.02 * rows * width, width, height)


def match_mask(mask: MaskArray, shape: tuple[int, int], *, name: str = "mask") -> MaskArray:
    """Return the mask at the size of its image; a smaller or larger copy of it is resized.

    Raises
    ------
    InvalidProblemError
        Unless `mask_fits`: then the mask belongs to another picture or was cropped.
    """
    height, width = shape
    rows, columns = mask.shape
    if not mask_fits((rows, columns), shape):
        raise InvalidProblemError(
            f"{name}: the mask is {columns} x {rows} pixels but its image is {width} x {height}; "
            "draw the mask on the same picture."
        )
    if (rows, columns) == (height, width):
        return mask
    picture = Image.fromarray(mask.astype(np.uint8) * 255)
    resized = picture.resize((width, height), Image.Resampling.NEAREST)
    return np.asarray(resized) >= 128


def write_mask(path: Path, mask: MaskArray) -> None:
    """Write a mask as a grey PNG with values 0 and 255.

    Parameters
    ----------
    path : Path
    mask : ndarray, shape (height, width), bool

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "mask.png"
    >>> write_mask(path, np.array([[True, False]]))
    >>> path.exists()
    True
    """
    Image.fromarray(mask.astype(np.uint8) * 255).save(path, format="PNG")


def _mask_values(picture: Image.Image, label: str) -> ByteImage:
    """Lightness of a mask, or its opacity when only that varies."""
    values = np.empty((picture.height, picture.width), dtype=np.uint8)
    if is_deep(picture):
        for place, grey in deep_tiles(picture, label):
            values[place] = grey
        return values
    if has_opacity(picture):
        return _lightness_or_opacity(picture, values)
    for place, tile in tiles(picture):
        if tile.mode not in {"1", "L"}:
            tile = tile.convert("RGB")  # the only way to grey from some modes, LAB for one
        values[place] = np.asarray(tile.convert("L"))
    return values


def _lightness_or_opacity(picture: Image.Image, values: ByteImage) -> ByteImage:
    """Fill ``values`` with lightness on black, unless all that is visible is equally light."""
    opacity = np.empty_like(values)
    seen = np.zeros(256, dtype=np.bool_)
    for place, tile in tiles(picture):
        layered = tile.convert("RGBA")
        light = np.asarray(layered.convert("RGB").convert("L"))
        opacity[place] = alpha = np.asarray(layered.getchannel("A"))
        values[place] = (light.astype(np.uint16) * alpha + 127) // 255
        seen[light[alpha > 0]] = True
    return opacity if seen.sum() <= 1 and opacity.min() < opacity.max() else values


def _check_two_values(values: ByteImage, counts: IntArray, label: str) -> None:
    """Refuse a map of labels: smooth edges have values in between too, but no areas of them."""
    inner = values[1:-1, 1:-1]
    is_plain = np.ones(inner.shape, dtype=np.bool_)
    for neighbours in (values[:-2, 1:-1], values[2:, 1:-1], values[1:-1, :-2], values[1:-1, 2:]):
        is_plain &= inner == neighbours
    low, *between, high = np.flatnonzero(counts).tolist()
    areas = [v for v in between if 2 * np.count_nonzero(is_plain & (inner == v)) > counts[v]]
    if high < FEW_VALUES:
        areas = between  # small numbers are labels, however small their areas
    if areas == between or any(low + NOISE < value < high - NOISE for value in areas):
        raise InvalidProblemError(
            f"{label}: {NO_TWO_VALUES} areas of this one have {len(areas) + 2}; draw "
            "what is to be found in white and all else in black."
        )


def _check_lossy(values: ByteImage, ends: tuple[int, int], label: str) -> None:
    """Refuse labels in a lossy file: small numbers it changes, and of areas it blurs the edges."""
    low, high = ends
    if high - low < LEAST_CONTRAST:
        raise InvalidProblemError(
            f"{label}: its values lie between {low} and {high}, and this format changes them; save "
            "masks and labels as PNG or TIFF."
        )
    numbers = values.astype(np.int16)
    inner = numbers[1:-1, 1:-1]
    is_even = (4 * (inner - low) > high - low) & (4 * (inner - low) < 3 * (high - low))
    for other in (numbers[:-2, 1:-1], numbers[2:, 1:-1], numbers[1:-1, :-2], numbers[1:-1, 2:]):
        is_even &= np.abs(inner - other) < NOISE
    if is_even.size and is_even.mean() > PLAIN_MIDDLE_SHARE:
        raise InvalidProblemError(
            f"{label}: {NO_TWO_VALUES} {is_even.mean():.0%} of this one is evenly grey; "
            "draw what is to be found in white and all else in black, or save labels as PNG."
        )
