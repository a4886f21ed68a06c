"""Corrections of numbered objects by hand, which can be applied again to another segmentation.

A correction records the objects that it acts on as they were. On another segmentation of the same
picture it applies where the same objects are there again, and says why where they are not.
"""

import base64
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.core.arguments import BoolArray
from engine.core.errors import InvalidProblemError
from engine.core.options import check_choice, check_whole

Numbers = NDArray[np.int32]
Window = tuple[slice, slice]
Points = tuple[tuple[float, float], ...]

DELETE, MERGE, SPLIT, BORDER = "delete", "merge", "split", "border"
NUMBER, NUMBER_ALL, CLASS = "number", "number all", "class"
KINDS = (DELETE, MERGE, SPLIT, BORDER, NUMBER, NUMBER_ALL, CLASS)
ORDERS = ("rows", "size")
"""Orders of numbering all objects: from top to bottom, or from the largest."""
SAME_OVERLAP = 0.5
"""Intersection over union above which an object is the recorded one; at most one exceeds it."""
GONE_SHARE = 0.1
"""Share of a recorded object up to which others may cover it if it is gone."""
MAX_NUMBER = 999_999
MAX_POINTS = 4_000
"""Points of one line or border."""
MAX_MERGED = 200
"""Objects that one correction joins."""


_NEEDED = {
    DELETE: (1, MAX_MERGED, "an object"),
    MERGE: (2, MAX_MERGED, "at least two objects"),
    SPLIT: (1, 1, "one object"),
    BORDER: (0, 1, "one object or none"),
    NUMBER: (1, 1, "one object"),
    NUMBER_ALL: (0, 0, "no object"),
    CLASS: (1, MAX_MERGED, "an object"),
}
"""Least and most objects of a correction, and these in words."""


class EditRefusedError(InvalidProblemError):
    """Error for a correction that does not fit the objects; the message is one sentence.

    Examples
    --------
    >>> ObjectEditor(np.array([[1, 0]]), {1: 1}).number_at(1, 0)
    Traceback (most recent call last):
        ...
    engine.metrics.object_edits.EditRefusedError: There is no object at this place any more.
    """


@dataclass(frozen=True, slots=True, eq=False)
class ObjectShape:
    """Pixels of an object within the smallest window around them.

    Parameters
    ----------
    top, left : int, first row and column of the window.
    mask : ndarray, shape (rows, columns), bool.

    Raises
    ------
    InvalidProblemError
        If the row or the column is not a whole number from 0 on.

    Examples
    --------
    >>> shape = ObjectShape(1, 2, np.ones((2, 3), dtype=bool))
    >>> int(ObjectShape.from_json(shape.as_json()).mask.sum())
    6
    """

    top: int
    left: int
    mask: BoolArray

    def __post_init__(self) -> None:
        check_whole("top", self.top)
        check_whole("left", self.left)

    @property
    def window(self) -> Window:
        """Window of the picture that holds the object."""
        rows, columns = self.mask.shape
        return slice(self.top, self.top + rows), slice(self.left, self.left + columns)

    def as_json(self) -> dict[str, Any]:
        """Return plain values to store: the window, and the pixels as compressed bits."""
        bits = zlib.compress(np.packbits(self.mask).tobytes(), 6)
        return {
            "window": [self.top, self.left, *self.mask.shape],
            "bits": base64.b64encode(bits).decode(),
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "ObjectShape":
        """Return the shape of values that `as_json` made."""
        top, left, rows, columns = stored["window"]
        packed = np.frombuffer(zlib.decompress(base64.b64decode(stored["bits"])), dtype=np.uint8)
        bits = np.unpackbits(packed, count=rows * columns).astype(bool)
        return cls(top, left, bits.reshape(rows, columns))


@dataclass(frozen=True, slots=True, eq=False)
class ObjectEdit:
    """One correction: its kind, the objects as they were, and what it draws or sets.

    Parameters
    ----------
    kind : str, one of `KINDS`.
    shapes : objects that it acts on as they were; of a merge the first keeps its number.
    points : columns and rows (x, y), pixels: the line of a split, or the corners of a border.
    number : int, of ``number``: the new number.
    value : int, of ``class`` and of a border around a new object: the class.
    order : str, of ``number all``: one of `ORDERS`; empty for other corrections.

    Raises
    ------
    InvalidProblemError
        If a name is unknown, or a number is not a whole number from 0 on.

    Examples
    --------
    >>> edit = ObjectEdit("number all", order="size")
    >>> ObjectEdit.from_json(edit.kind, edit.as_json()).order
    'size'
    """

    kind: str
    shapes: tuple[ObjectShape, ...] = ()
    points: Points = ()
    number: int = 0
    value: int = 0
    order: str = ""

    def __post_init__(self) -> None:
        _check_settings(self.number, self.value, self.order)
        check_choice("kind", self.kind, KINDS)

    def as_json(self) -> dict[str, Any]:
        """Return plain values to store."""
        return {
            "shapes": [shape.as_json() for shape in self.shapes],
            "points": [list(point) for point in self.points],
            "number": self.number,
            "value": self.value,
            "order": self.order,
        }

    @classmethod
    def from_json(cls, kind: str, stored: Mapping[str, Any]) -> "ObjectEdit":
        """Return the correction of values that `as_json` made."""
        return cls(
            kind,
            tuple(ObjectShape.from_json(one) for one in stored["shapes"]),
            tuple((float(x), float(y)) for x, y in stored["points"]),
            int(stored["number"]),
            int(stored["value"]),
            str(stored["order"]) if kind == NUMBER_ALL else "",  # once stored unchecked
        )


class ObjectEditor:
    """Numbered objects of a picture that corrections change, one after the other.

    Parameters
    ----------
    numbers : ndarray, shape (height, width): number of the object at every pixel, 0 for none.
    classes : class of every number.
    min_pixels : int, parts of an object that a correction leaves may not be smaller.
    values : classes that objects may have; by default any.

    Raises
    ------
    InvalidProblemError
        If ``min_pixels`` is not a whole number from 0 on.

    Examples
    --------
    >>> editor = ObjectEditor(np.array([[1, 1, 0, 2]]), {1: 1, 2: 1}, min_pixels=1)
    >>> editor.apply(editor.record("delete", [(3, 0)]))
    {2}
    >>> editor.numbers.tolist()
    [[1, 1, 0, 0]]
    """

    def __init__(
        self,
        numbers: NDArray[np.integer[Any]],
        classes: Mapping[int, int],
        *,
        min_pixels: int = 1,
        values: Iterable[int] | None = None,
    ) -> None:
        check_whole("min_pixels", min_pixels)
        from scipy.ndimage import find_objects  # slow to import

        self.numbers: Numbers = np.array(numbers, dtype=np.int32)
        self.classes = dict(classes)
        self.min_pixels = max(1, min_pixels)
        self.values = None if values is None else frozenset(values)
        self._windows: dict[int, Window] = {
            place: (window[0], window[1])
            for place, window in enumerate(find_objects(self.numbers), start=1)
            if window is not None
        }

    # -- Recording what somebody points at -----------------------------------------------------

    def record(
        self,
        kind: str,
        places: Sequence[tuple[float, float]] = (),
        *,
        points: Sequence[tuple[float, float]] = (),
        number: int = 0,
        value: int = 0,
        order: str = "",
    ) -> ObjectEdit:
        """Return the correction of the objects at some places (x, y), as they are now.

        A split without a place is of the object that most of its line crosses; a border without a
        place makes a new object.

        Raises
        ------
        EditRefusedError
            If no object is at a place, or something is missing or out of range.
        """
        if kind == NUMBER_ALL and order not in ORDERS:
            raise EditRefusedError(f"Objects are numbered by {' or '.join(ORDERS)}.")
        try:
            _check_settings(number, value, order)
        except InvalidProblemError as error:
            raise EditRefusedError(str(error)) from error
        if kind not in KINDS:
            raise EditRefusedError(f"A correction is one of {', '.join(KINDS)}.")
        for what in (places, points):
            if not np.isfinite(np.array(what, dtype=np.float64)).all():
                raise EditRefusedError("Places need finite numbers.")
        if len(points) > MAX_POINTS or len(places) > MAX_MERGED:
            raise EditRefusedError(
                f"A line has at most {MAX_POINTS:,} points, and at most {MAX_MERGED} objects are "
                "corrected at once."
            )
        found = list(dict.fromkeys(self.number_at(x, y) for x, y in places))
        if kind == SPLIT and not found:
            found = [self._crossed(points)]
        least, most, words = _NEEDED[kind]
        if not least <= len(found) <= most:
            raise EditRefusedError(f"Choose {words} first.")
        if kind == NUMBER and not 1 <= number <= MAX_NUMBER:
            raise EditRefusedError(f"An object has a number from 1 to {MAX_NUMBER:,}.")
        if kind == SPLIT and len(points) < 2:
            raise EditRefusedError("A line needs at least two points.")
        if kind == BORDER and len(points) < 3:
            raise EditRefusedError("A border needs at least three corners.")
        exact = tuple((float(x), float(y)) for x, y in points)
        shapes = tuple(self.shape_of(one) for one in found)
        return ObjectEdit(kind, shapes, exact, number, value, order)

    def number_at(self, x: float, y: float) -> int:
        """Return the number of the object at a place, or refuse."""
        height, width = self.numbers.shape
        row, column = int(np.floor(y)), int(np.floor(x))
        if 0 <= row < height and 0 <= column < width and self.numbers[row, column]:
            return int(self.numbers[row, column])
        raise EditRefusedError("There is no object at this place any more.")

    def shape_of(self, number: int) -> ObjectShape:
        """Return the pixels of an object."""
        window = self._windows[number]
        mask = np.asarray(self.numbers[window] == number)
        return ObjectShape(int(window[0].start), int(window[1].start), mask)

    def window_of(self, numbers: Iterable[int]) -> Window | None:
        """Return the smallest window around some objects; None if none of them is there."""
        found = [self._windows[one] for one in numbers if one in self._windows]
        if not found:
            return None
        return (
            slice(min(rows.start for rows, _ in found), max(rows.stop for rows, _ in found)),
            slice(min(own.start for _, own in found), max(own.stop for _, own in found)),
        )

    def _crossed(self, points: Sequence[tuple[float, float]]) -> int:
        """Return the object that most of a line crosses."""
        if len(points) < 2:
            raise EditRefusedError("A line needs at least two points.")
        rows, columns = _line(points, self.numbers.shape)
        under = self.numbers[rows, columns]
        counts = np.bincount(under[under > 0])
        if not len(counts):
            raise EditRefusedError("The line crosses no object.")
        return int(counts.argmax())

    # -- Applying ------------------------------------------------------------------------------

    def apply(self, edit: ObjectEdit) -> set[int]:
        """Apply a correction and return the numbers of changed, new and deleted objects.

        Nothing changes, and the set is empty, where the objects are already as requested.

        Raises
        ------
        EditRefusedError
            If the objects are not those that were recorded, or the correction cannot be done; then
            nothing changed.
        """
        has_value = edit.kind == CLASS or (edit.kind == BORDER and not edit.shapes)
        if has_value and self.values is not None and edit.value not in self.values:
            raise EditRefusedError("The class of this correction is not a class of objects here.")
        if edit.kind == DELETE:
            return self._delete(edit.shapes)
        if edit.kind == MERGE:
            return self._merge(edit.shapes)
        if edit.kind == SPLIT:
            return self._split(edit.shapes[0], edit.points)
        if edit.kind == BORDER:
            return self._draw(edit)
        if edit.kind == NUMBER:
            return self._number(self._same(edit.shapes[0]), edit.number)
        if edit.kind == CLASS:
            return self._set_class([self._same(shape) for shape in edit.shapes], edit.value)
        return self._number_all(edit.order)

    def _delete(self, shapes: Sequence[ObjectShape]) -> set[int]:
        numbers = set()
        for shape in shapes:
            under = self._under(shape)
            if np.count_nonzero(under) > GONE_SHARE * len(under):
                numbers.add(self._same(shape))
        for number in numbers:
            self._clear(number)
        return numbers

    def _merge(self, shapes: Sequence[ObjectShape]) -> set[int]:
        found = [self._find(shape) for shape in shapes]
        members = list(dict.fromkeys(one for one in found if one is not None))
        if len(members) < len(shapes):
            self._require_joined(shapes)
            return set()
        union = _union([self.shape_of(one) for one in members])
        if _parts(union.mask)[1] > 1:
            raise EditRefusedError(
                f"Objects {_listed(sorted(members))} do not touch. Draw one border around them "
                "instead."
            )
        for one in members[1:]:
            self._clear(one)
        self._put(members[0], union)
        return set(members)

    def _require_joined(self, shapes: Sequence[ObjectShape]) -> None:
        """Return if one object covers most of every recorded one, so that they are joined."""
        number = self._find(_union(shapes))
        for shape in shapes:
            under = self._under(shape)
            if number is None or (under == number).sum() <= SAME_OVERLAP * len(under):
                raise EditRefusedError("The objects that were joined are others here.")

    def _split(self, shape: ObjectShape, points: Points) -> set[int]:
        number = self._find(shape)
        if number is None and not self._is_separate(shape):
            raise EditRefusedError("The object that was split is another one here.")
        if number is None:
            return set()
        own = self.shape_of(number)
        try:
            parts = _cut(own, points, self.min_pixels, self.numbers.shape)
        except EditRefusedError:
            if self._is_separate(shape):
                return set()
            raise
        sizes = np.bincount(parts[own.mask])
        largest = int(sizes.argmax())
        self._clear(number, keep_class=True)
        changed = {number}
        self._put(number, _piece(own, parts == largest))
        for part in np.flatnonzero(sizes):
            if part != largest:
                new = self._new_number(self.classes[number])
                self._put(new, _piece(own, parts == part))
                changed.add(new)
        return changed

    def _is_separate(self, shape: ObjectShape) -> bool:
        """Return True if several objects together fill a recorded one, which is split already."""
        under = self._under(shape)
        inside = [int(one) for one in np.unique(under[under > 0])]
        shapes = [self.shape_of(one) for one in inside]
        mostly = [
            own
            for number, own in zip(inside, shapes, strict=True)
            if (under == number).sum() > SAME_OVERLAP * own.mask.sum()
        ]
        return len(mostly) >= 2 and _overlap(_union(mostly), shape) > SAME_OVERLAP

    def _draw(self, edit: ObjectEdit) -> set[int]:
        region = _filled(edit.points, self.numbers.shape)
        number = self._same(edit.shapes[0]) if edit.shapes else self._find(region)
        if number is not None:
            if not edit.shapes and _overlap(region, self.shape_of(number)) == 1.0:
                return set()
            return self._redraw(number, region)
        free = region.mask & (self.numbers[region.window] == 0)
        parts, count = _parts(free)
        if count:
            sizes = np.bincount(parts[free])
            free = parts == sizes.argmax()
        if free.sum() < max(self.min_pixels, SAME_OVERLAP * region.mask.sum()):
            if region.mask.sum() < self.min_pixels:
                raise EditRefusedError(
                    f"This border is around fewer than {self.min_pixels} pixels, the smallest "
                    "object."
                )
            raise EditRefusedError("Most of this border is around other objects.")
        new = self._new_number(edit.value)
        self._put(new, _piece(region, free))
        return {new}

    def _redraw(self, number: int, region: ObjectShape) -> set[int]:
        """Give an object this border; of others only pixels outside of it stay."""
        if region.mask.sum() < self.min_pixels:
            raise EditRefusedError(
                f"This border is around fewer than {self.min_pixels} pixels, the smallest object."
            )
        under = self.numbers[region.window][region.mask]
        others = [int(one) for one in np.unique(under[under > 0]) if one != number]
        changed = {number}
        self._clear(number, keep_class=True)
        for other in others:
            changed |= self._take_from(other, region)
        self._put(number, region)
        return changed

    def _take_from(self, other: int, region: ObjectShape) -> set[int]:
        """Take a region from an object; its parts become objects, or vanish if they are small."""
        own = self.shape_of(other)
        rest = own.mask & ~_within(region, own.window)
        self._clear(other, keep_class=True)
        parts, _ = _parts(rest)
        sizes = np.bincount(parts[rest], minlength=1)
        sizes[sizes < self.min_pixels] = 0
        changed = {other}
        value = self.classes.pop(other)
        for place, part in enumerate(np.argsort(-sizes, kind="stable")):
            if not sizes[part]:
                break
            number = other if place == 0 else self._new_number(value)
            self.classes[number] = value
            self._put(number, _piece(own, parts == part))
            changed.add(number)
        return changed

    def _number(self, number: int, new: int) -> set[int]:
        if number == new:
            return set()
        pair = {number: self.shape_of(number)}
        if new in self._windows:
            pair[new] = self.shape_of(new)
        values = {one: self.classes[one] for one in pair}
        for one in pair:
            self._clear(one)
        for one, shape in pair.items():
            target = new if one == number else number
            self.classes[target] = values[one]
            self._put(target, shape)
        return {number, new}

    def _number_all(self, order: str) -> set[int]:
        """Number all objects from 1: by the highest row, then column, or by size."""
        old = np.array(sorted(self._windows), dtype=np.int64)
        if not len(old):
            return set()
        first = np.full(int(old.max()) + 1, self.numbers.size, dtype=np.int64)
        flat = self.numbers.ravel()
        np.minimum.at(first, flat, np.arange(self.numbers.size))
        if order == "size":
            pixels = np.bincount(flat, minlength=len(first))
            ranked = old[np.lexsort((first[old], -pixels[old]))]
        else:
            ranked = old[np.argsort(first[old], kind="stable")]
        table = np.zeros(len(first), dtype=np.int32)
        table[ranked] = np.arange(1, len(ranked) + 1)
        changed = {int(one) for one in ranked if table[one] != one}
        windows, classes = self._windows, self.classes
        self.numbers = table[self.numbers]
        self._windows = {int(table[one]): window for one, window in windows.items()}
        self.classes = {int(table[one]): classes[one] for one in windows}
        return changed | {int(table[one]) for one in changed}

    def _set_class(self, numbers: Iterable[int], value: int) -> set[int]:
        changed = {one for one in numbers if self.classes[one] != value}
        self.classes |= dict.fromkeys(changed, value)
        return changed

    # -- Objects -------------------------------------------------------------------------------

    def _same(self, shape: ObjectShape) -> int:
        """Return the number of the object that was recorded, or refuse."""
        number = self._find(shape)
        if number is None:
            raise EditRefusedError("The object that was corrected is another one here.")
        return number

    def _find(self, shape: ObjectShape) -> int | None:
        """Return the object that overlaps a shape by more than half of both together."""
        under = self._under(shape)
        counts = np.bincount(under[under > 0])
        if not len(counts):
            return None
        number = int(counts.argmax())
        return number if _overlap(self.shape_of(number), shape) > SAME_OVERLAP else None

    def _under(self, shape: ObjectShape) -> Numbers:
        """Return the numbers at the pixels of a shape; 0 for all of one outside the picture."""
        height, width = self.numbers.shape
        rows, columns = shape.window
        if rows.stop > height or columns.stop > width:
            return np.zeros(int(shape.mask.sum()), dtype=np.int32)
        return np.asarray(self.numbers[shape.window][shape.mask])

    def _new_number(self, value: int) -> int:
        number = max(self.classes, default=0) + 1
        self.classes[number] = value
        return number

    def _clear(self, number: int, *, keep_class: bool = False) -> None:
        window = self._windows.pop(number)
        part = self.numbers[window]
        part[part == number] = 0
        if not keep_class:
            del self.classes[number]

    def _put(self, number: int, shape: ObjectShape) -> None:
        self.numbers[shape.window][shape.mask] = number
        rows, columns = np.flatnonzero(shape.mask.any(axis=1)), np.flatnonzero(shape.mask.any(0))
        self._windows[number] = (
            slice(int(shape.top + rows[0]), int(shape.top + rows[-1] + 1)),
            slice(int(shape.left + columns[0]), int(shape.left + columns[-1] + 1)),
        )


def apply_edits(editor: ObjectEditor, edits: Iterable[ObjectEdit]) -> list[str]:
    """Apply corrections in order and return why each could not be applied.

    Parameters
    ----------
    editor : ObjectEditor, which the corrections change.
    edits : iterable of ObjectEdit

    Returns
    -------
    list of str
        A sentence for each correction that could not be applied; empty text for each applied one.

    Examples
    --------
    >>> editor = ObjectEditor(np.array([[1, 1, 0, 2]]), {1: 1, 2: 1})
    >>> renamed = editor.record("number", [(0, 0)], number=2)
    >>> apply_edits(editor, [renamed, editor.record("delete", [(3, 0)])])
    ['', '']
    """
    problems = []
    for edit in edits:
        try:
            editor.apply(edit)
            problems.append("")
        except EditRefusedError as error:
            problems.append(str(error))
    return problems


def _check_settings(number: int, value: int, order: str) -> None:
    """Refuse numbers, classes and orders that no correction has."""
    check_whole("number", number)
    check_whole("value", value)
    if not isinstance(order, str) or order:
        check_choice("order", order, ORDERS)


def _parts(mask: BoolArray) -> tuple[NDArray[np.int64], int]:
    """Return the number of the part that each pixel is in, joined by sides or corners."""
    from skimage.measure import label

    parts = label(mask, connectivity=2)  # type: ignore[no-untyped-call]
    return np.asarray(parts, dtype=np.int64), int(parts.max(initial=0))


def _piece(shape: ObjectShape, mask: BoolArray) -> ObjectShape:
    return ObjectShape(shape.top, shape.left, mask & shape.mask)


def _within(shape: ObjectShape, window: Window) -> BoolArray:
    """Return the pixels of a shape within another window of the picture."""
    rows, columns = window
    found = np.zeros((rows.stop - rows.start, columns.stop - columns.start), dtype=bool)
    own_rows, own_columns = shape.window
    top, bottom = max(rows.start, own_rows.start), min(rows.stop, own_rows.stop)
    left, right = max(columns.start, own_columns.start), min(columns.stop, own_columns.stop)
    if top < bottom and left < right:
        found[
            top - rows.start : bottom - rows.start, left - columns.start : right - columns.start
        ] = shape.mask[top - shape.top : bottom - shape.top, left - shape.left : right - shape.left]
    return found


def _overlap(one: ObjectShape, two: ObjectShape) -> float:
    """Return the intersection of two shapes over their union."""
    both = int((one.mask & _within(two, one.window)).sum())
    return both / (int(one.mask.sum()) + int(two.mask.sum()) - both)


def _union(shapes: Sequence[ObjectShape]) -> ObjectShape:
    tops, lefts = [one.top for one in shapes], [one.left for one in shapes]
    bottom = max(one.window[0].stop for one in shapes)
    right = max(one.window[1].stop for one in shapes)
    window = slice(min(tops), bottom), slice(min(lefts), right)
    mask = np.zeros((bottom - min(tops), right - min(lefts)), dtype=bool)
    for one in shapes:
        mask |= _within(one, window)
    return ObjectShape(min(tops), min(lefts), mask)


def _filled(points: Points, shape: tuple[int, ...]) -> ObjectShape:
    """Return the largest part of the pixels whose middles lie within a border, holes filled."""
    from scipy.ndimage import binary_fill_holes
    from skimage.draw import polygon

    height, width = shape
    corners = np.array(points)
    y, x = np.clip(corners[:, 1], 0, height) - 0.5, np.clip(corners[:, 0], 0, width) - 0.5
    rows, columns = polygon(y, x, shape)  # type: ignore[no-untyped-call]
    if not len(rows):
        raise EditRefusedError("This border is around no pixel of the picture.")
    top, left = int(rows.min()), int(columns.min())
    mask = np.zeros((int(rows.max()) - top + 1, int(columns.max()) - left + 1), dtype=bool)
    mask[rows - top, columns - left] = True
    parts, _ = _parts(mask)
    return ObjectShape(top, left, binary_fill_holes(parts == np.bincount(parts[mask]).argmax()))


def _line(
    points: Sequence[tuple[float, float]], shape: tuple[int, ...]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return rows and columns of a line's pixels inside the picture, joined by sides."""
    from skimage.draw import line

    height, width = shape
    places = np.floor(np.array(points)).astype(np.int64)
    places[:, 0] = np.clip(places[:, 0], -1, width)
    places[:, 1] = np.clip(places[:, 1], -1, height)
    rows_of, columns_of = [], []
    for (x, y), (end_x, end_y) in pairwise(places):
        rows, columns = line(y, x, end_y, end_x)  # type: ignore[no-untyped-call]
        is_diagonal = (np.diff(rows) != 0) & (np.diff(columns) != 0)
        rows_of += [rows, rows[:-1][is_diagonal]]
        columns_of += [columns, columns[1:][is_diagonal]]
    rows, columns = np.concatenate(rows_of), np.concatenate(columns_of)
    inside = (rows >= 0) & (rows < height) & (columns >= 0) & (columns < width)
    return rows[inside], columns[inside]


def _cut(
    own: ObjectShape, points: Points, min_pixels: int, shape: tuple[int, ...]
) -> NDArray[np.int64]:
    """Return the part of each pixel of an object on the sides of a line, from 1."""
    from skimage.segmentation import watershed

    rows, columns = _line(points, shape)
    window = own.window
    inside = (rows >= window[0].start) & (rows < window[0].stop)
    inside &= (columns >= window[1].start) & (columns < window[1].stop)
    on_line = np.zeros(own.mask.shape, dtype=bool)
    on_line[rows[inside] - own.top, columns[inside] - own.left] = True
    parts, _ = _parts(own.mask & ~on_line)
    sizes = np.bincount(parts.ravel())
    sizes[0] = 0
    is_large = sizes >= min_pixels
    if (sizes > 0).sum() < 2:
        raise EditRefusedError("The line must cross the object from side to side.")
    if is_large.sum() < 2:
        raise EditRefusedError(
            f"The line would leave a part of fewer than {min_pixels} pixels, the smallest object."
        )
    seeds = np.where(is_large[parts], parts, 0)
    flat = np.zeros(own.mask.shape)
    return np.asarray(
        watershed(flat, seeds, connectivity=2, mask=own.mask),  # type: ignore[no-untyped-call]
        dtype=np.int64,
    )


def _listed(numbers: Sequence[int]) -> str:
    """Return "3, 5 and 9"."""
    names = [str(one) for one in numbers]
    return f"{', '.join(names[:-1])} and {names[-1]}"
