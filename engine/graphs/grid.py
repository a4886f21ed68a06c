"""Four-connected grids and the tables (scores or pseudomarginals) on them."""

from dataclasses import dataclass

import numpy as np

from engine.core.arguments import FloatArray, IntArray, as_finite_array
from engine.core.errors import InvalidProblemError
from engine.core.options import check_whole
from engine.graphs.pairwise import PairwiseGraph


@dataclass(frozen=True, slots=True)
class Grid:
    """Grid of ``height`` x ``width`` nodes, each joined to the neighbours right and below.

    Tables of all nodes and edges are stored in one flat vector, so that solvers see a point of a
    vector space: first the nodes (H, W, L), then the horizontal edges (H, W-1, L, L), then the
    vertical edges (H-1, W, L, L); the first label of an edge belongs to its left or upper end.

    Parameters
    ----------
    height, width : int, number of nodes down and across.
    n_labels : int, L, labels of every node.

    Raises
    ------
    InvalidProblemError
        If the grid is empty or a node has fewer than two labels.

    Examples
    --------
    >>> grid = Grid(2, 3)
    >>> grid.n_nodes, grid.size
    (6, 40)
    """

    height: int
    width: int
    n_labels: int = 2

    def __post_init__(self) -> None:
        """Raise InvalidProblemError for an empty grid or fewer than two labels."""
        check_whole("height", self.height, at_least=1)
        check_whole("width", self.width, at_least=1)
        check_whole("n_labels", self.n_labels, at_least=2)

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return self.height * self.width

    @property
    def n_horizontal(self) -> int:
        """Number of horizontal edges."""
        return self.height * (self.width - 1)

    @property
    def n_vertical(self) -> int:
        """Number of vertical edges."""
        return (self.height - 1) * self.width

    @property
    def n_edges(self) -> int:
        """Number of edges; horizontal ones come first in every list of edges."""
        return self.n_horizontal + self.n_vertical

    @property
    def size(self) -> int:
        """Length of a flat vector of tables."""
        return self.n_nodes * self.n_labels + self.n_edges * self.n_labels**2

    def edges(self) -> IntArray:
        """Return the end nodes of each edge, shape (n_edges, 2), in the order of the tables."""
        index = np.arange(self.n_nodes, dtype=np.int64).reshape(self.height, self.width)
        horizontal = np.stack([index[:, :-1].ravel(), index[:, 1:].ravel()], axis=1)
        vertical = np.stack([index[:-1].ravel(), index[1:].ravel()], axis=1)
        return np.concatenate([horizontal, vertical])

    def to_pairwise(self) -> PairwiseGraph:
        """Return the same graph as an edge list; flat vectors have the same layout on both."""
        return PairwiseGraph(np.full(self.n_nodes, self.n_labels, dtype=np.int64), self.edges())

    def zeros(self) -> "GridTables":
        """Return tables of zeros."""
        return GridTables(self, np.zeros(self.size))

    def uniform(self) -> "GridTables":
        """Return the uniform pseudomarginals: the centre of the local polytope."""
        flat = np.full(self.size, 1.0 / self.n_labels**2)
        flat[: self.n_nodes * self.n_labels] = 1.0 / self.n_labels
        return GridTables(self, flat)

    def wrap(self, name: str, flat: FloatArray) -> "GridTables":
        """Return finite ``flat`` (grid.size,) as tables, or raise InvalidProblemError."""
        return GridTables(self, as_finite_array(name, flat, shape=(self.size,)))

    def tables(
        self, nodes: FloatArray, horizontal: FloatArray, vertical: FloatArray
    ) -> "GridTables":
        """Copy the three arrays into one flat vector.

        Raises
        ------
        InvalidProblemError
            If a shape does not match this grid or an entry is not finite.
        """
        h, w, n = self.height, self.width, self.n_labels
        parts = (
            as_finite_array("nodes", nodes, shape=(h, w, n)),
            as_finite_array("horizontal", horizontal, shape=(h, w - 1, n, n)),
            as_finite_array("vertical", vertical, shape=(h - 1, w, n, n)),
        )
        return GridTables(self, np.concatenate([part.ravel() for part in parts]))

    def indicator(self, labels: IntArray) -> "GridTables":
        """Return the 0/1 tables of a labelling (H, W): the statistics of one configuration."""
        labels = np.asarray(labels, dtype=np.int64)
        if labels.shape != (self.height, self.width):
            raise InvalidProblemError(
                f"labels: expected shape ({self.height}, {self.width}), received {labels.shape}."
            )
        if labels.size and (labels.min() < 0 or labels.max() >= self.n_labels):
            raise InvalidProblemError(f"labels: expected 0 to {self.n_labels - 1}.")
        eye = np.eye(self.n_labels)
        one = eye[labels]
        return self.tables(
            one,
            one[:, :-1, :, None] * one[:, 1:, None, :],
            one[:-1, :, :, None] * one[1:, :, None, :],
        )


@dataclass(frozen=True, slots=True, eq=False)
class GridTables:
    """Flat vector of tables on a grid, with views of its three parts.

    Parameters
    ----------
    grid : Grid
    flat : ndarray, shape (grid.size,), float64: scores (nats) or probabilities.

    Examples
    --------
    >>> grid = Grid(2, 3)
    >>> GridTables(grid, np.zeros(grid.size)).nodes.shape
    (2, 3, 2)
    """

    grid: Grid
    flat: FloatArray

    @property
    def nodes(self) -> FloatArray:
        """View of the node tables, shape (H, W, L)."""
        grid = self.grid
        return self.flat[: grid.n_nodes * grid.n_labels].reshape(
            grid.height, grid.width, grid.n_labels
        )

    @property
    def horizontal(self) -> FloatArray:
        """View of the horizontal edge tables, shape (H, W-1, L, L)."""
        grid, n = self.grid, self.grid.n_labels
        start = grid.n_nodes * n
        return self.flat[start : start + grid.n_horizontal * n * n].reshape(
            grid.height, grid.width - 1, n, n
        )

    @property
    def vertical(self) -> FloatArray:
        """View of the vertical edge tables, shape (H-1, W, L, L)."""
        grid, n = self.grid, self.grid.n_labels
        start = grid.n_nodes * n + grid.n_horizontal * n * n
        return self.flat[start:].reshape(grid.height - 1, grid.width, n, n)

    @property
    def labels(self) -> IntArray:
        """Most probable (or best-scored) label of each node, ties to the lower."""
        labels: IntArray = np.argmax(self.nodes, axis=2).astype(np.int64)
        return labels
