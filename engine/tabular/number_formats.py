"""Text that a spreadsheet shows for a number: zeros, per cent, units, fractions, dates, times.

A cell of a workbook holds a number and the code of a format; people see the two together, and so
does a CSV file that is saved from it. Dates and times have one form, whatever the format
("2026-05-01 08:00", "23:30"), thousands are not separated and signs of currencies are left out, so
that a number stays a number.
"""

import datetime
import re
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from fractions import Fraction
from functools import lru_cache
from typing import Literal

GENERAL = "General"
BUILT_IN = {
    0: GENERAL, 1: "0", 2: "0.00", 3: "#,##0", 4: "#,##0.00", 9: "0%", 10: "0.00%",
    11: "0.00E+00", 12: "# ?/?", 13: "# ??/??", 14: "mm-dd-yy", 15: "d-mmm-yy", 16: "d-mmm",
    17: "mmm-yy", 18: "h:mm AM/PM", 19: "h:mm:ss AM/PM", 20: "h:mm", 21: "h:mm:ss",
    22: "m/d/yy h:mm", 27: "yyyy-mm-dd", 30: "m/d/yy", 36: "yyyy-mm-dd", 37: "#,##0;-#,##0",
    38: "#,##0;-#,##0", 39: "#,##0.00;-#,##0.00", 40: "#,##0.00;-#,##0.00", 41: "#,##0",
    42: "#,##0", 43: "#,##0.00", 44: "#,##0.00", 45: "mm:ss", 46: "[h]:mm:ss", 47: "mm:ss",
    48: "##0.0E+0",
    49: "@", 50: "yyyy-mm-dd", 57: "yyyy-mm-dd",
}  # fmt: skip
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_TOKEN = re.compile(
    r'"(?P<quoted>[^"]*)"?|\\(?P<escaped>.)|_.|\*.|\[(?P<elapsed>[hms]+)\]|\[\$(?P<sign>[^\]-]*)[^\]]*\]'
    r"|\[[^\]]*\]|(?P<half>AM/PM|A/P)|(?P<date>[ymdhseg]+(?![^\s\d\W_]))|(?P<general>General)"
    r"|(?P<exponent>E[+-])|(?P<digit>[0#?])|(?P<mark>[.,%/@])|(?P<other>.)",
    re.IGNORECASE | re.DOTALL,
)
_MAX_EXACT = 1e15  # a spreadsheet keeps 15 digits
_FIRST_OF_MARCH_1900 = 60  # serial before it: 29 February 1900, a day that Excel invented
_OF_1904 = 1462  # days between the two possible first days of a workbook's calendar

_Kind = Literal["general", "number", "fraction", "moment", "elapsed"]


@dataclass(frozen=True, slots=True)
class _Section:
    """Part of a format: its kind and its tokens, as (kind of token, text)."""

    kind: _Kind
    tokens: tuple[tuple[str, str], ...]


def shown_number(value: float, code: str, *, is_1904: bool = False) -> str:
    """Return the text that a spreadsheet shows for a number under a format.

    Examples
    --------
    >>> shown_number(123, "00000"), shown_number(0.5, "0%"), shown_number(7.5, '0.0" h"')
    ('00123', '50%', '7.5 h')
    >>> shown_number(46024, "d-mmm"), shown_number(25.5 / 24, "[h]:mm")
    ('2-Jan', '25:30')
    """
    sections = _sections(code)
    section = sections[0]
    is_own = value < 0 and len(sections) > 1
    if is_own:
        section = sections[1]
    elif value == 0 and len(sections) > 2:
        section = sections[2]
    if section.kind == "elapsed":
        return _elapsed(value)
    if section.kind == "moment":
        return _moment(value, section, is_1904=is_1904)
    if section.kind == "general" or not any(kind == "digit" for kind, _ in section.tokens):
        return plain_number(value)
    if section.kind == "fraction":
        return _fraction(value, section)
    return _number(value, section)


def plain_number(value: float) -> str:
    """Return a number as a cell without a format shows it, with at most 15 digits."""
    if value == int(value) and abs(value) < _MAX_EXACT:
        return str(int(value))
    if abs(value) >= _MAX_EXACT:
        return f"{value:.5E}"  # its last digits are lost, as the file shows
    return f"{Decimal(f'{value:.15g}'):f}"


@lru_cache(maxsize=2_000)
def _sections(code: str) -> tuple[_Section, ...]:
    return tuple(_section(part) for part in _split(code)) or (_Section("general", ()),)


def _split(code: str) -> list[str]:
    """Return the parts of a format between semicolons that are not quoted."""
    parts = [""]
    for found in re.finditer(r'"[^"]*"?|\\.|\[[^\]]*\]|;|[^;"\\\[]+|.', code, re.DOTALL):
        if found[0] == ";":
            parts.append("")
        else:
            parts[-1] += found[0]
    return parts


def _section(part: str) -> _Section:
    tokens: list[tuple[str, str]] = []
    for found in _TOKEN.finditer(part):
        for group, text in found.groupdict().items():
            if text is not None:
                is_text = group in ("quoted", "escaped", "sign", "other")
                tokens.append(("text" if is_text else group, text))
    kinds = {group for group, _ in tokens}
    marks = {text for group, text in tokens if group == "mark"}
    kind: _Kind = "number"
    if "elapsed" in kinds:
        kind = "elapsed"
    elif "date" in kinds or "half" in kinds:
        kind = "moment"
    elif "general" in kinds or "exponent" in kinds or "@" in marks or not tokens:
        kind = "general"
    elif "/" in marks:
        kind = "fraction"
    return _Section(kind, tuple(tokens))


def _elapsed(value: float) -> str:
    seconds = round(value * 86_400)
    sign, seconds = ("-", -seconds) if seconds < 0 else ("", seconds)
    rest = f":{seconds % 60:02d}" if seconds % 60 else ""
    return f"{sign}{seconds // 3600}:{seconds // 60 % 60:02d}{rest}"


def _moment(value: float, section: _Section, *, is_1904: bool) -> str:
    letters = "".join(text.lower() for kind, text in section.tokens if kind == "date")
    is_half = any(kind == "half" for kind, _ in section.tokens)
    has_clock = "h" in letters or "s" in letters or is_half
    has_day = bool(set(letters) & set("yd")) or ("m" in letters and not has_clock)
    days, seconds = divmod(round(value * 86_400), 86_400)
    if not has_day or (days == 0 and has_clock):
        return _clock(seconds, is_half=is_half)
    try:
        moment = _day(days, is_1904=is_1904)
    except OverflowError:
        return plain_number(value)
    has_month_name = re.search(r"mmm", letters) is not None
    if has_month_name and not has_clock and "y" not in letters:
        return f"{moment.day}-{_MONTHS[moment.month - 1]}"  # Excel's form of a typed 1-2
    if has_month_name and not has_clock and "d" not in letters:
        return f"{_MONTHS[moment.month - 1]}-{moment.year % 100:02d}"
    return f"{moment.isoformat()} {_clock(seconds)}" if seconds else moment.isoformat()


def _day(days: int, *, is_1904: bool) -> datetime.date:
    days += _OF_1904 if is_1904 else 0
    first = 30 if days > _FIRST_OF_MARCH_1900 else 31
    return datetime.date(1899, 12, first) + datetime.timedelta(days=days)


def _clock(seconds: int, *, is_half: bool = False) -> str:
    hour, minute, second = seconds // 3600, seconds // 60 % 60, seconds % 60
    rest = f":{second:02d}" if second else ""
    if is_half:
        return f"{hour % 12 or 12}:{minute:02d}{rest} {'PM' if hour >= 12 else 'AM'}"
    return f"{hour:02d}:{minute:02d}{rest}"


def _fraction(value: float, section: _Section) -> str:
    places = [text for kind, text in section.tokens if kind in ("digit", "mark")]
    below = places[places.index("/") + 1 :]
    whole, rest = divmod(Fraction(abs(value)).limit_denominator(10 ** max(1, len(below)) - 1), 1)
    sign = "-" if value < 0 else ""
    if not rest:
        return f"{sign}{whole}"
    return f"{sign}{whole} {rest}" if whole else f"{sign}{rest}"


def _number(value: float, section: _Section) -> str:
    tokens = list(section.tokens)
    digits = [k for k, (kind, _) in enumerate(tokens) if kind == "digit"]
    point = next((k for k, token in enumerate(tokens) if token == ("mark", ".")), None)
    if any(tokens[k + 1 : k + 2] == [("mark", ",")] for k in digits[-1:]):
        return plain_number(value)  # shown in thousands: the number itself is more precise
    try:
        number = abs(Decimal(f"{value:.15g}"))
    except InvalidOperation:
        return plain_number(value)
    if ("mark", "%") in tokens:
        number *= 100
    places = [tokens[k][1] for k in digits if point is not None and k > point]
    number = number.quantize(Decimal(1).scaleb(-len(places)), rounding=ROUND_HALF_UP)
    whole, _, decimals = f"{number:f}".partition(".")
    while decimals and places[len(decimals) - 1] != "0" and decimals.endswith("0"):
        decimals = decimals[:-1]
    end = digits[-1] + 1 if point is None else point
    shown = _filled(tokens[min(digits[0], end) : end], whole)
    shown += f".{decimals}" if decimals else ""
    before = _words(tokens[: digits[0]])
    after = _words(tokens[digits[-1] + 1 :]) + ("%" if ("mark", "%") in tokens else "")
    sign = "-" if value < 0 and number else ""
    return f"{before}{sign}{shown}{after}".strip()


def _filled(places: list[tuple[str, str]], whole: str) -> str:
    """Return the whole part in its places, from the right; the first place takes the rest."""
    rest = "" if whole == "0" else whole
    first = next((k for k, (kind, _) in enumerate(places) if kind == "digit"), None)
    shown = ""
    for k in range(len(places) - 1, -1, -1):
        kind, text = places[k]
        if kind == "text":
            shown = text + shown
        elif kind == "digit" and k == first:
            shown = (rest or ("0" if text == "0" else "")) + shown
        elif kind == "digit":
            shown = (rest[-1:] or ("0" if text == "0" else "")) + shown
            rest = rest[:-1]
    return shown or "0"


def _words(tokens: list[tuple[str, str]]) -> str:
    """Return the letters, digits and dashes around a number, without signs of currencies."""
    text = "".join(text for kind, text in tokens if kind == "text")
    return text if re.search(r"[^\W_]", text) else ""
