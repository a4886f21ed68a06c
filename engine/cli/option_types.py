"""Types of options: a value out of range is refused under the option's name, as it was typed."""

import math
from argparse import ArgumentTypeError
from collections.abc import Callable


def above_zero(text: str) -> float:
    """A finite number above 0, such as a weight or a gap."""
    return _number(text, "above 0", lambda value: value > 0)


def from_zero(text: str) -> float:
    """A finite number of at least 0, such as a price."""
    return _number(text, "of at least 0", lambda value: value >= 0)


def above_zero_to(highest: float) -> Callable[[str], float]:
    """A number above 0 and at most ``highest``."""
    return lambda text: _number(
        text, f"above 0, at most {highest:g}", lambda value: 0 < value <= highest
    )


def share(text: str) -> float:
    """A number from 0 to 1."""
    return _number(text, "from 0 to 1", lambda value: 0 <= value <= 1)


def whole_number_from(lowest: int) -> Callable[[str], int]:
    """A whole number of at least ``lowest``."""

    def parse(text: str) -> int:
        if not text.isdecimal() or int(text) < lowest:
            raise ArgumentTypeError(f"expected a whole number from {lowest}, received {text!r}")
        return int(text)

    return parse


def room_sizes(text: str) -> tuple[int, ...]:
    """Sizes of rooms, 1 to 8, with commas between them."""
    parts = text.split(",")
    if not all(part.strip().isdecimal() and 1 <= int(part) <= 8 for part in parts):
        raise ArgumentTypeError(f"expected sizes from 1 to 8 such as 1,2,3, received {text!r}")
    return tuple(int(part) for part in parts)


def _number(text: str, wanted: str, is_inside: Callable[[float], bool]) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or not is_inside(value):
        raise ArgumentTypeError(f"expected a number {wanted}, received {text!r}")
    return value
