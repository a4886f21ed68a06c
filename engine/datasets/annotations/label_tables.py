"""Reader of tables in exports that map the numbers or colours of a label map to classes."""

import csv
import io
from dataclasses import dataclass, field
from pathlib import PurePosixPath

MOST_BYTES = 1024**2
MOST_ROWS = 4096
_LISTS = frozenset({"class_names.txt", "classes.txt", "labels.txt", "obj.names", "classnames.txt"})
_COLOURED = frozenset({"labelmap.txt", "label_colors.txt", "label_colours.txt"})
_TABLES = frozenset({"_classes.csv", "classes.csv", "label_names.csv", "class_dict.csv"})
_NOTHING, _BACKGROUND = "__ignore__", "_background_"


@dataclass(frozen=True, slots=True)
class LabelTable:
    """Names of classes by number, and by colour as 65536 r + 256 g + b; None means "unknown"."""

    numbers: dict[int, str | None] = field(default_factory=dict)
    colours: dict[int, str | None] = field(default_factory=dict)


def is_label_table(name: str) -> bool:
    """Return True if the name of a file is that of a table of classes."""
    return PurePosixPath(name).name.casefold() in _LISTS | _COLOURED | _TABLES


def read_label_table(content: bytes, name: str) -> LabelTable | None:
    """Return the table that labelme, CVAT or Roboflow wrote; None if it is not such a table."""
    if len(content) > MOST_BYTES:
        return None
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    kind = PurePosixPath(name).name.casefold()
    try:
        if kind in _LISTS:
            return _of_list(text.splitlines())
        if kind in _COLOURED:
            return _of_colours(text.splitlines())
        return _of_csv(text)
    except (ValueError, KeyError, IndexError, csv.Error):
        return None


def _of_list(lines: list[str]) -> LabelTable | None:
    """Return a table of one name per line; labelme's first name, to be ignored, has no number."""
    names = [line.strip() for line in lines if line.strip()]
    if not 0 < len(names) <= MOST_ROWS:
        return None
    first = 1 if names[0] == _NOTHING else 0
    return LabelTable({k: _shown(name) for k, name in enumerate(names[first:])})


def _of_colours(lines: list[str]) -> LabelTable | None:
    """Return a table of CVAT's rows: name, colour, and parts and actions, which are ignored."""
    numbers: dict[int, str | None] = {}
    colours: dict[int, str | None] = {}
    for line in lines[:MOST_ROWS]:
        if not line.strip() or line.startswith("#"):
            continue
        name, colour = line.split(":")[:2]
        red, green, blue = (int(side) for side in colour.split(","))
        numbers[len(numbers)] = _shown(name.strip())
        colours[65536 * red + 256 * green + blue] = _shown(name.strip())
    return LabelTable({}, colours) if colours else None


def _of_csv(text: str) -> LabelTable | None:
    """Return Roboflow's table, or any with number and name, or name and red, green and blue."""
    rows = list(csv.DictReader(io.StringIO(text), skipinitialspace=True))[:MOST_ROWS]
    found = LabelTable()
    for row in rows:
        cells = {str(key).strip().casefold(): (value or "").strip() for key, value in row.items()}
        name = next((cells[key] for key in ("class", "name", "label") if cells.get(key)), "")
        number = next((cells[key] for key in ("pixel value", "value", "id") if key in cells), "")
        if name and number:
            found.numbers[int(number)] = _shown(name)
        elif name and {"r", "g", "b"} <= cells.keys():
            packed = 65536 * int(cells["r"]) + 256 * int(cells["g"]) + int(cells["b"])
            found.colours[packed] = _shown(name)
    return found if found.numbers or found.colours else None


def _shown(name: str) -> str | None:
    if name == _NOTHING:
        return None
    return "Background" if name.casefold() in {_BACKGROUND, "background"} else name
