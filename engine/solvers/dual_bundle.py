"""Tighter upper bound from the best convex combination of all visited points.

H_rho is concave and phi linear, so for weights w on the simplex and visited points tau_t

    L(sum_t w_t tau_t) <= 1/(2 lambda) ||observed - sum_t w_t phi(tau_t)||^2 - sum_t w_t H(tau_t)

and the right-hand side, which needs the statistics and entropies only, is an upper bound of the
optimum for every w. Minimising over w is a quadratic programme with one variable for each point
kept. Far from the optimum the residual of the latest point dominates L, and residuals of
successive points cancel, so that this bound can be closer by orders of magnitude.

References
----------
Teo, Vishwanathan, Smola and Le 2010 (bundle methods for regularised risk), seen from the dual.
"""

from dataclasses import dataclass, field

import numpy as np

from engine.core.arguments import FloatArray
from engine.solvers.simplex_ascent import ascend_faces

MAX_POINTS = 120
"""Maximum number of points kept; points of smallest weight are dropped first."""

MAX_SOLVES = 200
"""Maximum number of faces a minimisation; a start from the last weights usually needs few."""

ACCURACY = 1e-9
"""Error that a minimisation may leave, as a share of the largest entropy."""


@dataclass(slots=True)
class DualBundle:
    """Visited points of one learning problem.

    Parameters
    ----------
    observed : ndarray, shape (K,), sum_m phi(Y^m)
    ridge : float, lambda > 0
    """

    observed: FloatArray
    ridge: float
    _residuals: list[FloatArray] = field(default_factory=list)
    _gram: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))
    _entropies: FloatArray = field(default_factory=lambda: np.zeros(0))
    _weights: FloatArray = field(default_factory=lambda: np.zeros(0))

    def add(self, statistics: FloatArray, entropy: float) -> float:
        """Add phi(tau) and H(tau) of one feasible tau; return the upper bound (nats)."""
        residual = self.observed - statistics
        products = np.array([r @ residual for r in self._residuals] + [residual @ residual])
        n = len(products)
        gram = np.empty((n, n))
        gram[:-1, :-1] = self._gram
        gram[-1], gram[:, -1] = products, products
        self._residuals.append(residual)
        self._gram = gram
        self._entropies = np.append(self._entropies, entropy)
        self._weights = np.append(self._weights, 1.0 if n == 1 else 0.0)
        if n > MAX_POINTS:
            self._drop(int(np.argmin(self._weights[:-1])))
        return self._minimise()

    @property
    def parameters(self) -> FloatArray:
        """Return theta of the best combination, shape (K,)."""
        return np.asarray(self._weights @ np.array(self._residuals)) / self.ridge

    def _drop(self, index: int) -> None:
        kept = np.arange(len(self._residuals)) != index
        del self._residuals[index]
        self._gram = self._gram[np.ix_(kept, kept)]
        self._entropies = self._entropies[kept]
        self._weights = self._weights[kept]
        self._weights /= self._weights.sum()

    def _minimise(self) -> float:
        """Find the best weights, starting from the last ones; return the bound."""
        quadratic, weights, entropies = self._gram / self.ridge, self._weights, self._entropies
        tolerance = ACCURACY * float(np.abs(entropies).max())
        alone = np.zeros(len(weights), dtype=np.int64)
        ascend_faces(quadratic, entropies, alone, 1, weights, tolerance, MAX_SOLVES)
        return float(0.5 * weights @ quadratic @ weights - entropies @ weights)
