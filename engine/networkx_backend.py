"""Matchings for NetworkX: ``nx.max_weight_matching(G, backend="bethe_hall")`` and its kin.

NetworkX finds this module by its entry point. Weights of any real kind (integers of any size,
floats, fractions, decimals) count without rounding: the answer is optimal in the weights as they
stand in the graph. Graphs whose weights are inf, nan or no numbers are answered by NetworkX itself,
so that they mean here what they mean there.
"""

from dataclasses import dataclass
from typing import Any

import networkx as nx
import numpy as np

from engine.core.errors import InvalidProblemError
from engine.core.exact_numbers import WholeArray, largest_of
from engine.graphs.edge_list import ExactGraph, read_exact_graph
from engine.oracles.dense_matching import MOST_BITS, match_dense
from engine.oracles.sparse_matching import match_any, with_bonus

DENSE_UP_TO = 256
"""Nodes up to which every graph is matched as a complete one."""

DENSE_SHARE = 16
"""So is one that has at least n^2 over this number of edges."""


@dataclass(frozen=True, slots=True)
class ConvertedGraph:
    """A NetworkX graph and the name of its weights.

    It is read when it is matched: NetworkX keeps what was converted, and would answer for weights
    that have been changed since.

    Parameters
    ----------
    graph : networkx.Graph
    weight : str, the attribute of edges that holds their weight.
    default : float, the weight of edges without one.
    """

    graph: Any
    weight: str = "weight"
    default: float = 1.0

    __networkx_backend__ = "bethe_hall"

    def is_directed(self) -> bool:
        """Return True if edges have directions; matchings refuse such graphs."""
        return bool(self.graph.is_directed())

    def is_multigraph(self) -> bool:
        """Return True if two nodes may share several edges; matchings refuse such graphs."""
        return bool(self.graph.is_multigraph())

    def read(self) -> ExactGraph:
        """Return its nodes and edges, without loops and without edges of weight -inf.

        Raises
        ------
        InvalidProblemError
            If another weight is no finite real number.
        """
        return read_exact_graph(self.graph, weight=self.weight, default=self.default)

    @property
    def has_forbidden_edges(self) -> bool:
        """Return True if a weight is -inf: such an edge still counts for the largest matching."""
        return any(
            value == -np.inf
            for _, _, value in self.graph.edges(data=self.weight, default=self.default)
        )


def get_info() -> dict[str, Any]:
    """Describe the backend to NetworkX."""
    said = {
        "additional_docs": "Optimal in the weights as given, of any size, without rounding; "
        "weights that are inf, nan or no numbers are left to NetworkX."
    }
    return {
        "backend_name": "bethe_hall",
        "project": "bethe-hall",
        "package": "engine",
        "short_summary": "Maximum-weight matchings of general graphs, compiled and certified.",
        "functions": dict.fromkeys(("max_weight_matching", "min_weight_matching"), said),
    }


class BetheHallBackend:
    """Interface for NetworkX: conversions, and one method per algorithm."""

    @staticmethod
    def convert_from_nx(
        graph: Any, *, edge_attrs: dict[str, Any] | None = None, **_: Any
    ) -> ConvertedGraph:
        """Take a NetworkX graph, and the attribute that holds weights with its default."""
        name, default = next(iter((edge_attrs or {"weight": 1.0}).items()))
        return ConvertedGraph(graph, name, default)

    @staticmethod
    def convert_to_nx(result: Any, **_: Any) -> Any:
        """Return a result, which is a set of pairs already."""
        return result

    @staticmethod
    def max_weight_matching(
        graph: ConvertedGraph, maxcardinality: bool = False, weight: str = "weight"
    ) -> set[tuple[Any, Any]]:
        """Return the matching of largest weight, among the largest ones if ``maxcardinality``."""
        found = _read(graph, most_edges=maxcardinality)
        if found is None:
            answer: set[tuple[Any, Any]] = nx.max_weight_matching(
                graph.graph, maxcardinality=maxcardinality, weight=weight, backend="networkx"
            )
            return answer
        return _pairs(found, found.numbers.counts, most_edges=maxcardinality)

    @staticmethod
    def min_weight_matching(graph: ConvertedGraph, weight: str = "weight") -> set[tuple[Any, Any]]:
        """Return the matching of least weight among those with the most edges."""
        found = _read(graph, most_edges=True)
        if found is None:
            answer: set[tuple[Any, Any]] = nx.min_weight_matching(
                graph.graph, weight=weight, backend="networkx"
            )
            return answer
        return _pairs(found, -found.numbers.counts, most_edges=True)


def _read(graph: ConvertedGraph, *, most_edges: bool) -> ExactGraph | None:
    """Return the graph, or None where NetworkX shall answer."""
    try:
        found = graph.read()
    except InvalidProblemError:
        return None
    return None if most_edges and graph.has_forbidden_edges else found


def _pairs(found: ExactGraph, counts: WholeArray, *, most_edges: bool) -> set[tuple[Any, Any]]:
    """Return the best matching by name: any with the largest weight, or the best of the largest."""
    n = len(found.nodes)
    if most_edges:
        counts = with_bonus(n, counts)
    useful = np.flatnonzero(counts > 0)
    if not len(useful):
        return set()
    edges, counts = found.edges[useful], counts[useful]
    is_dense = n <= DENSE_UP_TO or DENSE_SHARE * len(edges) >= n * n
    if is_dense and largest_of(counts).bit_length() <= MOST_BITS:
        chosen = match_dense(n, edges, counts)
    else:
        chosen = match_any(n, edges, counts)
    return {(found.nodes[i], found.nodes[j]) for i, j in edges[chosen].tolist()}
