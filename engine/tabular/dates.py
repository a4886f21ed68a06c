"""Times of answers, in the formats of survey programs, and names of months.

Times are compared in universal time if the cell names its zone: "2:10 GMT+1" is later than
"2:50 GMT+2". Cells without a zone are assumed to be in one zone.
"""

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import cache

from engine.tabular.text import fold_answer

_ISO = re.compile(r"(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})(?!\d)")
_OTHER = re.compile(r"(\d{1,2})[-/.](\d{1,2})[-/.](\d{4}|\d{2})(?!\d)")
_DAY_FIRST_NAME = re.compile(
    r"(\d{1,2})\.?[ -]?(?:de )?([^\W\d_]{3,10})\.?,?[ -](?:de )?(\d{4}|\d{2})(?!\d)"
)
_NAME_FIRST = re.compile(r"([^\W\d_]{3,10})\.? (\d{1,2})(?:st|nd|rd|th)?,? (\d{4})(?!\d)")
_WEEKDAY = re.compile(r"[^\W\d_]{2,10}\.?,? ")
_SERIAL = re.compile(r"((?:3[5-9]|[45]\d)\d{3})((?:[.,]\d+)?)")  # days since 1900, of 1995 to 2064
_TIME = re.compile(
    r"(?:T|,? (?:at |um |à |a las )?|, )?(\d{1,2})[:.h](\d{2})(?:[:.](\d{2}))?(?:[.,]\d+)?\s*"
    r"([ap]\.?\s?m\.?)?",
    re.IGNORECASE,
)
_OFFSET = re.compile(
    r"(?:(?:GMT|UTC|Z)\s*)?([-+−])(\d{1,2}):?(\d{2})?\b|\b(GMT|UTC|Z)\b", re.IGNORECASE
)
_ZONES = {
    "est": -5, "edt": -4, "cst": -6, "cdt": -5, "mst": -7, "mdt": -6, "pst": -8, "pdt": -7,
    "akst": -9, "akdt": -8, "hst": -10, "wet": 0, "west": 1, "bst": 1, "cet": 1, "cest": 2,
    "mez": 1, "mesz": 2, "eet": 2, "eest": 3, "aest": 10, "aedt": 11, "nzst": 12, "nzdt": 13,
}  # fmt: skip
_ZONE = re.compile(rf"\b({'|'.join(_ZONES)})\b", re.IGNORECASE)
_MIN_SHARE = 0.9
_FIRST_DAY = datetime(1899, 12, 30)
_MONTHS = (
    "january jan januar jänner enero ene janvier janv gennaio gen januari janeiro",
    "february feb februar febrero febr février févr fév fevrier febbraio febrero fevereiro fev "
    "februari",
    "march mar märz mär mrz marzo mars maart março",
    "april apr abril abr avril avr aprile",
    "may mai mayo mei maggio mag maio",
    "june jun juni junio juin giugno giu junho",
    "july jul juli julio juillet juil luglio lug julho",
    "august aug agosto ago août aout augustus",
    "september sep sept septiembre septembre settembre set setembro",
    "october oct oktober okt octubre octobre ottobre ott outubro out",
    "november nov noviembre novembre novembro",
    "december dec dezember dez diciembre dic décembre déc decembre dicembre dezembro",
)


@cache
def _month_numbers() -> dict[str, int]:
    return {
        fold_answer(name): number
        for number, names in enumerate(_MONTHS, start=1)
        for name in names.split()
    }


def month_number(name: str) -> int | None:
    """Return the number of a month by its name or short name in one of several languages.

    Examples
    --------
    >>> month_number("Jan"), month_number("févr."), month_number("Dez"), month_number("Monday")
    (1, 2, 12, None)
    """
    return _month_numbers().get(fold_answer(name).rstrip("."))


def read_times(cells: Sequence[str]) -> list[datetime | None] | None:
    """Return the time in every cell of a column; None if most hold none or days are ambiguous.

    2/3/2026 is a day in February or in March: a column is read only if one of its cells, or the
    dots of 2.3.2026, settle the order. A time with a zone is turned into universal time.
    """
    filled = [cell for cell in cells if cell]
    head = filled[:200]  # the first cells show that a column holds other things
    if not head or sum(_has_day(cell) for cell in head) < _MIN_SHARE * len(head):
        return None
    if sum(map(_has_day, filled)) < _MIN_SHARE * len(filled):
        return None
    day_first = _is_day_first(filled)
    if day_first is None:
        return None
    return [_read(cell, day_first=day_first) for cell in cells]


def _has_day(cell: str) -> bool:
    return _day_of(cell, day_first=True) is not None or _day_of(cell, day_first=False) is not None


def _is_day_first(cells: Sequence[str]) -> bool | None:
    found = [match for match in map(_OTHER.match, cells) if match]
    if not found or any("." in match[0] for match in found):
        return True  # nobody writes months first with dots
    day = any(int(match[1]) > 12 for match in found)
    month = any(int(match[2]) > 12 for match in found)
    return day if day != month else None


def _read(cell: str, *, day_first: bool) -> datetime | None:
    found = _day_of(cell, day_first=day_first)
    if found is None:
        return None
    day, rest = found
    time = _TIME.match(rest)
    if time is None:
        return day
    hour, minute, second = int(time[1]), int(time[2]), int(time[3] or 0)
    half = (time[4] or "").lower()[:1]
    hour = hour % 12 + (12 if half == "p" else 0) if half else hour
    if hour > 24 or minute > 59 or second > 60:
        return day
    moment = day + timedelta(hours=hour, minutes=minute, seconds=second)
    offset = _offset(rest[time.end() :])
    return moment - offset if offset is not None else moment


def _day_of(cell: str, *, day_first: bool) -> tuple[datetime, str] | None:
    """Return the day at the beginning of a cell and the text after it."""
    for text in (cell, _WEEKDAY.sub("", cell, count=1)):
        parts: tuple[int, int, int] | None = None
        end = 0
        if iso := _ISO.match(text):
            parts, end = (int(iso[1]), int(iso[2]), int(iso[3])), iso.end()
        elif other := _OTHER.match(text):
            first, second, year = int(other[1]), int(other[2]), int(other[3])
            day, month = (first, second) if day_first else (second, first)
            parts, end = (year, month, day), other.end()
        elif named := _DAY_FIRST_NAME.match(text):
            parts, end = (int(named[3]), month_number(named[2]) or 0, int(named[1])), named.end()
        elif named := _NAME_FIRST.match(text):
            parts, end = (int(named[3]), month_number(named[1]) or 0, int(named[2])), named.end()
        elif serial := _SERIAL.fullmatch(text):
            days = float(serial[1] + serial[2].replace(",", "."))
            return _FIRST_DAY + timedelta(seconds=round(86_400 * days)), ""
        if parts is not None:
            year, month, day = parts
            try:
                return datetime(year + 2000 if year < 100 else year, month, day), text[end:]
            except ValueError:
                return None
    return None


def _offset(text: str) -> timedelta | None:
    """Return the offset of a zone from universal time; None without a named zone."""
    named = _ZONE.search(text)
    if named:
        return timedelta(hours=_ZONES[named[1].lower()])
    found = _OFFSET.search(text)
    if found is None:
        return None
    if found[4]:
        return timedelta()
    sign = 1 if found[1] == "+" else -1
    return sign * timedelta(hours=int(found[2]), minutes=int(found[3] or 0))
