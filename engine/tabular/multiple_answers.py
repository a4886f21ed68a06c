"""Cells with several answers: how to recognise them, and how each answer becomes a yes or no."""

import itertools
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from engine.tabular.text import fold_answer

MAX_OPTIONS = 40
REST = "something else"  # text typed by hand beside the options
_MAX_LENGTH = 80
_SEPARATORS = (
    ("semicolons", re.compile(r"\s*;\s*")),
    ("lines", re.compile(r"\s*\n\s*")),
    ("bars", re.compile(r"\s*\|\s*")),
    ("tight commas", re.compile(r",(?!\s)")),  # Qualtrics; its options may hold ", "
    ("commas", re.compile(r",\s+")),  # Google Forms
    ("any commas", re.compile(r"\s*,\s*")),
    ("spaces", re.compile(r" +")),  # of codes only
)
SEPARATORS = dict(_SEPARATORS)
_NUMERIC = re.compile(r"[\d.,]+")
_CODE = re.compile(r"\d{1,2}")
_YES_OR_NO = frozenset(
    ["yes", "no", "ja", "nein", "sí", "si", "oui", "non", "sì", "sim", "não", "nee", "是", "否"]
)
_MIN_MULTIPLE = 0.05  # share of the answered cells
_MIN_REPEATED = 0.85  # share of all parts that belong to repeated options


@dataclass(frozen=True, slots=True)
class Several:
    """Separator of the cells of a column, with the options in the order of their counts."""

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
        """Return "Yes", "No", or a blank for a blank cell."""
        if not cell:
            return ""
        chosen = split_cell(cell, self.separator, self.options)
        if self.option == REST and REST not in self.options:
            return "Yes" if any(part not in self.options for part in chosen) else "No"
        return "Yes" if self.option in chosen else "No"


def split_cell(cell: str, separator: str, options: tuple[str, ...] = ()) -> list[str]:
    """Return the parts of a cell; parts that form one of the known ``options`` stay whole."""
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
    """Return how a column of cells splits into options; None if it does not.

    Parameters
    ----------
    counter : {cell: rows}, blanks not counted.

    Notes
    -----
    Options recur in different combinations; phrases with commas do not. Parts that never
    occur without each other ("Metal, hard rock") are one option.
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
    if any(fold_answer(x) in _YES_OR_NO for parts in cells.values() if parts[1:] for x in parts):
        return None  # "No, never" is one answer
    alone = {parts[0] for parts in cells.values() if len(parts) == 1}
    n_multiple = sum(counter[cell] for cell, parts in cells.items() if len(parts) > 1)
    options = [option for option, count in times.most_common() if count > 1]
    is_split = (
        n_multiple >= max(2, _MIN_MULTIPLE * answered)
        and 2 <= len(options) <= MAX_OPTIONS
        and (len(counter) > len(options) or 2 * len(alone) >= len(options))
        and sum(times[option] for option in options) >= _MIN_REPEATED * times.total()
        and max(map(len, options)) <= _MAX_LENGTH
        and (_are_codes(name, cells, counter) or not all(map(_NUMERIC.fullmatch, options)))
        and (name != "spaces" or all(map(_NUMERIC.fullmatch, options)))
    )
    if not is_split:
        return None
    if all(option.isdecimal() for option in options):
        options.sort(key=int)
    return Several(name, tuple(options), n_multiple, len(options) < len(times))


def _are_codes(name: str, cells: Mapping[str, list[str]], counter: Mapping[str, int]) -> bool:
    """Return True if numbers in a cell are option codes, "1,3,4", and not decimals, "7,5".

    Codes come in ascending order, each once. If only commas separate them, one cell must have
    three of them, or each must occur alone in some cell, unlike the digit behind a decimal
    mark.
    """
    parts = [list(map(str.strip, found)) for found in cells.values()]
    if not all(_CODE.fullmatch(part) for found in parts for part in found):
        return False
    numbers = [list(map(int, found)) for found in parts]
    if any(found != sorted(set(found)) for found in numbers):
        return False
    if "commas" not in name or name == "commas":
        return True
    alone = {found[0] for found in numbers if len(found) == 1}
    return any(len(found) > 2 for found in numbers) or all(n in alone for x in numbers for n in x)


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
