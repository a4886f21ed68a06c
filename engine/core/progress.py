"""How long work reports itself and how it is asked to stop: two callbacks, no threads."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """One report of a running computation.

    Parameters
    ----------
    sentence : str, what is being done, for people.
    fraction : float, optional, 0 to 1
        None when the amount of work is unknown: an interface then says so instead of drawing a
        fake bar.
    iteration : int, steps of the method so far.
    seconds : float, since the computation began.
    seconds_left : float, optional, an estimate.
    objective : float, optional
        An upper bound on the optimum (nats for learning), None while unknown.
    lower_bound : float, optional, a lower bound on the optimum, in the same unit.
    gap : float, optional, the difference of the bounds where both are certified.
    relative_gap : float, optional, what `engine.core.gap` makes of them.

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


def ignore_progress(progress: Progress) -> None:
    """Discard a report."""


def never_stop() -> bool:
    """Answer that the work should go on."""
    return False
