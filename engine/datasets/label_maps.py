"""Label maps from files: grey values, palette places or colours as classes, and back to files."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from engine.core.errors import InvalidProblemError
from engine.crf.class_features import MOST_CLASSES, UNKNOWN
from engine.datasets.images import MAX_PIXELS, damage_in_words, picture_label
from engine.datasets.map_numbers import open_map
from engine.datasets.masks import mask_fits

ValueMap = NDArray[np.int64]
"""Values of a label map's pixels as they stand in its file; a colour is 65536 r + 256 g + b."""

WHOLE_NUMBERS = {"1", "L", "P", "I", "I;16", "I;16B", "I;16L"}

PALETTE = (
    (230, 25, 75), (60, 180, 75), (0, 130, 200), (255, 225, 25), (245, 130, 48), (145, 30, 180),
    (70, 240, 240), (240, 50, 230), (210, 245, 60), (250, 190, 212), (0, 128, 128), (220, 190, 255),
    (170, 110, 40), (255, 250, 200), (128, 0, 0), (170, 255, 195), (128, 128, 0), (255, 215, 180),
    (0, 0, 128), (128, 128, 128), (255, 255, 255), (0, 0, 0),
)  # fmt: skip
"""Colours of the classes in written label maps, in their order; they begin anew after the last."""


@dataclass(frozen=True, slots=True)
class LabelCode:
    """Which value of a label map stands for which class.

    Parameters
    ----------
    names : of the classes, in the order of their labels
    values : of their pixels in files, as in `ValueMap`
    unknown : values that mean nothing: unpainted, or to be ignored
    """

    names: tuple[str, ...]
    values: tuple[int, ...]
    unknown: tuple[int, ...] = ()

    def labels(self, values: ValueMap, name: str) -> NDArray[np.uint8]:
        """Return the label of every pixel, `UNKNOWN` where nothing is known.

        Raises
        ------
        InvalidProblemError
            If a value is none of the classes' and not unknown either.
        """
        out = np.full(values.shape, UNKNOWN, dtype=np.uint8)
        known = np.isin(values, self.unknown)
        for label, value in enumerate(self.values):
            here = values == value
            out[here] = label
            known |= here
        if not known.all():
            strange = values[~known][0]
            raise InvalidProblemError(
                f"{name}: value {value_in_words(int(strange))} is none of the "
                f"{len(self.values)} classes; name it, or give it as unknown."
            )
        return out


def value_in_words(value: int) -> str:
    """A grey value or palette place as a number, a colour as (r, g, b)."""
    if value < 65536:
        return str(value)
    return f"({value >> 16 & 255}, {value >> 8 & 255}, {value & 255})"


def read_values(
    source: str | Path | bytes, *, name: str | None = None, max_pixels: int = MAX_PIXELS
) -> ValueMap:
    """Read the values of a label map: grey values, places in a palette, or packed colours.

    Raises
    ------
    InvalidProblemError
        As for `read_image`, or if the numbers are fractions.
    """
    label = picture_label(source, name)
    picture = open_map(source, label, max_pixels)
    with damage_in_words(label):
        if picture.mode in WHOLE_NUMBERS:
            return np.asarray(picture).astype(np.int64)
        if picture.mode == "F":
            numbers = np.asarray(picture)
            if not np.array_equal(numbers, np.rint(numbers)):
                raise InvalidProblemError(f"{label}: a label map holds whole numbers.")
            return numbers.astype(np.int64)
        colours = np.asarray(picture.convert("RGB")).astype(np.int64)
    if (np.ptp(colours, axis=2) == 0).all():  # grey saved as colour
        return np.asarray(colours[:, :, 0])
    return np.asarray(colours @ np.array([65536, 256, 1]))


def match_values(values: ValueMap, shape: tuple[int, int], *, name: str) -> ValueMap:
    """Return a label map at the size of its image; a smaller or larger copy of it is resized.

    Raises
    ------
    InvalidProblemError
        If it belongs to another picture or was cropped.
    """
    rows, columns = values.shape
    if not mask_fits((rows, columns), shape):
        raise InvalidProblemError(
            f"{name}: the label map is {columns} x {rows} pixels but its image is {shape[1]} x "
            f"{shape[0]}; draw it on the same picture."
        )
    if (rows, columns) == shape:
        return values
    i = ((np.arange(shape[0]) + 0.5) * rows / shape[0]).astype(int)
    j = ((np.arange(shape[1]) + 0.5) * columns / shape[1]).astype(int)
    return np.asarray(values[np.ix_(i, j)])


def read_label_code(path: Path, unknown: Sequence[int] = ()) -> LabelCode:
    """Read a table of classes: columns ``value`` and ``class``, or ``colour`` instead of ``value``.

    A class called unknown, void or ignore is no class: its value means nothing.

    Raises
    ------
    InvalidProblemError
        If the file cannot be read, lacks a column, or says something twice.
    """
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InvalidProblemError(f"{path.name}: this table of classes cannot be read.") from error
    names, values, nothing = [], [], list(unknown)
    for number, row in enumerate(rows, start=2):
        called = (row.get("class") or row.get("name") or "").strip()
        try:
            value = int(row.get("value") or "")
        except ValueError as error:
            raise InvalidProblemError(
                f"{path.name}: line {number} has no whole number in the column value."
            ) from error
        if not called:
            raise InvalidProblemError(f"{path.name}: line {number} names no class.")
        if called.casefold() in {"unknown", "void", "ignore"} or value in nothing:
            nothing.append(value)
        else:
            names.append(called)
            values.append(value)
    return checked_code(names, values, nothing)


def checked_code(
    names: Sequence[str], values: Sequence[int], unknown: Sequence[int] = ()
) -> LabelCode:
    """Return the code of 2 to 32 classes.

    Raises
    ------
    InvalidProblemError
        If there are fewer or more, or two share a name or a value.
    """
    if not 2 <= len(names) <= MOST_CLASSES:
        raise InvalidProblemError(
            f"classes: expected 2 to {MOST_CLASSES} of them, received {len(names)}."
        )
    if len(set(names)) < len(names) or len(set(values)) < len(values):
        raise InvalidProblemError("classes: each needs a name and a value of its own.")
    return LabelCode(tuple(names), tuple(values), tuple(sorted({*unknown} - {*values})))


def write_label_map(path: Path, labels: NDArray[np.uint8], values: Sequence[int]) -> None:
    """Write labels as a PNG with a palette; see `label_places` and `label_palette`."""
    picture = Image.fromarray(label_places(values)[labels], mode="P")
    picture.putpalette(label_palette(values).tobytes())
    picture.save(path, format="PNG")


def label_places(values: Sequence[int]) -> NDArray[np.uint8]:
    """Return what stands in a map for each label, shape (256,): the classes' values in files.

    Where a value does not fit a byte, as colours do not, it is the label itself. Unknown pixels
    have the place 255.
    """
    used = list(values)
    if max(used) >= UNKNOWN or min(used) < 0:
        used = list(range(len(used)))
    places = np.full(256, UNKNOWN, dtype=np.uint8)
    places[: len(used)] = used
    return places


def label_palette(values: Sequence[int]) -> NDArray[np.uint8]:
    """Return the colours of the places of a map, shape (256, 3)."""
    palette = np.zeros((256, 3), dtype=np.uint8)
    for label, value in enumerate(label_places(values)[: len(values)]):
        palette[value] = PALETTE[label % len(PALETTE)]
    return palette
