"""Labelled pairwise model of any graph and any numbers of labels."""

import numpy as np

from engine.core.arguments import FloatArray, IntArray, as_finite_array, check_shape
from engine.core.errors import InvalidProblemError
from engine.core.options import check_number
from engine.entropies.pairwise import graph_entropy
from engine.graphs.pairwise import PairwiseGraph
from engine.inference.pairwise.expansion_oracle import ExpansionOracle
from engine.oracles.protocol import LinearMinimizationOracle, Vertex, make_indicator
from engine.oracles.roof_duality import RoofDuality


class PairwiseStructure:
    """Labelling of a graph with features on nodes and edges; points are flat tables.

    The oracle is roof duality, exact on the local polytope, if all nodes have two labels, and
    otherwise expansion moves with the linear programme's bound. Its loss counts nodes.

    Parameters
    ----------
    graph : PairwiseGraph
    features : ndarray, shape (graph.size, K), one row per entry of the flat tables.
    labels : ndarray, shape (n_nodes,), the observed labelling.
    rho : float or ndarray, shape (n_edges,), edge appearance probabilities of the entropy.
    oracle : LinearMinimizationOracle, a custom oracle instead.

    Raises
    ------
    InvalidProblemError
        If shapes disagree, a feature is not finite, or a label or rho is out of range.

    Examples
    --------
    >>> graph = PairwiseGraph(np.array([2, 2]), np.array([[0, 1]]))
    >>> one = PairwiseStructure(graph, np.eye(8), np.array([1, 0]), 0.5)
    >>> one.observed.tolist()
    [0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0]
    """

    def __init__(
        self,
        graph: PairwiseGraph,
        features: FloatArray,
        labels: IntArray,
        rho: float | FloatArray = 0.5,
        oracle: LinearMinimizationOracle | None = None,
    ) -> None:
        check_number("rho", rho, above=0.0, at_most=1.0, or_array=True)
        self.graph = graph
        self.features = as_finite_array("features", features, shape=(None, None))
        check_shape("features", self.features, (graph.size, None))
        self.entropy = graph_entropy(graph, rho)
        default = RoofDuality if graph.is_binary else ExpansionOracle
        self.oracle = default(graph) if oracle is None else oracle
        places = graph.places(labels)
        self.observed = np.asarray(self.features[places].sum(axis=0))
        self.labels: Vertex = make_indicator(places[: graph.n_nodes])

    @property
    def start(self) -> FloatArray:
        """Uniform tables, as a new array."""
        return self.graph.uniform()

    def scores(self, theta: FloatArray) -> FloatArray:
        """Return A theta, flat."""
        return np.asarray(self.features @ theta)

    def statistics(self, at: FloatArray | Vertex) -> FloatArray:
        """Return phi of tables or of a vertex, shape (K,)."""
        if isinstance(at, Vertex):
            if at.places is not None:
                return np.asarray(at.values @ self.features[at.places])
            at = at.values
        if at.shape != (self.graph.size,):
            raise InvalidProblemError(
                f"point: expected {self.graph.size} entries, received {at.shape}."
            )
        return np.asarray(at @ self.features)

    def decode(self, vertex: Vertex) -> IntArray:
        """Return the labels of a vertex, the first of the likeliest if it is half-integral."""
        tables = vertex.dense(self.graph.size)
        nodes = (self.graph.node_table(tables, i) for i in range(self.graph.n_nodes))
        return np.array([int(table.argmax()) for table in nodes], dtype=np.int64)
