"""Several problems without odd sets whose weights the barrier method learns with their points.

    max over tau^m of  sum_m H(tau^m) - ||sum_m phi(tau^m) - phi(Y)||^2 / (2 lambda)

A point holds the entries of all parts, one after the other; ``engine.solvers.barrier`` has the
steps. Each part supplies its own curvature, bordered solve and bound, and all share theta.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from engine.core.arguments import BoolArray, FloatArray
from engine.objectives.learning_dual import LearningDual
from engine.solvers.barrier import NO_SETS, BarrierSolution, BarrierState, Polytope, Solve


class LearnedPart(Polytope, Protocol):
    """Polytope of one observation without odd sets; statistics count from the observed ones."""

    @property
    def n_features(self) -> int:
        """Number of features K."""

    def weigh(self, theta: FloatArray) -> None:
        """Use the scores A theta from now on."""

    def scores_of(self, theta: FloatArray) -> FloatArray:
        """Return A theta in the shape of a point."""

    def statistics(self, values: FloatArray) -> FloatArray:
        """Return phi, shape (K,)."""

    def border(self, rate: FloatArray) -> FloatArray:
        """Return B diag(rate) A, shape (n, K)."""

    def information(self, rate: FloatArray) -> FloatArray:
        """Return A^T diag(rate) A, (K, K)."""

    def close(self, x: FloatArray) -> tuple[FloatArray, float]:
        """Return a point of the polytope nearby, and its entropy in nats."""

    def bound(self, closed: FloatArray, nu: FloatArray) -> float:
        """Bound log Z_rho at the present scores by a point of the polytope and by multipliers."""


class ProductPolytope:
    """Product of polytopes that share theta; see ``engine.solvers.barrier.WeightedPolytope``.

    Parameters
    ----------
    parts : sequence of LearnedPart, not empty
    ridge : float, lambda > 0
    """

    room_weight = 1.0
    refinements = 2
    splits_steps = True
    look_every = 1.0

    def __init__(self, parts: Sequence[LearnedPart], ridge: float) -> None:
        self.parts, self.ridge = parts, ridge
        starts = [part.start() for part in parts]
        self._start = np.concatenate([x.ravel() for x, _ in starts])
        self._first_barrier = max(mu for _, mu in starts)
        self._shapes = [x.shape for x, _ in starts]
        ends = np.cumsum([x.size for x, _ in starts]).tolist()
        self._entries = [slice(end - x.size, end) for end, (x, _) in zip(ends, starts, strict=True)]
        node_ends = np.cumsum([part.n_nodes for part in parts]).tolist()
        self._nodes = [
            slice(end - part.n_nodes, end) for end, part in zip(node_ends, parts, strict=True)
        ]
        self.n_nodes: int = node_ends[-1]
        self.allowed: BoolArray = np.ones(len(self._start), dtype=np.bool_)
        self.observed: FloatArray = np.zeros(parts[0].n_features)
        self._dual = LearningDual(self.observed, ridge)
        self._at: tuple[FloatArray, list[FloatArray]] = (np.empty(0), [])

    def tolerance(self, value: float) -> float:
        """Return 0: the caller decides when to stop."""
        return 0.0

    def start(self) -> tuple[FloatArray, float]:
        """Return the centres of all parts, and the largest of their first mu."""
        return self._start.copy(), self._first_barrier

    def gradient(self, x: FloatArray) -> FloatArray:
        """Return W + grad H."""
        return self._each(x, lambda part, own: part.gradient(own))

    def curvature(self, x: FloatArray) -> FloatArray:
        """Return minus the diagonal of the Hessian of H."""
        return self._each(x, lambda part, own: part.curvature(own))

    def bordered(
        self, x: FloatArray, rate: FloatArray, member: FloatArray, slack: FloatArray
    ) -> Solve | None:
        """Return the solve of all parts' sums, one part after the other."""
        solves = [
            part.bordered(own, own_rate, np.empty((0, part.n_nodes)), slack)
            for part, own, own_rate in zip(
                self.parts, self._split(x), self._split(rate), strict=True
            )
        ]

        def solve(right: FloatArray) -> FloatArray | None:
            found = []
            for one, nodes in zip(solves, self._nodes, strict=True):
                solved = None if one is None else one(right[nodes])
                if solved is None:
                    return None
                found.append(solved)
            return np.concatenate(found)

        return None if any(one is None for one in solves) else solve

    def missing(self, x: FloatArray) -> FloatArray:
        """Return 1 less the sums at nodes, (n,)."""
        return self._each(x, lambda part, own: part.missing(own))

    def sums(self, values: FloatArray) -> FloatArray:
        """Return the sums at nodes, (n,)."""
        return self._each(values, lambda part, own: part.sums(own))

    def inside(self, member: FloatArray, values: FloatArray) -> FloatArray:
        """Return no sums: there are no odd sets."""
        return np.zeros(len(member))

    def spread(self, nu: FloatArray, member: FloatArray, multipliers: FloatArray) -> FloatArray:
        """Return the multipliers that apply to every entry."""
        none = np.empty(0)
        return np.concatenate(
            [
                part.spread(nu[nodes], member, none).ravel()
                for part, nodes in zip(self.parts, self._nodes, strict=True)
            ]
        )

    def room_above(self, x: FloatArray, move: FloatArray) -> float:
        """Return the largest step that keeps entries below 1."""
        pairs = zip(self.parts, self._split(x), self._split(move), strict=True)
        return min(part.room_above(own, own_move) for part, own, own_move in pairs)

    def settle(self, x: FloatArray) -> FloatArray:
        """Return x with positive entries, those near 1 the remainders of their sums."""
        return self._each(x, lambda part, own: part.settle(own))

    def find_tight(self, member: FloatArray) -> BoolArray:
        """Return False for every set."""
        return np.zeros(len(member), dtype=np.bool_)

    def weigh(self, theta: FloatArray) -> None:
        """Use the scores A theta from now on."""
        for part in self.parts:
            part.weigh(theta)

    def scores_of(self, theta: FloatArray) -> FloatArray:
        """Return A theta in the shape of a point."""
        return np.concatenate([part.scores_of(theta).ravel() for part in self.parts])

    def statistics(self, values: FloatArray) -> FloatArray:
        """Return phi, shape (K,)."""
        pairs = zip(self.parts, self._split(values), strict=True)
        return np.asarray(np.sum([part.statistics(own) for part, own in pairs], axis=0))

    def border(self, rate: FloatArray, member: FloatArray) -> FloatArray:
        """Return B diag(rate) A, shape (n, K)."""
        pairs = zip(self.parts, self._split(rate), strict=True)
        return np.concatenate([part.border(own) for part, own in pairs])

    def information(self, rate: FloatArray) -> FloatArray:
        """Return A^T diag(rate) A, (K, K)."""
        pairs = zip(self.parts, self._split(rate), strict=True)
        return np.asarray(np.sum([part.information(own) for part, own in pairs], axis=0))

    def judge(self, state: BarrierState, *, is_last: bool) -> BarrierSolution:
        """Return minus the bounds of learning, with the theta of the better lower bound."""
        pieces = [
            part.close(own) for part, own in zip(self.parts, self._split(state.x), strict=True)
        ]
        pairs = zip(self.parts, pieces, strict=True)
        phi = np.sum([part.statistics(closed) for part, (closed, _) in pairs], axis=0)
        objective = self._dual.dual_value(phi, sum(entropy for _, entropy in pieces))
        candidates = [self._dual.parameters(phi), state.theta]
        lowers = []
        for theta in candidates:
            self.weigh(theta)
            bound = sum(
                part.bound(closed, state.nu[nodes])
                for part, (closed, _), nodes in zip(self.parts, pieces, self._nodes, strict=True)
            )
            lowers.append(self._dual.primal_value(theta, bound))
        best = int(np.argmax(lowers))
        following = replace(state, theta=candidates[best])
        return BarrierSolution(state.x, -objective, -lowers[best], NO_SETS, following)

    def _split(self, x: FloatArray) -> list[FloatArray]:
        """Return views of the parts; the last point's are kept, as parts keep what it implies."""
        if self._at[0] is x:
            return self._at[1]
        views = [
            x[own].reshape(shape) for own, shape in zip(self._entries, self._shapes, strict=True)
        ]
        self._at = x, views
        return views

    def _each(
        self, x: FloatArray, compute: Callable[[LearnedPart, FloatArray], FloatArray]
    ) -> FloatArray:
        pairs = zip(self.parts, self._split(x), strict=True)
        return np.concatenate([compute(part, own).ravel() for part, own in pairs])
