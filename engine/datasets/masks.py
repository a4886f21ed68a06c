"""Masks from files or bytes: read as True and False, fitted to their pictures, and written."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from engine.core.arguments import ByteImage, IntArray
from engine.core.errors import InvalidProblemError
from engine.core.options import check_whole
from engine.datasets.images import damage_in_words, picture_label
from engine.datasets.limits import MAX_PIXELS
from engine.datasets.map_numbers import MapNumbers, read_numbers

MaskArray = NDArray[np.bool_]

MIDDLE_SHARE = 0.2
"""Limit of the share of mid-grey pixels; a mask above it counts as a photograph and is refused."""

FEW_VALUES = 32
"""Limit of the number of values in a map that is searched for labels; lossy formats leave more."""

NOISE = 16
"""Limit of the levels by which a lossy format changes plain black and white areas."""

FEWEST_INSTANCES, FEWEST_DEEP_INSTANCES = 6, 2
"""Fewest numbers beside 0 in a map of instances, in bytes and deeper; fewer are classes."""

MOST_INSTANCES = 20_000
"""Limit of the numbers in a map; one with more counts as a photograph."""

MOST_GAPS, MOST_CLASS_NUMBER = 4, 255
"""Largest ratio of a map of instances' largest number to their count, unless that number is too
large for a class: a part cut from a larger map keeps its numbers."""

WHOLE_INSTANCES = 0.9
"""Share of the numbers of a map of instances whose pixels must form a single piece each."""

LEAST_MEAN_PIXELS = 4
"""Fewest mean pixels per object in a filled map; colours of photographs have fewer."""

ROWS_AT_ONCE = 64

TOPS = (255, 65_535, 2**31 - 1, 2**32 - 1)
"""Largest numbers of the usual types: white, or "ignore", beside few others, and no object."""

MOST_LARGER = 8
"""With negative numbers as background, 0 is an object if it has at most this many times the
median pixel count of the others; otherwise it is a background too."""

NO_TWO_VALUES = "a mask has two values, but"
"""Start of the error for a map of labels in place of a mask."""

LEAST_CONTRAST = 64
"""Fewest levels between the darkest and the lightest pixel of a mask in a lossy format."""

PLAIN_MIDDLE_SHARE = 0.01
"""Limit of the share of even mid-grey; a mask in a lossy format above it is a map of labels."""

MOST_EVEN = 0.5
"""Limit of the share of pixels between the two ends that are in areas of one number: smooth edges
have few such pixels, numbers of objects and classes have many."""

COLOUR_TOLERANCE, MOST_OFF_COLOUR = 48, 0.01
"""Levels by which pixels of a smooth two-colour mask may miss the line between the two colours,
and the share of the pixels that may miss it by more."""

MIN_MASK_SIDE = 8
"""Shortest side of a resized mask, in pixels, except for pictures with as short a side."""

_INSTEAD = "draw what is to be found in white and all else in black"


@dataclass(frozen=True, slots=True, eq=False)
class MaskReading:
    """A mask and the number of objects found in it.

    Parameters
    ----------
    mask : ndarray, shape (height, width), bool
    n_numbered : int, the numbers of a map of instances; -1 of other masks
    instances : ndarray, shape (height, width), or None
        The values of a map of instances, one for each object.
    """

    mask: MaskArray
    n_numbered: int = -1
    instances: NDArray[Any] | None = None

    @property
    def numbers(self) -> IntArray:
        """Return the number of the object at every pixel; 0 for none.

        Where the file numbers no objects, pieces joined by sides or corners are objects.
        """
        if self.instances is not None:
            return np.where(self.mask, self.instances.astype(np.int64), 0)
        from scipy.ndimage import label as connected

        pieces, _ = connected(self.mask, np.ones((3, 3)))
        return np.asarray(pieces, dtype=np.int64)

    @property
    def n_objects(self) -> int:
        """Return the number of numbered objects, else of pieces joined by sides or corners."""
        if self.n_numbered >= 0:
            return self.n_numbered
        from scipy.ndimage import label as connected

        numbers = np.empty(self.mask.shape, dtype=np.int32)
        return int(connected(self.mask, np.ones((3, 3)), output=numbers))

    @property
    def n_pixels(self) -> int:
        """Return the number of marked pixels."""
        return int(np.count_nonzero(self.mask))

    @property
    def sentence(self) -> str:
        """Return the content of the mask in words: "75 pixels, 3 objects"."""
        pixels, objects = self.n_pixels, self.n_objects
        return f"{pixels:,} pixel{'s'[: pixels != 1]}, {objects:,} object{'s'[: objects != 1]}"


def read_mask(
    source: str | Path | bytes, *, name: str | None = None, max_pixels: int = MAX_PIXELS
) -> MaskArray:
    """Read a mask: True at every object, by the numbers of the file.

    Of two numbers (0 and 255, 0 and 1, -1 and 5) or two colours the larger or lighter marks them;
    of a map of instances (0, and a number or colour of its own for every object) all objects are
    marked. Smooth edges fall on the nearer side. If only the opacity varies, it is the mask.
    A mask of one number is empty when that is 0, and full when it is 1 or light.

    Parameters
    ----------
    source : str, Path or bytes
        File path, or the content of a file.
    name : str, optional
        Name of the mask in messages; the file name by default.
    max_pixels : int
        Refuse larger masks, before any pixel is decoded.

    Returns
    -------
    ndarray, shape (height, width), bool

    Raises
    ------
    InvalidProblemError
        As for `read_image`; if it has several pages; if more than a fifth of the pixels is neither
        dark nor light: such a file is a photograph; and if it has a third value: such a file is a
        map of labels, and the target values are not known.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "mask.png"
    >>> write_mask(path, np.array([[True, False]]))
    >>> read_mask(path).tolist()
    [[True, False]]
    """
    check_whole("max_pixels", max_pixels, at_least=1)
    return understand_mask(source, name=name, max_pixels=max_pixels).mask


def understand_mask(
    source: str | Path | bytes, *, name: str | None = None, max_pixels: int = MAX_PIXELS
) -> MaskReading:
    """Read a mask as `read_mask` does, and count the objects in it.

    Raises
    ------
    InvalidProblemError
        As `read_mask`.
    """
    label = picture_label(source, name)
    numbers = read_numbers(source, label, max_pixels)
    with damage_in_words(label):
        if numbers.are_colours:
            return _of_colours(numbers.values, label, is_lossy=numbers.is_lossy)
        if numbers.palette is not None:
            return _of_palette(numbers, numbers.palette, label)
        return _of_numbers(numbers.values, label, is_lossy=numbers.is_lossy)


def _of_numbers(values: NDArray[Any], label: str, *, is_lossy: bool) -> MaskReading:
    """Return a mask by its numbers, whatever their type."""
    if values.dtype.kind == "f":
        return _of_fractions(values, label)
    distinct = _distinct(values)
    least, most = int(distinct[0]), int(distinct[-1])
    if is_lossy:
        return _of_light(values, label, is_lossy=True)
    if len(distinct) == 1:
        return _of_one_number(values, most, label)
    if len(distinct) == 2 and not least < most <= 0:
        return MaskReading(np.asarray(values == distinct[1]))
    if least < 0:
        return _beside_negative(values, distinct, label)
    count = _count_instances(values, distinct, FEWEST_INSTANCES)
    if count:
        return MaskReading(np.asarray(values > 0), count, values)
    if values.dtype.itemsize > 1:
        _check_ends(values, distinct, label)
        values = _as_bytes(values, float(least), float(most))
    return _of_light(values, label, is_lossy=False)


def _of_one_number(values: NDArray[Any], number: int, label: str) -> MaskReading:
    is_light = number in (1, *TOPS) or (values.dtype.itemsize == 1 and number >= 128)
    if number and not is_light:
        raise InvalidProblemError(
            f"{label}: every pixel has the number {number}, which is neither 0 for nothing nor 255 "
            f"for all; {_INSTEAD}."
        )
    return MaskReading(np.full(values.shape, bool(number)))


def _distinct(values: NDArray[Any]) -> NDArray[Any]:
    """Return the distinct numbers in ascending order."""
    if values.dtype in (np.uint8, np.uint16):
        return np.flatnonzero(_counts(values))
    return np.unique(values)


def _counts(values: NDArray[Any]) -> IntArray:
    """Return the count of each number of one or two bytes, some rows at a time to save memory."""
    counts = np.zeros(np.iinfo(values.dtype).max + 1, dtype=np.int64)
    for start in range(0, len(values), ROWS_AT_ONCE):
        rows = values[start : start + ROWS_AT_ONCE]
        counts += np.bincount(rows.ravel(), minlength=len(counts))
    return counts


def _beside_negative(values: NDArray[Any], distinct: NDArray[Any], label: str) -> MaskReading:
    """Return the objects, numbered from 0, of a map with negative numbers as background.

    If 0 may be a background as well, the meaning of the negative numbers is unknown.
    """
    objects = distinct[distinct >= 0]
    moved = np.where(values < 0, 0, values.astype(np.int64) + 1)
    if len(objects) > FEWEST_DEEP_INSTANCES:
        numbers = np.concatenate([[0], objects.astype(np.int64) + 1])
        count = _count_instances(moved, numbers, FEWEST_DEEP_INSTANCES)
        areas = [np.count_nonzero(values == one) for one in objects[:200]]
        is_alike = objects[0] > 0 or areas[0] <= MOST_LARGER * np.median(areas[1:])
        if count and is_alike:
            return MaskReading(moved > 0, count, moved)
    raise _no_background(_in_words(objects) if len(objects) else "no others", label)


def _no_background(beside: str, label: str) -> InvalidProblemError:
    return InvalidProblemError(
        f"{label}: it has negative numbers beside {beside}, and nobody can say which "
        f"of them are background; {_INSTEAD}."
    )


def _in_words(numbers: NDArray[Any]) -> str:
    shown = ", ".join(str(int(one)) for one in numbers[:6])
    return f"{shown} and others" if len(numbers) > 6 else shown


def _count_instances(values: NDArray[Any], distinct: NDArray[Any], fewest_bytes: int) -> int:
    """Return the number of objects in a map of instances; 0 for all other pictures.

    Unlike a photograph or a map of classes, it has whole numbers from 0 without large gaps or
    too large for classes, several of them, and nearly every number in one piece.
    """
    if distinct[0] != 0:
        return 0
    fewest = FEWEST_DEEP_INSTANCES if values.dtype.itemsize > 1 else fewest_bytes
    count, most = len(distinct) - 1, int(distinct[-1])
    if not fewest <= count <= MOST_INSTANCES or not _may_number_objects(distinct, count, most):
        return 0
    return count if _are_objects(_places(distinct, values), count) else 0


def _places(distinct: NDArray[Any], values: NDArray[Any]) -> NDArray[np.int32]:
    """Return consecutive numbers from 0 in place of the distinct ones; the least becomes 0."""
    if values.dtype in (np.uint8, np.uint16):
        table = np.zeros(np.iinfo(values.dtype).max + 1, dtype=np.int32)
        table[distinct] = np.arange(len(distinct))
        return np.asarray(table[values])
    return np.searchsorted(distinct, values).astype(np.int32)


def _are_objects(labels: NDArray[np.int32], count: int) -> bool:
    """Return True if nearly every number is in one piece, and larger than a photograph's pixels."""
    n_marked = np.count_nonzero(labels)
    if 2 * n_marked > labels.size and n_marked < LEAST_MEAN_PIXELS * count:
        return False
    pieces = np.bincount(labels[_pieces(labels)], minlength=count + 1)[1:]
    return bool(np.mean(pieces == 1) >= WHOLE_INSTANCES)


def _may_number_objects(distinct: NDArray[Any], count: int, most: int) -> bool:
    """Return True if numbers may be objects: no white or "ignore" at the top, no levels of grey."""
    if most <= MOST_CLASS_NUMBER:
        return most <= MOST_GAPS * (count + 1)
    if count >= FEWEST_INSTANCES:
        return True
    steps = distinct[1:].astype(np.float64) / float(distinct[1])
    is_scaled = int(distinct[1]) > MOST_GAPS and np.allclose(
        steps, np.arange(1, count + 1), rtol=0.02
    )
    return most not in TOPS and not is_scaled


def _check_ends(values: NDArray[Any], distinct: NDArray[Any], label: str) -> None:
    """Refuse deep numbers that are no smooth mask: there, most light pixels are fully light."""
    least, most = float(distinct[0]), float(distinct[-1])
    middle, near = (least + most) / 2, most - (most - least) / NOISE
    n_light, n_full = np.count_nonzero(values > middle), np.count_nonzero(values >= near)
    is_small = float(distinct[-2]) < least + FEW_VALUES
    if is_small or 2 * n_full < n_light:
        raise InvalidProblemError(
            f"{label}: {NO_TWO_VALUES} areas of this one have {len(distinct):,}: "
            f"{_in_words(distinct)}; and its objects do not lie in one piece each; {_INSTEAD}."
        )


def _as_bytes(values: NDArray[Any], least: float, most: float) -> ByteImage:
    scaled = (values.astype(np.float64) - least) * (255.0 / (most - least))
    return np.clip(np.rint(scaled), 0, 255).astype(np.uint8)


def _of_fractions(values: NDArray[Any], label: str) -> MaskReading:
    """Split shares from 0 to 1, or light of another range, in the middle."""
    if not np.isfinite(values).all():
        raise InvalidProblemError(f"{label}: holds values that are not finite numbers.")
    least, most = float(values.min()), float(values.max())
    if least == most:
        raise InvalidProblemError(
            f"{label}: every pixel has the value {least:g}, which marks neither nothing nor all."
        )
    if least < most <= 0.0:
        raise _no_background("0" if most == 0.0 else "no others", label)
    if least >= 0.0 and most <= 1.0:
        least, most = 0.0, 1.0
    scaled = _as_bytes(values, least, most)
    _of_light(scaled, label, is_lossy=False)  # refuses pictures that are no masks
    return MaskReading(np.asarray(values >= (least + most) / 2))


def _of_palette(numbers: MapNumbers, palette: NDArray[np.uint8], label: str) -> MaskReading:
    """Read palette indices: by number for a ramp of grey, else by their colours."""
    places = numbers.values
    distinct = _distinct(places)
    full = np.zeros((max(len(palette), int(distinct[-1]) + 1), 3), dtype=np.int32)
    full[: len(palette)] = palette
    if _is_ramp(palette):
        return _of_numbers(places, label, is_lossy=False)
    if len(distinct) > 2:
        count = _count_instances(places, distinct, FEWEST_INSTANCES)
        if count:
            return MaskReading(np.asarray(places > 0), count, places)
    colours = full[distinct]
    if np.ptp(colours, axis=1).max(initial=0) > NOISE and len(distinct) > 2:
        raise InvalidProblemError(
            f"{label}: {NO_TWO_VALUES} this one has {len(distinct)} colours; {_INSTEAD}."
        )
    packed = full @ np.array([65536, 256, 1])
    if np.ptp(colours, axis=1).max(initial=0) == 0:
        return _of_numbers(full[places][:, :, 0].astype(np.uint8), label, is_lossy=False)
    return _of_colours(packed[places], label, is_lossy=False)


def _is_ramp(palette: NDArray[np.uint8]) -> bool:
    """Return True if a palette is grey and goes from black to white, or reversed as in ImageJ."""
    if len(palette) <= 2 or np.ptp(palette.astype(np.int32), axis=1).max() > 0:
        return False
    steps = np.diff(palette[:, 0].astype(np.int32))
    return bool((steps > 0).all() or (steps < 0).all())


def _of_colours(packed: NDArray[Any], label: str, *, is_lossy: bool) -> MaskReading:
    """Read colours: the lighter of two, or every pixel that is not black if each object has one."""
    distinct, counts = np.unique(packed, return_counts=True)
    if not is_lossy and len(distinct) > 2:
        if distinct[0] == 0 and FEWEST_INSTANCES < len(distinct) <= MOST_INSTANCES:
            labels = _places(distinct, packed)
            if _are_objects(labels, len(distinct) - 1):
                return MaskReading(labels > 0, len(distinct) - 1, labels)
        _check_one_line(distinct, counts, label)
    light = _lightness(distinct)
    if len(distinct) == 2:
        if light[0] == light[1]:
            raise InvalidProblemError(
                f"{label}: its two colours are equally light, and nobody can say which marks the "
                f"objects; {_INSTEAD}."
            )
        return MaskReading(np.asarray(packed == distinct[int(np.argmax(light))]))
    values = light[np.searchsorted(distinct, packed)]
    return _of_light(values, label, is_lossy=is_lossy)


def _lightness(packed: NDArray[Any]) -> ByteImage:
    colours = _unpacked(packed).astype(np.float64)
    return np.asarray(np.rint(colours @ np.array([0.299, 0.587, 0.114]))).astype(np.uint8)


def _unpacked(packed: NDArray[Any]) -> NDArray[np.int64]:
    numbers = packed.astype(np.int64)
    return np.stack([numbers >> 16, numbers >> 8 & 255, numbers & 255], axis=-1)


def _check_one_line(distinct: NDArray[Any], counts: IntArray, label: str) -> None:
    """Refuse colours that are not on the line between two of them."""
    colours = _unpacked(distinct).astype(np.float64)
    light = _lightness(distinct)
    start, end = colours[int(np.argmin(light))], colours[int(np.argmax(light))]
    along = end - start
    shares = (colours - start) @ along / max(float(along @ along), 1.0)
    nearest = start + np.clip(shares, 0, 1)[:, np.newaxis] * along
    off = np.abs(colours - nearest).max(axis=1) > COLOUR_TOLERANCE
    total = int(counts.sum())
    is_few = len(distinct) <= FEW_VALUES and off.any()
    if is_few or counts[off].sum() > MOST_OFF_COLOUR * total:
        raise InvalidProblemError(
            f"{label}: {NO_TWO_VALUES} this one has {len(distinct):,} colours; {_INSTEAD}."
        )


def _of_light(values: ByteImage, label: str, *, is_lossy: bool) -> MaskReading:
    """Split the light of bytes in the middle of its range, and refuse photographs and labels."""
    counts = _counts(values)
    used = np.flatnonzero(counts)
    low, high = int(used[0]), int(used[-1])
    if low == high:
        return _of_one_number(values, high, label)
    if not is_lossy and 2 < len(used) <= FEW_VALUES:
        _check_two_values(values, counts, label)
    height_over_low = 4 * (used - low)
    is_middle = (height_over_low > high - low) & (height_over_low < 3 * (high - low))
    middle = float(counts[used[is_middle]].sum() / values.size)
    if middle > MIDDLE_SHARE:
        raise InvalidProblemError(
            f"{label}: this does not look like a mask, since {middle:.0%} of its pixels are "
            "neither dark nor light."
        )
    if is_lossy:
        _check_lossy(values, (low, high), label)
    elif len(used) > FEW_VALUES:
        _check_smooth(values, (low, high), len(used), label)
    return MaskReading(np.asarray(values >= (low + high + 1) // 2))


def _pieces(labels: NDArray[np.int32]) -> tuple[IntArray, IntArray]:
    """Return one pixel of every area of equal labels connected by sides and corners."""
    from skimage.measure import label as connected  # slow to import

    areas = connected(labels, background=-1, connectivity=2)  # type: ignore[no-untyped-call]
    _, first = np.unique(areas, return_index=True)
    rows, columns = np.unravel_index(first, labels.shape)
    return rows, columns


def mask_fits(mask_shape: tuple[int, int], shape: tuple[int, int]) -> bool:
    """Return True if a mask may be a resized copy of its picture's frame; (height, width) each.

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


def _in_blocks(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Mark pixels that belong to a square of two by two pixels of one number."""
    is_even = (values[:-1, :-1] == values[1:, :-1]) & (values[:-1, :-1] == values[:-1, 1:])
    is_even &= values[:-1, :-1] == values[1:, 1:]
    found = np.zeros(values.shape, dtype=np.bool_)
    for rows in (slice(0, -1), slice(1, None)):
        for columns in (slice(0, -1), slice(1, None)):
            found[rows, columns] |= is_even
    return found


def _is_highest(values: ByteImage) -> NDArray[np.bool_]:
    """Mark pixels that none of their eight neighbours exceeds."""
    from scipy.ndimage import maximum_filter  # slow to import

    return np.asarray(maximum_filter(values, size=3, mode="nearest") == values)


def _check_two_values(values: ByteImage, counts: IntArray, label: str) -> None:
    """Refuse a map of labels: smooth edges have values in between too, but no areas of them.

    A value in between is a label if most of its pixels fill squares or have no larger
    neighbour, which edge pixels have.
    """
    low, *between, high = np.flatnonzero(counts).tolist()
    is_own = _in_blocks(values) | _is_highest(values)
    owned = np.bincount(values[is_own], minlength=256)
    areas = [v for v in between if 2 * owned[v] > counts[v]]
    if max(between) < low + FEW_VALUES:
        areas = between  # small numbers, even beside one large one, are labels of any size
    if areas == between or any(low + NOISE < value < high - NOISE for value in areas):
        found = np.array([low, *areas, high])
        raise InvalidProblemError(
            f"{label}: {NO_TWO_VALUES} areas of this one have {len(found)}: {_in_words(found)}; "
            f"{_INSTEAD}."
        )


def _check_smooth(values: ByteImage, ends: tuple[int, int], count: int, label: str) -> None:
    """Refuse many numbers that fill areas, such as objects in several pieces."""
    low, high = ends
    is_between = (values > low + NOISE) & (values < high - NOISE)
    n_between = np.count_nonzero(is_between)
    if n_between and np.count_nonzero(_in_blocks(values) & is_between) > MOST_EVEN * n_between:
        raise InvalidProblemError(
            f"{label}: {NO_TWO_VALUES} areas of this one have {count}, and its objects do not lie "
            f"in one piece each; {_INSTEAD}."
        )


def _check_lossy(values: ByteImage, ends: tuple[int, int], label: str) -> None:
    """Refuse labels in a lossy file, which changes small numbers and blurs the edges of areas."""
    low, high = ends
    if high - low < LEAST_CONTRAST:
        raise InvalidProblemError(
            f"{label}: its values lie between {low} and {high}, and this format changes them; save "
            "masks and labels as PNG or TIFF."
        )
    levels = _plain_levels(values)
    n_dark = np.count_nonzero(2 * levels < low + high)
    if max(n_dark, len(levels) - n_dark) > 1:
        raise InvalidProblemError(
            f"{label}: {NO_TWO_VALUES} plain areas of this one have {_in_words(levels)}, and this "
            "format changes numbers; save masks and labels as PNG or TIFF."
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


def _plain_levels(values: ByteImage) -> IntArray:
    """Return the numbers that fill areas of 16 x 16 pixels of a JPEG, in ascending order.

    JPEG stores blocks of 8 x 8 pixels. A block of one number stays one number at every quality, so
    black and white have one such number each, and classes numbered 0, 1 and 2 keep theirs. Smooth
    edges leave rows of such blocks, never squares.
    """
    rows, columns = values.shape[0] // 8, values.shape[1] // 8
    blocks = values[: 8 * rows, : 8 * columns].reshape(rows, 8, columns, 8)
    least, most = blocks.min(axis=(1, 3)), blocks.max(axis=(1, 3))
    level = np.where(least == most, least.astype(np.int64), -1)
    corner = level[:-1, :-1]
    is_square = (corner >= 0) & (corner == level[1:, :-1])
    is_square &= (corner == level[:-1, 1:]) & (corner == level[1:, 1:])
    return np.unique(corner[is_square])
