"""Points of the local polytope from tables that disagree, and label-by-label improvement."""

import numpy as np
from numba import njit

from engine.core.arguments import FloatArray, IntArray
from engine.kernels.messages_pairwise import Layout


@njit(cache=True, nogil=True)
def project_tables(layout: Layout, tables: FloatArray) -> float:
    """Make tables agree (Euclidean projection), then pull them towards uniform until >= 0.

    Return the share of the uniform distribution that was mixed in.

    References: Meshi, Jaakkola and Globerson 2012, Algorithm 1.
    """
    cards, edges, node_start, edge_start, incident_start, incident_edge, _ = layout
    n_nodes = cards.shape[0]
    margins = np.zeros((2 * edges.shape[0], cards.max()))
    for e in range(edges.shape[0]):
        columns = cards[edges[e, 1]]
        for x in range(cards[edges[e, 0]]):
            for y in range(columns):
                value = tables[edge_start[e] + x * columns + y]
                margins[2 * e, x] += value
                margins[2 * e + 1, y] += value
    # Step 1: weighted means of the margins, and the edge tables shifted to them.
    for node in range(n_nodes):
        for x in range(cards[node]):
            total = tables[node_start[node] + x]
            weights = 1.0
            for k in range(incident_start[node], incident_start[node + 1]):
                end = incident_edge[k]
                weight = 1.0 / cards[edges[end // 2, 1 - end % 2]]
                total += weight * margins[end, x]
                weights += weight
            tables[node_start[node] + x] = total / weights
    share = 0.0
    for e in range(edges.shape[0]):
        i, j = edges[e, 0], edges[e, 1]
        uniform = 1.0 / (cards[i] * cards[j])
        for x in range(cards[i]):
            shift_x = (margins[2 * e, x] - tables[node_start[i] + x]) / cards[j]
            for y in range(cards[j]):
                shift_y = (margins[2 * e + 1, y] - tables[node_start[j] + y]) / cards[i]
                place = edge_start[e] + x * cards[j] + y
                tables[place] -= shift_x + shift_y
                # Step 2: share of the uniform table that makes this entry >= 0.
                if tables[place] < 0.0:
                    share = max(share, -tables[place] / (uniform - tables[place]))
    for node in range(n_nodes):
        for k in range(node_start[node], node_start[node + 1]):
            tables[k] = (1.0 - share) * tables[k] + share / cards[node]
    for e in range(edges.shape[0]):
        uniform = 1.0 / (cards[edges[e, 0]] * cards[edges[e, 1]])
        for k in range(edge_start[e], edge_start[e + 1]):
            tables[k] = max(0.0, (1.0 - share) * tables[k] + share * uniform)
    return share


@njit(cache=True, nogil=True)
def improve_labels(layout: Layout, scores: FloatArray, labels: IntArray, limit: int) -> int:
    """Change one label at a time while the score grows (iterated conditional modes), in place.

    Return the number of changes; ``limit`` bounds the number of passes.
    """
    cards, edges, node_start, edge_start, incident_start, incident_edge, _ = layout
    work = np.empty(cards.max())
    changes = 0
    for _ in range(limit):
        moved = 0
        for node in range(cards.shape[0]):
            for x in range(cards[node]):
                work[x] = scores[node_start[node] + x]
            for k in range(incident_start[node], incident_start[node + 1]):
                end = incident_edge[k]
                e = end // 2
                other = labels[edges[e, 1 - end % 2]]
                row = cards[edges[e, 1]]
                for x in range(cards[node]):
                    inner = x * row + other if end % 2 == 0 else other * row + x
                    work[x] += scores[edge_start[e] + inner]
            best = labels[node]
            for x in range(cards[node]):
                if work[x] > work[best]:
                    best = x
            if best != labels[node]:
                labels[node] = best
                moved += 1
        changes += moved
        if moved == 0:
            break
    return changes


@njit(cache=True, nogil=True)
def decode_in_order(
    layout: Layout, scores: FloatArray, messages: FloatArray, labels: IntArray
) -> None:
    """Choose labels node by node: best for the dual's node scores and the labels chosen so far."""
    cards, edges, node_start, edge_start, incident_start, incident_edge, message_start = layout
    work = np.empty(cards.max())
    for node in range(cards.shape[0]):
        for x in range(cards[node]):
            work[x] = scores[node_start[node] + x]
        for k in range(incident_start[node], incident_start[node + 1]):
            end = incident_edge[k]
            e = end // 2
            other = edges[e, 1 - end % 2]
            row = cards[edges[e, 1]]
            start = message_start[end]
            for x in range(cards[node]):
                if other < node:
                    y = labels[other]
                    inner = x * row + y if end % 2 == 0 else y * row + x
                    work[x] += scores[edge_start[e] + inner]
                    work[x] -= messages[message_start[end ^ 1] + y]
                else:
                    work[x] += messages[start + x]
        best = 0
        for x in range(cards[node]):
            if work[x] > work[best]:
                best = x
        labels[node] = best
