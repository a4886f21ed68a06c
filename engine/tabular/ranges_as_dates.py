"""Ranges that a spreadsheet took for dates: 1-2 typed as an answer became 2 January.

A file shows them as "2-Jan", "Jan-02", "01. Feb", "2026-02-01" or 01/02/2026. Both readings of such
a day give the same range, for a range begins with its smaller number: 1-2 is 2 January in America
and 1 February in Europe.
"""

import itertools
import re
from collections import Counter
from collections.abc import Mapping

from engine.tabular.answer_order import is_number
from engine.tabular.dates import month_number
from engine.tabular.scales import declines_to_answer, stands_beside

_DAY_MONTH = re.compile(r"(\d{1,2})\.?[-/. ]{1,2}([^\W\d_]{3,10})\.?")
_MONTH_DAY = re.compile(r"([^\W\d_]{3,10})\.?[-/. ](\d{1,2})")
_ISO = re.compile(r"(\d{4})-(\d{2})-(\d{2})(?: 00:00(?::00)?)?")
_SLASHED = re.compile(r"(\d{1,2})[/.](\d{1,2})[/.](\d{4}|\d{2})(?: 0?0:00(?::00)?)?")
_SMALL = re.compile(r"\d{1,2} ?(?:\+|-|–| to | or more| or less)? ?\d{0,2}\+?|[<>≤≥] ?\d{1,2}|"
                    r"none|no|never|nie|"
                    r"nunca|jamais|(?:more|less|fewer) than \d{1,2}|(?:over|under|at least|"
                    r"up to) \d{1,2}"
                    r"|\d{1,2}\+? ?(?:or more|and more|and over|oder mehr|o más|"
                    r"ou plus)", re.I)  # fmt: skip
_DATED = re.compile(
    r"date|datum|fecha|birth|geburt|nacimiento|naissance|\bday\b|\btag\b|\bdía\b|\bjour\b|arriv|depart|"
    r"move[- ]in|when|submitted|time ?stamp|zeitstempel|deadline|since|until", re.I
)  # fmt: skip
_MAX_RANGES = 12
_TYPED_FROM = 2000  # years before it come from ranges such as 1-50, which becomes January 1950


def find_ranges_as_dates(answers: Mapping[str, int], title: str) -> dict[str, str]:
    """Return {cell: the range that was typed}; empty if a column holds no such dates.

    Parameters
    ----------
    answers : {cell: rows} of one column, blanks not counted.
    title : name of the column; one that asks for a day holds days.

    Examples
    --------
    >>> find_ranges_as_dates({"0": 4, "2-Jan": 3, "5-Mar": 2, "10+": 1}, "Siblings")
    {'2-Jan': '1-2', '5-Mar': '3-5'}
    >>> find_ranges_as_dates({"2026-05-01": 4, "2026-05-02": 3}, "Date")
    {}
    """
    days = {cell: found for cell in answers if (found := _day(cell)) is not None}
    others = [cell for cell in answers if cell not in days]
    if not days:
        return {}
    usual_year = Counter(year for _, _, year in days.values() if year).most_common(1)
    ranges = {}
    for cell, (day, month, year) in days.items():
        low, high = sorted((day, month))
        is_of_year = year and (year < _TYPED_FROM or (year != usual_year[0][0] and day == 1))
        if is_of_year:
            low, high = month, year % 100
        if low >= high:
            return {}
        ranges[cell] = (low, high)
    # A day may have several spellings; a range that is two days (1-2, 2-1) is none.
    different = {(day, month) for day, month, _ in days.values()}
    if len(different) > _MAX_RANGES or len(set(ranges.values())) < len(different):
        return {}
    plain = [cell for cell in others if not declines_to_answer(cell) and not stands_beside(cell)]
    is_scale = bool(plain) and all(is_number(c) or _SMALL.fullmatch(c) for c in plain)
    has_repeats = sum(answers[cell] for cell in ranges) > len(ranges)
    apart = sorted(ranges.values())
    is_apart = all(one[1] < other[0] for one, other in itertools.pairwise(apart))
    is_date = _DATED.search(title) is not None
    are_ranges = not plain and is_apart and has_repeats and len(ranges) > 1 and not is_date
    if is_scale or are_ranges:
        return {cell: f"{low}-{high}" for cell, (low, high) in ranges.items()}
    return {}


def _day(cell: str) -> tuple[int, int, int] | None:
    """Return (day, month, year) of a cell that is a day without a time; year 0 if not given.

    A month with a number beyond 31 is a month and a year: "Jan-50".
    """
    if found := _ISO.fullmatch(cell):
        return int(found[3]), int(found[2]), int(found[1])
    if found := _SLASHED.fullmatch(cell):
        year = int(found[3])
        first, second = int(found[1]), int(found[2])
        if 1 <= first <= 31 and 1 <= second <= 31 and min(first, second) <= 12:
            return first, second, year + (0 if year > 99 else 2000)
    for pattern, day, name in ((_DAY_MONTH, 1, 2), (_MONTH_DAY, 2, 1)):
        found = pattern.fullmatch(cell)
        month = month_number(found[name]) if found else None
        if found and month is not None:
            number = int(found[day])
            return (number, month, 0) if number <= 31 else (1, month, 1900 + number)
    return None
