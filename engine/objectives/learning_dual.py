"""Dual and primal objectives of the learning problem, and the gap between them.

    dual    L(tau) = ||r(tau)||^2 / (2 lambda) - sum_m H_rho(tau^m)
            r(tau) = sum_m phi(Y^m) - phi(tau^m)
    primal  l_rho(theta) = <theta, sum_m phi(Y^m)> - sum_m log Z_rho^m(theta) - lambda/2 ||theta||^2

``min_tau L = max_theta l_rho`` (Sion), attained at ``theta = r(tau) / lambda``. The sign rule ends
here: scores are maximised by oracles, solvers minimise L.

The certificate ``L(tau) - l_rho(theta)`` bounds the error of both sides whenever tau lies in the
marginal polytope and ``log Z_rho`` is bounded from above. The bound may be taken over a larger
polytope (degree constraints without odd sets): that only lowers l_rho, so the gap stays valid and
is merely wider than need be. The converse does not hold: a tau outside the marginal polytope could
make L too small, which is why an inner solution records whether its tau was proved feasible.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor

from engine.core.arguments import FloatArray
from engine.core.errors import InvalidProblemError
from engine.core.gap import relative_gap
from engine.core.options import check_number
from engine.objectives.protocol import InnerSolution

FEW_FEATURES = 300
"""Maximum number of features for which the eigenvalues of a Hessian take negligible time."""

NOT_NEGATIVE = 1e-10
"""Largest negative eigenvalue kept in a large Hessian, as a share of its largest diagonal entry."""


@dataclass(frozen=True, slots=True)
class LearningDual:
    """Dual and primal objectives as functions of statistics and entropies alone.

    Parameters
    ----------
    observed : ndarray, shape (K,)
        sum_m phi(Y^m).
    ridge : float
        lambda > 0.

    Examples
    --------
    >>> LearningDual(np.array([2.0, 0.0]), 4.0).parameters(np.zeros(2)).tolist()
    [0.5, 0.0]
    """

    observed: FloatArray
    ridge: float

    def parameters(self, statistics: FloatArray) -> FloatArray:
        """Return theta(tau) = (observed - sum_m phi(tau^m)) / lambda, shape (K,)."""
        return (self.observed - statistics) / self.ridge

    def value(self, statistics: FloatArray, entropy: float) -> float:
        """Return L(tau) in nats; see ``Objective``."""
        return self.dual_value(statistics, entropy)

    def slope(self, statistics: FloatArray, change: FloatArray) -> tuple[float, float]:
        """Return the derivatives of the quadratic part along ``change``; see ``Objective``."""
        residual = self.observed - statistics
        square = float(change @ change) / self.ridge
        return -float(residual @ change) / self.ridge, square

    @property
    def key(self) -> FloatArray:
        """Numbers that identify this problem: lambda and the observed statistics."""
        return np.append(self.observed, self.ridge)

    def dual_value(self, statistics: FloatArray, entropy: float) -> float:
        """Return L(tau), nats, from the sums of phi(tau^m) and H(tau^m): an upper bound."""
        residual = self.observed - statistics
        return float(residual @ residual) / (2 * self.ridge) - entropy

    def primal_value(self, theta: FloatArray, log_partition: float) -> float:
        """Return l_rho(theta) in nats; a lower bound of the optimum if log Z is an upper bound."""
        return float(theta @ self.observed - 0.5 * self.ridge * (theta @ theta)) - log_partition

    def primal_gradient(self, theta: FloatArray, statistics: FloatArray) -> FloatArray:
        """Return the gradient of l_rho at theta, where tau maximises the inner problem."""
        return self.observed - statistics - self.ridge * theta

    def evaluate(self, theta: FloatArray, inner: Sequence[InnerSolution]) -> "Bounds":
        """Return both bounds, from one solved inner problem per observation."""
        points = [solution.certified_point for solution in inner]
        statistics = np.sum([phi for phi, _ in points], axis=0)
        entropy = sum(entropy for _, entropy in points)
        log_partition = sum(solution.log_partition for solution in inner)
        return Bounds(
            upper=self.dual_value(statistics, entropy),
            lower=self.primal_value(theta, log_partition),
            is_certified=all(solution.is_certified for solution in inner),
        )


@dataclass(frozen=True, slots=True)
class Bounds:
    """Upper and lower bound of the optimum of the learning problem.

    Parameters
    ----------
    upper, lower : float
        Nats.
    is_certified : bool
        Whether the upper bound was proved.

    Examples
    --------
    >>> Bounds(-9.5, -10.0).gap
    0.5
    """

    upper: float
    lower: float
    is_certified: bool = True

    @property
    def gap(self) -> float:
        """Return upper - lower, never below zero."""
        return max(self.upper - self.lower, 0.0)

    @property
    def relative_gap(self) -> float:
        """Return the gap over the size of the lower bound (the log-likelihood)."""
        return relative_gap(self.upper, self.lower)


def make_learning_dual(observed: Sequence[FloatArray], ridge: float) -> LearningDual:
    """Build the objective from one vector of observed statistics per block.

    Parameters
    ----------
    observed : sequence of ndarray, shape (K,) each
        phi(Y^m).
    ridge : float
        lambda > 0.

    Returns
    -------
    LearningDual
        The objective of the summed statistics.

    Raises
    ------
    InvalidProblemError
        If there is no observation, the vectors differ in length, or ridge is not above 0.

    Examples
    --------
    >>> make_learning_dual([np.ones(2), np.ones(2)], 1.0).observed.tolist()
    [2.0, 2.0]
    """
    check_number("ridge", ridge, above=0.0)
    if not observed:
        raise InvalidProblemError("Learning needs at least one observation, received none.")
    lengths = {len(vector) for vector in observed}
    if len(lengths) != 1:
        raise InvalidProblemError(
            f"Observations have different numbers of features: {sorted(lengths)}."
        )
    return LearningDual(np.sum(observed, axis=0), float(ridge))


def as_semidefinite(hessian: FloatArray) -> FloatArray:
    """Return the nearest positive semidefinite matrix, or zeros on overflow.

    A large matrix that is semidefinite up to rounding is returned unchanged: a factor shows that in
    a twentieth of the time of its eigenvalues.
    """
    if not np.isfinite(hessian).all():
        return np.zeros(hessian.shape)
    symmetric = np.asarray((hessian + hessian.T) / 2)
    if len(symmetric) > FEW_FEATURES and _has_factor(symmetric):
        return symmetric
    values, vectors = np.linalg.eigh(symmetric)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)


def _has_factor(symmetric: FloatArray) -> bool:
    """Return True if no eigenvalue is below 0 by more than the rounding beside pairs near 1."""
    size = len(symmetric)
    rounding = NOT_NEGATIVE * float(np.abs(np.diag(symmetric)).max(initial=0.0))
    try:
        cho_factor(symmetric + rounding * np.eye(size), check_finite=False)
    except np.linalg.LinAlgError:
        return False
    return True
