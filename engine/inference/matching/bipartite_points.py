"""Points of assignment problems with their values, rounding errors and bounds."""

from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.special import xlogy

from engine.core.arguments import FloatArray
from engine.core.tolerances import TOLERANCES
from engine.entropies.matching import node_weights


def counting_numbers(rho: Any, n: int) -> FloatArray:
    """Return c_ij = rho_i + rho_j - 1, shape (n, n), after checking rho."""
    weights = node_weights(rho, 2 * n)
    return np.asarray(weights[:n, None] + weights[None, n:] - 1.0)


def round_to_doubly_stochastic(marginals: FloatArray) -> FloatArray:
    """Return a doubly stochastic matrix near ``marginals``, at most twice their error away in l1.

    References
    ----------
    Altschuler, Weed and Rigollet (2017), Near-linear time approximation algorithms for optimal
    transport via Sinkhorn iteration, algorithm 2.
    """
    tau = marginals / np.maximum(marginals.sum(axis=1, keepdims=True), 1.0)
    tau /= np.maximum(tau.sum(axis=0), 1.0)
    missing_rows, missing_columns = 1.0 - tau.sum(axis=1), 1.0 - tau.sum(axis=0)
    total = float(np.abs(missing_rows).sum())
    if total > 0.0:
        tau += np.maximum(np.outer(missing_rows, missing_columns) / total, 0.0)
    return np.asarray(tau)


def bracket_value(scores: FloatArray, counts: FloatArray, tau: FloatArray) -> tuple[float, float]:
    """Return <W, tau> + H(tau), nats, minus and plus its possible rounding error."""
    rest = complement(tau)
    parts = np.stack([scores * tau, counts * xlogy(rest, rest), -xlogy(tau, tau)])
    value, allowed = float(parts.sum()), TOLERANCES.rounding * float(np.abs(parts).sum())
    return value - allowed, value + allowed


def complement(tau: FloatArray) -> FloatArray:
    """Return 1 - tau, computed as the sum of the row's other entries where tau is near 1."""
    rest = 1.0 - tau
    rows, columns = np.nonzero(tau > 0.5)  # at most one a row
    others = tau[rows]
    others[np.arange(len(rows)), columns] = 0.0
    rest[rows, columns] = others.sum(axis=1)
    return rest


def excess(tau: FloatArray) -> FloatArray:
    """Return row sums minus 1, then column sums minus 1, shape (2n,).

    If an entry is near 1, its row is exact by definition of ``complement``, and its column
    compares the small entries alone, because 1 + 1e-20 would lose them.
    """
    rest = complement(tau)
    rows, columns = tau.sum(axis=1) - 1.0, tau.sum(axis=0) - 1.0
    i, j = np.nonzero(tau > 0.5)
    others = tau[:, j]
    others[i, np.arange(len(j))] = 0.0
    rows[i] = 0.0
    columns[j] = others.sum(axis=0) - rest[i, j]
    return np.concatenate([rows, columns])


def bound_from_point(scores: FloatArray, counts: FloatArray, tau: FloatArray) -> float:
    """Return an upper bound of log Z_rho, the largest value of the tangent at tau.

    The objective is concave, so that any doubly stochastic tau gives a bound, by one assignment.
    """
    tau = np.maximum(tau, TOLERANCES.smallest_entry)
    rest = np.maximum(complement(tau), TOLERANCES.smallest_entry)
    slopes = scores - counts * (1.0 + np.log(rest)) - np.log(tau)
    rows, columns = linear_sum_assignment(slopes, maximize=True)
    change = -tau
    change[rows, columns] += 1.0
    # A present pair changes by its exact complement, which 1 - tau would round.
    change[rows, columns] = np.where(
        tau[rows, columns] > 0.5, rest[rows, columns], change[rows, columns]
    )
    sizes = np.abs(scores) + np.abs(counts) * (1.0 - np.log(rest)) - np.log(tau)
    _, value = bracket_value(scores, counts, tau)
    rise = float((slopes * change).sum())
    return (
        value + max(rise, 0.0) + TOLERANCES.rounding * float((sizes * (np.abs(change) + tau)).sum())
    )
