"""Cells that read as numbers, and those that read as numbers but are none."""

import math


def is_numeral(text: str) -> bool:
    """Whether a cell reads as a number, NaN and infinity included."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def as_finite_number(text: str) -> float | None:
    """Return the finite number that a cell holds, else None."""
    value = float(text) if is_numeral(text) else math.nan
    return value if math.isfinite(value) else None
