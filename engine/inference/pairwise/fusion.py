"""Fusion moves by roof duality, which combine the better parts of two labellings."""

import numpy as np

from engine.core.arguments import FloatArray, IntArray
from engine.graphs.pairwise import PairwiseGraph
from engine.oracles.roof_duality import RoofDuality


class FusionMoves:
    """Moves that take each node's label from one of two labellings without lowering the score.

    References
    ----------
    Lempitsky, Rother, Roth and Blake 2010.
    """

    def __init__(self, graph: PairwiseGraph, scores: FloatArray) -> None:
        """Prepare for one graph and finite scores (graph.size,)."""
        self._graph = graph
        self._scores = scores
        moves = PairwiseGraph(np.full(graph.n_nodes, 2), graph.edges)
        self._oracle = RoofDuality(moves, reuse_vertex=True)

    def fuse(self, labels: IntArray, proposal: IntArray) -> tuple[IntArray, bool]:
        """Return the fused labelling, and True if it is the best of all 2^n fusions.

        Nodes that roof duality leaves undecided keep ``labels``, which by persistency cannot
        lower the score.
        """
        move = move_scores(self._graph, self._scores, labels, proposal)
        n = self._graph.n_nodes
        high = self._oracle.compute_extreme_point(move).vertex.values[1 : 2 * n : 2]
        undecided = (high == 0.5) & (labels != proposal)
        return np.where(high == 1.0, proposal, labels), not undecided.any()


def move_scores(
    graph: PairwiseGraph, scores: FloatArray, labels: IntArray, proposal: IntArray
) -> FloatArray:
    """Return the scores of the binary model of a fusion: 0 keeps ``labels``, 1 takes ``proposal``.

    The scores are flat, in the layout of the same graph with two labels a node; if both choices of
    a node are the same label, its entries are repeated.
    """
    n = graph.n_nodes
    options = np.stack([labels, proposal], axis=1)
    move = np.empty(2 * n + 4 * graph.n_edges)
    move[: 2 * n] = scores[graph.node_start[:-1, None] + options].ravel()
    first, second = graph.edges[:, 0], graph.edges[:, 1]
    rows = options[first][:, :, None] * graph.cardinalities[second][:, None, None]
    places = graph.edge_start[:-1, None, None] + rows + options[second][:, None, :]
    move[2 * n :] = scores[places].ravel()
    return move
