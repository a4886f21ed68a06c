"""What a relative gap is, wherever an objective in nats is bounded from both sides."""

from math import isinf


def relative_gap(upper: float, lower: float) -> float:
    """Return (upper - lower) / max(|lower|, 1 nat), never below zero; inf while a bound is.

    Learning compares sums over many observations, which dwarf one nat; the floor keeps a problem
    whose optimum is near zero from asking for the impossible.

    Examples
    --------
    >>> relative_gap(-99.0, -100.0), relative_gap(0.25, 0.0), relative_gap(0.0, float("-inf"))
    (0.01, 0.25, inf)
    """
    gap = max(upper - lower, 0.0)
    return gap if isinf(gap) else gap / max(abs(lower), 1.0)
