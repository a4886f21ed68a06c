"""Tree-reweighted messages on the rows and columns of one binary grid, with their bound."""

import numpy as np
from numpy.typing import NDArray

from engine.core.arguments import FloatArray
from engine.crf.grid_features import GridFeatures, GridScores
from engine.kernels.grid_chains import (
    SCORE_LIMIT,
    bound_log_partition,
    fill_edge_tables,
    node_marginals,
    sum_over_edges,
    summarise,
    sweep,
)

Codes = NDArray[np.uint8] | NDArray[np.int32]

EXPONENT_LIMIT = 150.0
"""Largest size of negative log table entries; lower ones are raised (see `SCORE_LIMIT`)."""

RATIO_LIMIT = 300.0
"""Largest size of log odds ratios, so that their squares can be formed."""


class CodedChains:
    """Tree-reweighted messages of one grid whose edges are codes into two lists of tables.

    Parameters
    ----------
    codes : pair of ndarrays, shapes (rows, columns - 1) and (rows - 1, columns)
        Codes of the edges to the right and down.
    scores : GridScores
    rho : float
        In (0, 1]; the bound holds up to 1/2.
    messages : ndarray, shape (4, rows, columns)
        Starting messages, changed in place.
    """

    def __init__(
        self, codes: tuple[Codes, Codes], scores: GridScores, rho: float, messages: FloatArray
    ) -> None:
        self.codes, self.scores, self.rho, self.messages = codes, scores, rho, messages
        node = scores.node
        self.odds = np.exp(np.clip(node, -SCORE_LIMIT, SCORE_LIMIT))
        self._offset = scores.offset
        if node.max() > SCORE_LIMIT:  # the most by which clipping lowers log Z
            self._offset += float(np.maximum(node - SCORE_LIMIT, 0.0).sum())
        tables = []
        for edges, table in zip(codes, (scores.horizontal, scores.vertical), strict=True):
            scaled = table / rho
            top = largest_entries(scaled)
            self._offset += rho * float(sum_over_edges(edges, top))
            tables.append(np.exp(np.maximum(scaled - top[:, None], -EXPONENT_LIMIT)))
        self.tables = (tables[0], tables[1])
        self._ratios = (_odds_ratios(scores.horizontal / rho), _odds_ratios(scores.vertical / rho))

    def sweep(self, count: int) -> float:
        """Pass ``count`` times forward and backward; return the last largest relative change.

        It is NaN if any message is NaN: backward passes lead from all pixels to the first.
        """
        change = 0.0
        for _ in range(count):
            change = sweep(self.odds, *self.codes, *self.tables, self.rho, self.messages)
        into_first = self.messages[1, 0, 0] * self.messages[3, 0, 0]
        return float("nan") if np.isnan(into_first) else change

    def upper_bound(self) -> float:
        """Return a certified upper bound of log Z_rho(theta), nats; rho must be at most 1/2."""
        bound = bound_log_partition(self.odds, *self.codes, *self.tables, self.rho, self.messages)
        return float(bound + self._offset)

    def marginals(self) -> FloatArray:
        """Return tau_i(1), shape (rows, columns); the tables of ``complete`` have these margins."""
        nodes = np.empty(self.scores.node.shape)
        node_marginals(self.odds, self.rho, self.messages, nodes)
        return nodes

    def complete(self, nodes: FloatArray) -> tuple[FloatArray, FloatArray, float]:
        """Return the best edge tables for ``nodes``, summed by code, (n_codes, 4), and H_rho."""
        right, down = (np.zeros((len(table), 4)) for table in self.tables)
        entropy = summarise(nodes, *self.codes, *self._ratios, self.rho, right, down)
        return right, down, float(entropy)

    def edge_marginals(self, nodes: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return edge tables with margins ``nodes``, shapes (., ., 2, 2), right and down."""
        tables = tuple(np.empty((*codes.shape, 2, 2)) for codes in self.codes)
        for k in range(2):
            fill_edge_tables(nodes, self.codes[k], self._ratios[k], k == 1, tables[k])
        return tables[0], tables[1]


class GridChains(CodedChains):
    """Tree-reweighted messages of one picture at one theta, with bound and pseudomarginals.

    Parameters
    ----------
    features : GridFeatures
    rho : float, in (0, 1/2]
    theta : ndarray, shape (K,)
    messages : ndarray, shape (4, rows, columns), optional
        Warm start, changed in place; ones by default.
    """

    def __init__(
        self,
        features: GridFeatures,
        rho: float,
        theta: FloatArray,
        messages: FloatArray | None = None,
    ) -> None:
        self._features = features
        codes = (features.edges.horizontal, features.edges.vertical)
        start = np.ones((4, *features.shape)) if messages is None else messages
        super().__init__(codes, features.scores(theta), rho, start)

    def summarise(self, nodes: FloatArray) -> tuple[FloatArray, float]:
        """Return phi(tau) and H_rho(tau) of node marginals with their best edge tables."""
        *histograms, entropy = self.complete(nodes)
        return self._features.assemble_statistics(nodes, *histograms), entropy

    def edge_curvature(self, nodes: FloatArray) -> FloatArray:
        """Return sum_ij cov(tau_ij) x v v^T, shape (4 D, 4 D): edges counted as independent."""
        edges = self._features.edges
        total = np.zeros((4 * edges.n_features, 4 * edges.n_features))
        bases = (edges.horizontal_basis, edges.vertical_basis)
        for codes, tables, basis in zip(self.codes, self.edge_marginals(nodes), bases, strict=True):
            flat = tables.reshape(-1, 4)
            for a in range(4):
                for b in range(a, 4):
                    product = (flat[:, a] if a == b else 0.0) - flat[:, a] * flat[:, b]
                    sums = np.bincount(codes.ravel(), product, minlength=len(basis))
                    block = (basis * sums[:, None]).T @ basis
                    d = edges.n_features
                    total[a * d : (a + 1) * d, b * d : (b + 1) * d] += block
                    if a != b:
                        total[b * d : (b + 1) * d, a * d : (a + 1) * d] += block
        return total


def largest_entries(tables: FloatArray) -> FloatArray:
    """Return the largest entry of each table of (n, 4), shape (n,)."""
    first, second = (np.maximum(tables[:, k], tables[:, k + 1]) for k in (0, 2))
    return np.maximum(first, second)


def _odds_ratios(tables: FloatArray) -> FloatArray:
    """Return the odds ratios of exp(tables), shape (n_codes,), within the range of doubles."""
    interaction = tables[:, 0] + tables[:, 3] - tables[:, 1] - tables[:, 2]
    return np.exp(np.clip(interaction, -RATIO_LIMIT, RATIO_LIMIT))
