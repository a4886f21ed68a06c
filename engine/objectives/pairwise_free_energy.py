"""The variational problem of a pairwise model: max over tau of <tau, theta> + H_rho(tau)."""

from dataclasses import dataclass, field

import numpy as np

from engine.core.arguments import FloatArray, as_finite_array
from engine.entropies.pairwise import PairwiseEntropy
from engine.kernels.long_sums import inner_product
from engine.oracles.protocol import ExtremePoint, LinearMinimizationOracle

# Longest step towards a vertex: a full step would reach the boundary, where H is not smooth.
LONGEST_STEP = 1.0 - 1e-9
NEWTON_STEPS = 30
# Relative width of the step's bracket at which the line search stops.
STEP_TOLERANCE = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class PairwiseFreeEnergy:
    """The concave free energy log Z_rho = max <tau, theta> + H_rho(tau) of one model.

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
        """Raise InvalidProblemError if the scores do not fit, or hold NaN or +inf."""
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

    def ascent_point(self, tables: FloatArray) -> tuple[ExtremePoint, float]:
        """Return the oracle's vertex at the gradient, and a bound on log Z_rho - value(tau)."""
        gradient = self.entropy.gradient(tables)
        here = inner_product(tables, gradient) + inner_product(tables, self.finite)
        gradient += self.scores
        point = self.oracle.compute_extreme_point(gradient)
        return point, point.upper_bound - here

    def line_search(self, tables: FloatArray, direction: FloatArray) -> float:
        """Return the best step in [0, 1): safeguarded Newton on the concave restriction."""
        linear = inner_product(direction, self.finite)
        low, high = 0.0, LONGEST_STEP
        step = 0.5
        for _ in range(NEWTON_STEPS):
            _, slope, curvature = self.entropy.along(tables, direction, step)
            slope += linear
            if slope > 0.0:
                low = step
            else:
                high = step
            if high - low <= STEP_TOLERANCE * high:
                break
            newton = step - slope / curvature if curvature < 0.0 else np.inf
            step = newton if low < newton < high else 0.5 * (low + high)
        return 0.5 * (low + high)
