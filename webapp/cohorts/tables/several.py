"""Cells that hold several answers: how they are told, and how each answer becomes a yes or no."""

import itertools
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

MAX_OPTIONS = 40
REST = "something else"  # what was typed by hand beside the options
_MAX_LENGTH = 80
_SEPARATORS = (
    ("semicolons", re.compile(r"\s*;\s*")),
    ("lines", re.compile(r"\s*\n\s*")),
    ("bars", re.compile(r"\s*\|\s*")),
    ("tight commas", re.compile(r",(?!\s)")),  # Qualtrics; its options may hold ", "
    ("commas", re.compile(r",\s+")),  # Google Forms
    ("any commas", re.compile(r"\s*,\s*")),
)
SEPARATORS = dict(_SEPARATORS)
_MIN_MULTIPLE = 0.05  # of the answered cells
_MIN_REPEATED = 0.85  # of all parts belong to options that come again


@dataclass(frozen=True, slots=True)
class Several:
    """How the cells of a column split, the options in the order of their counts."""

    separator: str
    options: tuple[str, ...]
    n_multiple: int
    has_rest: bool


@dataclass(frozen=True, slots=True)
class Part:
    """A yes-or-no column made of one option of the column ``parent``."""

    parent: int
    separator: str
    option: str
    options: tuple[str, ...]

    def answer(self, cell: str) -> str:
        """Return "Yes", "No", or a blank where the cell is blank."""
        if not cell:
            return ""
        chosen = split_cell(cell, self.separator, self.options)
        if self.option == REST and REST not in self.options:
            return "Yes" if any(part not in self.options for part in chosen) else "No"
        return "Yes" if self.option in chosen else "No"


def split_cell(cell: str, separator: str, options: tuple[str, ...] = ()) -> list[str]:
    """Return the parts of a cell; what makes one of the known ``options`` together stays whole."""
    parts = [part for part in SEPARATORS[separator].split(cell) if part.strip()]
    if not any(SEPARATORS[separator].search(option) for option in options):
        return parts
    joined: list[str] = []
    position = 0
    while position < len(parts):
        for end in range(len(parts), position, -1):
            whole = _together(parts[position:end])
            if end == position + 1 or whole in options:
                joined.append(whole)
                position = end
                break
    return joined


def _together(parts: list[str]) -> str:
    return ", ".join(parts)


def find_several(counter: Mapping[str, int]) -> Several | None:
    """Return how a column of cells splits into options; None where it is no such column.

    Parameters
    ----------
    counter : {cell: rows}, blanks not counted.

    Notes
    -----
    Options come again and again in different company; phrases with commas do not. Parts that never
    stand without each other ("Metal, hard rock") are one option.
    """
    answered = sum(counter.values())
    for name, pattern in _SEPARATORS:
        if sum(bool(pattern.search(cell)) for cell in counter) < 2:
            continue
        found = _split_by(name, counter, answered)
        if found is not None:
            return found
    return None


def _split_by(name: str, counter: Mapping[str, int], answered: int) -> Several | None:
    cells = {cell: split_cell(cell, name) for cell in counter}
    joined = _inseparable(cells, counter)
    if joined:
        cells = {cell: split_cell(cell, name, tuple(joined)) for cell in counter}
    times: Counter[str] = Counter()
    for cell, parts in cells.items():
        for part in set(parts):
            times[part] += counter[cell]
    alone = {parts[0] for parts in cells.values() if len(parts) == 1}
    n_multiple = sum(counter[cell] for cell, parts in cells.items() if len(parts) > 1)
    options = [option for option, count in times.most_common() if count > 1]
    is_split = (
        n_multiple >= max(2, _MIN_MULTIPLE * answered)
        and 2 <= len(options) <= MAX_OPTIONS
        and (len(counter) > len(options) or 2 * len(alone) >= len(options))
        and sum(times[option] for option in options) >= _MIN_REPEATED * times.total()
        and max(map(len, options)) <= _MAX_LENGTH
        and not all(re.fullmatch(r"[\d.,]+", option) for option in options)
    )
    if not is_split:
        return None
    return Several(name, tuple(options), n_multiple, len(options) < len(times))


def _inseparable(cells: Mapping[str, list[str]], counter: Mapping[str, int]) -> list[str]:
    """Return options of two or more parts that always follow each other."""
    alone: Counter[str] = Counter()
    after: Counter[tuple[str, str]] = Counter()
    for cell, parts in cells.items():
        for part in parts:
            alone[part] += counter[cell]
        for one, other in itertools.pairwise(parts):
            after[one, other] += counter[cell]
    follows = {
        one: other
        for (one, other), times in after.items()
        if times > 1 and times == alone[one] == alone[other]
    }
    starts = [one for one in follows if one not in follows.values()]
    joined = []
    for one in starts:
        chain = [one]
        while chain[-1] in follows:
            chain.append(follows[chain[-1]])
        joined.append(_together(chain))
    return joined
