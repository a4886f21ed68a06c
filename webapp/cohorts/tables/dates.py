"""When an answer was given, in the ways in which survey programs write it."""

import re
from collections.abc import Sequence
from datetime import datetime

_ISO = re.compile(r"(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})")
_OTHER = re.compile(r"(\d{1,2})[-/.](\d{1,2})[-/.](\d{4}|\d{2})(?!\d)")
_TIME = re.compile(r"[T ,]+(\d{1,2})[:.](\d{2})(?:[:.](\d{2}))?(?:\.\d+)?\s*([AaPp]\.?\s?[Mm])?")
_MIN_SHARE = 0.9


def read_times(cells: Sequence[str]) -> list[datetime | None] | None:
    """Return the time in every cell of a column; None where most hold none or days are in doubt.

    2/3/2026 is a day in February or in March: a column is read only if one of its cells, or the
    dots of 2.3.2026, tell which.
    """
    filled = [cell for cell in cells if cell]
    matched = [_ISO.match(cell) or _OTHER.match(cell) for cell in filled]
    if not filled or sum(map(bool, matched)) < _MIN_SHARE * len(filled):
        return None
    day_first = _is_day_first(filled)
    if day_first is None:
        return None
    return [_read(cell, day_first) for cell in cells]


def _is_day_first(cells: Sequence[str]) -> bool | None:
    found = [match for match in map(_OTHER.match, cells) if match]
    if not found or any("." in match[0] for match in found):
        return True  # nobody writes months first with dots
    day = any(int(match[1]) > 12 for match in found)
    month = any(int(match[2]) > 12 for match in found)
    return day if day != month else None


def _read(cell: str, day_first: bool) -> datetime | None:
    iso = _ISO.match(cell)
    other = None if iso else _OTHER.match(cell)
    found = iso or other
    if found is None:
        return None
    if iso:
        year, month, day = (int(part) for part in iso.groups())
    else:
        first, second, year = (int(part) for part in found.groups())
        day, month = (first, second) if day_first else (second, first)
        year += 2000 if year < 100 else 0
    hour, minute, second = 0, 0, 0
    time = _TIME.match(cell, found.end())
    if time:
        hour, minute, second = int(time[1]), int(time[2]), int(time[3] or 0)
        half = (time[4] or "").lower()[:1]
        hour = hour % 12 + (12 if half == "p" else 0) if half else hour
    try:
        return datetime(year, month, day, hour, minute, second)
    except ValueError:
        return None
