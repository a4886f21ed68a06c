"""Sum-product messages for perfect matchings of a complete bipartite graph."""

import numpy as np
from numba import njit

from engine.core.arguments import FloatArray

LARGEST_MESSAGE = 500.0
"""Nats. A forced edge would send infinity; exp(-500) is as good as never and stays finite."""


@njit(cache=True, nogil=True)
def send_from_rows(
    scores: FloatArray, incoming: FloatArray, outgoing: FloatArray, damping: float
) -> None:
    """Update every message from a row to a column.

    outgoing[i, j] <- -log sum_{k != j} exp(scores[i, k] + incoming[k, i]), mixed with
    ``damping`` parts of its old value. Messages are indexed by sender first: ``incoming`` (m, n),
    ``outgoing`` (n, m). Taking j's term from the whole sum is safe, since the largest term stays
    in it; the sum without the largest term itself is formed apart.
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
                message = LARGEST_MESSAGE
            message = min(max(message, -LARGEST_MESSAGE), LARGEST_MESSAGE)
            outgoing[i, j] = damping * outgoing[i, j] + (1.0 - damping) * message


@njit(cache=True, nogil=True)
def beliefs(scores: FloatArray, from_rows: FloatArray, from_columns: FloatArray) -> FloatArray:
    """Edge marginals x / (1 + x), x = exp(scores_ij + from_rows_ij + from_columns_ji), (n, n)."""
    n, m = scores.shape
    marginals = np.zeros((n, m))
    for i in range(n):
        for j in range(m):
            if scores[i, j] > -np.inf:
                exponent = scores[i, j] + from_rows[i, j] + from_columns[j, i]
                marginals[i, j] = 1.0 / (1.0 + np.exp(-exponent))
    return marginals


@njit(cache=True, nogil=True)
def propagate(
    scores: FloatArray,
    from_rows: FloatArray,
    from_columns: FloatArray,
    damping: float,
    tolerance: float,
    max_sweeps: int,
) -> tuple[FloatArray, int, float]:
    """Run parallel sweeps in place until no marginal moves by more than ``tolerance``.

    ``from_rows`` (n, n) and ``from_columns`` (n, n), both indexed by sender first. Parallel as in
    Huang and Jebara: rows and columns answer the messages of the sweep before. The rule looks at
    marginals because at a vertex of the polytope the messages grow for ever.
    Returns the marginals, the number of sweeps and the largest change in the last one.
    """
    transposed = np.ascontiguousarray(scores.T)
    marginals = beliefs(scores, from_rows, from_columns)
    residual = np.inf
    for sweep in range(max_sweeps):
        previous_rows = from_rows.copy()
        send_from_rows(scores, from_columns, from_rows, damping)
        send_from_rows(transposed, previous_rows, from_columns, damping)
        previous = marginals
        marginals = beliefs(scores, from_rows, from_columns)
        residual = np.abs(marginals - previous).max()
        if residual <= tolerance:
            return marginals, sweep + 1, residual
    return marginals, max_sweeps, residual
