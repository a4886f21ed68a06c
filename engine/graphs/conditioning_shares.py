"""Reweighted entropies as sums of concave terms: each edge's weight shared out between its ends."""

import numpy as np

from engine.core.arguments import FloatArray, IntArray
from engine.core.errors import InvalidProblemError
from engine.graphs.pairwise import PairwiseGraph
from engine.kernels.maxflow_sparse import arc_lists, max_flow_sparse

# Share of the edge weights that the orientation flow may miss before they count as invalid.
FLOW_TOLERANCE = 1e-9


def conditioning_shares(graph: PairwiseGraph, rho: FloatArray) -> FloatArray:
    """Split each rho_e over its two conditional entropies, shape (n_edges, 2).

    ``share[e, k]`` is the weight of H(other end | end k) and is charged to the other end; no node
    is charged more than 1, so that H_rho is written as a sum of concave terms. Every rho of a
    distribution over spanning forests has such a split (direct each tree away from a root).

    Raises
    ------
    InvalidProblemError
        If there is none: rho is then not in the polytope of spanning forests.
    """
    half = np.stack([rho, rho], axis=1) / 2.0
    load = np.bincount(graph.edges.ravel(), weights=half.ravel(), minlength=graph.n_nodes)
    if load.max(initial=0.0) <= 1.0:
        return half
    # A flow: each edge supplies rho_e to its two ends, each node takes up to 1.
    m, n = graph.n_edges, graph.n_nodes
    first = np.repeat(np.arange(m, dtype=np.int64), 2)
    second: IntArray = m + graph.edges.ravel()
    start, head, mate, place = arc_lists(m + n, first, second)
    residual = np.zeros(4 * m)
    residual[place[:, 0]] = np.repeat(rho, 2)
    excess = np.concatenate([rho, -np.ones(n)])
    level, work = np.zeros(m + n, dtype=np.int64), np.zeros((3, m + n + 1), dtype=np.int64)
    flow = max_flow_sparse(start, head, mate, residual, excess, level, work)
    if flow < rho.sum() * (1.0 - FLOW_TOLERANCE):
        raise InvalidProblemError(
            "rho: these edge weights are not probabilities of edges in spanning trees "
            f"({rho.sum() - flow:.3g} too much)."
        )
    charged = residual[place[:, 1]].reshape(m, 2)  # what arrived at each end
    return np.ascontiguousarray(charged[:, ::-1])
