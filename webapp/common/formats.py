"""Formats of numbers, durations and times."""

import math
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from typing import Any

from django.utils import dateformat, timezone
from django.utils.translation import gettext

from webapp.translation.counting import counted as counted

MINUS = "\u2212"
_SMALLEST_ROUGH_GAP = 1e-5
_ROUNDING = 1e-9  # of two digits: 0.01 % as a float is a little more, but not 0.011 %


def number(value: Any, digits: int = 0) -> str:
    """Return 2436 as '2,436' and -201.6 as '−201.6'; '' for None and not-a-number."""
    if value is None or value == "" or not math.isfinite(float(value)):
        return ""
    rounded = round(float(value), int(digits))
    text = f"{abs(rounded):,.{int(digits)}f}"
    return f"{MINUS}{text}" if rounded < 0 else text


def signed(value: Any, digits: int = 2) -> str:
    """Return a number with '+' or '−'; zero after rounding has no sign."""
    text = number(value, digits)
    return f"+{text}" if text and round(float(value), int(digits)) > 0 else text


def per_cent(value: Any, digits: int = 1) -> str:
    """Return a fraction as per cent; a non-zero one that rounds to zero reads 'under 0.1 %'."""
    if value is None or not math.isfinite(float(value)):
        return ""
    smallest = 10.0 ** -int(digits)
    if 0 < 100 * float(value) < smallest / 2:
        return gettext("under %(number)s %%") % {"number": f"{smallest:.{int(digits)}f}"}
    return f"{number(100 * float(value), digits)} %"


def gap(value: float | None) -> str:
    """Return a relative gap as '0.009 %', rounded up to two digits, so that 'within' stays true."""
    if value is None or not math.isfinite(value):
        return gettext("unknown")
    if value <= 0:
        return "0 %"
    digits = min(9, max(0, 1 - math.floor(math.log10(100 * value))))
    steps = math.ceil(100 * value * 10**digits - _ROUNDING)
    text = number(steps / 10**digits, digits)
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text} %"


def rough_gap(value: float | None) -> str:
    """Return a relative gap as `gap` does, but never below 0.001 %: pages for staff say no more."""
    return gap(value) if value is None or value <= 0 else gap(max(value, _SMALLEST_ROUGH_GAP))


def is_telling(gap: float | None) -> bool:
    """Return True if a relative gap is below 100 %, so that it measures the distance from the best.

    From 100 % on, one bound is known and the other is still to be proved.
    """
    return gap is not None and gap < 1.0


def mantissa_and_exponent(value: float, digits: int = 1) -> tuple[str, int]:
    """Return the two parts of a number in scientific notation, the mantissa rounded."""
    if value == 0:
        return "0", 0
    mantissa, exponent = f"{value:.{int(digits)}e}".split("e")
    return mantissa.replace("-", MINUS), int(exponent)


def duration(value: Any) -> str:
    """Return seconds (or a timedelta) in the two largest units that matter."""
    if value is None:
        return ""
    seconds = value.total_seconds() if isinstance(value, timedelta) else float(value)
    if not math.isfinite(seconds):
        return ""
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s" if whole % 60 else f"{whole // 60} min"
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60} min" if minutes % 60 else f"{minutes // 60} h"


def time_left(seconds: float | None) -> str:
    """Return 'about 20 s', coarse as estimates are; '' when unknown."""
    if seconds is None or not math.isfinite(seconds):
        return ""
    if seconds < 5:
        return gettext("a few seconds")
    near = 5 * round(seconds / 5) if seconds < 60 else 60 * round(seconds / 60)
    words = f"{near} s" if seconds < 60 else duration(near)
    return gettext("about %(duration)s") % {"duration": words}


def span(low: Any, high: Any) -> str:
    """Return a range in words: 4 to 7."""
    return gettext("%(low)s to %(high)s") % {"low": low, "high": high}


def part_of(part: int, whole: int) -> str:
    """Return a count of a whole: 48 of 50."""
    return gettext("%(part)s of %(whole)s") % {"part": f"{part:,}", "whole": f"{whole:,}"}


def listed(names: Sequence[str]) -> str:
    """Return names as a part of a sentence: Ada, Ben and Cleo."""
    if len(names) < 2:
        return "".join(names)
    return gettext("%(others)s and %(last)s") % {"others": ", ".join(names[:-1]), "last": names[-1]}


def day(value: date) -> str:
    """Return a day with its year: 5 Aug 2026."""
    return dateformat.format(value, gettext("j M Y"))


def moment(value: datetime) -> str:
    """Return a day and a time, in the time zone of the page: Wed 5 Aug 2026, 14:00."""
    return dateformat.format(timezone.localtime(value), gettext("D j M Y, H:i"))


def when(value: datetime, now: datetime) -> str:
    """Return a time in everyday words, in the server's time zone."""
    local = timezone.localtime(value)
    if local.date() == now.date():
        return gettext("today %(time)s") % {"time": f"{local:%H:%M}"}
    if local.date() == (now - timedelta(days=1)).date():
        return gettext("yesterday %(time)s") % {"time": f"{local:%H:%M}"}
    return dateformat.format(local, gettext("j M")) if local.year == now.year else day(local)
