"""Linear maximisation over the local polytope of any binary pairwise graph."""

import numpy as np

from engine.core.arguments import FloatArray, check_shape, read_only
from engine.core.errors import InvalidProblemError
from engine.core.options import check_flag
from engine.core.rounding import UNIT_ROUNDOFF, sum_allowance
from engine.graphs.pairwise import PairwiseGraph
from engine.kernels.ising_sparse import flow_bound, read_cut, read_ising, write_vertex
from engine.kernels.maxflow_sparse import (
    arc_lists,
    fill_copies,
    max_flow_sparse,
    push_over_edges,
)
from engine.oracles.protocol import ExtremePoint, Vertex

# Rounding of the bound, which is summed in twice the precision.
ROUNDINGS = 4


class RoofDuality:
    """Roof duality on any sparse binary graph, an exact oracle of its local polytope.

    If all edges are attractive (theta_00 + theta_11 >= theta_01 + theta_10), one minimum cut on
    the graph itself gives an integral optimum; otherwise the graph with two copies of each node
    gives a half-integral one. ``upper_bound`` is the certified dual value of the flow.

    All work space is allocated once; a call allocates no array but the returned vertex, and not
    even that with ``reuse_vertex=True``, where the next call overwrites the vertex. One oracle a
    thread.

    Parameters
    ----------
    graph : PairwiseGraph
        Two labels a node.
    reuse_vertex : bool
        Return the same array at every call, overwritten.

    References
    ----------
    Boros and Hammer 2002; Kolmogorov and Rother 2007; Dinic 1970.

    Examples
    --------
    >>> graph = PairwiseGraph(np.array([2, 2]), np.array([[0, 1]]))
    >>> RoofDuality(graph).compute_extreme_point(np.array([0.0, 1, 0, 0, 2, 0, 0, 2])).value
    3.0
    """

    def __init__(self, graph: PairwiseGraph, *, reuse_vertex: bool = False) -> None:
        """Allocate work space; raise InvalidProblemError unless every node has two labels."""
        check_flag("reuse_vertex", reuse_vertex)
        if not graph.is_binary:
            raise InvalidProblemError("Roof duality needs two labels at every node.")
        self.graph = graph
        self.n_undecided = 0
        self._vertex = np.zeros(graph.size) if reuse_vertex else None
        n, m = graph.n_nodes, graph.n_edges
        self._arcs = arc_lists(n, graph.edges[:, 0], graph.edges[:, 1])
        # Room for two copies, allocated once: arcs, residual capacities and the search.
        self._start = np.zeros(2 * n + 1, dtype=np.int64)
        self._head, self._mate = np.zeros((2, 4 * m), dtype=np.int64)
        self._residual, self._excess = np.zeros(4 * m), np.zeros(2 * n)
        self._pushed, self._level = np.zeros(m), np.zeros(2 * n, dtype=np.int64)
        self._work = np.zeros((3, 2 * n + 1), dtype=np.int64)
        self._field, self._coupling = np.zeros(n), np.zeros(m)
        self._high, self._flow, self._moved = np.zeros(n), np.zeros(m), np.zeros((2, n))

    def compute_extreme_point(self, scores: FloatArray) -> ExtremePoint:
        """Return a vertex of the local polytope that maximises <vertex, scores>.

        Parameters
        ----------
        scores : ndarray, shape (graph.size,), finite.

        Returns
        -------
        ExtremePoint
            vertex (graph.size,) with entries in {0, 1/2, 1}; value; certified upper_bound.

        Raises
        ------
        InvalidProblemError
            If the scores have another length or their sum is not finite.
        """
        graph, field, coupling = self.graph, self._field, self._coupling
        scores = np.ascontiguousarray(scores, dtype=np.float64)
        check_shape("scores", scores, (graph.size,))
        size, least = read_ising(graph.edges, scores, field, coupling)
        if not np.isfinite(size):  # a sum over all entries: one bad entry shows
            raise InvalidProblemError("scores: every entry must be a finite number.")
        self._cut(copies=2 if least < 0.0 else 1)
        vertex = np.empty(graph.size) if self._vertex is None else self._vertex
        write_vertex(graph.edges, coupling, self._high, vertex)
        value = float(vertex @ scores)
        bound = flow_bound(graph.edges, scores, coupling, self._flow, self._moved)
        # Rounding of each of the cancelling numbers in twice the precision.
        smallest = sum_allowance(graph.size, UNIT_ROUNDOFF * size)
        allowance = sum_allowance(ROUNDINGS, abs(bound)) + smallest
        return ExtremePoint(
            vertex=Vertex(read_only(vertex) if self._vertex is None else vertex),
            value=value,
            upper_bound=max(value, bound + allowance),
        )

    def _cut(self, copies: int) -> None:
        """Cut one or two copies; store values in {0, 1/2, 1} and the symmetric flow over edges."""
        n, m = self.graph.n_nodes, self.graph.n_edges
        first, second = self.graph.edges[:, 0], self.graph.edges[:, 1]
        excess, level = self._excess[: copies * n], self._level[: copies * n]
        excess[:n] = self._field
        push_over_edges(first, second, self._coupling, excess, self._pushed)
        if copies == 2:  # the mirrored flow; crossed arcs carry it out of both ends
            np.negative(excess[:n], out=excess[n:])
        start, head, mate = self._start[: copies * n + 1], self._head, self._mate
        residual = self._residual[: 2 * copies * m]
        fill_copies(*self._arcs, self._coupling, self._pushed, copies, start, head, mate, residual)
        max_flow_sparse(start, head, mate, residual, excess, level, self._work)
        there = self._arcs[3][:, 0]
        self.n_undecided = read_cut(level, residual, there, self._coupling, self._high, self._flow)
