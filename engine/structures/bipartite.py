"""Observed assignment between the items of two sides, with features on every edge."""

from dataclasses import dataclass, field

import numpy as np

from engine.core.arguments import FloatArray, IntArray
from engine.core.options import check_callables, check_number
from engine.core.progress import StopCallback, never_stop
from engine.crf.bipartite import BipartiteItems, check_assignment
from engine.entropies.matching import MatchingEntropy, bipartite_layout, make_matching_entropy
from engine.inference.matching.bipartite_bethe import compute_bethe_marginals
from engine.inference.matching.bipartite_interior import LearnedAssignment
from engine.inference.matching.bipartite_margins import Margins
from engine.inference.matching.bipartite_newton import (
    BipartiteSolution,
    compute_bipartite_pseudomarginals,
)
from engine.inference.matching.bipartite_points import complement, counting_numbers
from engine.inference.matching.newton_ascent import inverse_curvature
from engine.objectives.learning_dual import as_semidefinite
from engine.objectives.protocol import InnerSolution
from engine.oracles.assignment import AssignmentOracle
from engine.oracles.protocol import Vertex, make_indicator


@dataclass(frozen=True, slots=True)
class AssignmentPoint:
    """Inner solution of an assignment: ``marginals`` (n, n), and ``messages`` of both sides."""

    marginals: FloatArray
    messages: tuple[FloatArray, FloatArray] | None = None


@dataclass(slots=True)
class BipartiteStructure:
    """Items of both sides and the observed column of every row; points are (n, n).

    Parameters
    ----------
    items : BipartiteItems
    columns : ndarray, shape (n,), int, a permutation
    rho : float, or ndarray (2n,) with rows before columns, reweighting in [0, 1]
    should_stop : callable, called before every step of an inner solve; see ``Interruptible``

    Examples
    --------
    >>> pairs = BipartiteStructure(BipartiteItems(np.eye(2)[:, :, None]), np.array([0, 1]))
    >>> pairs.observed.tolist()
    [2.0]
    """

    items: BipartiteItems
    columns: IntArray
    rho: float | FloatArray = 1.0
    should_stop: StopCallback = never_stop
    observed: FloatArray = field(init=False)
    labels: Vertex = field(init=False)
    entropy: MatchingEntropy = field(init=False)
    oracle: AssignmentOracle = field(init=False)

    def __post_init__(self) -> None:
        check_number("rho", self.rho, at_least=0.0, at_most=1.0, or_array=True)
        check_callables(should_stop=self.should_stop)
        columns = check_assignment(self.columns, self.items.n_items)
        self.observed = self.items.assignment_statistics(columns)
        n = self.items.n_items
        self.labels = make_indicator(np.arange(n, dtype=np.int64) * n + columns)
        self.entropy = make_matching_entropy(bipartite_layout(n, n), self.rho)
        self.oracle = AssignmentOracle()

    @property
    def start(self) -> FloatArray:
        """Point tau = 1 / n, shape (n, n), as a new array."""
        n = self.items.n_items
        return np.full((n, n), 1.0 / n)

    def scores(self, theta: FloatArray) -> FloatArray:
        """Return W, shape (n, n)."""
        return self.items.scores(theta)

    def statistics(self, at: FloatArray | Vertex) -> FloatArray:
        """Return phi of edge marginals (n, n) or of an assignment."""
        if isinstance(at, Vertex):
            return self.items.assignment_statistics(at.support % self.items.n_items)
        return self.items.statistics(at)

    def maximise(
        self, theta: FloatArray, state: AssignmentPoint | None, accuracy: float
    ) -> InnerSolution:
        """Maximise by messages or Newton; see ``engine.objectives.protocol.InnerProblem``."""
        solution, following = self._maximise(self.items.scores(theta), state, max(accuracy, 1e-11))
        statistics = self.items.statistics(solution.marginals)
        return InnerSolution(
            log_partition=solution.upper_bound,
            statistics=statistics,
            entropy=solution.value - float(theta @ statistics),
            sweeps=solution.iterations,
            is_feasible=True,  # a bipartite graph has no odd sets to check
            state=following,
        )

    def _maximise(
        self, scores: FloatArray, state: AssignmentPoint | None, tolerance: float
    ) -> tuple[BipartiteSolution, AssignmentPoint]:
        """Solve the inner problem from a warm state and return the next one."""
        if not np.all(np.asarray(self.rho) == 1.0):
            start = None if state is None else state.marginals
            solution = compute_bipartite_pseudomarginals(
                scores, self.rho, tolerance=tolerance, start=start, should_stop=self.should_stop
            )
            return solution, AssignmentPoint(solution.marginals)
        messages = None if state is None else state.messages
        solution, beliefs = compute_bethe_marginals(
            scores, tolerance=tolerance, start=messages, should_stop=self.should_stop
        )
        messages = beliefs.from_rows, beliefs.from_columns
        return solution, AssignmentPoint(solution.marginals, messages)

    def interior(self) -> LearnedAssignment | None:
        """Return the problem for ``InteriorAscent``; see ``HasInterior``."""
        n, features = self.items.n_items, self.items.features
        if n == 1:
            return None
        own = features[np.arange(n), check_assignment(self.columns, n)]
        counts = counting_numbers(self.rho, n)
        return LearnedAssignment(counts, features - own[:, None])

    def curvature(self, theta: FloatArray, state: AssignmentPoint) -> FloatArray:
        """Return the Hessian of log Z_rho at an inner solution, exact in the interior, (K, K).

        F^T (D - D A^T (A D A^T)^-1 A D) F with D the inverse of minus the entropy's Hessian and A
        the sums over rows and columns.
        """
        tau = np.asarray(state.marginals, dtype=np.float64)
        n, n_features = self.items.n_items, self.items.n_features
        inverse = inverse_curvature(tau, complement(tau), counting_numbers(self.rho, n))
        if n == 1:
            return np.zeros((n_features, n_features))
        weighted = inverse[:, :, None] * self.items.features
        features = self.items.features.reshape(n * n, n_features)
        try:
            margins = Margins(tau, inverse)
        except np.linalg.LinAlgError:
            return np.zeros((n_features, n_features))
        fixed = margins.explained(margins.sums(weighted))
        return as_semidefinite(features.T @ weighted.reshape(n * n, n_features) - fixed)
