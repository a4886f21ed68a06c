"""How long work reports itself and how it is asked to stop: two callbacks, no threads."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """One report of a running computation.

    ``objective`` is an upper bound and ``lower_bound`` a lower bound on the optimum that the
    computation seeks (nats for learning); either is None while unknown. ``gap`` is their
    difference when certified, and ``relative_gap`` what ``engine.core.gap`` makes of them.
    ``fraction`` is None when the amount of work is unknown: an interface then says so instead of
    drawing a fake bar.
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
