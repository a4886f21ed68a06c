"""What a walk through the polytopes minimises: the learning dual, or the free energy of inference.

Both are a convex function of the summed statistics minus the entropies, so that one Frank-Wolfe
serves learning and inference: they differ in which theta a step looks along.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from engine.core.arguments import FloatArray
from engine.objectives.protocol import Entropy
from engine.oracles.protocol import LinearMinimizationOracle, Vertex, inner_product


class Objective(Protocol):
    """L(tau) = f(sum_m phi(tau^m)) - sum_m H(tau^m), f convex and at most quadratic.

    Examples
    --------
    >>> objective: Objective = FreeEnergy(np.ones(2))
    >>> objective.slope(np.zeros(2), np.ones(2))
    (-2.0, 0.0)
    """

    @property
    def key(self) -> FloatArray:
        """Numbers that tell this problem from others, for checkpoints."""

    def parameters(self, statistics: FloatArray) -> FloatArray:
        """Return theta = -grad f, shape (K,), at which the oracles are asked."""

    def value(self, statistics: FloatArray, entropy: float) -> float:
        """Return L(tau) in nats."""

    def slope(self, statistics: FloatArray, change: FloatArray) -> tuple[float, float]:
        """Return the derivative of f(statistics + g change) at g = 0, and its constant second."""


@dataclass(frozen=True, slots=True)
class FreeEnergy:
    """Inference: minimise -<theta, phi(tau)> - H(tau); the minimum is -log Z_rho(theta).

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
        """theta."""
        return self.theta

    def parameters(self, statistics: FloatArray) -> FloatArray:
        """Return theta."""
        return self.theta

    def value(self, statistics: FloatArray, entropy: float) -> float:
        """Return -<theta, phi(tau)> - H(tau) in nats."""
        return -float(self.theta @ statistics) - entropy

    def slope(self, statistics: FloatArray, change: FloatArray) -> tuple[float, float]:
        """Return the derivative along ``change``; the linear part does not bend."""
        return -float(self.theta @ change), 0.0


@dataclass(frozen=True, slots=True)
class FixedScores:
    """Inference as a structure: the one feature is the score itself, and theta = 1.

    Parameters
    ----------
    values : ndarray, in the shape of a point, nats; -inf where an entry is impossible, whose
        weight in ``start`` must be 0.
    oracle, entropy, start : see ``Structure``.
    share : float, what an entry counts in inner products: 1/2 in symmetric matrices.

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
        """Nothing was observed: one 0."""
        return np.zeros(1)

    @property
    def free_energy(self) -> FreeEnergy:
        """The objective at theta = 1."""
        return FreeEnergy(np.ones(1))

    def scores(self, theta: FloatArray) -> FloatArray:
        """Return theta times the scores."""
        return self.values if theta[0] == 1.0 else theta[0] * self.values

    def statistics(self, at: FloatArray | Vertex) -> FloatArray:
        """Return <values, tau>, shape (1,)."""
        if isinstance(at, Vertex):
            return np.array([at.inner(self.values)])
        return np.array([self.share * inner_product(at, self.values)])
