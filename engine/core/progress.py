"""Progress reports and cancellation of long work: two callbacks, no threads."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """Report of a running computation.

    Parameters
    ----------
    sentence : str, the current activity, for people.
    fraction : float, optional, 0 to 1
        None if the amount of work is unknown: an interface then shows that instead of drawing a
        fake bar.
    iteration : int, steps of the method so far.
    seconds : float, since the computation began.
    seconds_left : float, optional, an estimate.
    objective : float, optional
        An upper bound on the optimum (nats for learning), None while unknown.
    lower_bound : float, optional, a lower bound on the optimum, in the same unit.
    gap : float, optional, the difference of the bounds if both are certified.
    relative_gap : float, optional, the gap by `engine.core.gap`.

    Examples
    --------
    >>> report = Progress("Learning", iteration=3, objective=12.0, lower_bound=11.5, gap=0.5)
    >>> report.fraction is None, report.gap
    (True, 0.5)
    """

    sentence: str
    fraction: float | None = None
    iteration: int = 0
    seconds: float = 0.0
    seconds_left: float | None = None
    objective: float | None = None
    lower_bound: float | None = None
    gap: float | None = None
    relative_gap: float | None = None


ProgressCallback = Callable[[Progress], None]
StopCallback = Callable[[], bool]
WorkCallback = Callable[[float], None]  # takes the table entries that were visited


def ignore_progress(progress: Progress) -> None:
    """Discard a report."""


def ignore_work(entries: float) -> None:
    """Discard a count of work."""


def never_stop() -> bool:
    """Return False, so that the work continues."""
    return False
