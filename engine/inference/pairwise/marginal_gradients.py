"""Gradients of functions of converged pseudomarginals by implicit differentiation.

With tau(theta) the maximum of <theta, tau> + H(tau), d tau / d theta is a symmetric matrix, and the
gradient of Q(tau(theta)) is its product with the slope dQ/dtau.

References
----------
Domke 2013, section 5.
"""

import numpy as np
import scipy  # submodules load when first used

from engine.core.arguments import FloatArray
from engine.entropies.pairwise import graph_entropy
from engine.graphs.local_polytope import local_polytope_rows
from engine.graphs.pairwise import PairwiseGraph

SMALLEST = 1e-12
"""Smallest probability, since the entropy's curvature is unbounded near 0."""


class ImplicitGradient:
    """Implicit differentiation of tree-reweighted marginals on one graph.

    The conditions of the maximum over the local polytope, theta + dH/dtau + B^T nu = 0 and
    B tau = b, are differentiated directly: one sparse symmetric system of the tables and the
    constraints without redundant rows. Counting numbers may have any sign.

    Parameters
    ----------
    graph : PairwiseGraph
    rho : float or ndarray, shape (n_edges,)

    Notes
    -----
    One sparse LU decomposition an evaluation; on a grid of n nodes O(n^1.5).
    """

    def __init__(self, graph: PairwiseGraph, rho: float | FloatArray) -> None:
        self._graph = graph
        self._coefficients = graph_entropy(graph, rho).coefficients
        rows = local_polytope_rows(graph)
        redundant = graph.n_nodes + graph.message_start[2::2] - 1  # last of each edge's second end
        self._constraints = rows[np.delete(np.arange(rows.shape[0]), redundant)]

    def __call__(self, tables: FloatArray, slope: FloatArray) -> FloatArray:
        """Return dQ/dtheta, shape (graph.size,), from converged ``tables`` and dQ/dtau."""
        curvature = -self._coefficients / np.maximum(tables, SMALLEST)
        rows = self._constraints
        matrix = scipy.sparse.block_array(
            [[scipy.sparse.diags_array(curvature), rows.T], [rows, None]], format="csc"
        )
        right = np.concatenate([slope, np.zeros(rows.shape[0])])
        solution = scipy.sparse.linalg.splu(matrix).solve(right)
        return np.asarray(-solution[: len(slope)])


def mean_field_tables(graph: PairwiseGraph, nodes: FloatArray) -> FloatArray:
    """Return flat tables of the product of flat node distributions."""
    first, second = _ends(graph)
    return np.concatenate([nodes, nodes[first] * nodes[second]])


def implicit_mean_field_gradient(
    graph: PairwiseGraph, scores: FloatArray, tables: FloatArray, slope: FloatArray
) -> FloatArray:
    """Return dQ/dtheta at a fixed point tau_i = softmax(theta_i + sum_j theta_ij tau_j).

    It solves one sparse system of the node tables; ``tables`` are those of `mean_field_tables`.
    """
    n = int(graph.node_start[-1])
    first, second = _ends(graph)
    nodes, pair_slope, pair_scores = tables[:n], slope[n:], scores[n:]
    outer = slope[:n] + np.bincount(first, pair_slope * nodes[second], n)
    outer += np.bincount(second, pair_slope * nodes[first], n)
    entries = (np.concatenate([first, second]), np.concatenate([second, first]))
    couplings = scipy.sparse.csr_array((np.tile(pair_scores, 2), entries), shape=(n, n))
    spread = _softmax_slopes(graph, nodes)
    identity = scipy.sparse.eye_array(n)
    pulled = spread @ scipy.sparse.linalg.splu((identity - couplings @ spread).tocsc()).solve(outer)
    pairs = pulled[first] * nodes[second] + pulled[second] * nodes[first]
    return np.asarray(np.concatenate([pulled, pairs]))


def _ends(graph: PairwiseGraph) -> tuple[np.ndarray, np.ndarray]:
    """Return for each entry of the edge tables the entries of its two nodes' tables."""
    places = graph.node_places()
    first, second = graph.message_places()
    return places[first], places[second]


def _softmax_slopes(graph: PairwiseGraph, nodes: FloatArray) -> "scipy.sparse.csr_array":
    """Return diag(tau_i) - tau_i tau_i^T, one block a node."""
    blocks = []
    for i in range(graph.n_nodes):
        table = graph.node_table(nodes, i)
        blocks.append(np.diag(table) - np.outer(table, table))
    return scipy.sparse.csr_array(scipy.sparse.block_diag(blocks))
