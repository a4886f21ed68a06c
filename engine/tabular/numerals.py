"""Numbers as people type them: decimal commas, units, clock times; and the groups made of them."""

import itertools
import math
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

MIN_SHARE = 0.9  # share of the different cells that must be numbers for a number column
MAX_GROUPS = 12
_DAY = 24 * 60
_NUMBER = re.compile(
    r"(?:about |approx\.? |approximately |ca\.? ?|circa |etwa |~ ?)?(?P<sign>[€$£]?) ?"
    r"(?P<number>[+-]?\d[\d.,' ]*\d|[+-]?\d)[ ]?"
    r"(?P<unit>[^\W\d_]{0,12}\.?|[^\d\s+-][^\d]{1,29}|[%€$£°])",
    re.IGNORECASE,
)
_CLOCK = re.compile(
    r"([01]?\d|2\d|3[0-5])(?:[:h]([0-5]\d))?(?::[0-5]\d)?(?: ?(am|pm|a\.m\.|p\.m\.|uhr|h))?",
    re.IGNORECASE,
)
_HOURS = (
    "h", "hr", "hrs", "hour", "hours", "std", "stunde", "stunden", "hora", "horas", "heure",
    "heures", "ora", "ore",
)  # fmt: skip
_MINUTES = ("min", "mins", "minute", "minutes", "minuten", "minutos", "minuti")
_MONEY = (("€", "eur", "euro", "euros"), ("$", "usd", "dollars", "dollar"), ("£", "gbp"))
_UNITS = (
    _HOURS, _MINUTES, ("cm",), ("kg", "kgs"), ("km",), ("m",), ("lb", "lbs"),
    ("mi", "mile", "miles"), ("years", "year", "yrs", "jahre"), ("days", "day", "tage"),
    ("times", "x", "mal", "veces"), ("%", "percent", "prozent"), *_MONEY,
    ("°F", "f"), ("°C", "c"), ("°", "degrees", "grad"),
)  # fmt: skip
# Things that people count: a unit of several words begins with one of these, or with a unit.
_COUNTED = frozenset({
    "time", "night", "week", "month", "semester", "person", "people", "friend", "roommate",
    "sibling", "guest", "drink", "cup", "meal", "credit", "point",
})  # fmt: skip
NAMED_TIMES = {  # {minute of the day: words for it}
    0: ("midnight", "mitternacht", "medianoche", "minuit", "mezzanotte", "meia-noite"),
    720: ("noon", "midday", "mittag", "mediodía", "midi", "mezzogiorno", "meio-dia"),
}
_FRACTION = re.compile(r"(\d+)? ?([\u00bc-\u00be\u2150-\u215e\u2189])")
_MINUS = re.compile(r"(?<![\w.,])(?<!\d )[\u2212\u2010-\u2013\ufe63\uff0d](?=[\d.,(])")
_IN_BRACKETS = re.compile(r"\( ?([^\W\d_]{0,3}[€$£]? ?\d[\d.,' ]*[^\W\d_]{0,3}[€$£%]?) ?\)")


def plain_number(text: str) -> str:
    """Return a text with a plain minus sign, and with decimals in place of ½ and 1¼.

    Examples
    --------
    >>> plain_number("−5"), plain_number("1½ hours"), plain_number("10–11 pm")
    ('-5', '1.5 hours', '10–11 pm')
    """
    if text.isascii():
        return text
    return _FRACTION.sub(_decimal_of, _MINUS.sub("-", text))


def _decimal_of(found: re.Match[str]) -> str:
    return f"{int(found[1] or 0) + unicodedata.numeric(found[2]):.6g}"


def plain_numbers(texts: Sequence[str]) -> list[str]:
    """Return the texts of one column with plain numbers.

    "(5)" is an accountant's -5 beside numbers without brackets. Where all numbers stand in
    brackets, the brackets mean nothing.
    """
    plain = [plain_number(text) for text in texts]
    inner = [_IN_BRACKETS.fullmatch(text) for text in plain]
    if all(inner) or not any(inner):
        return plain
    return [f"-{found[1]}" if found else text for found, text in zip(inner, plain, strict=True)]


def is_numeral(text: str) -> bool:
    """Return True if a cell reads as a number, NaN and infinity included."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def as_finite_number(text: str) -> float | None:
    """Return the finite number that a cell holds, else None."""
    value = float(text) if is_numeral(text) else math.nan
    return value if math.isfinite(value) else None


@dataclass(frozen=True, slots=True)
class NumberStyle:
    """Number style of one column: the decimal mark, the unit, or a clock.

    Minutes and hours are read in the unit of the column. ``origin`` is the minute of the day at
    which a clock column begins, so that 1:00 comes after 23:00 where people report when they go to
    bed.
    """

    decimal: str = "."
    unit: str = ""
    is_clock: bool = False
    origin: int = 0

    def value(self, text: str) -> float | None:
        """Return the number in a cell, or the minute since midnight; None if there is none."""
        if self.is_clock:
            minutes = _minutes(text)
            return None if minutes is None else float((minutes - self.origin) % _DAY + self.origin)
        found = _NUMBER.fullmatch(plain_numbers([text, "0"])[0])
        if found is None:
            return None
        unit = _unit(found)
        family = _family(unit)
        if unit and family is None and _singular(unit) != _singular(self.unit):
            return None
        digits = found["number"].replace(" ", "").replace("'", "")
        thousands = "," if self.decimal == "." else "."
        if thousands in digits and not re.fullmatch(
            rf"[+-]?\d{{1,3}}(?:{re.escape(thousands)}\d{{3}})+(?:{re.escape(self.decimal)}\d+)?",
            digits,
        ):
            return None
        number = as_finite_number(digits.replace(thousands, "").replace(self.decimal, "."))
        sizes = {_HOURS[0]: 60, _MINUTES[0]: 1}
        if number is None or family not in (_HOURS, _MINUTES) or self.unit not in sizes:
            return number
        return number * sizes[family[0]] / sizes[self.unit]


def number_style(cells: Iterable[str]) -> NumberStyle | None:
    """Return the number style of a column's different cells; None if most are no numbers.

    A column is not read as numbers if every separator could be a decimal mark or a thousands
    mark (1,234): nothing in it decides between the two.
    """
    different = [cell for cell in set(cells) if cell]
    if not different:
        return None
    enough = MIN_SHARE * len(different)
    clock = [m for m in map(_minutes, different) if m is not None]
    if len(clock) >= enough and any(re.search(r"[:h]|m$|m\.$|uhr", x, re.I) for x in different):
        return NumberStyle(is_clock=True, origin=_origin(clock))
    found = [match for match in map(_NUMBER.fullmatch, plain_numbers(different)) if match]
    units = [unit for unit in map(_unit, found) if unit]
    families = {_family(unit) or (_singular(unit),) for unit in units}
    if families == {_HOURS, _MINUTES}:
        families = {_HOURS}
    is_known = all(map(_family, units))
    is_counted = len(units) >= enough and all(map(_counts, units))
    if len(found) < enough or len(families) > 1 or not (is_known or is_counted):
        return None
    is_money = bool(units) and all(_family(unit) in _MONEY for unit in units)
    decimal = _decimal_mark([match["number"] for match in found], is_money=is_money)
    if decimal is None:
        return None
    unit = "" if not units else next(iter(families))[0] if is_known else max(units, key=len)
    style = NumberStyle(decimal, unit)
    return style if sum(style.value(x) is not None for x in different) >= enough else None


def _unit(found: re.Match[str]) -> str:
    """Return the unit behind a number, or the sign of a currency before it."""
    return f"{found['sign']}{found['unit']}" if found["sign"] else found["unit"].strip()


def _family(unit: str) -> tuple[str, ...] | None:
    plain = unit.casefold().rstrip(".")
    return next((family for family in _UNITS if plain in map(str.casefold, family)), None)


def _counts(unit: str) -> bool:
    """Return True if a unit in words says what is counted: "hours per week", "$/month"."""
    first = re.split(r"[ /]", unit, maxsplit=1)[0]
    return _family(first) is not None or _singular(first) in _COUNTED


def _singular(unit: str) -> str:
    """Return the key of a unit in words: that of "hours per week" is that of "hour per week"."""
    first, space, rest = unit.casefold().partition(" ")
    return f"{first.removesuffix('s')}{space}{rest}"


def _decimal_mark(numbers: list[str], *, is_money: bool = False) -> str | None:
    """Return the decimal mark of a column; None if it contradicts itself or is ambiguous.

    No sum of money has three decimals.
    """
    comma = dot = doubtful = False
    for text in numbers:
        has_comma, has_dot = "," in text, "." in text
        if has_comma and has_dot:
            comma |= text.rindex(",") > text.rindex(".")
            dot |= text.rindex(".") > text.rindex(",")
        elif has_comma or has_dot:
            mark = "," if has_comma else "."
            whole, _, rest = text.lstrip("+-").rpartition(mark)
            if len(rest) == 3 and whole not in ("", "0") and len(whole) <= 3:
                doubtful = not is_money
                comma, dot = comma or (is_money and has_dot), dot or (is_money and has_comma)
            elif mark in whole:  # 1.234.567
                comma, dot = comma or mark == ".", dot or mark == ","
            else:
                comma, dot = comma or has_comma, dot or has_dot
    if comma and dot:
        return None
    if doubtful and not comma and not dot:
        return None
    return "," if comma else "."


def _minutes(text: str) -> int | None:
    """Return the minute of the day of a clock time; None for anything else, plain numbers too."""
    for minute, words in NAMED_TIMES.items():
        if text.casefold() in words:
            return minute
    found = _CLOCK.fullmatch(text)
    if found is None or (found[2] is None and found[3] is None):
        return None
    hour, minute, half = int(found[1]), int(found[2] or 0), (found[3] or "").lower()[:1]
    if half in ("a", "p"):
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if half == "p" else 0)
    return (60 * hour + minute) % _DAY


def _origin(minutes: list[int]) -> int:
    """Return the best cut of a day: after the longest time in which nobody answered."""
    times = sorted(set(minutes))
    gaps = [(after - before, after) for before, after in itertools.pairwise(times)]
    gaps.append((times[0] + _DAY - times[-1], times[0]))
    longest = max(gap for gap, _ in gaps)
    return next(after for gap, after in reversed(gaps) if gap == longest)


@dataclass(frozen=True, slots=True)
class Groups:
    """Groups of numbers: ``edges`` are the borders in order, and a border belongs to the upper one.

    ``is_whole`` is true if all numbers are whole, so that 20 up to 25 reads "20–24".
    """

    edges: tuple[float, ...]
    style: NumberStyle = NumberStyle()
    is_whole: bool = False

    @property
    def levels(self) -> tuple[str, ...]:
        """Return the names of the groups, in order."""
        unit = f" {self.style.unit}" if self.style.unit else ""
        shown = [self.shown(edge) for edge in self.edges]
        if self.style.is_clock:
            between = [f"{a} to {b}" for a, b in itertools.pairwise(shown)]
            return (f"before {shown[0]}", *between, f"{shown[-1]} or later")
        between = [self._between(k) + unit for k in range(len(self.edges) - 1)]
        return (f"under {shown[0]}{unit}", *between, f"{shown[-1]}{unit} or more")

    def _between(self, k: int) -> str:
        low, high = self.edges[k], self.edges[k + 1]
        if not self.is_whole:
            return f"{self.shown(low)} to under {self.shown(high)}"
        last = math.ceil(high) - 1
        return self.shown(low) if last <= low else f"{self.shown(low)}–{self.shown(last)}"

    def shown(self, edge: float) -> str:
        """Return an edge as text: 7.5 or 23:30."""
        if self.style.is_clock:
            return f"{int(edge) // 60 % 24:02d}:{int(edge) % 60:02d}"
        return f"{edge:g}"

    def level_of(self, text: str) -> str:
        """Return the group of a cell; the cell itself if it holds no number."""
        value = self.style.value(text)
        if value is None:
            return text
        return self.levels[sum(value >= edge for edge in self.edges)]

    def to_json(self) -> dict[str, Any]:
        """Return plain data for a JSON field."""
        style = self.style
        return {
            "edges": list(self.edges),
            "style": [style.decimal, style.unit, style.is_clock, style.origin],
            "is_whole": self.is_whole,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any] | None) -> "Groups | None":
        """Return the groups that ``to_json`` wrote."""
        if not data:
            return None
        return cls(tuple(data["edges"]), NumberStyle(*data["style"]), data["is_whole"])


def groups_of_levels(levels: Sequence[str], style: NumberStyle) -> Groups | None:
    """Return the groups with these names, "under 6", "6–7", "8 or more"; None for other names."""
    starts = [re.match(r"(?:[\d.]+|\d\d:\d\d)", level) for level in levels[1:]]
    if not starts or not all(starts):
        return None
    texts = [found[0] for found in starts if found]
    edges = [_minutes(text) if style.is_clock else as_finite_number(text) for text in texts]
    known = [float(edge) for edge in edges if edge is not None]
    if style.is_clock:  # the hours after midnight come after those of the evening
        known = [(edge - style.origin) % _DAY + style.origin for edge in known]
    for is_whole in (False, True):
        groups = Groups(tuple(known), style, is_whole)
        if len(known) == len(texts) and groups.levels == tuple(levels):
            return groups
    return None


def suggest_groups(cells: Iterable[str], style: NumberStyle, count: int = 5) -> Groups | None:
    """Return about ``count`` groups of similar size with round borders; None for fewer than two."""
    values = sorted(v for v in map(style.value, cells) if v is not None)
    if not values or values[0] == values[-1]:
        return None
    is_whole = not style.is_clock and all(value == int(value) for value in values)
    step = _round_step(values[-1] - values[0], style.is_clock, is_whole)
    edges: list[float] = []
    for k in range(1, count):
        edge = round(round(values[k * len(values) // count] / step) * step, 6)
        if values[0] < edge <= values[-1] and edge not in edges:
            edges.append(edge)
    edges = _without_empty(sorted(edges), values)
    return Groups(tuple(edges), style, is_whole) if edges else None


def _round_step(span: float, is_clock: bool, is_whole: bool) -> float:
    if is_clock:
        return 60.0 if span > 240 else 30.0
    steps = [m * 10.0**k for k in range(-3, 7) for m in (1, 2.5, 5)]
    step = next((s for s in steps if span / s <= 10), steps[-1])
    return max(1.0, math.floor(step)) if is_whole else step


def _without_empty(edges: list[float], values: list[float]) -> list[float]:
    kept: list[float] = []
    for edge in edges:
        low = kept[-1] if kept else -math.inf
        if any(low <= value < edge for value in values):
            kept.append(edge)
    return kept


def read_edges(text: str, style: NumberStyle) -> tuple[float, ...] | None:
    """Return the borders that staff typed, "6; 7; 8" or "22:00, 23:00"; None if there are none.

    In a column with decimal commas, semicolons or spaces separate the borders.
    """
    separator = r"[;\s]+" if style.decimal == "," or ";" in text else r"[,;\s]+"
    parts = [part for part in re.split(separator, text.strip()) if part]
    values = [style.value(part) for part in parts]
    if not values or len(values) >= MAX_GROUPS or None in values:
        return None
    edges = tuple(value for value in values if value is not None)
    return edges if list(edges) == sorted(set(edges)) else None
