"""Reader of class maps in image files: numbers, palette indices or colours, as shapes to paint."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.core.errors import InvalidProblemError
from engine.datasets.annotations.label_tables import LabelTable
from engine.datasets.annotations.shapes import MOST_AREA, Annotation, filled
from engine.datasets.label_maps import IGNORED
from engine.datasets.map_numbers import MapNumbers, read_numbers

MOST_CLASSES = 32
VOC = (
    "Background", "Aeroplane", "Bicycle", "Bird", "Boat", "Bottle", "Bus", "Car", "Cat", "Chair",
    "Cow", "Dining table", "Dog", "Horse", "Motorbike", "Person", "Potted plant", "Sheep", "Sofa",
    "Train", "TV monitor",
)  # fmt: skip
_VOC_BORDER = 0xE0E0C0
_VOC_COLOURS = [[0, 0, 0], [128, 0, 0], [0, 128, 0], [128, 128, 0]]
_DARKEST_CLASS = 64
"""Limit of red: colours with no green and blue and less red number segments, not classes."""


def read_class_map(
    source: Path | bytes,
    name: str,
    *,
    is_of_objects: bool = False,
    table: LabelTable | None = None,
) -> Annotation | None:
    """Return a class map as shapes: few numbers, 255 unknown; or few colours, black background.

    None if the file is neither. In a file named as scribbles 0 is unpainted, in others it is the
    background. If the numbers count objects, all objects are one class. A ``table`` names classes;
    a class without an entry is named by its number or colour.

    Raises
    ------
    If its colours number segments, whose classes are in another file.
        If its colours number segments, whose classes are in another file.
    """
    try:
        numbers = read_numbers(source, name, MOST_AREA)
    except InvalidProblemError:
        return None
    if numbers.is_lossy or numbers.values.dtype.kind == "f":
        return None
    if numbers.are_colours:
        return _of_colours(numbers.values, name, table, is_of_objects=is_of_objects)
    return _of_numbers(numbers, name, table, is_of_objects=is_of_objects)


def _of_numbers(
    numbers: MapNumbers, name: str, table: LabelTable | None, *, is_of_objects: bool
) -> Annotation | None:
    values = numbers.values
    palette = [] if numbers.palette is None else numbers.palette.astype(int).tolist()
    present = [int(value) for value in np.unique(values) if value not in IGNORED]
    names = table.numbers if table else {}
    if table and not names and palette:
        names = _by_palette(table, palette)
    is_voc = palette[:4] == _VOC_COLOURS and not names
    if is_of_objects or (is_voc and _counts_objects(present)):
        is_object = (values > 0) & ~np.isin(values, IGNORED)
        values = np.where(is_object, 1, values)
        present, is_of_objects = [value for value in (0, 1) if (values == value).any()], True
    if not 1 <= len(present) <= MOST_CLASSES + 1 or present[0] < 0:
        return None
    height, width = values.shape
    annotation = Annotation(name, (width, height))
    for value in present:
        if value == 0 and "scribble" in name.casefold():
            continue
        kind: str | None = "Background" if value == 0 else f"Class {value}"
        if is_of_objects and value:
            kind = "Object"
        elif value in names:
            kind = names[value]
        elif is_voc and present[-1] < len(VOC):
            kind = VOC[value]
        known = value < len(palette) and any(palette[value])
        colour = "#{:02x}{:02x}{:02x}".format(*palette[value]) if known else ""
        number = None if is_of_objects else value
        if kind is not None:
            annotation.shapes += filled(values == value, kind, colour, number=number)
    return annotation if annotation.shapes else None


def names_voc_class(source: Path | bytes, name: str) -> bool:
    """Return True if a map of two numbers has VOC's palette and a class beyond the first.

    As a mask it would mark an object of any kind: person (15) in one picture, cat (8) in the next.
    A map of 0 and 1 stays a mask; programs write it for a single class of their own.
    """
    try:
        numbers = read_numbers(source, name, MOST_AREA)
    except InvalidProblemError:
        return False
    if numbers.palette is None or numbers.palette[:4].astype(int).tolist() != _VOC_COLOURS:
        return False
    present = {int(value) for value in np.unique(numbers.values)} - {0, *IGNORED}
    return len(present) == 1 and 1 < max(present) < len(VOC)


def _by_palette(table: LabelTable, palette: list[list[int]]) -> dict[int, str | None]:
    """Return the class names of palette indices, looked up by colour."""
    packed = [65536 * red + 256 * green + blue for red, green, blue in palette]
    return {place: table.colours[one] for place, one in enumerate(packed) if one in table.colours}


def _of_colours(
    packed: NDArray[Any], name: str, table: LabelTable | None, *, is_of_objects: bool
) -> Annotation | None:
    names = table.colours if table else {}
    used = sorted({*np.unique(packed).tolist()} - {_VOC_BORDER})
    if len(used) > MOST_CLASSES + 1:
        return None
    if not names and not is_of_objects:
        _check_segments(used, name)
    height, width = packed.shape
    annotation = Annotation(name, (width, height))
    for one in used:
        colour = f"#{one:06x}"
        kind: str | None = "Background" if one == 0 else f"Colour {colour}"
        if is_of_objects and one:
            kind = "Object"
        elif one in names:
            kind = names[one]
        if kind is not None:
            shown = colour if one else ""
            annotation.shapes += filled(packed == one, kind, shown)
    return annotation if annotation.shapes else None


def _check_segments(used: list[int], name: str) -> None:
    """Refuse colours that number segments, as the red values of COCO panoptic do."""
    reds = [one >> 16 for one in used if one]
    if reds and all(one & 0xFFFF == 0 for one in used) and min(reds) < _DARKEST_CLASS:
        raise InvalidProblemError(
            f"{name} numbers segments by its colours, as COCO panoptic does, and says nothing of "
            "their classes. Put it, its JSON and the pictures into one ZIP."
        )


def _counts_objects(present: list[int]) -> bool:
    """Return True if a VOC map numbers objects from 1 on, instead of naming their classes.

    As classes, three or more such numbers would mean aeroplane, bicycle, bird ... in one picture.
    """
    objects = [value for value in present if value]
    return len(objects) >= 3 and objects == list(range(1, len(objects) + 1))
