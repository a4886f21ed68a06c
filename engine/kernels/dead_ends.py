"""Compiled removal of labels that another label of the same node beats in every context."""

import numpy as np
from numba import njit

from engine.core.arguments import BoolArray, FloatArray
from engine.kernels.messages_pairwise import Layout

ROUNDING = 8.0 * np.finfo(np.float64).eps  # of one sum, as a share of its terms


@njit(cache=True, nogil=True)
def remove_dead_ends(
    layout: Layout, scores: FloatArray, n_nodes: int, kept: BoolArray, max_work: int
) -> int:
    """Mark labels that no best labelling has, in place, and return the entries visited.

    Label a of a node goes if it is impossible, or if some label b left of that node has

        score(b) - score(a) + sum over edges of min over c (table(b, c) - table(a, c)) > 0

    with c a label left of the neighbour, by more than the rounding of the sum: then b is better,
    whatever the neighbours are. One label of each node stays. Nodes are looked at again after a
    neighbour lost a label.

    Parameters
    ----------
    scores : float64 (size,), nats, finite or -inf
    n_nodes : the first nodes, which may lose labels; the others keep theirs
    kept : bool (number of labels of all nodes,), True at first
    max_work : table entries after which the removal ends; what was removed by then is right
    """
    cards, edges, node_start, _, incident_start, incident_edge, _ = layout
    largest = 0.0
    for k in range(scores.shape[0]):
        if scores[k] != -np.inf:
            largest = max(largest, abs(scores[k]))
    is_due = np.ones(cards.shape[0], dtype=np.bool_)
    work, has_changed = 0, True
    while has_changed and work < max_work:
        has_changed = False
        for node in range(n_nodes):
            if not is_due[node]:
                continue
            is_due[node] = False
            first, last = incident_start[node], incident_start[node + 1]
            slack = ROUNDING * largest * (last - first + 1)
            n_before = 0
            for x in range(cards[node]):
                n_before += kept[node_start[node] + x]
            n_left = n_before
            for a in range(cards[node]):
                if n_left < 2 or work >= max_work:
                    break
                if kept[node_start[node] + a]:
                    is_beaten, visited = _is_beaten(layout, scores, node, a, kept, slack)
                    work += visited
                    if is_beaten:
                        kept[node_start[node] + a] = False
                        n_left -= 1
            if n_left < n_before:
                has_changed = True
                is_due[node] = True
                for k in range(first, last):
                    end = incident_edge[k]
                    is_due[edges[end // 2, 1 - end % 2]] = True
    return work


@njit(cache=True, nogil=True)
def _is_beaten(
    layout: Layout, scores: FloatArray, node: int, a: int, kept: BoolArray, slack: float
) -> tuple[bool, int]:
    """Return True if a label is impossible or another one left is better, and entries visited."""
    cards, edges, node_start, edge_start, incident_start, incident_edge, _ = layout
    own, work = node_start[node], 0
    if scores[own + a] == -np.inf:
        return True, work
    for b in range(cards[node]):
        if b == a or not kept[own + b] or scores[own + b] == -np.inf:
            continue
        gain = scores[own + b] - scores[own + a]
        for k in range(incident_start[node], incident_start[node + 1]):
            end = incident_edge[k]
            e = end // 2
            other = edges[e, 1 - end % 2]
            # Entry (x, c) of the table lies at start + x * step + c * pace.
            step, pace = (cards[other], 1) if end % 2 == 0 else (1, cards[node])
            start, worst = edge_start[e], np.inf
            work += cards[other]
            for c in range(cards[other]):
                if not kept[node_start[other] + c]:
                    continue
                loss = scores[start + a * step + c * pace]
                if loss != -np.inf:
                    worst = min(worst, scores[start + b * step + c * pace] - loss)
            if worst == np.inf:  # impossible beside every label of that neighbour
                return True, work
            gain += worst
            if gain == -np.inf:
                break
        if gain > slack:
            return True, work
    return False, work
