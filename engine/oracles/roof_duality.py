"""Maximise a linear function over the local polytope of any binary pairwise graph."""

import numpy as np

from engine.core.arguments import FloatArray, as_finite_array, read_only
from engine.core.errors import InvalidProblemError
from engine.graphs.pairwise import PairwiseGraph
from engine.kernels.ising_sparse import flow_bound, read_ising, write_vertex
from engine.kernels.maxflow_sparse import (
    arc_lists,
    fill_copies,
    max_flow_sparse,
    push_over_edges,
)
from engine.oracles.protocol import ExtremePoint

UNIT_ROUNDOFF = float(np.finfo(np.float64).eps)


class RoofDuality:
    """Roof duality on an arbitrary sparse binary graph: an exact oracle of its local polytope.

    Where all edges are attractive (theta_00 + theta_11 >= theta_01 + theta_10) one minimum cut on
    the graph itself gives an integral optimum; otherwise the graph with two copies of each node
    gives a half-integral one. ``upper_bound`` is the dual value of the flow, certified.

    References
    ----------
    Boros and Hammer 2002; Kolmogorov and Rother 2007; Dinic 1970.
    """

    def __init__(self, graph: PairwiseGraph) -> None:
        """Prepare for ``graph``; raise InvalidProblemError if a node has not two labels."""
        if not graph.is_binary:
            raise InvalidProblemError("Roof duality needs two labels at every node.")
        self.graph = graph
        self.n_undecided = 0
        n, m = graph.n_nodes, graph.n_edges
        self._arcs = arc_lists(n, graph.edges[:, 0], graph.edges[:, 1])
        # Room for two copies, allocated once: arcs, residual capacities and the search.
        self._start = np.zeros(2 * n + 1, dtype=np.int64)
        self._head, self._mate = np.zeros((2, 4 * m), dtype=np.int64)
        self._residual, self._excess = np.zeros(4 * m), np.zeros(2 * n)
        self._pushed, self._level = np.zeros(m), np.zeros(2 * n, dtype=np.int64)
        self._work = np.zeros((3, 2 * n + 1), dtype=np.int64)
        self._field, self._coupling = np.zeros(n), np.zeros(m)

    def compute_extreme_point(self, scores: FloatArray) -> ExtremePoint:
        """Return a vertex of the local polytope that maximises <vertex, scores>.

        Parameters
        ----------
        scores : ndarray, shape (graph.size,), finite.

        Returns
        -------
        ExtremePoint
            vertex (graph.size,) with entries in {0, 1/2, 1}; value; certified upper_bound.
        """
        graph = self.graph
        scores = as_finite_array("scores", scores, shape=(graph.size,))
        field, coupling = self._field, self._coupling
        constant = read_ising(graph.edges, scores, field, coupling)
        # Sums of that many terms, one after the other, may be off by this much.
        magnitude = float(np.abs(scores).sum() + np.abs(field).sum())
        allowance = 2.0 * graph.size * UNIT_ROUNDOFF * magnitude
        high, flow = self._cut(field, coupling)
        self.n_undecided = int((high == 0.5).sum())
        vertex = np.empty(graph.size)
        write_vertex(graph.edges, coupling, high, vertex)
        value = float(vertex @ scores)
        bound = constant + flow_bound(graph.edges, field, coupling, flow)
        return ExtremePoint(
            vertex=read_only(vertex),
            value=value,
            upper_bound=max(value, bound + allowance),
        )

    def _cut(self, field: FloatArray, coupling: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return node values in {0, 1/2, 1} and the symmetric flow over each edge."""
        n, m = self.graph.n_nodes, self.graph.n_edges
        first, second = self.graph.edges[:, 0], self.graph.edges[:, 1]
        copies = 2 if (coupling < 0.0).any() else 1
        excess, level = self._excess[: copies * n], self._level[: copies * n]
        excess[:n] = field
        push_over_edges(first, second, coupling, excess, self._pushed)
        # In the second copy the mirrored flow runs; crossed arcs carry it out of both ends.
        excess[n:] = -excess[:n] if copies == 2 else 0.0
        start, head, mate = self._start[: copies * n + 1], self._head, self._mate
        residual = self._residual[: 2 * copies * m]
        fill_copies(*self._arcs, coupling, self._pushed, copies, start, head, mate, residual)
        max_flow_sparse(start, head, mate, residual, excess, level, self._work)
        source = level >= 0
        there = self._arcs[3][:, 0]
        flow = np.abs(coupling) - residual[there]
        if copies == 1:
            return source.astype(np.float64), flow
        mirrored = np.abs(coupling) - residual[there + 2 * m]
        high: FloatArray = np.where(source[:n], 0.5, 0.0) + np.where(source[n:], 0.0, 0.5)
        return high, 0.5 * (flow - mirrored)
