"""Weighted graphs as other libraries hold them: of NetworkX, sparse matrices, tables of pandas."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from engine.core.arguments import FloatArray, IntArray, as_finite_array
from engine.core.errors import InvalidProblemError


@dataclass(frozen=True, slots=True, eq=False)
class EdgeList:
    """An undirected graph without loops, its nodes by place.

    Parameters
    ----------
    nodes : list, the name of every node.
    edges : ndarray, shape (m, 2), int64, places of the ends.
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
        """Number of nodes, those without an edge included."""
        return len(self.nodes)


def read_graph(graph: Any, *, weight: str = "weight", default: float = 1.0) -> EdgeList:
    """Return the nodes, edges and weights of a graph of another library, loops left out.

    Parameters
    ----------
    graph : networkx.Graph, SciPy sparse matrix or array, or pandas.DataFrame
        A matrix (n, n) holds the weight of i and j at (i, j), at (j, i), or the same at both; a
        stored 0 is an edge. A table has columns ``source`` and ``target``, and one line an edge.
    weight : str, the attribute or column of weights.
    default : float, the weight of edges that have none.

    Returns
    -------
    EdgeList
        Nodes in the graph's order, of a table in the order in which they first occur.

    Raises
    ------
    InvalidProblemError
        If it is none of these, is directed, holds two weights for one pair of a matrix, or a
        weight is no finite number.

    Examples
    --------
    >>> found = read_graph(scipy.sparse.coo_array(([2.0, 3.0], ([0, 1], [1, 2])), shape=(3, 3)))
    >>> found.edges.tolist(), found.weights.tolist()
    ([[0, 1], [1, 2]], [2.0, 3.0])
    """
    if scipy.sparse.issparse(graph):
        return _of_matrix(graph)
    if hasattr(graph, "is_directed"):
        return _of_networkx(graph, weight, default)
    if hasattr(graph, "columns"):
        return _of_table(graph, weight, default)
    raise InvalidProblemError(
        "graph: expected a NetworkX graph, a SciPy sparse matrix or a pandas table with source and "
        f"target, received {type(graph).__name__}."
    )


def _of_networkx(graph: Any, weight: str, default: float) -> EdgeList:
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


def _of_matrix(matrix: Any) -> EdgeList:
    n, columns = matrix.shape
    if n != columns:
        raise InvalidProblemError(f"graph: expected a square matrix, received {n} x {columns}.")
    entries = scipy.sparse.coo_array(matrix)
    rows, cols = (np.asarray(ends, dtype=np.int64) for ends in entries.coords)
    between = rows != cols
    low, high = np.minimum(rows, cols)[between], np.maximum(rows, cols)[between]
    values = entries.data[between]
    pairs, first, which = np.unique(low * n + high, return_index=True, return_inverse=True)
    if not np.array_equal(values[first][which], values):
        raise InvalidProblemError("graph: the two entries of a pair have different weights.")
    return _checked(list(range(n)), np.stack([pairs // n, pairs % n], axis=1), values[first])


def _of_table(table: Any, weight: str, default: float) -> EdgeList:
    missing = [name for name in ("source", "target") if name not in table.columns]
    if missing:
        raise InvalidProblemError(f"graph: the table has no column {' and no '.join(missing)}.")
    source, target = table["source"].tolist(), table["target"].tolist()
    place: dict[Any, int] = {}
    for pair in zip(source, target, strict=True):
        for name in pair:
            place.setdefault(name, len(place))
    values = table[weight].tolist() if weight in table.columns else [default] * len(source)
    rows = [
        (place[a], place[b], value)
        for a, b, value in zip(source, target, values, strict=True)
        if a != b
    ]
    return _checked(list(place), [row[:2] for row in rows], [row[2] for row in rows])


def _checked(nodes: list[Any], edges: Any, weights: Any) -> EdgeList:
    try:
        numbers = np.array(weights, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidProblemError("weights: expected finite numbers.") from error
    numbers = as_finite_array("weights", numbers, shape=(len(edges),))
    return EdgeList(nodes, np.array(edges, dtype=np.int64).reshape(-1, 2), numbers)
