"""Orders in which the nodes of a pairwise model send their messages."""

from collections import deque
from typing import Literal, get_args

import numpy as np

from engine.core.arguments import IntArray
from engine.graphs.pairwise import PairwiseGraph

Schedule = Literal["sequential", "checkerboard", "trees"]
SCHEDULES: tuple[str, ...] = get_args(Schedule)


def message_passes(
    graph: PairwiseGraph, schedule: Schedule
) -> list[tuple[IntArray, IntArray, bool]]:
    """Return each pass: the order of nodes, their ranks, and True if they send to all neighbours.

    "trees" goes from the leaves of a forest to its roots and back; no message changes after that.
    """
    forward = np.arange(graph.n_nodes, dtype=np.int64)
    if schedule == "checkerboard":
        order = np.argsort(two_colouring(graph), kind="stable")
        return [(order, np.argsort(order), True)]
    if schedule == "trees":
        from_roots = breadth_first(graph)[1]
        to_roots = from_roots[::-1].copy()
        return [(order, np.argsort(order), False) for order in (to_roots, from_roots)]
    backward = forward[::-1].copy()  # its own inverse
    return [(forward, forward, False), (backward, backward, False)]


def two_colouring(graph: PairwiseGraph) -> IntArray:
    """Return 0 or 1 a node by breadth-first distance: a proper colouring of bipartite graphs."""
    return breadth_first(graph)[0] % 2


def breadth_first(graph: PairwiseGraph) -> tuple[IntArray, IntArray]:
    """Return each node's distance from the first node of its part, and the order of visits."""
    distance = np.full(graph.n_nodes, -1, dtype=np.int64)
    order: list[int] = []
    for root in range(graph.n_nodes):
        if distance[root] >= 0:
            continue
        distance[root] = 0
        queue = deque([root])
        while queue:
            node = queue.popleft()
            order.append(node)
            low, high = graph.incident_start[node], graph.incident_start[node + 1]
            for end in graph.incident_edge[low:high]:
                other = int(graph.edges[end // 2, 1 - end % 2])
                if distance[other] < 0:
                    distance[other] = distance[node] + 1
                    queue.append(other)
    return distance, np.array(order, dtype=np.int64)
