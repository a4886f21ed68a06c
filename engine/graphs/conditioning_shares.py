"""Reweighted entropies as sums of concave terms: each edge's weight is split over its ends."""

import numpy as np

from engine.core.arguments import FloatArray, IntArray
from engine.core.errors import InvalidProblemError
from engine.graphs.pairwise import PairwiseGraph
from engine.kernels.maxflow_sparse import arc_lists, max_flow_sparse

# Share of the edge weights that the orientation flow may miss before they count as invalid.
FLOW_TOLERANCE = 1e-11


def conditioning_shares(
    graph: PairwiseGraph, rho: FloatArray, *, from_trees: bool = False
) -> FloatArray:
    """Split each rho_e over its two conditional entropies, shape (n_edges, 2).

    ``share[e, k]`` is the weight of H(other end | end k) and is charged to the other end; no node
    is charged more than 1, so that H_rho is written as a sum of concave terms. Every rho of a
    distribution over spanning forests has such a split (direct each tree away from a root).

    Parameters
    ----------
    from_trees : whether rho is known to come from such a distribution, which skips the check.

    Raises
    ------
    InvalidProblemError
        If rho is not in the polytope of spanning forests: rho(E[S]) <= |S| - 1 for every set S.

    Notes
    -----
    Cost of the check: one augmentation of a flow for each node of `_crowded_nodes`; there are none
    for grids with rho = 1/2 and for forests.

    References
    ----------
    Edmonds 1970 (the polytope); Cunningham 1984 (a flow with each node as the root).
    """
    crowded = _crowded_nodes(graph, rho) if not from_trees else np.zeros(0, dtype=np.int64)
    half = np.stack([rho, rho], axis=1) / 2.0
    is_light = _loads(graph, rho).max(initial=0.0) <= 2.0
    if is_light and len(crowded) == 0:
        return half
    charged = _charge_ends(graph, rho, crowded)
    return half if is_light else np.ascontiguousarray(charged[:, ::-1])


def _loads(graph: PairwiseGraph, rho: FloatArray) -> FloatArray:
    """Return the sum of rho over the edges at each node, shape (n_nodes,)."""
    ends = graph.edges.ravel()
    load = np.bincount(ends, weights=np.repeat(rho, 2), minlength=graph.n_nodes)
    return np.asarray(load, dtype=np.float64)


def _crowded_nodes(graph: PairwiseGraph, rho: FloatArray) -> IntArray:
    """Return the nodes that remain after repeatedly removing nodes of load at most 1.

    A smallest set S with rho(E[S]) > |S| - 1 loses more than 1 with each of its nodes, because the
    rest of it satisfies the inequality: no node of S is ever removed.
    """
    load = _loads(graph, rho)
    limit = 1.0 + FLOW_TOLERANCE
    is_left = np.ones(graph.n_nodes, dtype=bool)
    waiting = np.flatnonzero(load <= limit).tolist()
    while waiting:
        node = waiting.pop()
        is_left[node] = False
        low, high = graph.incident_start[node], graph.incident_start[node + 1]
        for end in graph.incident_edge[low:high]:
            other = int(graph.edges[end // 2, 1 - end % 2])
            was_crowded = load[other] > limit
            load[other] -= rho[end // 2]
            if was_crowded and load[other] <= limit:
                waiting.append(other)
    return np.flatnonzero(is_left)


def _charge_ends(graph: PairwiseGraph, rho: FloatArray, roots: IntArray) -> FloatArray:
    """Return a flow: each edge supplies rho_e to its two ends, shape (n_edges, 2), each takes <= 1.

    Raises InvalidProblemError unless, for each node of ``roots``, a flow exists that avoids it.
    """
    m, n = graph.n_edges, graph.n_nodes
    first = np.repeat(np.arange(m, dtype=np.int64), 2)
    second: IntArray = m + graph.edges.ravel()
    start, head, mate, place = arc_lists(m + n, first, second)
    residual = np.zeros(4 * m)
    residual[place[:, 0]] = np.repeat(rho, 2)
    excess = np.concatenate([rho, -np.ones(n)])
    level, work = np.zeros(m + n, dtype=np.int64), np.zeros((3, m + n + 1), dtype=np.int64)
    max_flow_sparse(start, head, mate, residual, excess, level, work)
    allowed = FLOW_TOLERANCE * float(rho.sum())
    missing = float(excess[:m].sum())
    for root in m + roots:
        if missing > allowed:
            break
        excess[root] += 1.0  # the flow into the root must be rerouted
        max_flow_sparse(start, head, mate, residual, excess, level, work)
        missing = max(0.0, float(excess[root]))
        excess[root] -= 1.0
    if missing > allowed:
        raise InvalidProblemError(
            "rho: these edge weights are not probabilities of edges in spanning trees "
            f"({missing:.3g} too much)."
        )
    return residual[place[:, 1]].reshape(m, 2)  # flow received by each end
