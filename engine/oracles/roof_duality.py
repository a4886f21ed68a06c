"""Maximise a linear function over the local polytope of any binary pairwise graph."""

import numpy as np

from engine.core.arguments import FloatArray, as_finite_array, read_only
from engine.core.errors import InvalidProblemError
from engine.graphs.pairwise import PairwiseGraph
from engine.kernels.maxflow_sparse import arc_lists, max_flow_sparse, push_over_edges
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
        n, m = graph.n_nodes, graph.n_edges
        first, second = graph.edges[:, 0], graph.edges[:, 1]
        unary = scores[: 2 * n].reshape(n, 2)
        tables = scores[2 * n :].reshape(m, 2, 2)
        # Differences of equal entries cancel exactly in this order: no spurious tiny couplings.
        coupling = 0.25 * (
            (tables[:, 0, 0] - tables[:, 0, 1]) - (tables[:, 1, 0] - tables[:, 1, 1])
        )
        lean_first = 0.25 * (tables[:, 1].sum(axis=1) - tables[:, 0].sum(axis=1))
        lean_second = 0.25 * (tables[:, :, 1].sum(axis=1) - tables[:, :, 0].sum(axis=1))
        field = 0.5 * (unary[:, 1] - unary[:, 0])
        field += np.bincount(first, weights=lean_first, minlength=n)
        field += np.bincount(second, weights=lean_second, minlength=n)
        high, flow = self._cut(field, coupling)

        vertex = np.empty(graph.size)
        vertex[: 2 * n] = np.stack([1.0 - high, high], axis=1).ravel()
        vertex[2 * n :] = _edge_tables(high[first], high[second], coupling).ravel()
        self.n_undecided = int((high == 0.5).sum())
        # The dual value: any edge flow proves it (see engine.kernels.ising_grid.dual_bound).
        left = field - np.bincount(first, weights=flow, minlength=n)
        left += np.bincount(second, weights=np.where(coupling > 0, flow, -flow), minlength=n)
        size = np.abs(coupling)
        constant = float(unary.sum() / 2 + tables.sum() / 4)
        bound = constant + float(
            np.abs(left).sum() + np.maximum(size, 2 * np.abs(flow) - size).sum()
        )
        value = float(vertex @ scores)
        allowance = 64 * UNIT_ROUNDOFF * float(np.abs(scores).sum() + np.abs(field).sum())
        return ExtremePoint(
            vertex=read_only(vertex), value=value, upper_bound=max(value, bound + allowance)
        )

    def _cut(self, field: FloatArray, coupling: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return node values in {0, 1/2, 1} and the symmetric flow over each edge."""
        n = self.graph.n_nodes
        first, second = self.graph.edges[:, 0], self.graph.edges[:, 1]
        size = np.abs(coupling)
        left, pushed = field.copy(), np.empty_like(coupling)
        push_over_edges(first, second, coupling, left, pushed)
        # In the second copy the mirrored flow runs; crossed arcs carry it out of both ends.
        copies = 2 if (coupling < 0.0).any() else 1
        if copies == 2:
            crossed = np.where(coupling < 0.0, n, 0)
            tails = np.concatenate([first, first + n])
            heads = np.concatenate([second + crossed, second + n - crossed])
            excess = np.concatenate([left, -left])
            start_flow = np.concatenate([pushed, -pushed])
        else:
            tails, heads, excess, start_flow = first.copy(), second.copy(), left, pushed
        start, arcs = arc_lists(len(excess), tails, heads)
        head = np.stack([heads, tails], axis=1).ravel()
        capacity = np.tile(size, copies)
        residual = np.stack([capacity - start_flow, capacity + start_flow], axis=1).ravel()
        level = np.zeros(len(excess), dtype=np.int64)
        max_flow_sparse(start, arcs, head, residual, excess, level)
        source = level >= 0
        flow = capacity - residual[::2]
        if copies == 1:
            return source.astype(np.float64), flow
        m = len(size)
        high: FloatArray = np.where(source[:n], 0.5, 0.0) + np.where(source[n:], 0.0, 0.5)
        return high, 0.5 * (flow[:m] - flow[m:])


def _edge_tables(p: FloatArray, q: FloatArray, coupling: FloatArray) -> FloatArray:
    """Return the best (m, 2, 2) tables with margins p and q in {0, 1/2, 1}."""
    rows = np.stack([1.0 - p, p], axis=1)
    columns = np.stack([1.0 - q, q], axis=1)
    tables: FloatArray = rows[:, :, None] * columns[:, None, :]
    undecided = (p == 0.5) & (q == 0.5)
    same = np.where(coupling >= 0.0, 0.5, 0.0)[undecided]
    tables[undecided, 0, 0] = tables[undecided, 1, 1] = same
    tables[undecided, 0, 1] = tables[undecided, 1, 0] = 0.5 - same
    return tables
