"""Status at the end of a computation. A reached limit never counts as converged."""

from enum import StrEnum


class Status(StrEnum):
    """Reason why an iterative method returned.

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
        """Return True if the requested accuracy was reached."""
        return self is Status.CONVERGED
