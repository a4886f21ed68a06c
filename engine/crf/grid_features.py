"""Features of a grid of pixels as two linear maps and their transposes.

Nodes: theta_i(x) = <F_x, u_i>, x = 0, 1. Edges: theta_ij(x, y) = <G_xy, v_ij>, with the pair
read left to right and top to bottom. The parameters are one vector,

    theta = (F_0, F_1, G_00, G_01, G_10, G_11),   K = 2 n_unary + 4 n_edge.

Feature matrices are never stored. Node features provide two products with vectors. Edge features
have few distinct values, so an edge stores a code of one byte, and a basis lists the vector v of
every code. A photograph of 30,000 pixels takes 300 kB instead of 15 MB.

References
----------
Domke 2013, sections 8.1 to 8.3; Tang et al. 2015, appendix E.1.
"""

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from engine.core.arguments import FloatArray, IntArray, as_kernel_input, read_only
from engine.core.errors import InvalidProblemError
from engine.kernels.edge_codes import add_to_histogram, count_label_pairs

CodeArray = NDArray[np.uint8]
LabelArray = NDArray[np.bool_]


class NodeFeatures(Protocol):
    """Protocol of the node features u_i of one picture."""

    @property
    def n_features(self) -> int:
        """Length of u_i."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the grid."""

    def scores(self, weights: FloatArray) -> FloatArray:
        """Return <weights, u_i> of every pixel, shape (rows, columns)."""

    def project(self, residual: FloatArray) -> FloatArray:
        """Return sum_i residual_i u_i, shape (n_features,): the transpose of ``scores``."""

    def rows(self, pixels: IntArray) -> FloatArray:
        """Return u_i of the pixels with the given flat indices, shape (n, n_features)."""


@dataclass(frozen=True, slots=True)
class DenseNodeFeatures:
    """Node features stored as an array ``values`` of shape (rows, columns, n_features)."""

    values: FloatArray

    @property
    def n_features(self) -> int:
        """Length of u_i."""
        return int(self.values.shape[2])

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the grid."""
        return int(self.values.shape[0]), int(self.values.shape[1])

    def scores(self, weights: FloatArray) -> FloatArray:
        """Return <weights, u_i> of every pixel, shape (rows, columns)."""
        return np.asarray(self.values @ weights, dtype=np.float64)

    def project(self, residual: FloatArray) -> FloatArray:
        """Return sum_i residual_i u_i, shape (n_features,)."""
        return np.asarray(np.tensordot(residual, self.values, 2), dtype=np.float64)

    def rows(self, pixels: IntArray) -> FloatArray:
        """Return u_i of the pixels with the given flat indices, shape (n, n_features)."""
        return np.asarray(self.values.reshape(-1, self.n_features)[pixels], dtype=np.float64)


@dataclass(frozen=True, slots=True)
class NodeFeaturesWithMaps:
    """Node features of a picture followed by maps (rows, columns, C) float32."""

    nodes: NodeFeatures
    maps: NDArray[np.float32]

    @property
    def n_features(self) -> int:
        """Length of u_i."""
        return self.nodes.n_features + int(self.maps.shape[2])

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the grid."""
        return self.nodes.shape

    def scores(self, weights: FloatArray) -> FloatArray:
        """Return <weights, u_i> of every pixel, shape (rows, columns)."""
        n = self.nodes.n_features
        return np.asarray(self.nodes.scores(weights[:n]) + self.maps @ weights[n:])

    def project(self, residual: FloatArray) -> FloatArray:
        """Return sum_i residual_i u_i, shape (n_features,)."""
        own = np.tensordot(residual, self.maps, 2)
        return np.concatenate([self.nodes.project(residual), own])

    def rows(self, pixels: IntArray) -> FloatArray:
        """Return u_i of the pixels with the given flat indices, shape (n, n_features)."""
        own = self.maps.reshape(-1, self.maps.shape[2])[pixels]
        return np.hstack([self.nodes.rows(pixels), own.astype(np.float64)])


@dataclass(frozen=True, slots=True)
class EdgeFeatures:
    """Edge features v_ij of one picture as codes into two lists of vectors.

    Parameters
    ----------
    horizontal : ndarray, shape (rows, columns - 1), uint8
        Code of the edge from each pixel to its right neighbour.
    vertical : ndarray, shape (rows - 1, columns), uint8
        Code of the edge from each pixel to the one below.
    horizontal_basis, vertical_basis : ndarray, shape (n_codes, n_features), float64
        The vector v of each code.
    """

    horizontal: CodeArray
    vertical: CodeArray
    horizontal_basis: FloatArray
    vertical_basis: FloatArray

    def __post_init__(self) -> None:
        """Keep read-only views of the codes, whether computed or read from a file."""
        for name in ("horizontal", "vertical"):
            object.__setattr__(self, name, as_kernel_input(getattr(self, name)))

    @property
    def n_features(self) -> int:
        """Length of v_ij."""
        return int(self.horizontal_basis.shape[1])


@dataclass(frozen=True, slots=True)
class GridScores:
    """Scores of one picture's model; edge tables are listed by code.

    Parameters
    ----------
    node : ndarray, shape (rows, columns), theta_i(1) - theta_i(0), nats
    offset : float, sum_i theta_i(0), nats
    horizontal, vertical : ndarray, shape (n_codes, 4), nats
        Tables (00, 01, 10, 11) of each edge code.
    """

    node: FloatArray
    offset: float
    horizontal: FloatArray
    vertical: FloatArray


@dataclass(frozen=True, slots=True)
class LabelScores:
    """Scores of one picture's model for any number of labels, nats.

    Parameters
    ----------
    nodes : ndarray, shape (rows, columns, L), float64
    right, down : ndarray, shape (n_codes, L, L), tables of each edge code, the first label that of
        the left or upper pixel
    """

    nodes: FloatArray
    right: FloatArray
    down: FloatArray


@dataclass(frozen=True, slots=True)
class GridFeatures:
    """All features of one picture.

    Raises
    ------
    InvalidProblemError
        If the shapes of codes and nodes disagree.
    """

    nodes: NodeFeatures
    edges: EdgeFeatures
    node_totals: FloatArray = field(init=False, repr=False)  # sum_i u_i

    def __post_init__(self) -> None:
        rows, columns = self.nodes.shape
        shapes = (self.edges.horizontal.shape, self.edges.vertical.shape)
        if shapes != ((rows, columns - 1), (rows - 1, columns)):
            raise InvalidProblemError(
                f"edge codes: expected shapes {(rows, columns - 1)} and {(rows - 1, columns)}, "
                f"received {shapes[0]} and {shapes[1]}."
            )
        totals = self.nodes.project(np.ones((rows, columns)))
        object.__setattr__(self, "node_totals", read_only(totals))

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the grid."""
        return self.nodes.shape

    @property
    def n_parameters(self) -> int:
        """Length K of the parameter vector."""
        return 2 * self.nodes.n_features + 4 * self.edges.n_features

    def scores(self, theta: FloatArray) -> GridScores:
        """Return the scores of every node and edge code at ``theta``, shape (K,)."""
        lower, upper, tables = self._split(theta)
        horizontal, vertical = (
            self.edges.horizontal_basis @ tables.T,
            self.edges.vertical_basis @ tables.T,
        )
        difference = self.nodes.scores(upper - lower)
        return GridScores(difference, float(lower @ self.node_totals), horizontal, vertical)

    @property
    def codes(self) -> tuple[CodeArray, CodeArray]:
        """Codes of the edges to the right and down."""
        return self.edges.horizontal, self.edges.vertical

    def label_scores(self, theta: FloatArray) -> LabelScores:
        """Return the scores of every label and of every edge code's table at ``theta``."""
        lower, upper, _ = self._split(theta)
        scores = self.scores(theta)
        nodes = np.stack([self.nodes.scores(lower), self.nodes.scores(upper)], axis=2)
        shape = (-1, 2, 2)
        return LabelScores(nodes, scores.horizontal.reshape(shape), scores.vertical.reshape(shape))

    def pull_back_labels(self, slopes: LabelScores) -> FloatArray:
        """Return the gradient in theta of a function with these derivatives in the scores."""
        ends = [self.nodes.project(np.ascontiguousarray(slopes.nodes[..., x])) for x in range(2)]
        edges = self.edges
        tables = slopes.right.reshape(-1, 4).T @ edges.horizontal_basis
        tables = tables + slopes.down.reshape(-1, 4).T @ edges.vertical_basis
        return np.concatenate([*ends, tables.ravel()])

    def observed_statistics(self, labels: LabelArray) -> FloatArray:
        """Return phi(Y) of a labelling, shape (K,)."""
        histograms = self._empty_histograms()
        labels = as_kernel_input(labels)
        count_label_pairs(self.edges.horizontal, labels, 0, histograms[0])
        count_label_pairs(self.edges.vertical, labels, 1, histograms[1])
        return self.assemble_statistics(labels.astype(np.float64), *histograms)

    def statistics(
        self, node: FloatArray, horizontal: FloatArray, vertical: FloatArray
    ) -> FloatArray:
        """Return phi(tau), shape (K,).

        Parameters
        ----------
        node : ndarray, shape (rows, columns), tau_i(1)
        horizontal : ndarray, shape (rows, columns - 1, 4)
        vertical : ndarray, shape (rows - 1, columns, 4)
        """
        histograms = self._empty_histograms()
        add_to_histogram(self.edges.horizontal, as_kernel_input(horizontal), histograms[0])
        add_to_histogram(self.edges.vertical, as_kernel_input(vertical), histograms[1])
        return self.assemble_statistics(node, *histograms)

    def assemble_statistics(
        self, node: FloatArray, horizontal: FloatArray, vertical: FloatArray
    ) -> FloatArray:
        """Return phi(tau) from nodes, shape (rows, columns), and histograms, (n_codes, 4)."""
        upper = self.nodes.project(node)
        tables = horizontal.T @ self.edges.horizontal_basis + vertical.T @ self.edges.vertical_basis
        return np.concatenate([self.node_totals - upper, upper, tables.ravel()])

    def pull_back(
        self, node: FloatArray, horizontal: FloatArray, vertical: FloatArray
    ) -> FloatArray:
        """Return the gradient in theta of a function with these derivatives in the scores.

        Parameters
        ----------
        node : ndarray, shape (rows, columns), derivatives in theta_i(1) - theta_i(0), where
            the function depends on the node scores through these differences only.
        horizontal, vertical : ndarray, shape (n_codes, 4), derivatives in the tables.
        """
        upper = self.nodes.project(node)
        edges = self.edges
        tables = horizontal.T @ edges.horizontal_basis + vertical.T @ edges.vertical_basis
        return np.concatenate([-upper, upper, tables.ravel()])

    def _split(self, theta: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return F_0, F_1 and the four rows of G."""
        if theta.shape != (self.n_parameters,):
            raise InvalidProblemError(
                f"theta: expected {self.n_parameters} parameters, received {theta.shape}."
            )
        n = self.nodes.n_features
        return theta[:n], theta[n : 2 * n], theta[2 * n :].reshape(4, -1)

    def _empty_histograms(self) -> tuple[FloatArray, FloatArray]:
        return (
            np.zeros((len(self.edges.horizontal_basis), 4)),
            np.zeros((len(self.edges.vertical_basis), 4)),
        )


@dataclass(frozen=True, slots=True)
class GridExample:
    """Observation: the features of a picture and its labels, shape (rows, columns) bool.

    Raises
    ------
    InvalidProblemError
        If the labels have another shape than the features.
    """

    features: GridFeatures
    labels: LabelArray

    def __post_init__(self) -> None:
        if self.labels.shape != self.features.shape:
            raise InvalidProblemError(
                f"labels: expected shape {self.features.shape}, received {self.labels.shape}."
            )
        object.__setattr__(self, "labels", as_kernel_input(self.labels))

    def observed_statistics(self) -> FloatArray:
        """Return phi(Y), shape (K,)."""
        return self.features.observed_statistics(self.labels)

    @property
    def n_known(self) -> int:
        """Number of pixels with a known label: all."""
        return int(self.labels.size)
