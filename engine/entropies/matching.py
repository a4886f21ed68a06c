"""Reweighted entropy of perfect and imperfect matchings, which is Bethe at rho = 1.

    H_rho(tau) = sum_e [ (rho_i + rho_j - 1) (1 - tau_e) log(1 - tau_e) - tau_e log tau_e ]
                 - sum_i rho_i (1 - d_i) log(1 - d_i)          (imperfect only; d_i = sum at i)

Concave over the degree polytope for every rho in [0, 1] per node (Tang 2015, theorem 1). Layouts of
tau: complete graphs as symmetric (n, n) arrays with a zero diagonal, bipartite graphs as (n, m),
general graphs as (edges,). Entries that are exactly 0 or 1 are clamped: they add nothing and have
gradient 0.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from engine.core.arguments import FloatArray, IntArray, as_finite_array
from engine.core.errors import InvalidProblemError
from engine.core.options import check_flag, check_number, check_whole
from engine.kernels.matching_entropy import add_entropy, entropy_of_multiple, write_gradient
from engine.kernels.threads import for_row_ranges
from engine.oracles.protocol import Vertex

FLAT = 20_000  # number of entries from which two threads save time


@dataclass(frozen=True)
class MatchingLayout:
    """Positions of a graph's edges in an array of pseudomarginals.

    Parameters
    ----------
    shape : tuple of int, of the array.
    n_nodes : int
    edges : ndarray, shape (e, 2), or None
        None for complete graphs (square, every edge twice) and bipartite ones (rows, then columns).

    Examples
    --------
    >>> complete_layout(3).degrees(np.full((3, 3), 0.5) - 0.5 * np.eye(3)).tolist()
    [1.0, 1.0, 1.0]
    """

    shape: tuple[int, ...]
    n_nodes: int
    edges: IntArray | None = None

    @property
    def is_symmetric(self) -> bool:
        """True if every edge is in the array twice."""
        return self.edges is None and self.shape[0] == self.n_nodes

    @property
    def share(self) -> float:
        """Weight of one entry in sums: 1/2 if every edge is in the array twice."""
        return 0.5 if self.is_symmetric else 1.0

    def ends(self, places: IntArray | None = None) -> tuple[IntArray, IntArray]:
        """Return the two nodes of the entries at flat indices, by default of all entries."""
        if self.edges is not None:
            chosen = self.edges if places is None else self.edges[places]
            return chosen[:, 0], chosen[:, 1]
        count = self.shape[0] * self.shape[1]
        where = np.arange(count, dtype=np.int64) if places is None else places
        rows, columns = np.divmod(where, max(self.shape[1], 1))
        return rows, columns + (0 if self.is_symmetric else self.shape[0])

    def degrees(self, tau: FloatArray) -> FloatArray:
        """Return d_i = sum of tau at every node, shape (n_nodes,)."""
        if self.edges is None:
            rows: FloatArray = tau.sum(axis=1)
            return rows if self.is_symmetric else np.concatenate([rows, tau.sum(axis=0)])
        first, second = self.ends()
        total = np.bincount(first, tau, self.n_nodes) + np.bincount(second, tau, self.n_nodes)
        return total.astype(np.float64)


def complete_layout(n: int) -> MatchingLayout:
    """Return the layout of a complete graph: symmetric (n, n).

    Parameters
    ----------
    n : int
        Nodes.

    Returns
    -------
    MatchingLayout
        The layout of symmetric arrays (n, n), which contain every edge twice.

    Examples
    --------
    >>> complete_layout(4).share
    0.5
    """
    check_whole("n", n)
    return MatchingLayout((n, n), n)


def bipartite_layout(n: int, m: int) -> MatchingLayout:
    """Return the layout of a complete bipartite graph: (n, m), columns are nodes n .. n + m - 1.

    Parameters
    ----------
    n, m : int
        Rows and columns.

    Returns
    -------
    MatchingLayout
        The layout of arrays (n, m).

    Examples
    --------
    >>> bipartite_layout(2, 3).n_nodes
    5
    """
    check_whole("n", n)
    check_whole("m", m)
    return MatchingLayout((n, m), n + m)


def edge_layout(n_nodes: int, edges: IntArray) -> MatchingLayout:
    """Return the layout of a general graph: one entry per edge, ``edges`` (e, 2).

    Parameters
    ----------
    n_nodes : int
    edges : ndarray, shape (e, 2), int
        Nodes from 0.

    Returns
    -------
    MatchingLayout
        The layout of arrays (e,).

    Raises
    ------
    InvalidProblemError
        If an edge names an unknown node or is a self-loop.

    Examples
    --------
    >>> edge_layout(3, np.array([[0, 1], [1, 2]])).degrees(np.array([0.25, 0.5])).tolist()
    [0.25, 0.75, 0.5]
    """
    check_whole("n_nodes", n_nodes)
    edges = np.array(edges, dtype=np.int64).reshape(-1, 2)
    if len(edges) and (edges.min() < 0 or edges.max() >= n_nodes):
        raise InvalidProblemError(f"edges: expected nodes from 0 to {n_nodes - 1}.")
    loops = np.flatnonzero(edges[:, 0] == edges[:, 1])
    if len(loops):
        node = int(edges[loops[0], 0])
        raise InvalidProblemError(f"Edge {int(loops[0])} joins node {node} to itself.")
    return MatchingLayout((len(edges),), n_nodes, edges)


@dataclass(frozen=True)
class MatchingEntropy:
    """Entropy H_rho on one layout, with its gradient and its derivatives along a line.

    Parameters
    ----------
    layout : MatchingLayout
    rho : ndarray, shape (n_nodes,), in [0, 1]; see ``make_matching_entropy``.
    is_perfect : bool, whether every node is matched in every matching.

    References
    ----------
    Tang et al. 2015, section 4.1 and appendix C.

    Examples
    --------
    >>> entropy = make_matching_entropy(bipartite_layout(2, 2), 0.5)
    >>> round(entropy.value(np.full((2, 2), 0.5)) / float(np.log(2)), 9)
    2.0
    """

    layout: MatchingLayout
    rho: FloatArray
    is_perfect: bool = True

    @cached_property
    def counts(self) -> FloatArray:
        """Numbers rho_i + rho_j - 1 of entries, flat; one number if all nodes have the same rho."""
        if len(self.rho) and np.all(self.rho == self.rho[0]):
            return np.array([2.0 * self.rho[0] - 1.0])
        first, second = self.layout.ends()
        return self.rho[first] + self.rho[second] - 1.0

    def value(self, tau: FloatArray) -> float:
        """Return H_rho(tau), nats."""
        flat = tau.ravel()
        parts: list[float] = []

        def add(first: int, last: int) -> None:
            parts.append(add_entropy(flat, self.counts, first, last))

        for_row_ranges(len(flat), add, FLAT)
        total = self.layout.share * float(np.sum(parts))
        return total if self.is_perfect else total - self._free_part(tau)

    def gradient(self, tau: FloatArray) -> FloatArray:
        """Return dH/dtau_e in the layout of tau, nats; 0 at clamped entries.

        In symmetric arrays both entries of an edge are the derivative by the edge.
        """
        flat = tau.ravel()
        out = np.empty_like(flat)
        for_row_ranges(len(flat), lambda a, b: write_gradient(flat, self.counts, a, b, out), FLAT)
        if not self.is_perfect:
            free = np.maximum(1.0 - self.layout.degrees(tau), 1e-300)
            pull = self.rho * (1.0 + np.log(free))
            inside = (flat > 0.0) & (flat < 1.0)
            first, second = self.layout.ends()
            out += np.where(inside, pull[first] + pull[second], 0.0)
        return out.reshape(self.layout.shape)

    def _free_part(self, tau: FloatArray) -> float:
        free = np.maximum(1.0 - self.layout.degrees(tau), 0.0)
        return float(self.rho @ (free * np.log(np.where(free > 0.0, free, 1.0))))

    def along(
        self, tau: FloatArray, vertex: Vertex
    ) -> Callable[[float], tuple[float, float, float]]:
        """Return g -> H, H', H'' at tau + g (v - tau), for a vertex of ones and zeros."""
        flat, places, share = tau.ravel(), vertex.support, self.layout.share
        chosen, counts = flat[places], self._counts_at(places)
        free = None if self.is_perfect else 1.0 - self.layout.degrees(tau)
        change = None if free is None else self._indicator_degrees(places) - 1.0 + free

        def evaluate(step: float) -> tuple[float, float, float]:
            value, slope, curvature = self._sum_of_multiple(flat, 1.0 - step)
            old = _terms((1.0 - step) * chosen, counts)
            new = _terms((1.0 - step) * chosen + step, counts)
            value += float(np.sum(new[0] - old[0]))
            slope = -slope + float(np.sum(new[1] * (1.0 - chosen) + old[1] * chosen))
            curvature += float(np.sum(new[2] * (1.0 - chosen) ** 2 - old[2] * chosen**2))
            whole = share * value, share * slope, share * curvature
            if free is None or change is None:
                return whole
            return self._with_free_part(whole, free - step * change, change)

        return evaluate

    def _sum_of_multiple(self, flat: FloatArray, factor: float) -> tuple[float, float, float]:
        """Return the sum of h_c(factor t) with its derivatives in the factor, over all entries."""
        parts: list[tuple[float, float, float]] = []

        def work(first: int, last: int) -> None:
            parts.append(entropy_of_multiple(flat, self.counts, factor, first, last))

        for_row_ranges(len(flat), work, FLAT)
        value, slope, curvature = (float(x) for x in np.sum(parts, axis=0))
        return value, slope, curvature

    def curvature_among(
        self, tau: FloatArray, start: FloatArray, vertices: Sequence[Vertex]
    ) -> FloatArray:
        """Return -<a, grad^2 H(tau) b> for every pair of start and vertices, (k + 1, k + 1).

        ``start`` has the layout of tau; vertices are of ones and zeros.
        """
        flat, dense = tau.ravel(), start.ravel()
        supports = [vertex.support for vertex in vertices]
        places = np.concatenate([*supports, np.empty(0, dtype=np.int64)])
        ends = np.cumsum([0, *map(len, supports)])
        chosen = csr_array((np.ones(len(places)), places, ends), shape=(len(vertices), len(flat)))
        bend = -_terms(flat, self.counts)[2]
        mixed = chosen @ (bend * dense)
        out = np.empty((len(vertices) + 1,) * 2)
        out[0, 0] = float(np.einsum("i,i,i->", bend, dense, dense))
        out[0, 1:] = out[1:, 0] = mixed
        out[1:, 1:] = ((chosen * bend[None, :]) @ chosen.T).toarray()
        out *= self.layout.share
        if not self.is_perfect:
            degrees = [self.layout.degrees(start), *map(self._indicator_degrees, supports)]
            free = np.maximum(1.0 - self.layout.degrees(tau), 1e-300)
            out += np.array(degrees) @ (self.rho / free * np.array(degrees)).T
        return out

    def _counts_at(self, places: IntArray) -> FloatArray:
        return self.counts if len(self.counts) == 1 else self.counts[places]

    def _indicator_degrees(self, vertex: IntArray) -> FloatArray:
        ends = np.concatenate(self.layout.ends(vertex))
        count = np.bincount(ends, minlength=self.layout.n_nodes).astype(np.float64)
        return count * self.layout.share

    def _with_free_part(
        self, whole: tuple[float, float, float], free: FloatArray, change: FloatArray
    ) -> tuple[float, float, float]:
        """Add -sum rho f log f and its derivatives, f = 1 - d the chance of being unmatched."""
        free = np.maximum(free, 1e-300)
        logs = np.log(free)
        return (
            whole[0] - float(self.rho @ (free * logs)),
            whole[1] + float(self.rho @ (change * (1.0 + logs))),
            whole[2] - float(self.rho @ (change**2 / free)),
        )


def _terms(t: FloatArray, counts: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return h_c, h_c' and h_c'' of a few entries; all are 0 where t is 0 or 1."""
    inside = (t > 0.0) & (t < 1.0)
    x = np.where(inside, t, 0.5)
    log_x, log_rest = np.log(x), np.log1p(-x)
    return (
        np.where(inside, counts * (1.0 - x) * log_rest - x * log_x, 0.0),
        np.where(inside, -counts * (1.0 + log_rest) - 1.0 - log_x, 0.0),
        np.where(inside, counts / (1.0 - x) - 1.0 / x, 0.0),
    )


def make_matching_entropy(
    layout: MatchingLayout, rho: float | FloatArray, *, is_perfect: bool = True
) -> MatchingEntropy:
    """Build an entropy with one rho for all nodes or one per node.

    Parameters
    ----------
    layout : MatchingLayout
    rho : float, or ndarray of shape (n_nodes,)
        In [0, 1]: 1 is Bethe, 1/2 the reweighted entropy of perfect matchings.
    is_perfect : bool
        Whether every node is matched in every matching.

    Returns
    -------
    MatchingEntropy
        In nats.

    Raises
    ------
    InvalidProblemError
        If a rho is outside [0, 1] or the number of rhos is not that of the nodes.

    Examples
    --------
    >>> entropy = make_matching_entropy(bipartite_layout(2, 2), 1.0)
    >>> round(entropy.value(np.full((2, 2), 0.5)), 9)
    0.0
    """
    check_number("rho", rho, at_least=0.0, at_most=1.0, or_array=True)
    check_flag("is_perfect", is_perfect)
    return MatchingEntropy(layout, node_weights(rho, layout.n_nodes), is_perfect)


def node_weights(rho: Any, n_nodes: int) -> FloatArray:
    """Return one rho per node, shape (n_nodes,), from one number for all or one for each.

    Raises
    ------
    InvalidProblemError
        If a rho is outside [0, 1] or the number of rhos is not that of the nodes.
    """
    each = np.full(n_nodes, rho) if np.ndim(rho) == 0 else rho
    values = as_finite_array("rho", each, shape=(n_nodes,))
    if len(values) and (values.min() < 0.0 or values.max() > 1.0):
        raise InvalidProblemError(f"rho: expected numbers in [0, 1], received {rho}.")
    return values
