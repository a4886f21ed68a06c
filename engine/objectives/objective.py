"""Objectives that Frank-Wolfe minimises over the polytopes: learning dual and free energy.

Both are a convex function of the summed statistics minus the entropies, so that one Frank-Wolfe
serves learning and inference: they differ in the theta at which a step calls the oracles.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from engine.core.arguments import FloatArray
from engine.objectives.protocol import Entropy
from engine.oracles.protocol import LinearMinimizationOracle, Vertex, inner_product


class Objective(Protocol):
    """Objective L(tau) = f(sum_m phi(tau^m)) - sum_m H(tau^m), f convex and at most quadratic.

    Examples
    --------
    >>> objective: Objective = FreeEnergy(np.ones(2))
    >>> objective.slope(np.zeros(2), np.ones(2))
    (-2.0, 0.0)
    """

    @property
    def key(self) -> FloatArray:
        """Numbers that identify this problem in checkpoints."""

    def parameters(self, statistics: FloatArray) -> FloatArray:
        """Return theta = -grad f, shape (K,), at which the oracles are called."""

    def value(self, statistics: FloatArray, entropy: float) -> float:
        """Return L(tau) in nats."""

    def slope(self, statistics: FloatArray, change: FloatArray) -> tuple[float, float]:
        """Return the first and the constant second derivative of f(statistics + g change) at 0."""


@dataclass(frozen=True, slots=True)
class FreeEnergy:
    """Inference objective -<theta, phi(tau)> - H(tau); its minimum is -log Z_rho(theta).

    Parameters
    ----------
    theta : ndarray, shape (K,), fixed.

    Examples
    --------
    >>> FreeEnergy(np.ones(2)).value(np.array([1.0, 2.0]), 0.5)
    -3.5
    """

    theta: FloatArray

    @property
    def key(self) -> FloatArray:
        """Fixed parameters theta that identify this problem."""
        return self.theta

    def parameters(self, statistics: FloatArray) -> FloatArray:
        """Return the fixed theta, shape (K,)."""
        return self.theta

    def value(self, statistics: FloatArray, entropy: float) -> float:
        """Return -<theta, phi(tau)> - H(tau) in nats."""
        return -float(self.theta @ statistics) - entropy

    def slope(self, statistics: FloatArray, change: FloatArray) -> tuple[float, float]:
        """Return the derivative along ``change``, and the second derivative, which is 0."""
        return -float(self.theta @ change), 0.0


@dataclass(frozen=True, slots=True)
class FixedScores:
    """Structure for inference: its one feature is the score itself, and theta = 1.

    Parameters
    ----------
    values : ndarray, in the shape of a point, nats; -inf where an entry is impossible, whose
        weight in ``start`` must be 0.
    oracle, entropy, start : see ``Structure``.
    share : float, weight of an entry in inner products: 1/2 in symmetric matrices.

    Examples
    --------
    >>> from engine.entropies.matching import bipartite_layout, make_matching_entropy
    >>> from engine.oracles.assignment import AssignmentOracle
    >>> entropy, middle = make_matching_entropy(bipartite_layout(2, 2), 1.0), np.full((2, 2), 0.5)
    >>> FixedScores(np.eye(2), AssignmentOracle(), entropy, middle).statistics(middle).tolist()
    [1.0]
    """

    values: FloatArray
    oracle: LinearMinimizationOracle
    entropy: Entropy
    start: FloatArray
    share: float = 1.0

    @property
    def observed(self) -> FloatArray:
        """Observed statistics: one 0, since nothing was observed."""
        return np.zeros(1)

    @property
    def free_energy(self) -> FreeEnergy:
        """Free-energy objective at theta = 1."""
        return FreeEnergy(np.ones(1))

    def scores(self, theta: FloatArray) -> FloatArray:
        """Return theta times the scores."""
        return self.values if theta[0] == 1.0 else theta[0] * self.values

    def statistics(self, at: FloatArray | Vertex) -> FloatArray:
        """Return <values, tau>, shape (1,)."""
        if isinstance(at, Vertex):
            return np.array([at.inner(self.values)])
        return np.array([self.share * inner_product(at, self.values)])
