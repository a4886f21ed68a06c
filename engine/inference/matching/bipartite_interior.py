"""Assignment problems for the barrier method, with fixed scores or with features.

    max over doubly stochastic tau of <W, tau> + sum_ij c (1 - tau) log(1 - tau) - tau log tau

for any c = rho_i + rho_j - 1 up to 1; ``engine.solvers.barrier`` has the steps. A bipartite graph
has no odd sets that bind. Bounds are computed from the present point or multipliers, converged or
not.
"""

from dataclasses import dataclass, field

import numpy as np

from engine.core.arguments import BoolArray, FloatArray
from engine.core.progress import StopCallback, never_stop
from engine.core.status import Status
from engine.core.tolerances import TOLERANCES
from engine.inference.matching.bipartite_margins import Margins
from engine.inference.matching.bipartite_points import (
    bound_from_point,
    bracket_value,
    complement,
    excess,
    round_to_doubly_stochastic,
)
from engine.inference.matching.newton_ascent import Ascent
from engine.kernels.simplex_entropy import sum_of_maxima
from engine.solvers.barrier import (
    NO_SETS,
    BarrierSolution,
    BarrierState,
    Solve,
    largest_step,
    solve_by_barrier,
)

FIRST_BARRIER = 0.3
"""First mu: a share of the scores' deviation over the number of entries of a row."""

FAR = 3.0
"""Cost of the barrier over the target gap above which a point is not judged."""


@dataclass(slots=True)
class AssignmentPolytope:
    """Doubly stochastic matrices (n, n), n at least 2; see ``engine.solvers.barrier.Polytope``.

    Nodes are rows, then columns.

    Parameters
    ----------
    scores : ndarray, shape (n, n), nats.
    counts : ndarray, shape (n, n), c
    accuracy : float, nats, target certified gap; points that cost more are not judged.
    """

    scores: FloatArray
    counts: FloatArray
    accuracy: float = 0.0
    room_weight: float = field(init=False, default=1.0)
    refinements: int = field(init=False, default=2)
    splits_steps: bool = field(init=False, default=True)
    look_every: float = field(init=False, default=1.0)
    allowed: BoolArray = field(init=False)
    _at: tuple[FloatArray, FloatArray] = field(init=False)

    def __post_init__(self) -> None:
        self.allowed = np.ones(self.scores.shape, dtype=np.bool_)
        self._at = (np.empty(0), np.empty(0))

    @property
    def n_nodes(self) -> int:
        """Number of rows and columns, 2n."""
        return 2 * len(self.scores)

    def tolerance(self, value: float) -> float:
        """Return the target gap in nats."""
        return self.accuracy

    def start(self) -> tuple[FloatArray, float]:
        """Return equal marginals, and a first mu by the deviation of the scores."""
        n = len(self.scores)
        size = max(float(np.std(self.scores)), 1.0)
        return np.full((n, n), 1.0 / n), FIRST_BARRIER * size / n

    def gradient(self, x: FloatArray) -> FloatArray:
        """Return W + grad H."""
        return np.asarray(self.scores - self.counts * (1.0 + np.log(self._rest(x))) - np.log(x) - 1)

    def curvature(self, x: FloatArray) -> FloatArray:
        """Return 1 / tau - c / (1 - tau)."""
        return np.asarray(1.0 / x - self.counts / self._rest(x))

    def bordered(
        self, x: FloatArray, rate: FloatArray, member: FloatArray, slack: FloatArray
    ) -> Solve | None:
        """Return the solve of the sums over rows and columns."""
        try:
            margins = Margins(x, rate)
        except np.linalg.LinAlgError:
            return None

        def solve(right: FloatArray) -> FloatArray | None:
            found = margins.solve_by_node(right)
            return found if np.isfinite(found).all() else None

        return solve

    def missing(self, x: FloatArray) -> FloatArray:
        """Return 1 less the sums of rows and columns, (2n,)."""
        return -excess(x)

    def sums(self, values: FloatArray) -> FloatArray:
        """Return the sums of rows and columns, (2n,)."""
        return np.concatenate([values.sum(axis=1), values.sum(axis=0)])

    def inside(self, member: FloatArray, values: FloatArray) -> FloatArray:
        """Return no sums: there are no odd sets."""
        return np.zeros(len(member))

    def spread(self, nu: FloatArray, member: FloatArray, multipliers: FloatArray) -> FloatArray:
        """Return nu_i + nu_j, (n, n)."""
        n = len(self.scores)
        return np.asarray(nu[:n, None] + nu[n:])

    def room_above(self, x: FloatArray, move: FloatArray) -> float:
        """Return the largest step that keeps every pair below 1."""
        return largest_step(self._rest(x), -move)

    def settle(self, x: FloatArray) -> FloatArray:
        """Set every pair near 1 to the remainder of its row's sum."""
        x = np.maximum(x, TOLERANCES.smallest_entry)
        i, j = np.nonzero(x > 0.5)
        x[i, j] = 0.0
        x[i, j] = 1.0 - x[i].sum(axis=1)
        return x

    def find_tight(self, member: FloatArray) -> BoolArray:
        """Return False for every set."""
        return np.zeros(len(member), dtype=np.bool_)

    def judge(self, state: BarrierState, *, is_last: bool) -> BarrierSolution:
        """Return the bounds of a doubly stochastic point nearby, and of the multipliers."""
        if not is_last and float((state.z * state.x).sum()) > FAR * self.accuracy:
            return BarrierSolution(state.x, -np.inf, np.inf, NO_SETS, state)
        closed, _ = self.close(state.x)
        value, _ = bracket_value(self.scores, self.counts, closed)
        bound = self.bound(closed, state.nu)
        return BarrierSolution(closed, value, max(bound, value), NO_SETS, state)

    def close(self, x: FloatArray) -> tuple[FloatArray, float]:
        """Return a doubly stochastic point nearby, and its entropy, nats."""
        closed = round_to_doubly_stochastic(x)
        entropy, _ = bracket_value(np.zeros(closed.shape), self.counts, closed)
        return closed, entropy

    def bound(self, closed: FloatArray, nu: FloatArray) -> float:
        """Return the smaller upper bound of log Z_rho, by a point's tangent and by multipliers."""
        columns = nu[len(self.scores) :]
        return min(
            bound_from_point(self.scores, self.counts, closed), self.bound_by_multipliers(columns)
        )

    def bound_by_multipliers(self, columns: FloatArray) -> float:
        """Return an upper bound by any multipliers (n,) of columns, inf unless every c is 1.

        log Z <= sum_j z_j + sum_i max over the simplex of <W_i - z, x> + S(x), at any z.
        """
        if not (self.counts == 1.0).all():
            return np.inf
        scores = np.ascontiguousarray(self.scores - columns)
        size = float(np.abs(columns).sum() + np.abs(scores).max(axis=1).sum())
        best = 2.0 * sum_of_maxima(scores / 2.0)
        return float(columns.sum()) + best + TOLERANCES.rounding * (size + len(scores))

    def _rest(self, x: FloatArray) -> FloatArray:
        """Return 1 - tau above 0; keep the last result, which a step needs several times."""
        if self._at[0] is not x:
            self._at = x, np.maximum(complement(x), TOLERANCES.smallest_entry)
        return self._at[1]


class LearnedAssignment(AssignmentPolytope):
    """Assignment problem with features; see ``engine.solvers.barrier_product.LearnedPart``.

    Parameters
    ----------
    counts : ndarray, shape (n, n), c
    features : ndarray, shape (n, n, K), less those of the row's observed pair
    """

    def __init__(self, counts: FloatArray, features: FloatArray) -> None:
        super().__init__(np.zeros(counts.shape), counts)
        self.features = features

    @property
    def n_features(self) -> int:
        """Number of features K."""
        return int(self.features.shape[2])

    def weigh(self, theta: FloatArray) -> None:
        """Use the scores A theta from now on."""
        self.scores = self.scores_of(theta)

    def scores_of(self, theta: FloatArray) -> FloatArray:
        """Return A theta, (n, n)."""
        return np.asarray(self.features @ theta)

    def statistics(self, values: FloatArray) -> FloatArray:
        """Return phi less phi(Y) of a point, shape (K,)."""
        return np.asarray(np.tensordot(values, self.features, axes=2))

    def border(self, rate: FloatArray) -> FloatArray:
        """Return the statistics of the pairs of every row and column, (2n, K)."""
        weighted = rate[:, :, None] * self.features
        return np.concatenate([weighted.sum(axis=1), weighted.sum(axis=0)])

    def information(self, rate: FloatArray) -> FloatArray:
        """Return A^T diag(rate) A, (K, K)."""
        features = self.features.reshape(rate.size, -1)
        return np.asarray(features.T @ (rate.reshape(-1, 1) * features))


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
    found = solve_by_barrier(AssignmentPolytope(scores, counts, tolerance), (), should_stop)
    status = Status.CONVERGED if found.gap <= tolerance else Status.STALLED
    return Ascent(found.x, found.value, found.upper_bound, found.steps, status)
