"""Protocol of a structure, the one kind of observation that learners and inference accept.

A *structure* is one observation (X, Y): a polytope of points tau, given by an oracle that returns
its vertices; a concave entropy H_rho on it; the scores A theta of its entries; and statistics phi,
linear in tau. Points are float64 arrays of any shape, the same for all points of one structure;
vertices are `engine.oracles.protocol.Vertex`. A new kind of problem defines a structure, and every
learner (Frank-Wolfe, perceptron, support vectors) and every inference works on it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Protocol, runtime_checkable

import numpy as np

from engine.core.arguments import FloatArray
from engine.core.errors import InvalidProblemError
from engine.core.progress import StopCallback
from engine.oracles.protocol import LinearMinimizationOracle, Vertex

Point = FloatArray  # a point of the polytope; its shape is the structure's choice
WarmStart = Any  # a class of the structure's own; solvers return it unread
EntropyAlong = Callable[[float], tuple[float, float, float]]  # step g -> H, H', H'' in g (nats)


class Entropy(Protocol):
    """Concave entropy on the polytope, in nats.

    Examples
    --------
    >>> import numpy as np
    >>> from engine.entropies.matching import bipartite_layout, make_matching_entropy
    >>> entropy: Entropy = make_matching_entropy(bipartite_layout(2, 2), 0.5)
    >>> round(entropy.value(np.full((2, 2), 0.5)), 3)
    1.386
    """

    def value(self, point: Point) -> float:
        """Return H(tau)."""

    def gradient(self, point: Point) -> FloatArray:
        """Return dH/dtau, in the shape of tau, as a new array."""

    def along(self, point: Point, vertex: Vertex) -> EntropyAlong:
        """Return the function of g that gives H(tau + g (v - tau)) with its first two derivatives.

        The function may be called only before the point is moved.
        """


class CurvedEntropy(Entropy, Protocol):
    """Entropy for solvers that move along many directions at once.

    Examples
    --------
    >>> from engine.entropies.matching import bipartite_layout, make_matching_entropy
    >>> entropy: CurvedEntropy = make_matching_entropy(bipartite_layout(2, 2), 1.0)
    >>> hasattr(entropy, "curvature_among")
    True
    """

    def curvature_among(self, point: Point, start: Point, vertices: Sequence[Vertex]) -> FloatArray:
        """Return -<a, grad^2 H(tau) b> for every pair of start and vertices, (k + 1, k + 1)."""


class Structure(Protocol):
    """One observation (X, Y): polytope, entropy, scores and statistics.

    Attributes
    ----------
    observed : ndarray, shape (K,), phi(Y).
    start : ndarray, a point in the relative interior of the polytope; solvers copy it.
    oracle : returns a vertex that maximises <v, scores>, with a certified bound.
    entropy : Entropy

    Notes
    -----
    Some learners need more attributes: max-margin learning ``labels``, Y as a Vertex; the solve in
    theta those of ``InnerProblem``; fully corrective Frank-Wolfe a ``CurvedEntropy``.

    Examples
    --------
    >>> import numpy as np
    >>> from engine.crf.bipartite import BipartiteItems
    >>> from engine.structures import BipartiteStructure
    >>> one: Structure = BipartiteStructure(BipartiteItems(np.ones((2, 2, 1))), np.array([0, 1]))
    >>> one.scores(np.array([3.0])).tolist()
    [[3.0, 3.0], [3.0, 3.0]]
    """

    @property
    def observed(self) -> FloatArray:
        """Observed statistics phi(Y), shape (K,)."""

    @property
    def start(self) -> Point:
        """Point in the relative interior of the polytope."""

    @property
    def oracle(self) -> LinearMinimizationOracle:
        """Oracle of linear maximisation over the polytope."""

    @property
    def entropy(self) -> Entropy:
        """Entropy H_rho on the polytope."""

    def scores(self, theta: FloatArray) -> FloatArray:
        """Return A theta in the shape of a point, nats; -inf where an entry is impossible."""

    def statistics(self, at: Point | Vertex) -> FloatArray:
        """Return phi of a point or of a vertex, shape (K,)."""


def check_parts(structures: Sequence[Any], *names: str) -> None:
    """Raise InvalidProblemError naming every attribute that a structure lacks.

    Parameters
    ----------
    structures : sequence
    *names : str
        Attributes that a solver needs, such as ``oracle.compute_extreme_point``.

    Examples
    --------
    >>> check_parts([1.0], "real", "oracle.compute_extreme_point", "labels")
    Traceback (most recent call last):
    engine.core.errors.InvalidProblemError: float has no oracle.compute_extreme_point and no labels.
    """
    for structure in structures:
        missing = [name for name in names if not _has(structure, name)]
        if missing:
            kind = type(structure).__name__
            raise InvalidProblemError(f"{kind} has no {' and no '.join(missing)}.")


def _has(structure: Any, name: str) -> bool:
    if hasattr(type(structure), name):
        return True  # without reading it: a start may be large
    try:
        return attrgetter(name)(structure) is not None
    except AttributeError:
        return False


@dataclass(frozen=True, slots=True)
class InnerSolution:
    """Result of one inner maximisation: max over tau of <theta, phi(tau)> + H_rho(tau).

    Parameters
    ----------
    log_partition : float, nats
        Certified *upper* bound of log Z_rho(theta).
    statistics : ndarray, shape (K,), phi(tau) of a point tau of the polytope.
    entropy : float, H_rho(tau) of that point, nats.
    sweeps : int, passes over the observation that the inner solver needed.
    is_feasible : bool
        Whether tau was proved to lie in the polytope; if not, L(tau) is an estimate only.
    state : the structure's own class, from which the next call starts warm; None without one.
    proved : tuple (phi (K,), entropy in nats) of a nearby point that was proved to lie in the
        polytope, if tau was not; None without such a point.
    methods : tuple of str, names of the methods that computed it, if there is a choice.

    Examples
    --------
    >>> import numpy as np
    >>> InnerSolution(1.0, np.zeros(2), 0.5, 3, is_feasible=True).is_certified
    True
    """

    log_partition: float
    statistics: FloatArray
    entropy: float
    sweeps: int
    is_feasible: bool
    state: WarmStart = None
    proved: tuple[FloatArray, float] | None = None
    methods: tuple[str, ...] = ()

    @staticmethod
    def total(parts: "Sequence[InnerSolution]") -> "InnerSolution":
        """Return the sum of feasible solutions over observations with their own warm starts."""
        return InnerSolution(
            log_partition=sum(part.log_partition for part in parts),
            statistics=np.sum([part.statistics for part in parts], axis=0),
            entropy=sum(part.entropy for part in parts),
            sweeps=sum(part.sweeps for part in parts),
            is_feasible=True,
        )

    @property
    def is_certified(self) -> bool:
        """True if ``certified_point`` lies in the polytope."""
        return self.is_feasible or self.proved is not None

    @property
    def certified_point(self) -> tuple[FloatArray, float]:
        """Statistics phi and entropy of the point of the upper bound."""
        return (self.statistics, self.entropy) if self.proved is None else self.proved


class InnerProblem(Protocol):
    """One observation, or a sum of them, for the solve in theta.

    Examples
    --------
    >>> from engine.structures import BipartiteStructure
    >>> all(hasattr(BipartiteStructure, name) for name in ("maximise", "curvature"))
    True
    """

    @property
    def observed(self) -> FloatArray:
        """Observed statistics phi(Y), shape (K,)."""

    def maximise(
        self, theta: FloatArray, state: WarmStart | None, accuracy: float
    ) -> InnerSolution:
        """Maximise <theta, phi(tau)> + H_rho(tau) from a warm state.

        ``accuracy`` (nats) is the target difference between ``log_partition`` and the value at
        the returned point; a solver that cannot reach it returns its best, never a wrong bound.
        """

    def curvature(self, theta: FloatArray, state: WarmStart) -> FloatArray:
        """Return an estimate of the Hessian of log Z_rho at theta, shape (K, K), or zeros.

        It only shapes the steps: a poor estimate costs iterations, never correctness.
        """


@runtime_checkable
class HasVertices(Protocol):
    """Problem whose best vertex is found much faster than its maximum with entropy."""

    def vertex_statistics(self, theta: FloatArray) -> FloatArray:
        """Return phi of a vertex that maximises <theta, phi>, shape (K,).

        The entropy of a vertex is not negative, so that <theta, phi> is at most log Z_rho.
        """


@runtime_checkable
class Interruptible(Protocol):
    """Problem whose solve checks before every sweep whether to raise ``StoppedError``."""

    should_stop: StopCallback
