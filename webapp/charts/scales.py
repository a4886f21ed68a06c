"""Scales from numbers to pixels, and their ticks."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from webapp.common import formats


@dataclass(frozen=True, slots=True)
class LinearScale:
    """Linear scale from [low, high] to [start, end] pixels."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """Return the pixel of a value."""
        span = self.high - self.low or 1.0
        return self.start + (value - self.low) / span * (self.end - self.start)

    def ticks(self, wanted: int = 6) -> list[float]:
        """Return round values inside the range, about ``wanted`` of them."""
        step = nice_step((self.high - self.low) / max(wanted, 1))
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [k * step for k in range(first, last + 1)]


@dataclass(frozen=True, slots=True)
class LogScale:
    """Logarithmic scale from [low, high], both positive, to [start, end] pixels."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """Return the pixel of a value; a value below the range gets the low end."""
        position = math.log(max(value, self.low) / self.low) / math.log(self.high / self.low)
        return self.start + position * (self.end - self.start)

    def exponents(self) -> list[int]:
        """Return the powers of ten inside the range."""
        first = math.ceil(math.log10(self.low) - 1e-9)
        last = math.floor(math.log10(self.high) + 1e-9)
        return list(range(first, last + 1))


def nice_step(raw: float) -> float:
    """Return the next of 1, 2, 2.5, 5 times a power of ten."""
    if not math.isfinite(raw) or raw <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(raw))
    return next(step * power for step in (1, 2, 2.5, 5, 10) if step * power >= raw * (1 - 1e-9))


def tick_text(value: float, step: float) -> str:
    """Return a tick's number with as many decimals as its neighbours need."""
    exponent = math.floor(math.log10(step) + 1e-9) if step > 0 else 0
    digits = max(0, -exponent)
    if round(step * 10**digits, 6) != round(step * 10**digits):
        digits += 1
    return formats.number(value, digits)


def padded_range(values: Sequence[float], *, share: float = 0.06) -> tuple[float, float]:
    """Return the range of the values with a margin, never empty."""
    low, high = min(values), max(values)
    margin = share * (high - low) or max(abs(high), 1.0) * share
    return low - margin, high + margin


def powers_around(values: Sequence[float]) -> tuple[float, float]:
    """Return the powers of ten that enclose positive values, at least one decade."""
    low = 10.0 ** math.floor(math.log10(min(values)))
    high = 10.0 ** math.ceil(math.log10(max(values)))
    return low, high if high > low else low * 10
