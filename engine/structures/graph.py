"""Observed matching of a general graph, with features on its edges.

The inner maximum is taken over the matching polytope (``inference.matching.graph_polytope``). A
graph with two sides has no odd sets; for any other, violated odd sets are added. An answer is
reported as not feasible unless every odd set was proved.
"""

from dataclasses import dataclass, field

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from engine.core.arguments import FloatArray, IntArray, check_shape
from engine.core.errors import InvalidProblemError
from engine.core.options import check_callables, check_flag, check_number, check_whole
from engine.core.progress import StopCallback, never_stop
from engine.entropies.matching import (
    MatchingEntropy,
    MatchingLayout,
    edge_layout,
    make_matching_entropy,
)
from engine.inference.matching.graph_polytope import solve_over_graph_polytope
from engine.inference.matching.graph_sets import GraphCurvature, HeldSets
from engine.objectives.interior_start import find_interior_start
from engine.objectives.protocol import InnerSolution
from engine.oracles.protocol import Vertex, make_indicator
from engine.oracles.sparse_matching import GraphMatchingOracle, max_weight_matching


@dataclass(frozen=True, slots=True)
class GraphPoint:
    """Inner solution of a graph: its ``marginals`` (e,) and active odd ``sets``."""

    marginals: FloatArray
    sets: HeldSets


@dataclass(slots=True)
class GraphStructure:
    """Graph with features on its edges and an observed matching; points are (e,).

    Parameters
    ----------
    n_nodes : int
    edges : ndarray, shape (e, 2)
    features : ndarray, shape (e, K)
    matched : ndarray, indices of the observed edges
    rho : float or ndarray, shape (n_nodes,), reweighting in [0, 1]
    is_perfect : bool, whether every node is matched in every matching
    should_stop : called before every step; ``maximise`` then raises ``StoppedError``.

    Raises
    ------
    InfeasibleError
        If ``is_perfect`` and the graph has no perfect matching; it carries a deficient set.
    InvalidProblemError
        If the shapes disagree, an edge joins a node to itself, the observed edges are not a
        matching or rho is out of range.

    Examples
    --------
    >>> square = np.array([[0, 1], [1, 2], [2, 3], [3, 0]])
    >>> one = GraphStructure(4, square, np.eye(4), np.array([0, 2]))
    >>> one.observed.tolist(), one.start.tolist()
    ([1.0, 0.0, 1.0, 0.0], [0.5, 0.5, 0.5, 0.5])
    """

    n_nodes: int
    edges: IntArray
    features: FloatArray
    matched: IntArray
    rho: float | FloatArray = 1.0
    is_perfect: bool = True
    should_stop: StopCallback = never_stop
    observed: FloatArray = field(init=False)
    labels: Vertex = field(init=False)
    start: FloatArray = field(init=False)
    entropy: MatchingEntropy = field(init=False)
    oracle: GraphMatchingOracle = field(init=False)
    _has_two_sides: bool = field(init=False)

    def __post_init__(self) -> None:
        check_whole("n_nodes", self.n_nodes)
        check_number("rho", self.rho, at_least=0.0, at_most=1.0, or_array=True)
        check_flag("is_perfect", self.is_perfect)
        check_callables(should_stop=self.should_stop)
        layout = edge_layout(self.n_nodes, self.edges)
        check_shape("features", self.features, (len(self.edges), None))
        self.features = np.asarray(self.features, dtype=np.float64)
        self.entropy = make_matching_entropy(layout, self.rho, is_perfect=self.is_perfect)
        self.oracle = GraphMatchingOracle(
            self.n_nodes, self.edges, "perfect" if self.is_perfect else "any"
        )
        self.start = interior_of_graph(layout, is_perfect=self.is_perfect)
        self._has_two_sides = has_two_sides(self.n_nodes, self.edges)
        matched = check_matching(layout, self.matched, is_perfect=self.is_perfect)
        self.labels = make_indicator(matched)
        self.observed = self.statistics(self.labels)

    def scores(self, theta: FloatArray) -> FloatArray:
        """Return W, shape (e,)."""
        return np.asarray(self.features @ theta)

    def statistics(self, at: FloatArray | Vertex) -> FloatArray:
        """Return phi of edge marginals (e,) or of a matching."""
        if isinstance(at, Vertex):
            return np.asarray(self.features[at.support].sum(axis=0))
        return np.asarray(at @ self.features)

    def maximise(
        self, theta: FloatArray, state: GraphPoint | None, accuracy: float
    ) -> InnerSolution:
        """Maximise over the matching polytope; see ``engine.objectives.protocol.InnerProblem``."""
        solution = solve_over_graph_polytope(
            self.features @ theta,
            self.edges,
            self.entropy.rho,
            self.start,
            is_perfect=self.is_perfect,
            has_odd_sets=not self._has_two_sides,
            tolerance=max(accuracy, 1e-11),
            start=None if state is None else state.marginals,
            held=() if state is None else state.sets.nodes,
            should_stop=self.should_stop,
        )
        tau = solution.marginals
        statistics = tau @ self.features
        return InnerSolution(
            log_partition=solution.upper_bound,
            statistics=statistics,
            entropy=solution.value - float(theta @ statistics),
            sweeps=solution.steps,
            is_feasible=solution.is_feasible,
            state=GraphPoint(tau, solution.sets),
        )

    def curvature(self, theta: FloatArray, state: GraphPoint) -> FloatArray:
        """Return the Hessian of log Z_rho at an inner solution, exact in the interior, (K, K)."""
        curvature = GraphCurvature(self.edges, self.entropy.rho, self.start, self.is_perfect)
        return curvature.of_features(state.marginals, self.features, state.sets)


def has_two_sides(n_nodes: int, edges: IntArray) -> bool:
    """Return True if a graph is bipartite: its double cover splits at every component."""
    first, second = edges.T
    ones = np.ones(len(edges), dtype=np.int8)
    plain = coo_array((ones, (first, second)), shape=(n_nodes, n_nodes))
    ends = np.concatenate([first, first + n_nodes]), np.concatenate([second + n_nodes, second])
    cover = coo_array((np.tile(ones, 2), ends), shape=(2 * n_nodes, 2 * n_nodes))
    count: int = connected_components(plain, directed=False)[0]
    doubled: int = connected_components(cover, directed=False)[0]
    return doubled == 2 * count


def interior_of_graph(layout: MatchingLayout, *, is_perfect: bool) -> FloatArray:
    """Return an interior point, shape (e,); edges without a choice are exactly 0 or 1.

    Parameters
    ----------
    layout : MatchingLayout
    is_perfect : bool
        Whether every node is matched in every matching.

    Returns
    -------
    ndarray, shape (e,)
        The mean of some matchings.

    Raises
    ------
    InfeasibleError
        If ``is_perfect`` and the graph has no perfect matching.

    Examples
    --------
    >>> from engine.entropies.matching import edge_layout
    >>> path = edge_layout(4, np.array([[0, 1], [1, 2], [2, 3]]))
    >>> interior_of_graph(path, is_perfect=True).tolist()
    [1.0, 0.0, 1.0]
    """
    edges = np.empty((0, 2), dtype=np.int64) if layout.edges is None else layout.edges
    if not is_perfect:
        degrees = np.bincount(edges.ravel(), minlength=1)
        return np.full(len(edges), 1.0 / (float(degrees.max()) + 2.0))

    def oracle(weights: FloatArray) -> IntArray:
        return max_weight_matching(layout.n_nodes, edges, weights, "perfect").edge_indices

    return np.array(find_interior_start(len(edges), oracle).tau)


def check_matching(layout: MatchingLayout, matched: IntArray, *, is_perfect: bool) -> IntArray:
    """Return indices of edges as int64 after checking that they are a matching.

    Parameters
    ----------
    layout : MatchingLayout
    matched : array_like of int
        Indices of edges.
    is_perfect : bool
        Whether every node must be matched.

    Returns
    -------
    ndarray of int64
        The same indices.

    Raises
    ------
    InvalidProblemError
        If an index names no edge, two edges share a node or, if perfect, a node has no edge.

    Examples
    --------
    >>> from engine.entropies.matching import edge_layout
    >>> path = edge_layout(4, np.array([[0, 1], [1, 2], [2, 3]]))
    >>> check_matching(path, np.array([0, 2]), is_perfect=True).tolist()
    [0, 2]
    """
    matched = np.asarray(matched, dtype=np.int64)
    check_shape("matched", matched, (None,))
    if len(matched) and (matched.min() < 0 or matched.max() >= layout.shape[0]):
        raise InvalidProblemError(f"matched: expected edges from 0 to {layout.shape[0] - 1}.")
    counts = np.bincount(np.concatenate(layout.ends(matched)), minlength=layout.n_nodes)
    wrong = np.flatnonzero((counts > 1) | (is_perfect & (counts == 0)))
    if len(wrong):
        node = int(wrong[0])
        wanted = "one edge" if is_perfect else "at most one edge"
        raise InvalidProblemError(
            f"matched: expected {wanted} at node {node}, received {int(counts[node])}."
        )
    return matched
