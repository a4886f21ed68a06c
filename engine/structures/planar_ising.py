"""Labelled planar Ising model without field: its oracle, sums and likelihood are exact."""

import numpy as np

from engine.core.arguments import FloatArray, IntArray, as_finite_array, check_shape
from engine.core.errors import InvalidProblemError
from engine.core.rounding import sum_allowance
from engine.graphs.pairwise import PairwiseGraph
from engine.inference.pairwise.planar_ising import PlanarIsing
from engine.objectives.protocol import InnerSolution
from engine.oracles.protocol import ExtremePoint, Vertex, make_indicator


class PlanarIsingStructure:
    """Labelling of a planar graph whose scores depend only on which neighbours agree.

    A point holds for each edge the probabilities that its ends agree and differ, (n_edges, 2): the
    cut polytope of the graph. Best labellings are minimum T-joins, sums are Pfaffians. The entropy
    is exact, but no function of points that are not maxima: Frank-Wolfe cannot use it, and the
    likelihood is learned in theta; max-margin learners and the perceptron need the oracle alone.

    Parameters
    ----------
    graph : PairwiseGraph, planar, two labels per node.
    features : ndarray, shape (n_edges, K), features that count when an edge's ends agree.
    labels : ndarray, shape (n_nodes,), 0 or 1, the observed labelling.

    Raises
    ------
    InvalidProblemError
        If the graph is not planar or not binary, or shapes, features or labels are wrong.

    References
    ----------
    Tang et al. 2015, section 1; Schraudolph and Kamenetsky 2008.

    Examples
    --------
    >>> triangle = PairwiseGraph(np.full(3, 2), np.array([[0, 1], [1, 2], [2, 0]]))
    >>> one = PlanarIsingStructure(triangle, np.ones((3, 1)), np.array([0, 0, 1]))
    >>> one.observed.tolist(), one.maximise(np.zeros(1), None, 0.0).statistics.round(6).tolist()
    ([1.0], [1.5])
    """

    def __init__(self, graph: PairwiseGraph, features: FloatArray, labels: IntArray) -> None:
        self.features = as_finite_array("features", features, shape=(graph.n_edges, None))
        labels = np.asarray(labels)
        check_shape("labels", labels, (graph.n_nodes,))
        if not np.isin(labels, (0, 1)).all():
            raise InvalidProblemError("labels: expected 0 or 1 at every node.")
        self.oracle = PlanarIsingOracle(graph)
        self.labels = self.oracle.vertex(labels)
        self.observed = self.statistics(self.labels)

    @property
    def start(self) -> FloatArray:
        """Uniform distribution over labellings, as a new array."""
        return np.full((len(self.features), 2), 0.5)

    def scores(self, theta: FloatArray) -> FloatArray:
        """Return A theta in the shape of a point, nats."""
        agree = self.features @ theta
        return np.stack([agree, np.zeros_like(agree)], axis=1)

    def statistics(self, at: FloatArray | Vertex) -> FloatArray:
        """Return phi of a point or of a vertex, shape (K,)."""
        point = at.dense(2 * len(self.features)).reshape(-1, 2) if isinstance(at, Vertex) else at
        return np.asarray(point[:, 0] @ self.features)

    def maximise(
        self, theta: FloatArray, state: FloatArray | None, accuracy: float
    ) -> InnerSolution:
        """Compute exact sums; see ``engine.objectives.protocol.InnerProblem``.

        Raises
        ------
        CertificateError
            If couplings are so strong that rounding errors spoil the probabilities.
        """
        scores = self.scores(theta)
        found = self.oracle.ising.marginals(self.oracle.tables(scores))
        statistics = np.asarray(found.agreement @ self.features)
        size = float(np.abs(scores).sum()) + len(scores)
        return InnerSolution(
            log_partition=found.log_partition + sum_allowance(len(scores) + 8, size),
            statistics=statistics,
            entropy=found.log_partition - float(theta @ statistics),
            sweeps=1,
            is_feasible=True,
            state=found.agreement,
        )

    def curvature(self, theta: FloatArray, state: FloatArray) -> FloatArray:
        """Return an approximate Hessian for independent edges, (K, K)."""
        weighted = self.features * (state * (1.0 - state))[:, None]
        return np.asarray(weighted.T @ self.features)


class PlanarIsingOracle:
    """Oracle of the cut polytope of a planar graph, by a minimum T-join of its dual.

    Examples
    --------
    >>> triangle = PairwiseGraph(np.full(3, 2), np.array([[0, 1], [1, 2], [2, 0]]))
    >>> differ = np.array([[0.0, 1.0], [0.0, 1.0], [0.0, 3.0]])
    >>> PlanarIsingOracle(triangle).compute_extreme_point(differ).value
    4.0
    """

    def __init__(self, graph: PairwiseGraph) -> None:
        self.ising, self._graph = PlanarIsing(graph), graph

    def compute_extreme_point(self, scores: FloatArray) -> ExtremePoint:
        """Return the vertex of a best labelling for scores (n_edges, 2), finite."""
        scores = as_finite_array("scores", scores, shape=(self._graph.n_edges, 2))
        best = self.ising.best(self.tables(scores))
        vertex = self.vertex(best.labels)
        return ExtremePoint(vertex, best.value, best.upper_bound)

    def tables(self, scores: FloatArray) -> FloatArray:
        """Return the scores of a pairwise model without field, flat."""
        nodes = np.zeros(2 * self._graph.n_nodes)
        return np.concatenate([nodes, scores[:, [0, 1, 1, 0]].ravel()])

    def vertex(self, labels: IntArray) -> Vertex:
        """Return the vertex of a labelling: the edges that agree and those that differ."""
        first, second = labels[self._graph.edges].T
        return make_indicator(2 * np.arange(self._graph.n_edges) + (first != second))
