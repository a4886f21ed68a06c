"""Entropies of pairwise models on the local polytope: Bethe, tree-reweighted and mean field."""

from collections.abc import Callable

import numpy as np

from engine.core.arguments import FloatArray, read_only
from engine.core.errors import InvalidProblemError
from engine.core.options import check_number
from engine.graphs.grid import Grid
from engine.graphs.pairwise import PairwiseGraph
from engine.kernels.long_sums import entropy_derivatives, triple_product
from engine.oracles.protocol import Vertex

# Smallest probability whose logarithm is taken, so that gradients are finite at the boundary.
SMALLEST_PROBABILITY = 1e-300


class PairwiseEntropy:
    """Entropy H(tau) = - sum_k c_k tau_k log tau_k over all table entries, flat.

    With c = 1 - sum_j rho_ij on the entries of node i and c = rho_ij on those of edge ij this is
    sum_i H(tau_i) - sum_ij rho_ij I(tau_ij) wherever tau lies in the local polytope: Bethe for
    rho = 1, tree-reweighted (concave, an upper bound of the entropy) if rho are edge
    probabilities of a distribution over spanning forests.

    It owns work space of two vectors: use one object for each thread.

    Parameters
    ----------
    coefficients : ndarray, shape (size,), float64
        c, one for each entry of the tables.

    References
    ----------
    Wainwright, Jaakkola and Willsky 2005; Tang 2015, E.2; Domke 2013, 3.1.

    Examples
    --------
    >>> round(PairwiseEntropy(np.ones(2)).value(np.array([0.5, 0.5])), 6)
    0.693147
    """

    def __init__(self, coefficients: FloatArray) -> None:
        """Store c, shape (size,), one number for each table entry."""
        self.coefficients = read_only(np.array(coefficients, dtype=np.float64))
        self._point, self._log = (np.empty_like(self.coefficients) for _ in range(2))

    def value(self, tables: FloatArray) -> float:
        """Return H(tau) in nats; 0 log 0 = 0."""
        np.maximum(tables, SMALLEST_PROBABILITY, out=self._log)
        np.log(self._log, out=self._log)
        return -triple_product(self.coefficients, tables, self._log)

    def gradient(self, tables: FloatArray, out: FloatArray | None = None) -> FloatArray:
        """Return dH/dtau = -c (1 + log tau), shape (size,), in ``out`` if given.

        Entries below 1e-300 count as 1e-300.
        """
        result = np.empty_like(self.coefficients) if out is None else out
        np.maximum(tables, SMALLEST_PROBABILITY, out=result)
        np.log(result, out=result)
        result += 1.0
        result *= self.coefficients
        return np.negative(result, out=result)

    def along(
        self, tables: FloatArray, vertex: Vertex
    ) -> Callable[[float], tuple[float, float, float]]:
        """Return g -> H(tau + g (v - tau)), its first and its second derivative in g (nats)."""
        direction = vertex.dense(len(tables)) - tables

        def evaluate(step: float) -> tuple[float, float, float]:
            point, log = self._point, self._log
            np.multiply(direction, step, out=point)
            point += tables
            np.maximum(point, SMALLEST_PROBABILITY, out=point)
            np.log(point, out=log)
            return entropy_derivatives(self.coefficients, point, log, direction)

        return evaluate


def grid_entropy(grid: Grid, rho: float | FloatArray) -> PairwiseEntropy:
    """Return the entropy of a grid for one ``rho``, or one an edge in the order of grid.edges().

    rho = 1 is Bethe; rho = 1/2 is valid on every 4-connected grid: the mean of the forest of all
    rows and the forest of all columns.

    Parameters
    ----------
    grid : Grid
    rho : float, or ndarray of shape (n_edges,)
        Edge appearance probabilities.

    Returns
    -------
    PairwiseEntropy
        The entropy of flat tables (grid.size,), nats.

    Raises
    ------
    InvalidProblemError
        If a rho is not in [0, 1] or the number of rhos is not that of the edges.

    Examples
    --------
    >>> grid = Grid(2, 2)
    >>> round(grid_entropy(grid, 0.5).value(grid.uniform().flat) / float(np.log(2)), 9)
    4.0
    """
    check_number("rho", rho, at_least=0.0, at_most=1.0, or_array=True)
    return graph_entropy(grid.to_pairwise(), rho)


def graph_entropy(graph: PairwiseGraph, rho: float | FloatArray) -> PairwiseEntropy:
    """Return the entropy of a general graph for one ``rho``, or one for each edge.

    Parameters
    ----------
    graph : PairwiseGraph
    rho : float, or ndarray of shape (n_edges,)
        Edge appearance probabilities in [0, 1]; 1 is Bethe.

    Returns
    -------
    PairwiseEntropy
        The entropy of flat tables (graph.size,), nats.

    Raises
    ------
    InvalidProblemError
        If a rho is not in [0, 1] or the number of rhos is not that of the edges.

    Examples
    --------
    >>> graph = PairwiseGraph(np.array([2, 2]), np.array([[0, 1]]))
    >>> round(graph_entropy(graph, 1.0).value(graph.uniform()) / float(np.log(2)), 9)
    2.0
    """
    check_number("rho", rho, at_least=0.0, at_most=1.0, or_array=True)
    rho_edge = edge_weights(rho, graph.n_edges)
    ends = graph.edges.ravel()
    used = np.bincount(ends, weights=np.repeat(rho_edge, 2), minlength=graph.n_nodes)
    return PairwiseEntropy(
        np.concatenate(
            [
                np.repeat(1.0 - used, graph.cardinalities),
                np.repeat(rho_edge, np.diff(graph.edge_start)),
            ]
        )
    )


def tangent_excess(
    graph: PairwiseGraph, shares: FloatArray, scores: FloatArray, tables: FloatArray
) -> float:
    """Return a bound on H_rho minus its tangent at ``tables``, nats: 0 if margins agree.

    H_rho, rho the sums of ``shares``, is a sum of conditional entropies (see
    ``graphs.conditioning_shares``): by Gibbs' inequality each is at most its cross entropy with
    the conditionals of ``tables``, apart from their sums. Any tables >= 0 are allowed.
    """
    floor = np.where(np.isneginf(scores), 0.0, np.maximum(tables, SMALLEST_PROBABILITY))
    n = int(graph.node_start[-1])
    nodes = floor[:n]
    charged = np.bincount(
        graph.edges.ravel(), weights=shares[:, ::-1].ravel(), minlength=graph.n_nodes
    )
    sums = np.add.reduceat(nodes, graph.node_start[:-1])
    excess = float(np.maximum(1.0 - charged, 0.0) @ np.log(sums))
    margins = sum(
        np.bincount(places, weights=floor[n:], minlength=graph.n_messages)
        for places in graph.message_places()
    )
    own = nodes[graph.node_places()]
    ratios = np.divide(margins, own, out=np.zeros_like(own), where=own > 0.0)
    largest = np.maximum.reduceat(ratios, graph.message_start[:-1])
    return excess + float(shares.ravel() @ np.log(np.maximum(largest, SMALLEST_PROBABILITY)))


def edge_weights(rho: float | FloatArray, n_edges: int) -> FloatArray:
    """Return one rho for each edge, shape (n_edges,), or raise InvalidProblemError."""
    weights = np.asarray(rho, dtype=np.float64)
    if weights.ndim == 0:
        weights = np.full(n_edges, float(weights))
    if weights.shape != (n_edges,):
        raise InvalidProblemError(f"rho: expected {n_edges} numbers, received {weights.shape}.")
    if not ((weights >= 0.0) & (weights <= 1.0)).all():
        raise InvalidProblemError("rho: every edge weight must lie between 0 and 1.")
    return weights
