"""Coordinate ascent for fully factorised distributions on pairwise models.

References: Wainwright and Jordan 2008, chapter 5; Domke 2013, 3.2.
"""

import math

import numpy as np
from numba import njit

from engine.core.arguments import FloatArray
from engine.kernels.messages_pairwise import Layout


@njit(cache=True, nogil=True)
def update_nodes(
    layout: Layout, scores: FloatArray, marginals: FloatArray, work: FloatArray
) -> float:
    """Set each node in turn to its best distribution given the others; return the largest change.

    q_i(x) ~ exp( theta_i(x) + sum over edges sum_y q_j(y) theta_ij(x, y) ), with 0 * -inf = 0.
    A node all of whose labels are impossible given the others is left as it is.
    """
    cards, edges, node_start, edge_start, incident_start, incident_edge, _ = layout
    change = 0.0
    for node in range(cards.shape[0]):
        for x in range(cards[node]):
            work[x] = scores[node_start[node] + x]
        for k in range(incident_start[node], incident_start[node + 1]):
            end = incident_edge[k]
            e = end // 2
            other = edges[e, 1 - end % 2]
            row = cards[edges[e, 1]]
            for y in range(cards[other]):
                q = marginals[node_start[other] + y]
                if q <= 0.0:
                    continue
                for x in range(cards[node]):
                    place = edge_start[e] + (x * row + y if end % 2 == 0 else y * row + x)
                    work[x] += q * scores[place]
        largest = -np.inf
        for x in range(cards[node]):
            largest = max(largest, work[x])
        if largest == -np.inf:
            continue
        total = 0.0
        for x in range(cards[node]):
            work[x] = math.exp(work[x] - largest)
            total += work[x]
        for x in range(cards[node]):
            new = work[x] / total
            place = node_start[node] + x
            change = max(change, abs(new - marginals[place]))
            marginals[place] = new
    return change


@njit(cache=True, nogil=True)
def write_products(layout: Layout, tables: FloatArray) -> None:
    """Write the edge tables as outer products of the node tables."""
    cards, edges, node_start, edge_start, _, _, _ = layout
    for e in range(edges.shape[0]):
        i, j = edges[e, 0], edges[e, 1]
        place = edge_start[e]
        for x in range(cards[i]):
            for y in range(cards[j]):
                tables[place] = tables[node_start[i] + x] * tables[node_start[j] + y]
                place += 1
