"""Relative gap of an objective in nats between an upper and a lower bound."""

from math import isinf


def relative_gap(upper: float, lower: float) -> float:
    """Return (upper - lower) / max(|lower|, 1 nat), never below zero; inf if a bound is infinite.

    Learning compares sums over many observations, far above 1 nat; the floor avoids an unreachable
    tolerance for problems whose optimum is near zero.

    Examples
    --------
    >>> relative_gap(-99.0, -100.0), relative_gap(0.25, 0.0), relative_gap(0.0, float("-inf"))
    (0.01, 0.25, inf)
    """
    gap = max(upper - lower, 0.0)
    return gap if isinf(gap) else gap / max(abs(lower), 1.0)
