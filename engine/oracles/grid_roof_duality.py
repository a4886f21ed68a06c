"""Linear maximisation over the local polytope of a binary grid, by one minimum cut."""

import numpy as np

from engine.core.arguments import FloatArray, IntArray, read_only
from engine.core.errors import InvalidProblemError
from engine.core.options import check_flag
from engine.core.rounding import sum_allowance
from engine.graphs.grid import Grid, GridTables
from engine.kernels.ising_grid import dual_bound, fill_flow_graph, ising_form, read_tables
from engine.kernels.maxflow_grid import SOURCE, max_flow_four_arcs
from engine.oracles.protocol import ExtremePoint, Vertex

# Roundings of a score in the bound, besides one a pixel of its row and one a row.
ROUNDINGS = 16


class GridRoofDuality:
    """Roof duality on a binary grid, an exact linear oracle of the local polytope.

    The linear programme over the local polytope of a binary pairwise model is half-integral and
    equals a minimum cut of the graph with two copies of each node. If every edge is
    attractive (theta_00 + theta_11 >= theta_01 + theta_10), one copy is
    enough and the vertex is integral: a maximum a posteriori labelling.

    All work space is allocated once; a call allocates no array but the returned vertex, and not
    even that with ``reuse_vertex=True``, where the vertex is a view that the next call
    overwrites. Not to be shared between threads: one oracle a thread. The kernels release the GIL.

    Parameters
    ----------
    grid : Grid
        Two labels a node.
    reuse_vertex : bool
        Return the same array at every call, overwritten.

    Notes
    -----
    Boykov-Kolmogorov on implicit arrays, float64. ``upper_bound`` is the value of the flow's dual
    solution, summed independently of the flow algorithm, plus an allowance for rounding; it
    certifies the vertex even if the algorithm fails.

    References
    ----------
    Boros and Hammer 2002; Kolmogorov and Rother 2007; Boykov and Kolmogorov 2004.

    Examples
    --------
    >>> grid = Grid(1, 2)
    >>> scores = grid.tables([[[0, 1], [0, 0]]], [[[[1, 0], [0, 1]]]], np.zeros((0, 2, 2, 2)))
    >>> point = GridRoofDuality(grid).compute_extreme_point(scores.flat)
    >>> point.value, decode_vertex(grid, point.vertex.values).tolist()
    (2.0, [[1, 1]])
    """

    def __init__(self, grid: Grid, *, reuse_vertex: bool = False) -> None:
        """Allocate the work space: about 120 bytes a pixel and copy.

        Raises
        ------
        InvalidProblemError
            If the grid has more than two labels.
        """
        check_flag("reuse_vertex", reuse_vertex)
        if grid.n_labels != 2:
            raise InvalidProblemError(
                f"Roof duality needs two labels a node, received {grid.n_labels}."
            )
        self.grid = grid
        self._vertex = grid.zeros() if reuse_vertex else None
        shape = (grid.height, grid.width)
        self._field, self._right, self._down, self._spare = (np.zeros(shape) for _ in range(4))
        self._around = np.zeros((2, 4), dtype=np.uint32)
        self._allocate_flow(copies=1)
        self.n_undecided = 0

    def _allocate_flow(self, copies: int) -> None:
        size = self.grid.n_nodes * copies + 1
        self._copies = copies
        self._neighbour = np.zeros((size, 4), dtype=np.uint32)
        self._residual = np.zeros((size, 4))
        self._excess = np.zeros(size)
        self._parent = np.zeros(size, dtype=np.uint8)
        self._tree, self._queued = (np.zeros(size, dtype=np.int8) for _ in range(2))
        self._stamp, self._distance = (np.zeros(size, dtype=np.int32) for _ in range(2))
        self._queue, self._orphans = (np.zeros(size, dtype=np.uint32) for _ in range(2))

    def _cut(self, tables: GridTables) -> tuple[float, float, int]:
        """Solve the minimum cut; return constant and size of the Ising form, and the copies."""
        constant, magnitude, least = ising_form(
            tables.nodes, tables.horizontal, tables.vertical, self._field, self._right, self._down
        )
        if not np.isfinite(constant):  # a sum over all entries: one bad entry shows
            raise InvalidProblemError("scores: every entry must be a finite number.")
        copies = 2 if least < 0.0 else 1
        if copies > self._copies:
            self._allocate_flow(copies)
        size = self.grid.n_nodes * copies + 1
        neighbour, residual, excess = (
            self._neighbour[:size],
            self._residual[:size],
            self._excess[:size],
        )
        fill_flow_graph(
            self._field, self._right, self._down, copies, neighbour, residual, excess, self._spare
        )
        max_flow_four_arcs(
            neighbour,
            residual,
            excess,
            self._tree[:size],
            self._parent[:size],
            self._stamp[:size],
            self._distance[:size],
            self._queue[:size],
            self._queued[:size],
            self._orphans[:size],
            self._around,
        )
        return constant, magnitude, copies

    def compute_extreme_point(self, scores: FloatArray) -> ExtremePoint:
        """Return a vertex of the local polytope that maximises <vertex, scores>.

        Parameters
        ----------
        scores : ndarray, shape (grid.size,), float64
            Tables of the nodes and edges, flat (see ``Grid``); must be finite.

        Returns
        -------
        ExtremePoint
            vertex, shape (grid.size,), entries in {0, 1/2, 1}; value; certified upper_bound.

        Raises
        ------
        InvalidProblemError
            If the scores have another length or their sum is not finite.

        Notes
        -----
        Ties: a node gets label 1 only if every minimum cut agrees; on an edge between two
        undecided nodes with J = 0 the equal labels win.
        """
        if scores.shape != (self.grid.size,) or scores.dtype != np.float64:
            raise InvalidProblemError(
                f"scores: expected {self.grid.size} float64 numbers, received shape "
                f"{scores.shape} of {scores.dtype}."
            )
        tables = GridTables(self.grid, scores)
        constant, magnitude, copies = self._cut(tables)
        size = self.grid.n_nodes * copies + 1
        bound = dual_bound(
            self._field, self._right, self._down, copies, self._residual[:size], self._spare
        )
        vertex = self._vertex or GridTables(self.grid, np.empty(self.grid.size))
        value, self.n_undecided = read_tables(
            self._tree,
            SOURCE,
            copies,
            self._right,
            self._down,
            (tables.nodes, tables.horizontal, tables.vertical),
            (vertex.nodes, vertex.horizontal, vertex.vertical),
        )
        allowance = sum_allowance(self.grid.height + self.grid.width + ROUNDINGS, magnitude)
        return ExtremePoint(
            vertex=Vertex(vertex.flat if self._vertex else read_only(vertex.flat)),
            value=value,
            upper_bound=max(value, constant + bound + allowance),
        )


def decode_vertex(grid: Grid, vertex: FloatArray) -> IntArray:
    """Return the vertex's labels, shape (H, W), with label 1 where undecided (1/2).

    By persistency the decided labels are part of some optimal labelling.

    Parameters
    ----------
    grid : Grid
        Two labels a node.
    vertex : ndarray, shape (grid.size,)
        A half-integral vertex of the local polytope, as `GridRoofDuality` returns it.

    Returns
    -------
    ndarray, shape (H, W), int64
        The labels.

    Examples
    --------
    >>> grid = Grid(1, 2)
    >>> decode_vertex(grid, grid.indicator(np.array([[0, 1]])).flat).tolist()
    [[0, 1]]
    """
    nodes = GridTables(grid, vertex).nodes
    return (nodes[:, :, 1] >= 0.5).astype(np.int64)
