"""Maximise a linear function over the local polytope of a forest: its vertices are labellings."""

import numpy as np
import scipy  # its parts load when first used

from engine.core.arguments import FloatArray, IntArray, check_shape, read_only
from engine.core.errors import InfeasibleError, InvalidProblemError
from engine.core.rounding import sum_allowance
from engine.graphs.pairwise import PairwiseGraph
from engine.oracles.protocol import ExtremePoint, Vertex

ROUNDINGS = 8  # of a score on its way into the value, besides one a neighbour


class ForestOracle:
    """Dynamic programming from the leaves of a chain, a tree or a forest, any number of labels.

    With the Bethe entropy (``graph_entropy(graph, 1.0)``), exact on forests, MLE-Struct is maximum
    likelihood: chains and trees lose nothing.

    Notes
    -----
    One product of labels an edge, in Python: for models of up to some thousand nodes.

    References
    ----------
    Viterbi 1967; Pearl 1988.

    Examples
    --------
    >>> chain = PairwiseGraph(np.array([2, 2]), np.array([[0, 1]]))
    >>> ForestOracle(chain).compute_extreme_point(np.array([0.0, 1, 0, 0, 3, 0, 0, 1])).value
    3.0
    """

    def __init__(self, graph: PairwiseGraph) -> None:
        """Order the nodes from the roots; raise InvalidProblemError if there is a cycle."""
        n, first, second = graph.n_nodes, graph.edges[:, 0], graph.edges[:, 1]
        numbers = scipy.sparse.coo_array(
            (np.arange(1, graph.n_edges + 1), (first, second)), shape=(n, n)
        ).tocsr()
        parts, part = scipy.sparse.csgraph.connected_components(numbers, directed=False)
        if graph.n_edges != n - parts:
            raise InvalidProblemError("A forest has no cycle; this graph has one.")
        self.graph = graph
        self._steps: list[tuple[int, int, int, bool]] = []  # node, parent, edge, node is its first
        both = (numbers + numbers.T).tocsr()
        for root in np.unique(part, return_index=True)[1]:
            order, before = scipy.sparse.csgraph.breadth_first_order(both, root, directed=False)
            for v in order[1:].tolist():
                edge = int(both[v, before[v]]) - 1
                self._steps.append((v, int(before[v]), edge, bool(first[edge] == v)))

    def compute_extreme_point(self, scores: FloatArray) -> ExtremePoint:
        """Return the indicator of a best labelling; scores (graph.size,), -inf where impossible.

        Raises
        ------
        InfeasibleError
            If every labelling is impossible.
        """
        graph = self.graph
        scores = np.ascontiguousarray(scores, dtype=np.float64)
        check_shape("scores", scores, (graph.size,))
        beliefs = [graph.node_table(scores, i).copy() for i in range(graph.n_nodes)]
        choices: list[IntArray] = []
        for v, parent, edge, is_first in reversed(self._steps):
            table = graph.edge_table(scores, edge)
            joint = (table if is_first else table.T) + beliefs[v][:, None]
            choices.append(joint.argmax(axis=0))
            beliefs[parent] += joint.max(axis=0)
        labels = np.array([int(belief.argmax()) for belief in beliefs], dtype=np.int64)
        for (v, parent, _, _), choice in zip(self._steps, reversed(choices), strict=True):
            labels[v] = choice[labels[parent]]
        value = graph.score(scores, labels)
        if value == -np.inf:
            raise InfeasibleError("Every labelling of this forest is impossible.")
        size = float(np.abs(scores[np.isfinite(scores)]).sum())
        allowance = sum_allowance(graph.largest_degree + ROUNDINGS, size)
        return ExtremePoint(Vertex(read_only(graph.indicator(labels))), value, value + allowance)
