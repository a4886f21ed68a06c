"""Label maps from files: grey values, palette indices or colours as classes, and back to files."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from engine.core.errors import InvalidProblemError
from engine.crf.class_features import MOST_CLASSES, UNKNOWN
from engine.datasets.images import picture_label
from engine.datasets.limits import MAX_PIXELS
from engine.datasets.map_numbers import read_numbers
from engine.datasets.masks import mask_fits

ValueMap = NDArray[np.int64]
"""Values of a label map's pixels in its file; a colour is 65536 r + 256 g + b."""

PALETTE = (
    (230, 25, 75), (60, 180, 75), (0, 130, 200), (255, 225, 25), (245, 130, 48), (145, 30, 180),
    (70, 240, 240), (240, 50, 230), (210, 245, 60), (250, 190, 212), (0, 128, 128), (220, 190, 255),
    (170, 110, 40), (255, 250, 200), (128, 0, 0), (170, 255, 195), (128, 128, 0), (255, 215, 180),
    (0, 0, 128), (128, 128, 128), (255, 255, 255), (0, 0, 0),
)  # fmt: skip
"""Colours of the classes in written label maps, in order; after the last they start again."""


IGNORED = (255, 65_535)
"""Largest numbers of one and two bytes, which mean "unknown" in maps of classes."""


@dataclass(frozen=True, slots=True)
class LabelCode:
    """Table of the classes of a label map and their values.

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
        """Return the label of every pixel, `UNKNOWN` for unknown values.

        Raises
        ------
        InvalidProblemError
            If a value belongs to no class and is not unknown.
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
    """Return a value in words: a grey value or palette index as a number, a colour as (r, g, b)."""
    if value < 65536:
        return str(value)
    return f"({value >> 16 & 255}, {value >> 8 & 255}, {value & 255})"


def read_values(
    source: str | Path | bytes, *, name: str | None = None, max_pixels: int = MAX_PIXELS
) -> ValueMap:
    """Read the values of a label map: grey values, palette indices, or packed colours.

    Raises
    ------
    InvalidProblemError
        As for `read_image`, or if the numbers are fractions.
    """
    label = picture_label(source, name)
    values = read_numbers(source, label, max_pixels).values
    if values.dtype.kind == "f":
        raise InvalidProblemError(f"{label}: a label map holds whole numbers.")
    return values.astype(np.int64)


def count_labels(source: str | Path | bytes, name: str | None = None) -> int:
    """Return the number of classes in a label map, 0 for other pictures such as photographs.

    The largest number of one or two bytes, which means "ignore", does not count.
    """
    label = picture_label(source, name)
    try:
        found = read_numbers(source, label, MAX_PIXELS)
    except InvalidProblemError:
        return 0
    if found.is_lossy or found.values.dtype.kind == "f":
        return 0
    count = len({*np.unique(found.values).tolist()} - {*IGNORED})
    return count if 1 < count <= MOST_CLASSES + 1 else 0


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
        If the file cannot be read, lacks a column, or repeats an entry.
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


def check_names(names: Sequence[str]) -> None:
    """Raise InvalidProblemError unless there are 2 to 32 different names of classes."""
    if not 2 <= len(names) <= MOST_CLASSES:
        raise InvalidProblemError(
            f"classes: expected 2 to {MOST_CLASSES} of them, received {len(names)}."
        )
    if len(set(names)) < len(names) or not all(name.strip() for name in names):
        raise InvalidProblemError("classes: each needs a name of its own.")


def checked_code(
    names: Sequence[str], values: Sequence[int], unknown: Sequence[int] = ()
) -> LabelCode:
    """Return the code of 2 to 32 classes.

    Raises
    ------
    InvalidProblemError
        If there are fewer or more, or two share a name or a value.
    """
    check_names(names)
    if len(set(values)) < len(values):
        raise InvalidProblemError("classes: each needs a value of its own.")
    return LabelCode(tuple(names), tuple(values), tuple(sorted({*unknown} - {*values})))


def write_label_map(path: Path, labels: NDArray[np.uint8], values: Sequence[int]) -> None:
    """Write labels as a PNG with a palette; see `label_places` and `label_palette`."""
    picture = Image.fromarray(label_places(values)[labels], mode="P")
    picture.putpalette(label_palette(values).tobytes())
    picture.save(path, format="PNG")


def label_places(values: Sequence[int]) -> NDArray[np.uint8]:
    """Return the value that a written map holds for each label, shape (256,).

    It is the class's value in files, or the label itself if a class's value does not fit a byte,
    as with colours. Unknown pixels hold 255.
    """
    used = list(values)
    if max(used) >= UNKNOWN or min(used) < 0:
        used = list(range(len(used)))
    places = np.full(256, UNKNOWN, dtype=np.uint8)
    places[: len(used)] = used
    return places


def label_palette(values: Sequence[int]) -> NDArray[np.uint8]:
    """Return the colours of the numbers of a map, shape (256, 3)."""
    palette = np.zeros((256, 3), dtype=np.uint8)
    for label, value in enumerate(label_places(values)[: len(values)]):
        palette[value] = PALETTE[label % len(PALETTE)]
    return palette
