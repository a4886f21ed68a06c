"""Arc consistency: labels of pairwise models that are impossible given their neighbours."""

import numpy as np
from numba import njit

from engine.core.arguments import FloatArray
from engine.kernels.messages_pairwise import Layout


@njit(cache=True, nogil=True)
def rule_out(layout: Layout, scores: FloatArray) -> bool:
    """Remove impossible labels until nothing changes (arc consistency), in place.

    A label is removed if no label of some neighbour is possible with it. Every remaining label then
    has a partner at each neighbour. Return False if a node has no label left.
    """
    cards, edges, node_start, edge_start, incident_start, incident_edge, _ = layout
    waiting = np.arange(cards.shape[0])  # ring buffer of nodes whose labels may have lost a partner
    is_waiting = np.ones(cards.shape[0], dtype=np.bool_)
    first, count = 0, cards.shape[0]
    while count > 0:
        node = waiting[first]
        first, count = (first + 1) % cards.shape[0], count - 1
        is_waiting[node] = False
        left, lost = 0, False
        for x in range(cards[node]):
            possible = scores[node_start[node] + x] > -np.inf
            for k in range(incident_start[node], incident_start[node + 1]):
                if not possible:
                    break
                end = incident_edge[k]
                other = edges[end // 2, 1 - end % 2]
                row = cards[edges[end // 2, 1]]
                possible = False
                for y in range(cards[other]):
                    inside = x * row + y if end % 2 == 0 else y * row + x
                    if (
                        scores[edge_start[end // 2] + inside] > -np.inf
                        and scores[node_start[other] + y] > -np.inf
                    ):
                        possible = True
                        break
            if possible:
                left += 1
            elif scores[node_start[node] + x] > -np.inf:
                lost = True
                scores[node_start[node] + x] = -np.inf
        if left == 0:
            return False
        if lost:
            for k in range(incident_start[node], incident_start[node + 1]):
                end = incident_edge[k]
                other = edges[end // 2, 1 - end % 2]
                if not is_waiting[other]:
                    is_waiting[other] = True
                    waiting[(first + count) % cards.shape[0]] = other
                    count += 1
    for e in range(edges.shape[0]):
        columns = cards[edges[e, 1]]
        for place in range(edge_start[e], edge_start[e + 1]):
            x, y = (place - edge_start[e]) // columns, (place - edge_start[e]) % columns
            if (
                scores[node_start[edges[e, 0]] + x] == -np.inf
                or scores[node_start[edges[e, 1]] + y] == -np.inf
            ):
                scores[place] = -np.inf
    return True
