"""Interior-point method for assignment problems with fixed scores or with features.

    max over doubly stochastic tau of <W, tau> + sum_ij c (1 - tau) log(1 - tau) - tau log tau

for any c = rho_i + rho_j - 1 up to 1; ``engine.solvers.barrier_path`` has the steps. Bounds are
computed from the present point or multipliers, converged or not.
"""

from dataclasses import dataclass, field, replace

import numpy as np
from scipy.special import xlogy

from engine.core.arguments import FloatArray
from engine.core.errors import StoppedError
from engine.core.progress import StopCallback, never_stop
from engine.core.status import Status
from engine.core.tolerances import TOLERANCES
from engine.inference.matching.bipartite_margins import Margins, inner_product
from engine.inference.matching.bipartite_points import (
    bound_from_point,
    bracket_value,
    complement,
    round_to_doubly_stochastic,
)
from engine.inference.matching.newton_path import Ascent
from engine.kernels.simplex_entropy import sum_of_maxima
from engine.solvers.barrier_path import BarrierPath

MAX_STEPS = 150
"""Maximum number of steps: some 25 suffice at deviations of 1,000 nats if rounding allows."""

REFINEMENTS = 3
"""Refinements of a step's multipliers, whose sums must vanish beside entries of 1."""

LAST_BARRIER = 1e-5
"""Cost of the barrier, as a share of the target gap, below which the method stops."""

CENTRALITY = 1e3
"""Largest factor between slacks and mu / tau."""


@dataclass(slots=True)
class AssignmentInterior:
    """One assignment problem with its present point; see ``BarrierPart``.

    Parameters
    ----------
    scores : ndarray, shape (n, n), nats, n at least 2; fixed, those of features are added
    counts : ndarray, shape (n, n), c
    features : ndarray, shape (n, n, K), less those of the row's observed pair

    ``closed`` is a doubly stochastic point near tau; ``columns`` (n,) are multipliers of columns
    at the target theta of the last step.
    """

    scores: FloatArray
    counts: FloatArray
    features: FloatArray
    tau: FloatArray = field(init=False)
    closed: FloatArray = field(init=False)
    slack: FloatArray = field(init=False)
    columns: FloatArray | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        n = len(self.scores)
        self.tau = self.closed = np.full((n, n), 1.0 / n)
        self.slack = np.zeros((n, n))

    @property
    def n_entries(self) -> int:
        """Number of entries of the point, n^2."""
        return int(self.tau.size)

    def statistics(self) -> FloatArray:
        """Return phi(tau) - phi(Y), shape (K,)."""
        return self.statistics_of(self.tau)

    def statistics_of(self, tau: FloatArray) -> FloatArray:
        """Return phi(tau) - phi(Y) of any point, shape (K,)."""
        return np.asarray(np.tensordot(tau, self.features, axes=2))

    def scores_at(self, theta: FloatArray) -> FloatArray:
        """Return all scores at theta, (n, n)."""
        return np.asarray(self.scores + self.features @ theta)

    def first_barrier(self, theta: FloatArray) -> float:
        """Return the deviation of the scores over n, at least 1 / n."""
        return max(float(np.std(self.scores_at(theta))), 1.0) / len(self.tau)

    def move(self, theta: FloatArray, barrier: float) -> "AssignmentMove | None":
        """Return the Newton system, None if it is singular in floating point."""
        if not self.slack.any():  # the first step
            self.slack = barrier / self.tau
        try:
            return AssignmentMove(self, self.scores_at(theta), barrier)
        except np.linalg.LinAlgError:
            return None

    def close(self) -> tuple[FloatArray, float]:
        """Round tau to a doubly stochastic point; return its phi - phi(Y) and its entropy."""
        self.closed = round_to_doubly_stochastic(self.tau)
        entropy, _ = bracket_value(np.zeros(self.tau.shape), self.counts, self.closed)
        return self.statistics_of(self.closed), entropy

    def bound(self, theta: FloatArray) -> float:
        """Return an upper bound of log Z_rho by the tangent at the last closed point."""
        return bound_from_point(self.scores_at(theta), self.counts, self.closed)

    def bound_by_multipliers(self, theta: FloatArray) -> float:
        """Return an upper bound by the multipliers of columns, inf unless every c is 1.

        log Z <= sum_j z_j + sum_i max over the simplex of <W_i - z, x> + S(x), at any z.
        """
        if self.columns is None or not (self.counts == 1.0).all():
            return np.inf
        scores = np.ascontiguousarray(self.scores_at(theta) - self.columns)
        size = float(np.abs(self.columns).sum() + np.abs(scores).max(axis=1).sum())
        best = 2.0 * sum_of_maxima(scores / 2.0)
        return float(self.columns.sum()) + best + TOLERANCES.rounding * (size + len(scores))


@dataclass(slots=True)
class AssignmentMove:
    """Newton step of one assignment problem; see ``Move``."""

    part: AssignmentInterior
    scores: FloatArray
    barrier: float
    pull: FloatArray = field(init=False)
    curvature: FloatArray = field(init=False)
    _rates: FloatArray = field(init=False)
    _gradient: FloatArray = field(init=False)
    _margins: Margins = field(init=False)
    _direction: FloatArray = field(init=False)
    _slack_step: tuple[FloatArray, FloatArray] = field(init=False)

    def __post_init__(self) -> None:
        part, tau = self.part, self.part.tau
        rest = complement(tau)
        gradient = self.scores - part.counts * (1.0 + np.log(rest)) - np.log(tau)
        self._gradient = gradient + self.barrier / tau
        self._rates = tau * rest / ((1.0 + part.slack) * rest - part.counts * tau)
        self._margins = Margins(tau, self._rates)
        weighted = self._rates[:, :, None] * part.features
        sums = self._margins.sums(weighted)
        of_gradient = self._margins.solve(self._margins.targets(self._rates * self._gradient))
        self.pull = (
            np.tensordot(self._gradient, weighted, axes=2) - inner_product(sums, of_gradient)[:, 0]
        )
        flat = (part.n_entries, part.features.shape[2])
        products = part.features.reshape(flat).T @ weighted.reshape(flat)
        self.curvature = products - self._margins.explained(sums)

    def finish(self, change: FloatArray) -> tuple[float, float]:
        """Fix the step for a change of theta; return the promised rise and the largest step."""
        part, of_features = self.part, self.part.features @ change
        reduced = self._gradient + of_features
        columns = np.zeros(len(reduced))
        direction = self._rates * reduced
        for _ in range(REFINEMENTS):
            multipliers = self._margins.solve(self._margins.targets(direction))
            reduced = reduced - self._margins.spread(multipliers)
            columns -= multipliers[1][:, 0]
            direction = self._rates * reduced
        self._margins.close_rows(direction)
        part.columns = columns
        self._direction = direction
        slack = part.slack
        of_slack = (self.barrier - part.tau * slack - slack * direction) / part.tau
        self._slack_step = slack, of_slack
        rise = float((reduced * direction).sum() - (of_features * direction).sum())
        return rise, _room(part.tau, direction)

    def flow(self) -> FloatArray:
        """Return phi of the fixed step, shape (K,)."""
        return self.part.statistics_of(self._direction)

    def value(self, step: float) -> float:
        """Return <W, tau> + H + mu sum log tau without features' scores, -inf outside."""
        tau, part = self.part.tau + step * self._direction, self.part
        rest = complement(tau)
        if tau.min() <= 0.0 or rest.min() <= 0.0:
            return -np.inf
        entropy = (part.counts * xlogy(rest, rest)).sum() - xlogy(tau, tau).sum()
        return float((part.scores * tau).sum() + entropy + self.barrier * np.log(tau).sum())

    def statistics(self, step: float) -> FloatArray:
        """Return phi after a step, shape (K,)."""
        return self.part.statistics_of(self.part.tau + step * self._direction)

    def take(self, step: float) -> None:
        """Move tau by a share of the step; slacks move as far as they may."""
        part, (slack, of_slack) = self.part, self._slack_step
        part.tau = part.tau + step * self._direction
        central = self.barrier / part.tau
        slack = slack + min(1.0, TOLERANCES.to_the_boundary * _room(slack, of_slack)) * of_slack
        part.slack = np.clip(slack, central / CENTRALITY, central * CENTRALITY)


def maximise_inside(
    scores: FloatArray,
    counts: FloatArray,
    tolerance: float,
    should_stop: StopCallback = never_stop,
) -> Ascent:
    """Maximise <W, tau> + H(tau) over doubly stochastic tau, from the centre.

    Parameters
    ----------
    scores, counts : ndarray, shape (n, n), n at least 2
    tolerance : float, nats, target certified gap

    Raises
    ------
    StoppedError
        If ``should_stop`` returned True.

    Notes
    -----
    O(n^3) a step, 15 to 40 steps at any deviation of the scores.
    """
    part, theta = AssignmentInterior(scores, counts, np.zeros((*scores.shape, 0))), np.zeros(0)
    path = BarrierPath([part], 1.0)
    best = Ascent(part.tau, -np.inf, np.inf, 0, Status.STALLED)
    for steps in range(1, MAX_STEPS + 1):
        if should_stop():
            raise StoppedError("Cancelled.")
        is_last = not path.step() or steps == MAX_STEPS
        cost = path.barrier * part.n_entries
        if cost > tolerance and not is_last:
            continue
        part.close()
        value, _ = bracket_value(scores, counts, part.closed)
        if value > best.value:
            best = replace(best, point=part.closed, value=value)
        bound = min(best.upper_bound, part.bound(theta), part.bound_by_multipliers(theta))
        best = replace(best, upper_bound=bound, steps=steps)
        if bound - best.value <= tolerance:
            return replace(best, status=Status.CONVERGED)
        if is_last or cost <= LAST_BARRIER * tolerance:
            break
    return best


def _room(at: FloatArray, direction: FloatArray) -> float:
    """Return the largest step that keeps every entry above 0."""
    return 1.0 / max(float((-direction / at).max()), TOLERANCES.tiny)
