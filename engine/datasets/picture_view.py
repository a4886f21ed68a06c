"""How deep pictures are looked at: which page, each channel's colour and range of values."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.core.arguments import ByteImage
from engine.core.errors import InvalidProblemError
from engine.datasets.image_stacks import ImageStack, read_stack, tiff_pixel_size
from engine.datasets.images import (
    FULL_RANGE,
    MAX_PIXELS,
    damage_in_words,
    is_deep,
    open_picture,
    picture_bytes,
    picture_label,
    read_plain_image,
)

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
_OF_MANY = ("red", "green", "blue", "grey", "cyan", "magenta", "yellow")
BRIGHTEST = -1
"""As a page: of each pixel its largest value on any page."""

PERCENTILES = (0.1, 99.9)
"""Values at these per cent of the pixels are shown black and full, unless told otherwise."""

MOST_SAMPLES = 1_000_000


@dataclass(frozen=True, slots=True)
class ChannelView:
    """Values from ``low`` to ``high`` are shown from black to a colour of `COLOURS`."""

    colour: str
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class PictureView:
    """One page (or `BRIGHTEST`) and the views of its channels, added up."""

    channels: tuple[ChannelView, ...]
    page: int = 0

    def as_json(self) -> dict[str, Any]:
        """Return what `view_from_json` reads."""
        rows = [{"colour": c.colour, "low": c.low, "high": c.high} for c in self.channels]
        return {"page": self.page, "channels": rows}


@dataclass(frozen=True, slots=True)
class PictureFacts:
    """What a deep picture holds; ``bits`` are those that its values use, 0 for fractions.

    ``pixel_size`` is in micrometres, None where the file does not say.
    """

    n_pages: int
    n_channels: int
    kind: str
    bits: int
    pixel_size: float | None


def view_from_json(values: Mapping[str, Any]) -> PictureView:
    """Read a kept view.

    Raises
    ------
    InvalidProblemError
        If it is none: a colour is not of `COLOURS` or a range is empty or not finite.
    """
    try:
        channels = tuple(
            ChannelView(str(row["colour"]), float(row["low"]), float(row["high"]))
            for row in values["channels"]
        )
        view = PictureView(channels, int(values.get("page", 0)))
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidProblemError("The view of the pictures is damaged.") from error
    for channel in view.channels:
        is_range = np.isfinite([channel.low, channel.high]).all() and channel.low < channel.high
        if channel.colour not in COLOURS or not is_range:
            raise InvalidProblemError("The view of the pictures is damaged.")
    if not channels or view.page < BRIGHTEST:
        raise InvalidProblemError("The view of the pictures is damaged.")
    return view


def read_deep(
    source: str | Path | bytes, *, name: str | None = None, max_pixels: int = MAX_PIXELS
) -> ImageStack | None:
    """Return the numbers of a deep picture as they are in the file, None for all other pictures.

    Deep are more than eight bits, several pages, and other than one, three or four channels.

    Raises
    ------
    InvalidProblemError
        As `read_image` does.
    """
    label = picture_label(source, name)
    content = picture_bytes(source, label, max_pixels)
    stack = read_stack(content, label, max_pixels)
    if stack is not None:
        return stack
    picture = open_picture(content, label, max_pixels)
    if not is_deep(picture):
        return None
    with damage_in_words(label):
        numbers = np.asarray(picture)[np.newaxis, np.newaxis]
    size = tiff_pixel_size(content) if picture.format == "TIFF" else None
    return ImageStack(numbers, size)


def picture_facts(stack: ImageStack) -> PictureFacts:
    """Return what a deep picture holds."""
    n_pages, n_channels = stack.planes.shape[:2]
    kind = stack.planes.dtype.kind
    most = stack.planes.max() if kind in "ui" else 0
    bits = int(most).bit_length()
    if bits > 8:  # cameras have an even number of bits
        bits += bits % 2
    name = {"f": "float", "u": "whole", "i": "signed", "b": "bits"}[kind]
    width = f"{8 * stack.planes.dtype.itemsize} bit"
    return PictureFacts(n_pages, n_channels, f"{width} {name}", bits, stack.pixel_size)


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
    return PictureView(tuple(channels), page)


def default_colours(count: int, *, is_colour: bool) -> tuple[str, ...]:
    """Colours of so many channels: grey, green and magenta, or red, green, blue and others."""
    if is_colour:
        return ("red", "green", "blue", *["off"] * (count - 3))
    if count == 1:
        return ("grey",)
    if count == len(_OF_TWO):
        return _OF_TWO
    return (*_OF_MANY[:count], *["off"] * (count - len(_OF_MANY)))


def _samples(stack: ImageStack, page: int) -> list[NDArray[Any]]:
    """Some values of each channel; single pixels that are not finite are no values."""
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
    """The percentiles; the whole range where they are equal; a usual one where all is plain."""
    first, last = (float(v) for v in np.percentile(values, [low, high]))
    if last <= first:
        first, last = float(values.min()), float(values.max())
    if last > first:
        return first, last
    return next(((0.0, top) for top in (1.0, 255.0) if 0 <= first <= top), (first - 1, first + 1))


def _page(stack: ImageStack, page: int) -> NDArray[Any]:
    """The planes of one page, or the last one: (channels, rows, columns)."""
    if page == BRIGHTEST:
        return np.asarray(stack.planes.max(axis=0))
    return np.asarray(stack.planes[min(page, len(stack.planes) - 1)])


def show_stack(stack: ImageStack, view: PictureView | None = None) -> ByteImage:
    """Return a deep picture as red, green and blue by a view; by its own range without one.

    Channels that the view does not know are not shown. What is not finite is black.
    """
    view = own_view(stack) if view is None else view
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
    """The view of a picture that belongs to no set; see `set_view`."""
    return set_view([stack])


def set_view(stacks: Iterable[ImageStack]) -> PictureView:
    """The view of pictures of which nobody said how to show them.

    Bytes as they are, sixteen bits that are used in full likewise, all else stretched: as
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
    """The largest value that a picture's numbers may have; infinite where they tell none."""
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
    grey and bilevel pictures become RGB. The format is told from the content, so a wrong extension
    does no harm. Deep pictures, stacks and channels are shown by ``view``; without one the first
    page, stretched by the range of its own values.

    Parameters
    ----------
    source : str, Path or bytes
        File path, or the content of a file.
    name : str, optional
        What to call the picture in messages; the file name by default.
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
    label = picture_label(source, name)
    content = picture_bytes(source, label, max_pixels)
    if view is not None:
        deep = read_deep(content, name=label, max_pixels=max_pixels)
        if deep is not None:
            return show_stack(deep, view)
    else:
        stack = read_stack(content, label, max_pixels)
        if stack is not None:
            return show_stack(stack)
    return read_plain_image(content, name=label, max_pixels=max_pixels)
