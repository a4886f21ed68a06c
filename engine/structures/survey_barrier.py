"""Past years as one polytope of the barrier method, which learns their weights with the marginals.

Pairs of students of different years are excluded, so that several years are one dense group whose
parts share theta. ``engine.solvers.barrier`` has the steps.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from engine.core.arguments import FloatArray, IntArray
from engine.core.progress import StopCallback
from engine.inference.matching.interior import DensePolytope
from engine.inference.matching.odd_sets import EXACT_UP_TO
from engine.objectives.learning_dual import LearningDual
from engine.solvers.barrier import BarrierSolution, BarrierState
from engine.structures.survey import (
    SurveyStructure,
    outer_products,
    row_statistics,
    set_statistics,
)

INTERIOR_SHARE = 0.01
"""Share of the uniform point in the start, which is the observed matching for the rest."""

FIRST_COST = 0.02
"""Cost of the first barrier, nats: with more, weights first grow far beyond their optimum."""

FIRST_COST_OF_ROOM = 1e-4
"""Cost of a set's room in the first barrier, nats: with less, steps stop short at active sets."""

LEFT_OUT = 0.01
"""Sum of the rates that the information leaves out, as a share of lambda; refinement adds them."""


@dataclass(frozen=True, slots=True)
class JointProof:
    """Odd sets of all years; the value counts points mixed until every set is satisfied."""

    violated: tuple[IntArray, ...]
    holds: bool = True

    def share_of_interior(self, n_nodes: int) -> float:
        """Return 0: the value counts the mixture."""
        return 0.0


class SurveyPolytope(DensePolytope):
    """Points of several years, with their weights; see ``WeightedPolytope``.

    Parameters
    ----------
    years : sequence of SurveyStructure, of the same features and rho.
    ridge : float, lambda > 0
    accuracy : float, target gap of the objective of learning, relative to values above 1.
    should_stop : called within long examinations.

    Notes
    -----
    A step costs O(n^2 Q^2 / 4 + n^3 + n K^2 + K^3), n students of all years together.
    """

    def __init__(
        self,
        years: Sequence[SurveyStructure],
        ridge: float,
        accuracy: float,
        should_stop: StopCallback,
    ) -> None:
        sizes = [year.n_students for year in years]
        ends = np.cumsum(sizes)
        self.years = [
            (year, slice(int(end) - size, int(end)))
            for year, size, end in zip(years, sizes, ends, strict=True)
        ]
        n = int(ends[-1])
        scores = np.full((n, n), -np.inf)
        for _, own in self.years:
            scores[own, own] = 0.0
        rho = np.full(n, years[0].rho)
        super().__init__(scores, rho, accuracy, EXACT_UP_TO, should_stop)
        self._first_mu = FIRST_COST / sum(size * (size - 1) // 2 for size in sizes)
        self.room_weight = max(FIRST_COST_OF_ROOM / self._first_mu, 1.0)
        self.ridge = ridge
        self.observed: FloatArray = np.sum([year.observed for year in years], axis=0)
        self._dual = LearningDual(self.observed, ridge)
        self._features = years[0].features
        self._codes = np.concatenate([year.codes for year in years])
        self._one_hot = np.concatenate([year.one_hot for year in years])

    def start(self) -> tuple[FloatArray, float]:
        """Return the observed matchings, moved inside, and a first mu."""
        x = np.zeros(self.allowed.shape)
        for year, own in self.years:
            point = year.start
            year.labels.move(point, 1.0 - INTERIOR_SHARE)
            x[own, own] = point
        return self.settle(x), self._first_mu

    def weigh(self, theta: FloatArray) -> None:
        """Use the scores A theta from now on."""
        self.scores = self.scores_of(theta)

    def scores_of(self, theta: FloatArray) -> FloatArray:
        """Return A theta, (n, n), 0 at excluded pairs."""
        left = self._one_hot @ self._features.block_matrix(theta)
        scores = left @ self._one_hot.T
        return np.where(self.allowed, (scores + scores.T) / 2.0, 0.0)

    def statistics(self, values: FloatArray) -> FloatArray:
        """Return phi, shape (K,)."""
        return self._features.statistics(self._one_hot.T @ (values @ self._one_hot))

    def border(self, rate: FloatArray, member: FloatArray) -> FloatArray:
        """Return the statistics of the pairs of every student and every set, (n + m, K)."""
        features, codes = self._features, self._codes
        of_sets = [
            set_statistics(features, codes, rate, np.flatnonzero(row))[None] for row in member
        ]
        return np.concatenate([row_statistics(features, codes, rate), *of_sets])

    def information(self, rate: FloatArray) -> FloatArray:
        """Return F^T diag(rate) F, (K, K), without negligible rates."""
        smallest = LEFT_OUT * self.ridge / rate.size
        rate = np.where(np.abs(rate) > smallest, rate, 0.0)
        return outer_products(self._features, self._codes, rate)

    def judge(self, state: BarrierState, *, is_last: bool) -> BarrierSolution:
        """Return the solution that a state proves: minus the bounds of the objective of learning.

        The bound is that of the state's theta, the value that of points inside the polytopes.
        """
        parts, violated = [], []
        for year, own in self.years:
            nodes = np.arange(own.start, own.stop)
            is_own = state.member[:, own].any(axis=1)
            group = DensePolytope(
                year.scores(state.theta),
                self.rho[own],
                self.accuracy,
                self.exact_up_to,
                self.should_stop,
            )
            part = replace(
                state,
                x=state.x[own, own],
                nu=state.nu[own],
                member=state.member[is_own, own],
                multipliers=state.multipliers[is_own],
            )
            found = group.judge(part, is_last=is_last)
            violated += [nodes[inside] for inside in found.proof.violated]
            parts.append(
                year.as_inner(found.x, found.value, found.upper_bound, found.proof, state.theta)
            )
        mixed = [part.certified_point for part in parts]
        phi = np.sum([statistics for statistics, _ in mixed], axis=0)
        objective = self._dual.dual_value(phi, sum(entropy for _, entropy in mixed))
        lower = self._dual.primal_value(state.theta, sum(part.log_partition for part in parts))
        return BarrierSolution(state.x, -objective, -lower, JointProof(tuple(violated)), state)
