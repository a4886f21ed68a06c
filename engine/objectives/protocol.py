"""What a solver of the learning problem asks of one observation, and nothing more.

A *block* is one observation (X^m, Y^m): a polytope T_m with a concave entropy H_rho and the
linear statistics phi^m. Solvers never look into a point or a vertex: they hold them and hand
them back, so that a matching may keep its vertices as partner lists, a dense cohort its
pseudomarginals as a triangle, and an image grid its node and edge tables as a tuple.
"""

from dataclasses import dataclass
from typing import Any, Protocol

from engine.core.arguments import FloatArray
from engine.core.checkpoint import SavedState, State

Point = Any  # a point of T_m in the layout that the block chose
Vertex = Any  # an extreme point of T_m in the layout that its oracle returns


@dataclass(frozen=True, slots=True)
class ExtremeDirection:
    """The oracle's answer at one point of one block.

    Parameters
    ----------
    vertex : the extreme point s that maximises <s, A theta + grad H(tau)>.
    statistics : ndarray, shape (K,), phi(s).
    gap : float, nats
        Certified upper bound of <s - tau, A theta + grad H(tau)> over the polytope: it uses the
        oracle's upper bound, so it stays a certificate when the oracle stopped early.
    """

    vertex: Vertex
    statistics: FloatArray
    gap: float


class Segment(Protocol):
    """The points tau + g d, 0 <= g <= longest, along one direction d of one block."""

    @property
    def longest(self) -> float:
        """The largest step that stays in the polytope: 1 towards a vertex."""

    def entropy(self, step: float) -> tuple[float, float, float]:
        """Return H(tau + g d) with its first and second derivative in g (nats)."""

    def point(self, step: float) -> Point:
        """Return tau + g d. May reuse the memory of tau: the old point is spent afterwards."""


class LearningBlock(Protocol):
    """One observation for the solvers that walk in the polytope (Frank-Wolfe and relatives)."""

    @property
    def observed(self) -> FloatArray:
        """phi(Y), shape (K,)."""

    def initial_point(self) -> Point:
        """Return a point in the relative interior of the polytope."""

    def statistics(self, point: Point) -> FloatArray:
        """Return phi(tau), shape (K,)."""

    def entropy(self, point: Point) -> float:
        """Return H_rho(tau) in nats."""

    def compute_extreme_direction(self, theta: FloatArray, point: Point) -> ExtremeDirection:
        """Answer the linear maximisation at the scores A theta + grad H(tau): one oracle call."""

    def segment(self, point: Point, vertex: Vertex, away: Vertex | None = None) -> Segment:
        """Return the segment from ``point`` with direction vertex - point, or vertex - away."""

    def directional_slope(self, theta: FloatArray, point: Point, vertex: Vertex) -> float:
        """Return <s - tau, A theta + grad H(tau)> for a given vertex s (nats)."""

    def pack(self, point: Point) -> State:
        """Return the arrays from which ``unpack`` restores the point, for checkpoints."""

    def unpack(self, state: SavedState) -> Point:
        """Restore a point from ``pack``."""


@dataclass(frozen=True, slots=True)
class InnerSolution:
    """The answer to one inner maximisation: max over tau of <theta, phi(tau)> + H_rho(tau).

    Parameters
    ----------
    log_partition : float, nats
        Certified *upper* bound of log Z_rho(theta).
    statistics : ndarray, shape (K,), phi(tau) of a point tau of the polytope.
    entropy : float, H_rho(tau) of that point, nats.
    sweeps : int, passes over the observation that the inner solver needed.
    is_feasible : bool
        Whether tau was proved to lie in the polytope; if not, L(tau) is an estimate only.
    state : dict of arrays, from which the next call starts warm.
    """

    log_partition: float
    statistics: FloatArray
    entropy: float
    sweeps: int
    is_feasible: bool
    state: State


class InnerProblem(Protocol):
    """One observation for the solve in theta."""

    @property
    def observed(self) -> FloatArray:
        """phi(Y), shape (K,)."""

    def solve(self, theta: FloatArray, state: State | None, accuracy: float) -> InnerSolution:
        """Maximise <theta, phi(tau)> + H_rho(tau) from a warm state.

        ``accuracy`` (nats) is the wanted difference between ``log_partition`` and the value at
        the returned point; a solver that cannot reach it returns its best, never a wrong bound.
        """

    def curvature(self, theta: FloatArray, state: State) -> FloatArray:
        """Return an estimate of the Hessian of log Z_rho at theta, shape (K, K), or zeros.

        It only shapes the steps: a poor estimate costs iterations, never correctness.
        """
