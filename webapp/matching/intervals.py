"""Confidence intervals of every question's effect, and its drift over the years."""

from collections.abc import Callable, Sequence
from math import isfinite
from typing import Any

from engine import Survey
from engine.core.checkpoint import Checkpoint
from engine.learning.roommates.kept_estimates import KeptEstimates
from engine.learning.roommates.uncertainty import estimate_by_year, estimate_weights

SECONDS = 30.0  # time limit for the intervals of all years, and another one for the drift
NEAR = 0.1  # nats, maximum gap of an estimate: half a standard error in any direction

Year = tuple[Survey, Any]
Interval = dict[str, float]


def weight_intervals(
    years: Sequence[Year], rho: float, should_stop: Callable[[], bool], checkpoint: Checkpoint
) -> dict[str, dict[str, Interval]]:
    """Return each question's ``interval`` and, with two years or more, its ``drift``, by name.

    Each is a value with the ends of its 95 % interval, nats per step and nats per step a year. An
    entry is left out if the data cannot determine it or time ran out; with no estimate in time the
    result is empty. The effect is estimated with almost no ridge penalty, which an interval cannot
    account for: it may lie further from zero than the model's own. An interrupted run resumes from
    its checkpoint.

    Raises
    ------
    InvalidProblemError
        If the years allow no estimate.
    StoppedError
        If ``should_stop`` answered True.
    """
    kept = KeptEstimates(checkpoint, years)
    whole = estimate_weights(
        years, rho=rho, max_seconds=SECONDS, should_stop=should_stop, kept=kept
    )
    if whole.gap > NEAR:
        return {}
    rows = {
        row.question.name: _ends("interval", row.effect, row.interval) for row in whole.effects()
    }
    if len(years) < 2:
        return rows
    by_year = estimate_by_year(
        years, rho=rho, max_seconds=SECONDS, should_stop=should_stop, kept=kept
    )
    if max(year.gap for year in by_year.years) <= NEAR:
        for drift in by_year.drift:
            rows[drift.question.name] |= _ends("drift", drift.per_year, drift.interval)
    return rows


def _ends(name: str, value: float, interval: tuple[float, float]) -> dict[str, Interval]:
    low, high = interval
    if not (isfinite(low) and isfinite(high)):
        return {}
    return {name: {"value": value, "low": low, "high": high}}
