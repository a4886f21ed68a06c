"""Sum-product messages for perfect matchings of a complete bipartite graph."""

import numpy as np
from numba import njit

from engine.core.arguments import FloatArray

SUM_ERROR = 1e-3
"""Largest distance from 1 of row and column sums at a fixed point of the marginals."""

ODDS_ERROR = 0.01
"""Nats that log odds may decrease in the last sweep; near a fixed point changes shrink."""


@njit(cache=True, nogil=True)
def send_from_rows(
    scores: FloatArray,
    incoming: FloatArray,
    outgoing: FloatArray,
    damping: float,
    largest_message: float,
) -> None:
    """Update every message from a row to a column.

    outgoing[i, j] <- -log sum_{k != j} exp(scores[i, k] + incoming[k, i]), mixed with
    ``damping`` parts of its old value. Messages are indexed by sender first: ``incoming`` (m, n),
    ``outgoing`` (n, m). A forced edge would send infinity: all are clipped to ``largest_message``.
    Subtracting j's term from the whole sum is safe, since the largest term stays in it; the sum
    without the largest term is computed separately.
    """
    n, m = scores.shape
    terms, shares = np.empty(m), np.empty(m)
    for i in range(n):
        largest = 0
        for k in range(m):
            terms[k] = scores[i, k] + incoming[k, i]
            if terms[k] > terms[largest]:
                largest = k
        second = -np.inf
        for k in range(m):
            if k != largest:
                second = max(second, terms[k])
        top = terms[largest]
        others = 0.0  # the sum without the largest term, relative to the second largest
        for k in range(m):
            shares[k] = 0.0
            if k != largest and terms[k] > -np.inf:
                shares[k] = np.exp(terms[k] - second)
                others += shares[k]
        ratio = np.exp(second - top)
        for j in range(m):
            if scores[i, j] == -np.inf:
                continue  # a forbidden edge carries no message
            if j != largest:
                message = -(top + np.log1p(ratio * (others - shares[j])))
            elif others > 0.0:
                message = -(second + np.log(others))
            else:
                message = largest_message
            message = min(max(message, -largest_message), largest_message)
            outgoing[i, j] = damping * outgoing[i, j] + (1.0 - damping) * message


@njit(cache=True, nogil=True)
def read_log_odds(
    scores: FloatArray, from_rows: FloatArray, from_columns: FloatArray
) -> FloatArray:
    """Return scores_ij + from_rows_ij + from_columns_ji, (n, n): log of tau / (1 - tau)."""
    n, m = scores.shape
    odds = np.empty((n, m))
    for i in range(n):
        for j in range(m):
            odds[i, j] = scores[i, j] + from_rows[i, j] + from_columns[j, i]
    return odds


@njit(cache=True, nogil=True)
def is_settled(marginals: FloatArray, before: FloatArray, odds: FloatArray) -> bool:
    """Return True if marginals that no longer change belong to a fixed point.

    Rows and columns must sum to 1, and no log odds may be moving towards 0: if scores are large, an
    edge is at 0 or 1 long before the messages have converged.
    """
    rows = np.abs(marginals.sum(axis=1) - 1.0).max()
    columns = np.abs(marginals.sum(axis=0) - 1.0).max()
    if max(rows, columns) > SUM_ERROR:
        return False
    n, m = odds.shape
    for i in range(n):
        for j in range(m):
            if abs(odds[i, j]) < abs(before[i, j]) - ODDS_ERROR:
                return False
    return True


@njit(cache=True, nogil=True)
def propagate(
    scores: FloatArray,
    from_rows: FloatArray,
    from_columns: FloatArray,
    damping: float,
    tolerance: float,
    max_sweeps: int,
    largest_message: float,
) -> tuple[FloatArray, int, float, bool]:
    """Run parallel sweeps in place until no marginal changes by more than ``tolerance``.

    ``from_rows`` (n, n) and ``from_columns`` (n, n), both indexed by sender first. Parallel as in
    Huang and Jebara: rows and columns use the messages of the previous sweep. The rule compares
    marginals because messages grow without limit at a vertex of the polytope.
    Returns the marginals, the number of sweeps, the largest change in the last one, and True if
    the last one is a fixed point.
    """
    transposed = np.ascontiguousarray(scores.T)
    odds = read_log_odds(scores, from_rows, from_columns)
    marginals = 1.0 / (1.0 + np.exp(-odds))
    residual = np.inf
    for sweep in range(max_sweeps):
        previous_rows = from_rows.copy()
        send_from_rows(scores, from_columns, from_rows, damping, largest_message)
        send_from_rows(transposed, previous_rows, from_columns, damping, largest_message)
        previous, before = marginals, odds
        odds = read_log_odds(scores, from_rows, from_columns)
        marginals = 1.0 / (1.0 + np.exp(-odds))
        residual = np.abs(marginals - previous).max()
        if residual <= tolerance and is_settled(marginals, before, odds):
            return marginals, sweep + 1, residual, True
    return marginals, max_sweeps, residual, False
