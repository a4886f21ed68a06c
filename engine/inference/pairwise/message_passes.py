"""In which order the nodes of a pairwise model send their messages."""

from collections import deque
from typing import Literal

import numpy as np

from engine.core.arguments import IntArray
from engine.graphs.pairwise import PairwiseGraph

Schedule = Literal["sequential", "checkerboard"]


def message_passes(
    graph: PairwiseGraph, schedule: Schedule
) -> list[tuple[IntArray, IntArray, bool]]:
    """Return for each pass the order of nodes, their ranks in it, and if they send to all."""
    forward = np.arange(graph.n_nodes, dtype=np.int64)
    if schedule == "checkerboard":
        order = np.argsort(two_colouring(graph), kind="stable")
        return [(order, np.argsort(order), True)]
    backward = forward[::-1].copy()  # its own inverse
    return [(forward, forward, False), (backward, backward, False)]


def two_colouring(graph: PairwiseGraph) -> IntArray:
    """Return 0 or 1 a node by breadth-first distance: a proper colouring of bipartite graphs."""
    colour = np.full(graph.n_nodes, -1, dtype=np.int64)
    for root in range(graph.n_nodes):
        if colour[root] >= 0:
            continue
        colour[root] = 0
        queue = deque([root])
        while queue:
            node = queue.popleft()
            low, high = graph.incident_start[node], graph.incident_start[node + 1]
            for end in graph.incident_edge[low:high]:
                other = graph.edges[end // 2, 1 - end % 2]
                if colour[other] < 0:
                    colour[other] = 1 - colour[node]
                    queue.append(int(other))
    return colour
