"""Interior-point Newton method for the polytopes' points and the parameters at once.

    max over tau^m of  sum_m <A_m, tau^m> + H(tau^m) - ||sum_m phi(tau^m)||^2 / (2 lambda)
                       + mu sum_m sum log tau^m,    mu falling to 0

Statistics are counted from the observed ones, so that theta = -sum_m phi(tau^m) / lambda. A step in
tau alone may shrink an entry by a factor only, a step in theta needs the solution for every theta:
the barrier lets both move at once, and the number of steps, some 25 to 50, depends neither on the
size of the scores nor on lambda. Without features (K = 0) this solves one inner problem.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from scipy.linalg import cho_solve

from engine.core.arguments import FloatArray
from engine.core.tolerances import TOLERANCES
from engine.solvers.barrier import factor_semidefinite

FIRST_BARRIER = 0.3
"""First mu: a share of the scores' deviation over the number of entries of a row."""

FALL, SLOW_FALL = 0.2, 0.5
"""Factors by which mu shrinks after a step, and after one shorter than half."""

NEAR = 2.0
"""Largest promised rise of a step after which mu falls, in units of mu for each entry."""

REFINEMENTS = 2
"""Refinements of the change of theta in one step."""


class Move(Protocol):
    """Newton system of one part at one point, as a function of the change of theta.

    ``pull`` (K,) and ``curvature`` (K, K): statistics of the step at fixed theta, and by how much
    they grow with theta.
    """

    pull: FloatArray
    curvature: FloatArray

    def finish(self, change: FloatArray) -> tuple[float, float]:
        """Fix the step for a change of theta; return the promised rise and the largest step."""

    def flow(self) -> FloatArray:
        """Return phi of the fixed step, shape (K,)."""

    def value(self, step: float) -> float:
        """Return <A, tau> + H + mu sum log tau after a step, -inf outside the polytope."""

    def statistics(self, step: float) -> FloatArray:
        """Return phi after a step, shape (K,)."""

    def take(self, step: float) -> None:
        """Move the part's point by a share of the fixed step."""


class BarrierPart(Protocol):
    """One polytope with its entropy and its present point, which is strictly interior."""

    @property
    def n_entries(self) -> int:
        """Number of entries of the point."""

    def statistics(self) -> FloatArray:
        """Return phi(tau) - phi(Y), shape (K,)."""

    def first_barrier(self, theta: FloatArray) -> float:
        """Return the deviation of the scores over the number of entries of a row, nats."""

    def move(self, theta: FloatArray, barrier: float) -> Move | None:
        """Return the Newton system, None if it is singular in floating point."""


@dataclass(slots=True)
class BarrierPath:
    """State of the barrier method: points, parameters and mu.

    Parameters
    ----------
    parts : sequence of BarrierPart
    ridge : float, lambda > 0; without features any number.

    ``aim`` is the target theta of the last step, ``barrier`` mu in nats.
    """

    parts: Sequence[BarrierPart]
    ridge: float
    barrier: float = field(init=False)
    aim: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        self.aim = self.theta
        size = max(part.first_barrier(self.aim) for part in self.parts)
        self.barrier = FIRST_BARRIER * size

    @property
    def theta(self) -> FloatArray:
        """Parameters of the present points, shape (K,)."""
        return self._parameters([part.statistics() for part in self.parts])

    @property
    def n_entries(self) -> int:
        """Number of entries of all points; mu times this is about the cost of the barrier, nats."""
        return sum(part.n_entries for part in self.parts)

    def step(self) -> bool:
        """Take a Newton step and lower the barrier; return False if rounding allows no step."""
        theta = self.theta
        moves = [part.move(theta, self.barrier) for part in self.parts]
        sound = [move for move in moves if move is not None]
        if len(sound) < len(moves):
            return False
        solved = self._change(sound)
        if solved is None:
            return False
        change, ends = solved
        self.aim = theta + change
        slope = sum(end[0] for end in ends) + self.ridge * float(change @ change)
        taken = self._search(
            sound, slope, min(1.0, *(TOLERANCES.to_the_boundary * end[1] for end in ends))
        )
        if taken is None:
            return False
        if taken > 0.9 or slope <= NEAR * self.barrier * self.n_entries:
            self.barrier *= FALL if taken > 0.5 else SLOW_FALL
        return True

    def _change(self, moves: Sequence[Move]) -> tuple[FloatArray, list[tuple[float, float]]] | None:
        """Return the change of theta, where lambda change + phi(step) = 0, and the finished moves.

        The remainder of that sum is refined away, because theta is off by 1 / lambda times it.
        """
        n_features = len(self.aim)
        change = np.zeros(n_features)
        if n_features == 0:
            return change, [move.finish(change) for move in moves]
        matrix = self.ridge * np.eye(n_features) + np.sum([m.curvature for m in moves], axis=0)
        factor = factor_semidefinite((matrix + matrix.T) / 2)
        if factor is None:
            return None
        left = np.sum([move.pull for move in moves], axis=0)
        for _ in range(1 + REFINEMENTS):
            change = change - cho_solve(factor, left)
            ends = [move.finish(change) for move in moves]
            left = self.ridge * change + np.sum([move.flow() for move in moves], axis=0)
        return change, ends

    def _search(self, moves: Sequence[Move], slope: float, step: float) -> float | None:
        """Halve the step until the objective rises; return it, None if rounding allows no rise."""
        before = self._objective(moves, 0.0)
        noise = TOLERANCES.noise * max(abs(before), 1.0)
        for _ in range(TOLERANCES.max_halvings):
            if self._objective(moves, step) >= before + TOLERANCES.armijo * step * slope - noise:
                for move in moves:
                    move.take(step)
                return step
            step *= 0.5
        return None

    def _objective(self, moves: Sequence[Move], step: float) -> float:
        theta = self._parameters([move.statistics(step) for move in moves])
        values = sum(move.value(step) for move in moves)
        return values - 0.5 * self.ridge * float(theta @ theta)

    def _parameters(self, statistics: Sequence[FloatArray]) -> FloatArray:
        return np.asarray(-np.sum(statistics, axis=0) / self.ridge)
