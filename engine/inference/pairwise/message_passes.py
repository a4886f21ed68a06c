"""Orders in which the nodes of a pairwise model send their messages."""

from collections import deque

import numpy as np

from engine.core.arguments import IntArray
from engine.graphs.pairwise import PairwiseGraph


def message_passes(graph: PairwiseGraph, *, is_forest: bool) -> list[tuple[IntArray, IntArray]]:
    """Return each pass: the order of nodes, and their ranks in it.

    A node sends to its neighbours of higher rank. Passes go forth and back; in a forest from the
    leaves to the roots and back, after which no message changes.
    """
    if is_forest:
        from_roots = breadth_first(graph)
        to_roots = from_roots[::-1].copy()
        return [(order, np.argsort(order)) for order in (to_roots, from_roots)]
    forward = np.arange(graph.n_nodes, dtype=np.int64)
    backward = forward[::-1].copy()  # its own inverse
    return [(forward, forward), (backward, backward)]


def breadth_first(graph: PairwiseGraph) -> IntArray:
    """Return the order of visits from the first node of every part."""
    is_seen = np.zeros(graph.n_nodes, dtype=np.bool_)
    order: list[int] = []
    for root in range(graph.n_nodes):
        if is_seen[root]:
            continue
        is_seen[root] = True
        queue = deque([root])
        while queue:
            node = queue.popleft()
            order.append(node)
            low, high = graph.incident_start[node], graph.incident_start[node + 1]
            for end in graph.incident_edge[low:high]:
                other = int(graph.edges[end // 2, 1 - end % 2])
                if not is_seen[other]:
                    is_seen[other] = True
                    queue.append(other)
    return np.array(order, dtype=np.int64)
