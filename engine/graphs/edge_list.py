"""Weighted graphs in the formats of other libraries: NetworkX, matrices, pandas tables."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from engine.core.arguments import FloatArray, IntArray, refuse_masked
from engine.core.errors import InvalidProblemError
from engine.core.exact_numbers import ExactNumbers, as_exact_numbers, as_number_array
from engine.core.options import check_number, check_text


@dataclass(frozen=True, slots=True, eq=False)
class EdgeList:
    """Undirected graph without loops, with nodes identified by index.

    Parameters
    ----------
    nodes : list, the name of every node.
    edges : ndarray, shape (m, 2), int64, indices of the ends.
    weights : ndarray, shape (m,), float64, finite.

    Examples
    --------
    >>> EdgeList(["a", "b", "c"], np.array([[0, 1]]), np.array([2.5])).n_nodes
    3
    """

    nodes: list[Any]
    edges: IntArray
    weights: FloatArray

    @property
    def n_nodes(self) -> int:
        """Number of nodes, including those without an edge."""
        return len(self.nodes)


@dataclass(frozen=True, slots=True, eq=False)
class ExactGraph:
    """Undirected graph without loops, with exact weights.

    Parameters
    ----------
    nodes : list, the name of every node.
    edges : ndarray, shape (m, 2), int64, indices of the ends.
    numbers : ExactNumbers, the weights, finite.
    """

    nodes: list[Any]
    edges: IntArray
    numbers: ExactNumbers


def read_graph(graph: Any, *, weight: str = "weight", default: float = 1.0) -> EdgeList:
    """Read the nodes, edges and weights of another library's graph, without loops.

    Parameters
    ----------
    graph : networkx.Graph, SciPy sparse array, ndarray (n, n), or pandas.DataFrame
        A matrix holds the weight of i and j at (i, j), at (j, i), or the same at both. Repeated
        entries of a sparse matrix add up, as in SciPy, and a stored 0 is an edge; in a dense
        matrix a 0 is no edge. A table has columns ``source`` and ``target`` and one line per edge,
        or is a square matrix whose rows and columns have the same names, in any order.
    weight : str, the attribute or column of weights.
    default : float, the weight of edges without one.

    Returns
    -------
    EdgeList
        Nodes in the graph's order; for a table, in the order in which they first occur. Edges of
        weight -inf are left out: they are forbidden.

    Raises
    ------
    InvalidProblemError
        If it is none of these, is directed, holds two weights for one pair of a matrix, or a
        weight is not a real number that float64 can hold.

    Examples
    --------
    >>> found = read_graph(scipy.sparse.coo_array(([2.0, 3.0], ([0, 1], [1, 2])), shape=(3, 3)))
    >>> found.edges.tolist(), found.weights.tolist()
    ([[0, 1], [1, 2]], [2.0, 3.0])
    """
    found = read_exact_graph(graph, weight=weight, default=default)
    return EdgeList(found.nodes, found.edges, found.numbers.as_floats("weights"))


def read_exact_graph(graph: Any, *, weight: str = "weight", default: float = 1.0) -> ExactGraph:
    """Read a graph as `read_graph` does, with weights of any size and without rounding."""
    check_text("weight", weight)
    check_number("default", default)
    if scipy.sparse.issparse(graph):
        return _of_matrix(graph)
    if isinstance(graph, np.ndarray):
        return _of_dense(graph)
    if hasattr(graph, "is_directed"):
        return _of_networkx(graph, weight, default)
    if hasattr(graph, "columns"):
        return _of_table(graph, weight, default)
    raise InvalidProblemError(
        "graph: expected a NetworkX graph, a matrix of SciPy or NumPy, or a pandas table with "
        f"source and target, received {type(graph).__name__}."
    )


def _of_networkx(graph: Any, weight: str, default: float) -> ExactGraph:
    if graph.is_directed():
        raise InvalidProblemError("graph: expected edges without directions.")
    names = list(graph)
    place = {node: k for k, node in enumerate(names)}
    ends = [
        (place[u], place[v], value)
        for u, v, value in graph.edges(data=weight, default=default)
        if u != v
    ]
    return _checked(names, [end[:2] for end in ends], [end[2] for end in ends])


def _of_matrix(matrix: Any) -> ExactGraph:
    _check_square(matrix)
    entries = scipy.sparse.coo_array(matrix, copy=True)
    entries.sum_duplicates()
    rows, columns = (np.asarray(ends, dtype=np.int64) for ends in entries.coords)
    return _of_entries(list(range(matrix.shape[0])), rows, columns, entries.data)


def _of_dense(matrix: NDArray[Any], nodes: list[Any] | None = None) -> ExactGraph:
    _check_square(matrix)
    refuse_masked("graph", matrix)
    matrix = np.asarray(matrix)  # also from the subclass np.matrix
    rows, columns = np.nonzero(matrix)
    nodes = list(range(len(matrix))) if nodes is None else nodes
    return _of_entries(nodes, rows, columns, matrix[rows, columns])


def _check_square(matrix: Any) -> None:
    if len(matrix.shape) != 2 or matrix.shape[0] != matrix.shape[1]:
        shape = " x ".join(str(length) for length in matrix.shape)
        raise InvalidProblemError(f"graph: expected a square matrix, received {shape}.")


def _of_entries(
    nodes: list[Any], rows: IntArray, columns: IntArray, values: NDArray[Any]
) -> ExactGraph:
    """Return the graph of a matrix that gives each pair one weight, once or at both entries."""
    n = len(nodes)
    between = rows != columns
    rows, columns, values = rows[between], columns[between], values[between]
    low, high = np.minimum(rows, columns), np.maximum(rows, columns)
    pairs, first, which = np.unique(low * n + high, return_index=True, return_inverse=True)
    differs = np.flatnonzero(~_same(values[first][which], values))
    if len(differs):
        k = int(differs[0])
        raise InvalidProblemError(
            f"graph: the two entries of nodes {nodes[low[k]]} and {nodes[high[k]]} have different "
            f"weights, {values[first[which[k]]]} and {values[k]}."
        )
    ends = np.stack([pairs // max(n, 1), pairs % max(n, 1)], axis=1)
    return _checked(nodes, ends, values[first])


def _same(left: NDArray[Any], right: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which entries are equal; NaN, refused later by name, counts as equal to itself."""
    return np.asarray((left == right) | ((left != left) & (right != right)), dtype=np.bool_)


def _of_table(table: Any, weight: str, default: float) -> ExactGraph:
    columns = list(table.columns)
    missing = [name for name in ("source", "target") if name not in columns]
    if missing and hasattr(table, "index"):
        rows = list(table.index)
        if rows != columns and len(set(rows)) == len(rows) == len(columns):
            table = table[rows] if set(rows) == set(columns) else table
            columns = list(table.columns)
        if rows == columns:
            cells = table.to_numpy()
            if cells.dtype == object:
                blanks = np.array([[_is_blank(cell) for cell in row] for row in cells], dtype=bool)
                cells = np.where(blanks, np.nan, cells)
            return _of_dense(cells, columns)
    if missing:
        raise InvalidProblemError(f"graph: the table has no column {' and no '.join(missing)}.")
    repeated = [name for name in ("source", "target", weight) if columns.count(name) > 1]
    if repeated:
        raise InvalidProblemError(f"graph: two columns of the table are called {repeated[0]}.")
    source, target = table["source"].tolist(), table["target"].tolist()
    place: dict[Any, int] = {}
    for line, pair in enumerate(zip(source, target, strict=True)):
        for name in pair:
            if _is_blank(name):
                raise InvalidProblemError(f"graph: line {line} of the table lacks a node.")
            place.setdefault(name, len(place))
    values = table[weight].tolist() if weight in columns else [default] * len(source)
    values = [np.nan if _is_blank(value) else value for value in values]
    rows = [
        (place[a], place[b], value)
        for a, b, value in zip(source, target, values, strict=True)
        if a != b
    ]
    return _checked(list(place), [row[:2] for row in rows], [row[2] for row in rows])


def _is_blank(cell: Any) -> bool:
    """Return True for an empty cell: None, NaN, or NA of pandas, which is no truth value."""
    try:
        return cell is None or bool(cell != cell)
    except TypeError:
        return True


def _checked(nodes: list[Any], edges: Any, weights: Any) -> ExactGraph:
    values = as_number_array("weights", weights)
    allowed = np.flatnonzero(values != -np.inf)
    ends = np.array(edges, dtype=np.int64).reshape(-1, 2)[allowed]
    return ExactGraph(nodes, ends, as_exact_numbers("weights", values[allowed]))
