"""Edge tables of pairwise models fitted to the margins of their nodes, with zeros unchanged."""

import numpy as np
from numba import njit

from engine.core.arguments import FloatArray
from engine.kernels.compiling import inner
from engine.kernels.messages_pairwise import Layout


@njit(cache=True, nogil=True)
def determines(layout: Layout, scores: FloatArray, node: int) -> bool:
    """Return True if each label of a node leaves only one label to each of its neighbours.

    This holds for the auxiliary node of a factor: its labels are configurations.
    """
    cards, edges, node_start, edge_start, incident_start, incident_edge, _ = layout
    for k in range(incident_start[node], incident_start[node + 1]):
        end = incident_edge[k]
        other = edges[end // 2, 1 - end % 2]
        row = cards[edges[end // 2, 1]]
        for x in range(cards[node]):
            partners = 0
            for y in range(cards[other]):
                inside = x * row + y if end % 2 == 0 else y * row + x
                partners += scores[edge_start[end // 2] + inside] > -np.inf
            if partners > 1 and scores[node_start[node] + x] > -np.inf:
                return False
    return bool(incident_start[node + 1] - incident_start[node] > 1)


@njit(cache=True, nogil=True)
def fit_determined(
    layout: Layout, scores: FloatArray, tables: FloatArray, rounds: int, tolerance: float
) -> None:
    """Fit each node that determines its neighbours to their tables, and write its edges' tables.

    Such an edge has no freedom: its table is that node's, so that margins can agree only if the
    node itself is fitted (proportionally, one neighbour after the other).
    """
    cards, edges, node_start, edge_start, incident_start, incident_edge, _ = layout
    margin = np.empty(cards.max())
    for node in range(cards.shape[0]):
        low, high = incident_start[node], incident_start[node + 1]
        if high - low < 2 or not determines(layout, scores, node):
            continue
        own = tables[node_start[node] : node_start[node + 1]]
        partner = np.zeros((high - low, cards[node]), dtype=np.int64)
        for k in range(low, high):
            end = incident_edge[k]
            other = edges[end // 2, 1 - end % 2]
            row = cards[edges[end // 2, 1]]
            for x in range(cards[node]):
                for y in range(cards[other]):
                    inside = x * row + y if end % 2 == 0 else y * row + x
                    if scores[edge_start[end // 2] + inside] > -np.inf:
                        partner[k - low, x] = y
        for _ in range(rounds):
            error = 0.0
            for k in range(low, high):
                other = edges[incident_edge[k] // 2, 1 - incident_edge[k] % 2]
                wanted = tables[node_start[other] : node_start[other + 1]]
                margin[: cards[other]] = 0.0
                for x in range(cards[node]):
                    margin[partner[k - low, x]] += own[x]
                for y in range(cards[other]):
                    error = max(error, abs(margin[y] - wanted[y]))
                for x in range(cards[node]):
                    y = partner[k - low, x]
                    if margin[y] > 0.0:
                        own[x] = own[x] / margin[y] * wanted[y]
            if error <= tolerance:
                break
        for k in range(low, high):
            end = incident_edge[k]
            row = cards[edges[end // 2, 1]]
            tables[edge_start[end // 2] : edge_start[end // 2 + 1]] = 0.0
            for x in range(cards[node]):
                y = partner[k - low, x]
                inside = x * row + y if end % 2 == 0 else y * row + x
                tables[edge_start[end // 2] + inside] = own[x]


@njit(cache=True, nogil=True)
def _move_missing(
    table: FloatArray, scores: FloatArray, rows: FloatArray, columns: FloatArray
) -> float:
    """Make margins agree by moving the errors; return the largest remaining error.

    Rows with too much are scaled down. The deficits of rows and columns are then added where they
    meet, at possible entries. Columns must not have too much.
    """
    lacks = columns.copy()
    worst = 0.0
    for x in range(table.shape[0]):
        total = table[x].sum()
        if total > rows[x]:
            table[x] *= rows[x] / total
        lacks -= table[x]
    for x in range(table.shape[0]):
        lack = rows[x] - table[x].sum()
        for y in range(table.shape[1]):
            moved = min(lack, lacks[y])
            if moved > 0.0 and scores[x, y] > -np.inf:
                table[x, y] += moved
                lack -= moved
                lacks[y] -= moved
        worst = max(worst, lack)
    return float(max(worst, np.abs(lacks).max()))


@inner
def _scale(values: FloatArray, total: float, wanted: float) -> None:
    """Scale values with this total to the requested one, in place, even if the ratio overflows."""
    factor = wanted / total
    for k in range(len(values)):
        values[k] = values[k] * factor if factor < np.inf else values[k] / total * wanted


@njit(cache=True, nogil=True)
def make_consistent(
    layout: Layout, scores: FloatArray, tables: FloatArray, rounds: int, tolerance: float
) -> float:
    """Fit edge tables to the margins of their nodes; return the largest remaining error.

    Iterative proportional fitting keeps odds ratios, hence zeros. With strong couplings it is slow:
    the remaining errors are moved between entries. Only impossible entries can prevent that.
    """
    cards, edges, node_start, edge_start, _, _, _ = layout
    worst = 0.0
    for e in range(edges.shape[0]):
        i, j = edges[e, 0], edges[e, 1]
        place = slice(edge_start[e], edge_start[e + 1])
        table = tables[place].reshape((cards[i], cards[j]))
        rows = tables[node_start[i] : node_start[i + 1]]
        columns = tables[node_start[j] : node_start[j + 1]]
        error = 0.0
        for _ in range(rounds):
            error = 0.0
            for x in range(cards[i]):
                total = 0.0
                for y in range(cards[j]):
                    total += table[x, y]
                wanted = rows[x]
                error = max(error, abs(total - wanted))
                if total > 0.0:
                    _scale(table[x], total, wanted)
            for y in range(cards[j]):
                total = 0.0
                for x in range(cards[i]):
                    total += table[x, y]
                wanted = columns[y]
                error = max(error, abs(total - wanted))
                if total > 0.0:
                    _scale(table[:, y], total, wanted)
            if error <= tolerance:
                break
        if error > tolerance:
            possible = scores[place].reshape((cards[i], cards[j]))
            error = _move_missing(table, possible, rows, columns)
        worst = max(worst, error)
    return worst
