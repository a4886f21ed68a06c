"""How a computation ended. Hitting a limit never reads as converged."""

from enum import Enum


class Status(Enum):
    """The reason for which an iterative method returned.

    Examples
    --------
    >>> [status.value for status in Status if status.is_converged]
    ['converged']
    """

    CONVERGED = "converged"
    ITERATION_LIMIT = "iteration limit"
    TIME_LIMIT = "time limit"
    CANCELLED = "cancelled"
    STALLED = "no further progress"

    @property
    def is_converged(self) -> bool:
        """Whether the requested accuracy was reached."""
        return self is Status.CONVERGED
