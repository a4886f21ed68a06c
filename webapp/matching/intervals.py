"""How sure the effect of every question is, and whether it moves over the years."""

from collections.abc import Callable, Sequence
from math import isfinite
from typing import Any

from engine import Survey
from engine.learning.roommates.uncertainty import estimate_by_year, estimate_weights

SECONDS = 30.0  # at most for the intervals of all years, and as many for the drift
NEAR = 0.1  # nats that an estimate may lack of its best: half a standard error in any direction

Year = tuple[Survey, Any]
Interval = dict[str, float]


def weight_intervals(
    years: Sequence[Year], rho: float, should_stop: Callable[[], bool]
) -> dict[str, dict[str, Interval]]:
    """Return, by the name of a question, its ``interval`` and, of two years or more, its ``drift``.

    Each is a value with the ends of its 95 % interval, nats per step and nats per step a year; left
    out where the years cannot tell or time was too short. The effect is estimated nearly without
    the pull towards zero, of which an interval knows nothing: it may lie further out than the
    model's own. Nothing where time was too short for any.

    Raises
    ------
    InvalidProblemError
        If the years allow no estimate.
    StoppedError
        If ``should_stop`` answered True.
    """
    whole = estimate_weights(years, rho=rho, max_seconds=SECONDS, should_stop=should_stop)
    if whole.gap > NEAR:
        return {}
    rows = {
        row.question.name: _ends("interval", row.effect, row.interval) for row in whole.effects()
    }
    if len(years) < 2:
        return rows
    by_year = estimate_by_year(years, rho=rho, max_seconds=SECONDS, should_stop=should_stop)
    if max(year.gap for year in by_year.years) <= NEAR:
        for drift in by_year.drift:
            rows[drift.question.name] |= _ends("drift", drift.per_year, drift.interval)
    return rows


def _ends(name: str, value: float, interval: tuple[float, float]) -> dict[str, Interval]:
    low, high = interval
    if not (isfinite(low) and isfinite(high)):
        return {}
    return {name: {"value": value, "low": low, "high": high}}
