"""Best matchings by dynamic programming over sets of nodes, and Tutte-Berge sets by counting."""

from collections.abc import Sequence
from functools import cache
from itertools import product

import networkx as nx
import numpy as np

Edge = tuple[int, int]


def best_weight(
    n_nodes: int, edges: Sequence[Edge], weights: Sequence[float], *, perfect: bool
) -> float:
    """Largest weight of a matching; -inf where a perfect one does not exist."""
    heaviest: dict[Edge, float] = {}
    for (i, j), weight in zip(edges, weights, strict=True):
        key = (min(i, j), max(i, j))
        if i != j:
            heaviest[key] = max(weight, heaviest.get(key, -np.inf))

    @cache
    def best(left: int) -> float:
        if left == 0:
            return 0.0
        first = (left & -left).bit_length() - 1
        rest = left & ~(1 << first)
        found = -np.inf if perfect else best(rest)
        for other in range(first + 1, n_nodes):
            if rest >> other & 1 and (first, other) in heaviest:
                found = max(found, heaviest[first, other] + best(rest & ~(1 << other)))
        return found

    return best((1 << n_nodes) - 1)


def best_b_weight(
    edges: Sequence[Edge], weights: Sequence[float], degrees: Sequence[int], *, exact: bool
) -> float:
    """Largest weight of an edge set within (or exactly at) the degrees; -inf where none exists."""
    found = -np.inf
    for chosen in product((0, 1), repeat=len(edges)):
        used = np.zeros(len(degrees), dtype=int)
        for take, (i, j) in zip(chosen, edges, strict=True):
            used[i] += take
            used[j] += take
        fits = (used == degrees).all() if exact else (used <= degrees).all()
        if fits:
            found = max(found, float(np.dot(chosen, weights)) if len(edges) else 0.0)
    return found


def count_odd_components(n_nodes: int, edges: Sequence[Edge], removed: Sequence[int]) -> int:
    """Components of odd size that are left when the nodes ``removed`` are taken away."""
    graph = nx.Graph()
    graph.add_nodes_from(range(n_nodes))
    graph.add_edges_from(edges)
    graph.remove_nodes_from(removed)
    return sum(len(part) % 2 for part in nx.connected_components(graph))
