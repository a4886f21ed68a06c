"""What every method for marginals of a pairwise model returns."""

from dataclasses import dataclass

from engine.core.arguments import FloatArray
from engine.core.status import Status


@dataclass(frozen=True, slots=True)
class Marginals:
    """Pseudomarginals with what is known about log Z (nats).

    Parameters
    ----------
    tables : ndarray, flat
        Node and edge tables, inside the local polytope (margins agree), in the model's layout.
    log_partition : float
        The method's own log Z: the free energy at ``tables``.
    lower_bound, upper_bound : float or None
        Proven bounds of the exact log Z, None where the method has none. They hold whether or
        not the method converged.
    iterations : int
    status : Status
        CONVERGED only if the tolerance was met.
    change : float
        Largest change of a log message (or marginal) in the last iteration.
    """

    tables: FloatArray
    log_partition: float
    lower_bound: float | None
    upper_bound: float | None
    iterations: int
    status: Status
    change: float

    @property
    def is_converged(self) -> bool:
        """Whether the requested accuracy was reached."""
        return self.status.is_converged

    @property
    def dual_gap(self) -> float:
        """Upper bound minus the method's own value; infinite without an upper bound.

        For tree-reweighted marginals it bounds how far the free energy is from its maximum.
        """
        return float("inf") if self.upper_bound is None else self.upper_bound - self.log_partition
