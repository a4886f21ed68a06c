"""Block coordinate minimisation of the smoothed dual of the MAP linear programme.

    F(delta) = sum_e (1/beta) log sum exp beta (theta_e - delta_ei - delta_ej)
             + sum_i (1/beta) log sum exp beta (theta_i + sum_e delta_ei)

``messages`` holds delta and ``sent`` holds a_ei(x_i) = (1/beta) log sum_{x_j} exp beta (theta_e -
delta_ej), both with one entry per label of the node at each edge end (number 2 e + k). The star
update at node i is then delta_ei = a_ei - (theta_i + sum_c a_ci) / (N_i + 1), in closed form; it
changes only the messages to the neighbours. beta = inf gives the unsmoothed (max) updates.

References: Meshi, Jaakkola and Globerson 2012, equation 10 and section 4.4.
"""

import math

import numpy as np
from numba import njit

from engine.core.arguments import FloatArray, IntArray
from engine.kernels.long_sums import add_exactly
from engine.kernels.messages_pairwise import Layout, soft_max


@njit(cache=True, nogil=True)
def send_to(
    end: int,
    beta: float,
    layout: Layout,
    scores: FloatArray,
    messages: FloatArray,
    sent: FloatArray,
    work: FloatArray,
) -> None:
    """Recompute the message of an edge to its ``end``."""
    cards, edges, _, edge_start, _, _, message_start = layout
    e = end // 2
    first = end % 2 == 0
    here = edges[e, end % 2]
    other = edges[e, 1 - end % 2]
    row = cards[edges[e, 1]]
    back = message_start[end ^ 1]
    for x in range(cards[here]):
        for y in range(cards[other]):
            place = edge_start[e] + (x * row + y if first else y * row + x)
            work[y] = scores[place] - messages[back + y]
        sent[message_start[end] + x] = soft_max(work, cards[other], beta)


@njit(cache=True, nogil=True)
def refresh(
    beta: float, layout: Layout, scores: FloatArray, messages: FloatArray, sent: FloatArray
) -> None:
    """Recompute all of ``sent`` after a change of beta."""
    cards = layout[0]
    work = np.empty(cards.max())
    for end in range(2 * layout[1].shape[0]):
        send_to(end, beta, layout, scores, messages, sent, work)


@njit(cache=True, nogil=True)
def star_update(
    node: int,
    beta: float,
    layout: Layout,
    scores: FloatArray,
    messages: FloatArray,
    sent: FloatArray,
    work: FloatArray,
) -> None:
    """Minimise F over all delta at one node, and send the change to its neighbours."""
    cards, _, node_start, _, incident_start, incident_edge, message_start = layout
    low, high = incident_start[node], incident_start[node + 1]
    for x in range(cards[node]):
        total = scores[node_start[node] + x]
        for k in range(low, high):
            total += sent[message_start[incident_edge[k]] + x]
        share = total / (high - low + 1)
        for k in range(low, high):
            place = message_start[incident_edge[k]] + x
            messages[place] = sent[place] - share
    for k in range(low, high):
        send_to(incident_edge[k] ^ 1, beta, layout, scores, messages, sent, work)


@njit(cache=True, nogil=True)
def update_in_order(
    order: IntArray,
    beta: float,
    layout: Layout,
    scores: FloatArray,
    messages: FloatArray,
    sent: FloatArray,
) -> None:
    """Apply star updates at the nodes of ``order``, which may repeat."""
    work = np.empty(layout[0].max())
    for node in order:
        star_update(node, beta, layout, scores, messages, sent, work)


@njit(cache=True, nogil=True)
def dual_value(beta: float, layout: Layout, scores: FloatArray, messages: FloatArray) -> float:
    """Return F(delta); for beta = inf an upper bound of the best score, apart from rounding."""
    cards, edges, node_start, edge_start, incident_start, incident_edge, message_start = layout
    widest = 1
    for e in range(edges.shape[0]):
        widest = max(widest, cards[edges[e, 0]] * cards[edges[e, 1]])
    work = np.empty(max(widest, cards.max()))
    total, lost = 0.0, 0.0
    for node in range(cards.shape[0]):
        for x in range(cards[node]):
            work[x] = scores[node_start[node] + x]
            for k in range(incident_start[node], incident_start[node + 1]):
                work[x] += messages[message_start[incident_edge[k]] + x]
        total, lost = add_exactly(total, lost, soft_max(work, cards[node], beta))
    for e in range(edges.shape[0]):
        columns = cards[edges[e, 1]]
        for x in range(cards[edges[e, 0]]):
            for y in range(columns):
                work[x * columns + y] = (
                    scores[edge_start[e] + x * columns + y]
                    - messages[message_start[2 * e] + x]
                    - messages[message_start[2 * e + 1] + y]
                )
        highest = soft_max(work, cards[edges[e, 0]] * columns, beta)
        total, lost = add_exactly(total, lost, highest)
    return total + lost


@njit(cache=True, nogil=True)
def dual_marginals(
    beta: float, layout: Layout, scores: FloatArray, messages: FloatArray, tables: FloatArray
) -> None:
    """Write mu(delta), the softmax of every node and edge; they need not agree."""
    cards, edges, node_start, edge_start, incident_start, incident_edge, message_start = layout
    for node in range(cards.shape[0]):
        part = tables[node_start[node] : node_start[node + 1]]
        for x in range(cards[node]):
            part[x] = scores[node_start[node] + x]
            for k in range(incident_start[node], incident_start[node + 1]):
                part[x] += messages[message_start[incident_edge[k]] + x]
        norm = soft_max(part, cards[node], beta)
        for x in range(cards[node]):
            part[x] = math.exp(beta * (part[x] - norm))
    for e in range(edges.shape[0]):
        part = tables[edge_start[e] : edge_start[e + 1]]
        columns = cards[edges[e, 1]]
        for x in range(cards[edges[e, 0]]):
            for y in range(columns):
                part[x * columns + y] = (
                    scores[edge_start[e] + x * columns + y]
                    - messages[message_start[2 * e] + x]
                    - messages[message_start[2 * e + 1] + y]
                )
        norm = soft_max(part, part.shape[0], beta)
        for k in range(part.shape[0]):
            part[k] = math.exp(beta * (part[k] - norm))
