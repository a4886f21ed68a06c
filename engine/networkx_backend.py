"""Matchings for NetworkX: ``nx.max_weight_matching(G, backend="bethe_hall")`` and its kin.

NetworkX finds this module by its entry point. Every answer was proved optimal by its own dual.
Weights are taken as float64: whole numbers count exactly up to 2^44 or so in size.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.core.arguments import FloatArray, IntArray
from engine.graphs.edge_list import EdgeList, read_graph
from engine.oracles.perfect_matching import CompleteGraphMatcher
from engine.oracles.sparse_matching import max_weight_matching as match_edges

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
        """Whether edges have directions, which matchings refuse."""
        return bool(self.graph.is_directed())

    def is_multigraph(self) -> bool:
        """Whether two nodes may share several edges, which matchings refuse."""
        return bool(self.graph.is_multigraph())

    def read(self) -> EdgeList:
        """Return its nodes and edges, without loops.

        Raises
        ------
        InvalidProblemError
            If a weight is no finite number.
        """
        return read_graph(self.graph, weight=self.weight, default=self.default)


def get_info() -> dict[str, Any]:
    """Describe the backend to NetworkX."""
    said = {"additional_docs": "Proved optimal by its dual; weights are float64."}
    return {
        "backend_name": "bethe_hall",
        "project": "bethe-hall",
        "package": "engine",
        "short_summary": "Maximum-weight matchings of general graphs, compiled and certified.",
        "functions": dict.fromkeys(("max_weight_matching", "min_weight_matching"), said),
    }


class BetheHallBackend:
    """What NetworkX calls: conversions, and one method per algorithm."""

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
        found = graph.read()
        return _pairs(found.nodes, found.edges, found.weights, most_edges=maxcardinality)

    @staticmethod
    def min_weight_matching(graph: ConvertedGraph, weight: str = "weight") -> set[tuple[Any, Any]]:
        """Return the matching of least weight among those with the most edges."""
        found = graph.read()
        return _pairs(found.nodes, found.edges, -found.weights, most_edges=True)


def _pairs(
    names: list[Any], edges: IntArray, weights: FloatArray, *, most_edges: bool
) -> set[tuple[Any, Any]]:
    """Return the best matching by name: any with the largest weight, or the best of the largest."""
    n = len(names)
    if most_edges:
        # One edge more outweighs whatever the others could lose by it.
        weights = weights + (n + 1) * float(np.abs(weights).max(initial=0.0)) + 1.0
    useful = np.flatnonzero(weights > 0.0)
    if not len(useful):
        return set()
    edges, weights = edges[useful], weights[useful]
    if n <= DENSE_UP_TO or DENSE_SHARE * len(edges) >= n * n:
        chosen = _match_complete(n, edges, weights)
    else:
        chosen = edges[match_edges(n, edges, weights, "any").edge_indices]
    return {(names[i], names[j]) for i, j in chosen.tolist()}


def _match_complete(n: int, edges: IntArray, weights: FloatArray) -> IntArray:
    """Match a graph as a complete one of an even number of nodes, absent edges at weight 0."""
    even = n + n % 2
    scores = np.zeros((even, even))
    scores[edges[:, 0], edges[:, 1]] = scores[edges[:, 1], edges[:, 0]] = weights
    pairs = CompleteGraphMatcher().solve(scores).pairs
    return pairs[scores[pairs[:, 0], pairs[:, 1]] > 0.0]
