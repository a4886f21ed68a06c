"""Result of every method for marginals of a pairwise model."""

from dataclasses import dataclass

from engine.core.arguments import FloatArray
from engine.core.status import Status

# Largest disagreement of margins at which tables count as a point of the local polytope: above
# rounding and the errors of proportional fitting, far below the digits that users read.
CONSISTENT = 1e-9


@dataclass(frozen=True, slots=True)
class Marginals:
    """Pseudomarginals with an estimate and bounds of log Z (nats).

    Parameters
    ----------
    tables : ndarray, flat
        Node and edge tables in the model's layout, inside the local polytope (margins agree) up
        to ``inconsistency``.
    log_partition : float
        The method's own log Z: the free energy at ``tables``. If these are inconsistent, it may be
        larger than the maximum over the local polytope.
    lower_bound, upper_bound : float or None
        Proved bounds of the exact log Z, None if the method has no such bound. They hold whether
        or not the method converged.
    iterations : int
    status : Status
        CONVERGED only if the tolerance was met.
    change : float
        Largest change of a log message (or marginal) in the last iteration; infinite if a label
        has become impossible.
    inconsistency : float
        Largest difference between a node's probability and an edge table's margin. Early in a
        solve tables cannot always be made consistent: scaling them keeps their zeros.

    Examples
    --------
    >>> import numpy as np
    >>> from engine.core.status import Status
    >>> found = Marginals(np.ones(2), 0.0, -0.5, 0.25, 3, Status.CONVERGED, 0.0)
    >>> found.is_converged
    True
    """

    tables: FloatArray
    log_partition: float
    lower_bound: float | None
    upper_bound: float | None
    iterations: int
    status: Status
    change: float
    inconsistency: float = 0.0

    @property
    def is_converged(self) -> bool:
        """True if the requested accuracy was reached."""
        return self.status.is_converged

    @property
    def dual_gap(self) -> float:
        """Upper bound minus the method's own value; infinite if either proves nothing.

        For tree-reweighted marginals it bounds how far the free energy is from its maximum.
        """
        if self.upper_bound is None or self.inconsistency > CONSISTENT:
            return float("inf")
        return self.upper_bound - self.log_partition
