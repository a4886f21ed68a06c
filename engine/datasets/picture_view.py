"""Views of deep pictures: the page, and the colour and range of each channel."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.core.arguments import ByteImage
from engine.core.errors import InvalidProblemError
from engine.core.options import check_whole
from engine.datasets.calibration import PixelSize, size_of_info
from engine.datasets.image_stacks import ImageStack, orientation_of, read_stack, stack_of_frames
from engine.datasets.images import (
    FULL_RANGE,
    damage_in_words,
    is_deep,
    open_picture,
    picture_bytes,
    picture_label,
    read_plain,
)
from engine.datasets.limits import MAX_PIXELS
from engine.datasets.samples import Meaning, upright

COLOURS = {
    "grey": (1.0, 1.0, 1.0),
    "red": (1.0, 0.0, 0.0),
    "green": (0.0, 1.0, 0.0),
    "blue": (0.0, 0.0, 1.0),
    "cyan": (0.0, 1.0, 1.0),
    "magenta": (1.0, 0.0, 1.0),
    "yellow": (1.0, 1.0, 0.0),
    "off": (0.0, 0.0, 0.0),
}
"""Colours that a channel may be shown in: red, green, blue from 0 to 1."""

_OF_TWO = ("green", "magenta")
_OF_COLOUR = ("red", "green", "blue")
_OF_MANY = ("red", "green", "blue", "grey", "cyan", "magenta", "yellow")
BRIGHTEST = -1
"""Page number that means the largest value of each pixel on any page."""

PERCENTILES = (0.1, 99.9)
"""Default percentiles of the pixel values that are shown black and full."""

MOST_SAMPLES = 1_000_000


@dataclass(frozen=True, slots=True)
class ChannelView:
    """View of a channel: values from ``low`` to ``high`` are black up to a colour of `COLOURS`."""

    colour: str
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class PictureView:
    """One page (or `BRIGHTEST`) and the views of its channels, added up.

    ``is_colour`` is true if it was made for pictures whose channels are red, green and blue.
    """

    channels: tuple[ChannelView, ...]
    page: int = 0
    is_colour: bool = False

    def as_json(self) -> dict[str, Any]:
        """Return the values that `view_from_json` reads."""
        rows = [{"colour": c.colour, "low": c.low, "high": c.high} for c in self.channels]
        colours = {"is_colour": True} if self.is_colour else {}
        return {"page": self.page, "channels": rows, **colours}

    def suits(self, stack: ImageStack) -> bool:
        """Return True if the view fits a picture: both are of colour, or neither is."""
        if not stack.is_colour:
            return not self.is_colour
        return self.is_colour or tuple(c.colour for c in self.channels[:3]) == _OF_COLOUR


@dataclass(frozen=True, slots=True)
class PictureFacts:
    """Properties of a deep picture; ``bits`` are those that its values use, 0 for fractions."""

    n_pages: int
    n_channels: int
    kind: str
    bits: int


@dataclass(frozen=True, slots=True, eq=False)
class Picture:
    """Raw content of a picture: the bytes that any viewer shows, or the numbers of a deep one.

    Parameters
    ----------
    content : ImageStack of a deep picture; of others an ndarray, shape (height, width, 3), uint8
    pixel_size : PixelSize or None, if the file states it
    """

    content: ByteImage | ImageStack
    pixel_size: PixelSize | None

    @property
    def stack(self) -> ImageStack | None:
        """Return the numbers of a deep picture, else None."""
        return self.content if isinstance(self.content, ImageStack) else None

    def shown(self, view: PictureView | None = None) -> ByteImage:
        """Return the picture as red, green and blue; a deep one by a view, or by its own range."""
        if isinstance(self.content, ImageStack):
            return show_stack(self.content, view)
        return self.content


def view_from_json(values: Mapping[str, Any]) -> PictureView:
    """Read a stored view.

    Raises
    ------
    InvalidProblemError
        If it is no view: a colour is not of `COLOURS` or a range is empty or not finite.
    """
    try:
        channels = tuple(
            ChannelView(str(row["colour"]), float(row["low"]), float(row["high"]))
            for row in values["channels"]
        )
        is_colour = values.get("is_colour", False) is True
        view = PictureView(channels, int(values.get("page", 0)), is_colour)
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidProblemError("The view of the pictures is damaged.") from error
    for channel in view.channels:
        is_range = np.isfinite([channel.low, channel.high]).all() and channel.low < channel.high
        if channel.colour not in COLOURS or not is_range:
            raise InvalidProblemError("The view of the pictures is damaged.")
    if not channels or view.page < BRIGHTEST:
        raise InvalidProblemError("The view of the pictures is damaged.")
    return view


def read_picture(
    source: str | Path | bytes, *, name: str | None = None, max_pixels: int = MAX_PIXELS
) -> Picture:
    """Read a picture once: its bytes or its numbers, upright, and the size of its pixels.

    Deep pictures have over eight bits, several pages or frames, or channels that are no colours.

    Raises
    ------
    InvalidProblemError
        As `read_image` does.
    """
    label = picture_label(source, name)
    content = picture_bytes(source, label, max_pixels)
    stack = read_stack(content, label, max_pixels)
    if stack is None:
        return _decoded(content, label, max_pixels)
    if stack.is_plain:
        return Picture(stack.pixels(), stack.pixel_size)
    return Picture(stack, stack.pixel_size)


def _decoded(content: bytes, label: str, max_pixels: int) -> Picture:
    """Return the result of Pillow's decoding."""
    picture = open_picture(content, label, max_pixels)
    size = size_of_info(picture.info)
    meaning = Meaning(orientation=orientation_of(picture))
    size = size.turned(sideways=meaning.is_sideways) if size else None
    with damage_in_words(label):
        stack = stack_of_frames(picture, label, max_pixels)
        if stack is None and is_deep(picture):
            numbers = _narrowed(np.asarray(picture))[np.newaxis, np.newaxis]
            stack = ImageStack(np.ascontiguousarray(upright(numbers, meaning.orientation)))
    if stack is None:
        return Picture(read_plain(picture, label), size)
    return Picture(replace(stack, pixel_size=size), size)


def _narrowed(numbers: NDArray[Any]) -> NDArray[Any]:
    """Return sixteen bits as such: Pillow holds those of some formats in thirty-two."""
    is_short = numbers.dtype == np.int32 and numbers.min() >= 0 and numbers.max() <= 65535
    return numbers.astype(np.uint16) if is_short else numbers


def read_deep(
    source: str | Path | bytes, *, name: str | None = None, max_pixels: int = MAX_PIXELS
) -> ImageStack | None:
    """Return the raw numbers of a deep picture, None for all other pictures.

    Raises
    ------
    InvalidProblemError
        As `read_image` does.
    """
    return read_picture(source, name=name, max_pixels=max_pixels).stack


def picture_facts(stack: ImageStack) -> PictureFacts:
    """Return the properties of a deep picture."""
    n_pages, n_channels = stack.planes.shape[:2]
    kind = stack.planes.dtype.kind
    most = stack.planes.max() if kind in "ui" else 0
    bits = int(most).bit_length()
    if bits > 8:  # cameras use an even number of bits
        bits += bits % 2
    name = {"f": "float", "u": "whole", "i": "signed", "b": "bits"}[kind]
    width = f"{8 * stack.planes.dtype.itemsize} bit"
    return PictureFacts(n_pages, n_channels, f"{width} {name}", bits)


def choose_view(
    stacks: Iterable[ImageStack],
    *,
    percentiles: tuple[float, float] = PERCENTILES,
    colours: Sequence[str] = (),
    page: int = 0,
) -> PictureView:
    """Return one view for several pictures: each channel from one to another percentile of all.

    Raises
    ------
    InvalidProblemError
        If there is no picture, a value is not finite, or the percentiles do not ascend.
    """
    low, high = percentiles
    if not 0 <= low < high <= 100:
        raise InvalidProblemError("The percentiles must ascend, from 0 to 100.")
    if unknown := set(colours) - set(COLOURS):
        raise InvalidProblemError(f"There is no colour {min(unknown)!r} for a channel.")
    samples: list[list[NDArray[Any]]] = []
    is_colour = False
    for stack in stacks:
        is_colour = is_colour or stack.is_colour
        for k, own in enumerate(_samples(stack, page)):
            if k == len(samples):
                samples.append([])
            samples[k].append(own)
    if not samples:
        raise InvalidProblemError("There is no deep picture to choose a view for.")
    named = [*colours, *default_colours(len(samples), is_colour=is_colour)[len(colours) :]]
    values = [np.concatenate(parts) for parts in samples]
    spans = [_span(part, low, high) for part in values]
    if is_colour:  # one range for all three, or white would not stay white
        spans[:3] = [_span(np.concatenate(values[:3]), low, high)] * len(spans[:3])
    channels = (ChannelView(colour, *span) for colour, span in zip(named, spans, strict=False))
    return PictureView(tuple(channels), page, is_colour)


def default_colours(count: int, *, is_colour: bool) -> tuple[str, ...]:
    """Return ``count`` colours: grey, green and magenta, or red, green, blue and more."""
    if is_colour:
        return (*_OF_COLOUR, *["off"] * (count - 3))
    if count == 1:
        return ("grey",)
    if count == len(_OF_TWO):
        return _OF_TWO
    return (*_OF_MANY[:count], *["off"] * (count - len(_OF_MANY)))


def _samples(stack: ImageStack, page: int) -> list[NDArray[Any]]:
    """Return some values of each channel, without pixels that are not finite."""
    planes = _page(stack, page)
    stride = max(1, planes[0].size // MOST_SAMPLES)
    found = []
    for plane in planes:
        values = plane.ravel()[::stride].astype(np.float64)
        finite = values[np.isfinite(values)]
        if not len(finite):
            raise InvalidProblemError("A channel holds no finite number.")
        found.append(finite)
    return found


def _span(values: NDArray[np.float64], low: float, high: float) -> tuple[float, float]:
    """Return the percentiles; the whole range if they are equal; a usual one if all is plain."""
    first, last = (float(v) for v in np.percentile(values, [low, high]))
    if last <= first:
        first, last = float(values.min()), float(values.max())
    if last > first:
        return first, last
    return next(((0.0, top) for top in (1.0, 255.0) if 0 <= first <= top), (first - 1, first + 1))


def _page(stack: ImageStack, page: int) -> NDArray[Any]:
    """Return the planes of one page, or of the last one: (channels, rows, columns)."""
    if page == BRIGHTEST:
        return np.asarray(stack.planes.max(axis=0))
    return np.asarray(stack.planes[min(page, len(stack.planes) - 1)])


def show_stack(stack: ImageStack, view: PictureView | None = None) -> ByteImage:
    """Return a deep picture as red, green and blue by a view; by its own range without one.

    Channels that the view does not know are not shown. Values that are not finite are black. A
    view made for grey does not apply to a colour picture, nor the reverse: its own range does.
    """
    if view is None or not view.suits(stack):
        view = own_view(stack)
    planes = _page(stack, view.page)
    shown = np.zeros((*planes.shape[1:], 3), dtype=np.float32)
    for plane, channel in zip(planes, view.channels, strict=False):
        colour = np.array(COLOURS[channel.colour], dtype=np.float32)
        if colour.any():
            part = (plane.astype(np.float64) - channel.low) / (channel.high - channel.low)
            np.nan_to_num(part, copy=False, nan=0.0, posinf=1.0, neginf=0.0)
            shown += np.clip(part, 0, 1).astype(np.float32)[:, :, np.newaxis] * colour
    return np.asarray(np.rint(255 * np.minimum(shown, 1.0)), dtype=np.uint8)


def own_view(stack: ImageStack) -> PictureView:
    """Return the view of a picture that belongs to no set; see `set_view`."""
    return set_view([stack])


def set_view(stacks: Iterable[ImageStack]) -> PictureView:
    """Return the default view of pictures.

    Bytes, and sixteen bits that are used in full, are unchanged. All others are stretched as in
    `choose_view` does, by the values of all of them, so that a dark picture stays the darker one.

    Raises
    ------
    InvalidProblemError
        As for `choose_view`.
    """
    most = 0.0

    def noted() -> Iterator[ImageStack]:
        nonlocal most
        for stack in stacks:
            most = max(most, _most_of_range(stack))
            yield stack

    view = choose_view(noted())
    if most == np.inf:
        return view
    return replace(view, channels=tuple(ChannelView(c.colour, 0.0, most) for c in view.channels))


def _most_of_range(stack: ImageStack) -> float:
    """Return the largest value that a picture's numbers may have; infinite if it is unknown."""
    planes = stack.planes
    if planes.dtype.kind == "f" or planes.min() < 0:
        return np.inf
    if planes.max() <= 255:
        return 255.0
    whole = np.iinfo(np.uint16).max
    return (
        float(whole) if planes.dtype == np.uint16 and planes.max() > FULL_RANGE * whole else np.inf
    )


def read_image(
    source: str | Path | bytes,
    *,
    name: str | None = None,
    max_pixels: int = MAX_PIXELS,
    view: PictureView | None = None,
) -> ByteImage:
    """Read a picture as 8-bit RGB, upright, flattened on white.

    The orientation noted by the camera is applied; transparency is laid on white; CMYK, palette,
    grey and bilevel pictures become RGB. The format is detected from the content, so a wrong
    extension does no harm. Deep pictures, stacks and channels are shown by ``view``; without one
    the first page, stretched by the range of its own values.

    Parameters
    ----------
    source : str, Path or bytes
        File path, or the content of a file.
    name : str, optional
        Name of the picture in messages; the file name by default.
    max_pixels : int
        Refuse larger pictures, before any pixel is decoded.
    view : PictureView, optional
        The view of the set that the picture belongs to.

    Returns
    -------
    ndarray, shape (height, width, 3), uint8

    Raises
    ------
    InvalidProblemError
        If the content is no picture, is cut off, or is too large. One sentence, naming the file.

    Examples
    --------
    >>> from io import BytesIO
    >>> from PIL import Image
    >>> file = BytesIO()
    >>> Image.new("RGB", (3, 2), "white").save(file, format="PNG")
    >>> read_image(file.getvalue(), name="white.png").shape
    (2, 3, 3)
    """
    check_whole("max_pixels", max_pixels, at_least=1)
    return read_picture(source, name=name, max_pixels=max_pixels).shown(view)
