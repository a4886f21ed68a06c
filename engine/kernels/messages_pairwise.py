"""Reweighted log messages on general pairwise models, zeros (-inf) included.

A message belongs to an end of an edge (number 2 e + k, k = 0 for the first node) and has one
entry per label of that node. L_i = theta_i + sum over ends at i of rho_e M is the log belief; the
message sent to end i over e is  S_i(x) = log sum_y exp(theta_e(x, y) / rho_e + L_j(y) - M_ej(y)).

Messages are always finite. Only scores are -inf, for impossible labels, after
`arc_consistency.rule_out` has propagated them; messages of such labels are 0 and never read.

References: Wainwright, Jaakkola and Willsky 2005; Globerson and Jaakkola 2007 (the dual bound).
"""

import math

import numpy as np
from numba import njit

from engine.core.arguments import FloatArray, IntArray
from engine.kernels.long_sums import add_exactly

Layout = tuple[IntArray, IntArray, IntArray, IntArray, IntArray, IntArray, IntArray]
# (cardinalities, edges, node_start, edge_start, incident_start, incident_edge, message_start)


LOST = -40.0  # exp of this is lost in rounding when it is added to 1
FARTHEST = 1e100  # limit of a log message: far from overflow, whatever diverges


@njit(cache=True, nogil=True)
def soft_max(values: FloatArray, length: int, beta: float) -> float:
    """Return (1/beta) log sum exp(beta values) over the first entries; the maximum if inf."""
    largest = -np.inf
    for x in range(length):
        largest = max(largest, values[x])
    if beta == np.inf or largest == -np.inf:
        return largest
    total = 0.0
    for x in range(length):
        shifted = beta * (values[x] - largest)
        if shifted > LOST:
            total += math.exp(shifted)
    return float(largest + math.log(total) / beta)


@njit(cache=True, nogil=True)
def node_belief(
    node: int,
    layout: Layout,
    scores: FloatArray,
    rho: FloatArray,
    messages: FloatArray,
    out: FloatArray,
) -> None:
    """Write L of one node to ``out``."""
    cards, _, node_start, _, incident_start, incident_edge, message_start = layout
    for x in range(cards[node]):
        out[x] = scores[node_start[node] + x]
    for k in range(incident_start[node], incident_start[node + 1]):
        end = incident_edge[k]
        weight = rho[end // 2]
        start = message_start[end]
        for x in range(cards[node]):
            out[x] += weight * messages[start + x]


@njit(cache=True, nogil=True)
def send(
    end: int,
    belief: FloatArray,
    layout: Layout,
    scores: FloatArray,
    rho: FloatArray,
    messages: FloatArray,
    out: FloatArray,
    work: FloatArray,
) -> None:
    """Write the message to ``end`` to ``out``, unnormalised; ``belief``: L at the other end."""
    cards, edges, _, edge_start, _, _, message_start = layout
    e = end // 2
    side = end % 2
    target = edges[e, side]
    source = edges[e, 1 - side]
    back = message_start[end ^ 1]
    row = cards[edges[e, 1]]
    base = edge_start[e]
    inverse = 1.0 / rho[e]
    for y in range(cards[source]):
        work[y] = belief[y] - messages[back + y] if belief[y] > -np.inf else -np.inf
    for x in range(cards[target]):
        largest = -np.inf
        for y in range(cards[source]):
            place = base + (x * row + y if side == 0 else y * row + x)
            value = scores[place] * inverse + work[y]
            largest = max(largest, value)
        if largest == -np.inf:
            out[x] = -np.inf
            continue
        total = 0.0
        for y in range(cards[source]):
            place = base + (x * row + y if side == 0 else y * row + x)
            shifted = scores[place] * inverse + work[y] - largest
            if shifted > LOST:
                total += math.exp(shifted)
        out[x] = largest + math.log(total)


@njit(cache=True, nogil=True)
def _replace(
    start: int, length: int, damping: float, new: FloatArray, messages: FloatArray
) -> float:
    """Store a message, centred between its extremes; return its largest change."""
    largest, smallest = -np.inf, np.inf
    for x in range(length):
        if new[x] > -np.inf:
            largest, smallest = max(largest, new[x]), min(smallest, new[x])
    middle = 0.5 * largest + 0.5 * smallest
    change = 0.0
    for x in range(length):
        value = 0.0
        if new[x] > -np.inf:
            value = (1.0 - damping) * (new[x] - middle) + damping * messages[start + x]
            value = min(max(value, -FARTHEST), FARTHEST)
            change = max(change, abs(value - messages[start + x]))
        messages[start + x] = value
    return change


@njit(cache=True, nogil=True)
def sweep_nodes(
    order: IntArray,
    rank: IntArray,
    layout: Layout,
    scores: FloatArray,
    rho: FloatArray,
    damping: float,
    messages: FloatArray,
    work: FloatArray,
) -> float:
    """Visit nodes in ``order``; each sends to its neighbours of higher rank.

    ``work`` has shape (3, largest cardinality). Return the largest change of a log message.
    """
    cards, edges, _, _, incident_start, incident_edge, message_start = layout
    change = 0.0
    for node in order:
        node_belief(node, layout, scores, rho, messages, work[0])
        for k in range(incident_start[node], incident_start[node + 1]):
            target_end = incident_edge[k] ^ 1
            target = edges[target_end // 2, target_end % 2]
            if rank[target] <= rank[node]:
                continue
            send(target_end, work[0], layout, scores, rho, messages, work[1], work[2])
            moved = _replace(message_start[target_end], cards[target], damping, work[1], messages)
            change = max(change, moved)
    return change


@njit(cache=True, nogil=True)
def reweighted_bound(
    share: FloatArray,
    layout: Layout,
    scores: FloatArray,
    rho: FloatArray,
    messages: FloatArray,
    work: FloatArray,
) -> float:
    """Return an upper bound of the reweighted log Z, apart from rounding.

    It holds for any finite messages; `rule_out` must have left every possible label of ``scores`` a
    partner at each neighbour.

    ``share[e, k]`` >= 0 is the part of rho_e that conditions the other end on end k; the two
    parts add up to rho_e, and the parts charged to a node add up to at most 1. The bound is
    sum_i kept_i log sum exp L_i + sum over ends share max_x (S - M), tight at a fixed point.
    """
    cards, edges, _, _, incident_start, incident_edge, message_start = layout
    total, lost = 0.0, 0.0
    for node in range(cards.shape[0]):
        node_belief(node, layout, scores, rho, messages, work[0])
        kept = 1.0
        for k in range(incident_start[node], incident_start[node + 1]):
            end = incident_edge[k]
            kept -= share[end // 2, 1 - end % 2]
            # The message that would be sent from here to the other end.
            target_end = end ^ 1
            target = edges[end // 2, target_end % 2]
            start = message_start[target_end]
            send(target_end, work[0], layout, scores, rho, messages, work[1], work[2])
            slack = -np.inf
            for x in range(cards[target]):
                if work[1][x] > -np.inf:
                    slack = max(slack, work[1][x] - messages[start + x])
            weight = share[end // 2, target_end % 2]
            total, lost = add_exactly(total, lost, weight * slack)
        value = soft_max(work[0], cards[node], 1.0)
        total, lost = add_exactly(total, lost, max(0.0, kept) * value)
    return total + lost


@njit(cache=True, nogil=True)
def read_beliefs(
    layout: Layout,
    scores: FloatArray,
    rho: FloatArray,
    messages: FloatArray,
    tables: FloatArray,
    work: FloatArray,
) -> None:
    """Write node and edge pseudomarginals of the messages (margins agree at a fixed point)."""
    cards, edges, node_start, edge_start, _, _, message_start = layout
    for node in range(cards.shape[0]):
        node_belief(node, layout, scores, rho, messages, work[0])
        norm = soft_max(work[0], cards[node], 1.0)
        for x in range(cards[node]):
            tables[node_start[node] + x] = math.exp(work[0][x] - norm)
    for e in range(edges.shape[0]):
        i, j = edges[e, 0], edges[e, 1]
        node_belief(i, layout, scores, rho, messages, work[0])
        node_belief(j, layout, scores, rho, messages, work[1])
        largest = -np.inf
        place = edge_start[e]
        for x in range(cards[i]):
            left = work[0][x]
            if left > -np.inf:
                left -= messages[message_start[2 * e] + x]
            for y in range(cards[j]):
                right = work[1][y]
                if right > -np.inf:
                    right -= messages[message_start[2 * e + 1] + y]
                value = scores[place] / rho[e] + left + right
                tables[place] = value
                largest = max(largest, value)
                place += 1
        total = 0.0
        for k in range(edge_start[e], edge_start[e + 1]):
            tables[k] = math.exp(tables[k] - largest)
            total += tables[k]
        for k in range(edge_start[e], edge_start[e + 1]):
            tables[k] /= total
