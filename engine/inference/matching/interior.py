"""Matching polytope of a dense group for the barrier method: slower than others, but never stalls.

It takes over where the continuation of ``newton`` stalls: if almost only each other's pairs leave
two odd sets, or a marginal is below the smallest number, the tight conditions do not determine the
multipliers. ``barrier`` has the steps, in arrays (n, n); every odd cut is examined here.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dgetrf, dgetrs

from engine.core.arguments import BoolArray, FloatArray, IntArray
from engine.core.progress import StopCallback, never_stop
from engine.core.tolerances import TOLERANCES
from engine.inference.matching.messages import scale_to_rows
from engine.inference.matching.newton import NewtonPoint
from engine.inference.matching.odd_sets import EXACT_SOON, examine_odd_sets
from engine.inference.matching.polytope_bound import bound_value
from engine.kernels.matching_potentials import SURE
from engine.solvers.barrier import (
    LOOK_EVERY,
    BarrierSolution,
    BarrierState,
    Proof,
    Solve,
    largest_step,
    solve_by_barrier,
)

RARE = 1e-3  # entries below are raised before a point is evaluated
MOST_RAISED = 2.3  # nats by which an entry is raised at most: tenfold
NEARLY = 10.0  # times the target gap: below, all odd cuts are examined


@dataclass(frozen=True, slots=True)
class InteriorSolution:
    """Interior point of the polytope with the closest bound.

    Parameters
    ----------
    tau : ndarray, shape (n, n), symmetric with row sums 1.
    value : float, <W, tau> + H_rho(tau), nats.
    upper_bound : float, certified, of the maximum over the matching polytope.
    proof : Proof, of tau.
    point : NewtonPoint, potentials and multipliers at the point.
    steps : int, linear systems solved.
    """

    tau: FloatArray
    value: float
    upper_bound: float
    proof: Proof
    point: NewtonPoint
    steps: int

    @property
    def gap(self) -> float:
        """Return the difference of the bounds, relative to values above 1."""
        return (self.upper_bound - self.value) / max(1.0, abs(self.value))


def solve_from_inside(
    scores: FloatArray,
    rho: FloatArray,
    accuracy: float,
    *,
    exact_up_to: int,
    known: tuple[IntArray, ...] = (),
    should_stop: StopCallback = never_stop,
) -> InteriorSolution:
    """Maximise <W, tau> + H_rho(tau) over the matching polytope of a dense graph.

    Parameters
    ----------
    scores : ndarray, shape (n, n), symmetric, nats; -inf excludes a pair.
    rho : ndarray, shape (n,), reweighting in [0, 1].
    accuracy : float, target gap, relative to values above 1.
    known : tuple of ndarray, odd sets that may bind: sets found during the search cost steps.
    exact_up_to : int, most nodes for which all odd cuts are examined if nothing else proves them.
    should_stop : called before every step.

    Raises
    ------
    StoppedError
        If ``should_stop`` returned True.

    Notes
    -----
    O(n^3) a step, ten arrays (n, n).
    """
    polytope = DensePolytope(scores, rho, accuracy, exact_up_to, should_stop)
    found = solve_by_barrier(polytope, known, should_stop)
    point = polytope.dual(found.state)
    return InteriorSolution(
        found.x, found.value, found.upper_bound, found.proof, point, found.steps
    )


class DensePolytope:
    """Perfect matchings of a dense graph; see ``engine.solvers.barrier.Polytope``."""

    room_weight = 1.0
    refinements = 0
    splits_steps = False
    look_every = LOOK_EVERY

    def __init__(
        self,
        scores: FloatArray,
        rho: FloatArray,
        accuracy: float,
        exact_up_to: int,
        should_stop: StopCallback,
    ) -> None:
        self.asked, self.rho, self.accuracy = scores, rho, accuracy
        self.exact_up_to, self.should_stop = exact_up_to, should_stop
        self.allowed: BoolArray = (scores > -np.inf) & ~np.eye(len(rho), dtype=np.bool_)
        self.scores = np.where(self.allowed, scores, 0.0)
        self.counts = rho[:, None] + rho[None, :] - 1.0
        self._at: tuple[FloatArray, FloatArray] = (np.empty(0), np.empty(0))

    @property
    def n_nodes(self) -> int:
        """Number of nodes n."""
        return len(self.rho)

    def tolerance(self, value: float) -> float:
        """Return the target gap in nats."""
        return self.accuracy * max(1.0, abs(value))

    def start(self) -> tuple[FloatArray, float]:
        """Return scaled equal marginals and a first mu."""
        tau, _ = scale_to_rows(np.where(self.allowed, 1.0 / (self.n_nodes - 1), 0.0))
        tau = np.where(self.allowed, np.maximum(tau, 1e-6), 0.0)
        return tau, max(float(np.abs(self.scores).max()), 1.0) / self.n_nodes

    def gradient(self, x: FloatArray) -> FloatArray:
        """Return W + grad H, of any value at excluded pairs."""
        safe, rest = np.where(self.allowed, x, 1.0), self._rest(x)
        return np.asarray(self.scores - self.counts * (1.0 + np.log(rest)) - 1.0 - np.log(safe))

    def curvature(self, x: FloatArray) -> FloatArray:
        """Return 1 / tau - c / (1 - tau)."""
        return np.asarray(1.0 / np.where(self.allowed, x, 1.0) - self.counts / self._rest(x))

    def _matrix(self, rate: FloatArray, member: FloatArray) -> FloatArray:
        """Return B diag(rate) B^T, (n + m, n + m)."""
        n, m = self.n_nodes, len(member)
        matrix = np.empty((n + m, n + m))
        matrix[:n, :n] = rate
        matrix[np.arange(n), np.arange(n)] += rate.sum(axis=1)
        matrix[n:, :n] = member * (member @ rate)
        matrix[:n, n:] = matrix[n:, :n].T
        for k in range(m):
            nodes = np.flatnonzero(member[k])
            both = member[:, nodes]
            matrix[n + k, n:] = ((both @ rate[np.ix_(nodes, nodes)]) * both).sum(axis=1) / 2.0
        return matrix

    def bordered(
        self, x: FloatArray, rate: FloatArray, member: FloatArray, slack: FloatArray
    ) -> Solve | None:
        """Return the solve of the scaled symmetric system, by least squares if it is singular."""
        matrix, places = self._matrix(rate, member), self.n_nodes + np.arange(len(member))
        matrix[places, places] += slack
        scale = 1.0 / np.sqrt(np.maximum(np.abs(matrix).max(axis=1), TOLERANCES.smallest_entry))
        scaled = matrix * scale[:, None] * scale
        if not np.isfinite(scaled).all():
            return None
        factor, pivots, failure = dgetrf(scaled)

        def solve(right: FloatArray) -> FloatArray | None:
            wanted = (right.T * scale).T
            if not np.isfinite(wanted).all():
                return None
            found, _ = dgetrs(factor, pivots, wanted)
            if failure or not np.isfinite(found).all():
                found = np.linalg.lstsq(scaled, wanted, rcond=1e-14)[0]
            return np.asarray((found.T * scale).T)

        return solve

    def sums(self, values: FloatArray) -> FloatArray:
        """Return the row sums, (n,)."""
        return np.asarray(values.sum(axis=1))

    def inside(self, member: FloatArray, values: FloatArray) -> FloatArray:
        """Return the sum over the pairs inside every set, shape (m,)."""
        return np.asarray(((member @ values) * member).sum(axis=1) / 2.0)

    def spread(self, nu: FloatArray, member: FloatArray, multipliers: FloatArray) -> FloatArray:
        """Return nu_i + nu_j and the multipliers of the sets that contain a pair, (n, n)."""
        return np.asarray(nu[:, None] + nu + (member.T * multipliers) @ member)

    def room_above(self, x: FloatArray, move: FloatArray) -> float:
        """Return the largest step that keeps every pair below 1."""
        return largest_step(self._rest(x), -move)

    def find_tight(self, member: FloatArray) -> BoolArray:
        """Return False for every set: many pairs leave each."""
        return np.zeros(len(member), dtype=np.bool_)

    def dual(self, state: BarrierState) -> NewtonPoint:
        """Return the potentials and multipliers of a state."""
        return NewtonPoint(
            self.asked, state.nu + self.rho, sets=state.sets, multipliers=state.multipliers
        )

    def judge(self, state: BarrierState, *, is_last: bool) -> BarrierSolution:
        """Return the solution that a state proves.

        All odd cuts of many nodes, which take longer than everything else, are examined only if the
        gap is nearly closed.
        """
        tau, residual = scale_to_rows(state.x, self.should_stop)
        dual = self.dual(state)
        value, bound = bound_value(self.asked, self.rho, tau, residual, dual)
        raised, residual = scale_to_rows(self._raise_rare(state), self.should_stop)
        _, other = bound_value(self.asked, self.rho, raised, residual, dual)
        bound = min(bound, other)
        is_near = is_last or bound - value <= NEARLY * self.tolerance(value)
        looked_at = self.exact_up_to if is_near else min(self.exact_up_to, EXACT_SOON)
        proof = examine_odd_sets(tau, exact_up_to=looked_at, should_stop=self.should_stop)
        return BarrierSolution(tau, value, bound, proof, state)

    def _raise_rare(self, state: BarrierState) -> FloatArray:
        """Return tau with small entries raised to the values that their duals imply.

        A step that removes most of a small entry removes too much: its logarithm falls by more than
        the linear model predicts. The sum of such entries is negligible, but one pair's gradient
        above 0 costs the bound as much as a likely pair's.
        """
        tau = state.x
        excess = self.gradient(tau) - self.spread(state.nu, state.member, state.multipliers)
        rises = self.allowed & (tau < RARE) & (excess > 0.0)
        return np.asarray(tau * np.exp(np.where(rises, np.minimum(excess, MOST_RAISED), 0.0)))

    def _rest(self, tau: FloatArray) -> FloatArray:
        """Return 1 - tau, for pairs near 1 as the sum of their first node's other entries.

        A step needs it several times at one point, so that the last result is kept.
        """
        if self._at[0] is tau:
            return self._at[1]
        spare = np.where(tau > SURE, 0.0, tau).sum(axis=1)
        first = np.minimum(np.arange(len(tau))[:, None], np.arange(len(tau)))
        rest = np.where(tau > SURE, np.maximum(spare[first], TOLERANCES.smallest_entry), 1.0 - tau)
        self._at = tau, rest
        return rest

    def missing(self, tau: FloatArray) -> FloatArray:
        """Return 1 less the row sums, from the small entries alone beside a pair near 1."""
        likely = tau > SURE
        missing = 1.0 - tau.sum(axis=1)
        spare = np.where(likely, 0.0, tau).sum(axis=1)
        first, second = np.nonzero(np.triu(likely))
        missing[first] = 0.0
        missing[second] = spare[first] - spare[second]
        return np.asarray(missing)

    def settle(self, tau: FloatArray) -> FloatArray:
        """Set every pair near 1 to the remainder of its first node's sum."""
        tau = np.where(
            self.allowed, np.maximum((tau + tau.T) / 2.0, TOLERANCES.smallest_entry), 0.0
        )
        spare = np.where(tau > SURE, 0.0, tau).sum(axis=1)
        first, second = np.nonzero(np.triu(tau > SURE))
        tau[first, second] = tau[second, first] = 1.0 - spare[first]
        return tau
