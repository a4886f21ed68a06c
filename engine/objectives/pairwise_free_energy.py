"""Variational problem of a pairwise model: max over tau of <tau, theta> + H_rho(tau)."""

from dataclasses import dataclass, field

import numpy as np

from engine.core.arguments import FloatArray, as_finite_array
from engine.entropies.pairwise import PairwiseEntropy
from engine.kernels.long_sums import inner_product
from engine.oracles.protocol import LinearMinimizationOracle


@dataclass(frozen=True, slots=True, eq=False)
class PairwiseFreeEnergy:
    """Concave free energy log Z_rho = max <tau, theta> + H_rho(tau) of one model.

    Parameters
    ----------
    scores : ndarray, flat tables; -inf marks impossible entries, which stay at probability zero.
    entropy : PairwiseEntropy, in the same layout.
    oracle : exact or bounded oracle of the local polytope.
    """

    scores: FloatArray
    entropy: PairwiseEntropy
    oracle: LinearMinimizationOracle
    finite: FloatArray = field(init=False)  # scores with 0 at impossible entries

    def __post_init__(self) -> None:
        """Raise InvalidProblemError if the scores' shape is wrong, or they contain NaN or +inf."""
        scores = np.asarray(self.scores, dtype=np.float64)
        impossible = np.isneginf(scores)
        finite = np.where(impossible, 0.0, scores)
        shape = self.entropy.coefficients.shape
        object.__setattr__(self, "scores", scores)
        object.__setattr__(self, "finite", as_finite_array("scores", finite, shape=shape))

    def value(self, tables: FloatArray) -> float:
        """Return <tau, theta> + H_rho(tau) in nats: a lower bound of log Z_rho.

        ``tables`` must be zero at impossible entries.
        """
        return inner_product(tables, self.finite) + self.entropy.value(tables)
