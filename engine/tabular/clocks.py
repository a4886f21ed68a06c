"""Hours of a day in answers: those after midnight come after those of the evening before."""

import itertools
import re
from collections.abc import Sequence

_HOUR = re.compile(r"(?<![\d:.])\d{1,2}(?=:[0-5]\d(?!\d)|(?![\d:.]))")
_WITH_UNIT = re.compile(r"\b(\d{1,2}) ?(?:uhr|h)(?: ?([0-5]\d))?(?![^\W_])")
_WITH_POINT = re.compile(r"\b([01]\d|2[0-4])\.([0-5]\d)\b(?!\.)")
_CLOCK = re.compile(r"\d:[0-5]\d\b")
_CROSSING = re.compile(
    r"\b(1[0-2]|2[2-4])(?::[0-5]\d)? ?(?:-|to|bis|a|à|until|und|and) ?(0?[0-5])\b"
)
HALF = re.compile(r"(?:\b|\d)(?:am|pm)\b")  # of a clock with twelve hours
_EVENING, _MORNING = 18, 5


def past_midnight(texts: Sequence[str]) -> list[str] | None:
    """Return folded answers with 25:00 for one o'clock at night, or 13 on a clock of twelve hours.

    None unless they are hours of a day that run into the night: clock times of 24 hours from the
    evening on, or a range such as "12-1" among others.

    Examples
    --------
    >>> past_midnight(["22 uhr", "23 uhr 30", "0 uhr"]), past_midnight(["11-12", "12-1", "after 1"])
    (['22:00', '23:30', '24:00'], ['11-12', '12-13', 'after 13'])
    """
    if any(map(HALF.search, texts)):
        return None
    clocks = [_WITH_UNIT.sub(lambda hour: f"{hour[1]}:{hour[2] or '00'}", text) for text in texts]
    if any(re.search(r"\b0\d\.[0-5]\d\b", text) for text in texts):
        clocks = [_WITH_POINT.sub(r"\1:\2", text) for text in clocks]
    hours = sorted({int(hour) for text in clocks for hour in _HOUR.findall(text)})
    if not hours or hours[-1] > 24:
        return None
    if any(map(_CLOCK.search, clocks)) and _is_evening(hours, texts):
        return [_later(text, _MORNING - 1, 24) for text in clocks]
    crossing = next(filter(None, map(_CROSSING.search, clocks)), None)
    if crossing is not None:
        before, after = int(crossing[1]), int(crossing[2])
    elif _has_twelve_hours(clocks, hours):
        before, after = 12, hours[0]  # "11:30", "12", "1:30"
    else:
        return None
    day = 12 if before <= 12 else 24
    last = _last_before_gap(hours)
    is_night = hours[-1] <= day and after <= last < before
    return [_later(text, last, day) for text in clocks] if is_night else None


def _has_twelve_hours(clocks: Sequence[str], hours: Sequence[int]) -> bool:
    """Return True if clock times run from before twelve to after it, on a clock without a zero."""
    if len(hours) < 2:
        return False
    has_clock = any(map(_CLOCK.search, clocks))
    has_zero = any(re.search(r"\b0\d?:", text) for text in clocks)
    return has_clock and not has_zero and hours[-1] == 12 and _last_before_gap(hours) < _MORNING


def _last_before_gap(hours: Sequence[int]) -> int:
    """Return the last hour before the longest time without any."""
    return max((later - hour, hour) for hour, later in itertools.pairwise(hours))[1]


def _is_evening(hours: Sequence[int], texts: Sequence[str]) -> bool:
    """Return True if clock times are of an evening and the night after it: 22, 23, 0, 1.

    "20h" may be a time of work: two answers of 20 hours and more are times of day.
    """
    late = [hour for hour in hours if hour >= _EVENING]
    is_clear = any(":" in text or "uhr" in text or "." in text for text in texts)
    enough = bool(late) if is_clear else sum(hour >= 20 for hour in late) > 1
    return enough and all(hour < _MORNING for hour in hours if hour < _EVENING)


def _later(text: str, last: int, day: int) -> str:
    """Return a text whose hours up to ``last`` are of the next day."""
    return _HOUR.sub(lambda hour: str(int(hour[0]) + day * (int(hour[0]) <= last)), text)
