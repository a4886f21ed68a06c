"""Periodic work of all applications: each registers its own in a module ``periodic``.

The sweep (``tasks/sweeper.py``) imports these modules and runs each lane in a thread of its own, so
that a mail server that does not answer delays no webhook and no check for dead workers.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from django.utils.module_loading import autodiscover_modules

DAY = 24 * 3600.0  # seconds

# Lanes that several applications share.
CHECKS, MAILS, TIDYING = "checks", "mails", "tidying"


@dataclass(frozen=True, slots=True)
class PeriodicWork:
    """A function that the sweep calls again and again, in turn with the others of its lane.

    Several processes may call ``run`` at the same time.
    """

    run: Callable[[], object]
    lane: str
    period: float = 0.0  # seconds between two calls; 0: after every pause of the sweep
    order: int = 50  # in its lane
    repeats: bool = False  # it returns how many it handled, and is called again until that is 0

    @property
    def name(self) -> str:
        """The module and function, for logs."""
        return f"{self.run.__module__}.{self.run.__qualname__}"


_registered: list[PeriodicWork] = []


def register_periodic_work(*works: PeriodicWork) -> None:
    """Have the sweep call these; for the module ``periodic`` of an application."""
    _registered.extend(works)


def periodic_work() -> Sequence[PeriodicWork]:
    """Return the periodic work of all applications, in the order in which a lane runs it."""
    autodiscover_modules("periodic")
    return sorted(_registered, key=lambda work: work.order)
