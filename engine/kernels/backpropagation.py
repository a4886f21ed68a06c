"""Back TRW: derivatives of a loss of pseudomarginals through a fixed number of message sweeps.

Conventions of `engine.kernels.grid_chains`. Adjoints are derivatives in log messages, in scores
s_i, and in theta_ij by edge code; ``adjoint[d]`` belongs to ``messages[d]``. Stored messages
replace the stack: a pass read the values that it left, except that a forward pass read the
messages from the right and from below of the previous sweep.

References: Domke 2013, algorithm 3.
"""

from math import exp, log
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from engine.core.arguments import FloatArray
from engine.kernels.grid_chains import raise_to

UNIVARIATE_LOGISTIC = 0
UNIVARIATE_QUADRATIC = 1
SMOOTHED_CLASSIFICATION = 2
CLIQUE_LOGISTIC = 3
SURROGATE_LIKELIHOOD = 4

FLOOR = 1e-300
"""Floor of marginals in logarithms; derivatives ignore it."""


class GridFactors(NamedTuple):
    """Factors of a grid of two labels, H x W, as `engine.kernels.grid_chains` takes them."""

    odds: FloatArray  # (H, W)
    h_codes: NDArray[Any]  # (H, W - 1) row of ``h_tables`` of each edge to the right
    v_codes: NDArray[Any]  # (H - 1, W) row of ``v_tables`` of each edge down
    h_tables: FloatArray  # (n_codes, 4)
    v_tables: FloatArray  # (n_codes, 4)
    rho: float


class Adjoints(NamedTuple):
    """Derivatives of the loss, changed in place."""

    messages: FloatArray  # (4, H, W) in log messages
    scores: FloatArray  # (H, W)
    horizontal: FloatArray  # (n_codes, 4) in theta
    vertical: FloatArray  # (n_codes, 4)


@njit(cache=True, nogil=True, inline="always")
def _add_score_adjoint(weight, i, j, rho, adjoint, s_adj):  # type: ignore[no-untyped-def]
    """Add the adjoint of a log belief to its score and its four log messages."""
    s_adj[i, j] += weight
    for d in range(4):
        adjoint[d, i, j] += rho * weight


@njit(cache=True, nogil=True, inline="always")
def _pull_message(weight, first, message, belief, table, entry, rho):  # type: ignore[no-untyped-def]
    """Add the adjoint of one sent message to its table's entry; return that of the log cavity.

    The cavity is ``belief / message``, with the message received from the opposite direction;
    ``first`` is True if the sender's label is the first index of the table.
    """
    low, high = (1, 2) if first else (2, 1)  # entries (sender 0, receiver 1), (1, 0)
    upper = table[3] * belief
    upper /= table[low] * message + upper
    lower = table[high] * belief
    lower /= table[0] * message + lower
    scaled = weight / rho
    entry[low] += scaled - scaled * upper
    entry[3] += scaled * upper
    entry[0] += scaled * lower - scaled
    entry[high] -= scaled * lower
    return weight * (upper - lower)


@njit(cache=True, nogil=True, error_model="numpy")
def reverse_sweep(
    factors: GridFactors, before: FloatArray, after: FloatArray, adjoints: Adjoints
) -> None:
    """Reverse one sweep: turn adjoints of the messages after it into adjoints of those before it.

    The mirror of `engine.kernels.grid_chains.sweep`, with its backward pass reversed first. Nothing
    here waits for a division, so plain raster order is fastest.

    Parameters
    ----------
    before, after : (4, H, W) float64, messages before and after the sweep
    adjoints : Adjoints; those of messages are replaced, the others incremented.
    """
    odds, h_codes, v_codes, h_tables, v_tables, rho = factors
    adjoint, s_adj, h_adj, v_adj = adjoints
    height, width = odds.shape
    left, right, up, down = after[0], after[1], after[2], after[3]
    to_left, to_right, to_up, to_down = adjoint[0], adjoint[1], adjoint[2], adjoint[3]
    for i in range(height):
        for j in range(width):
            a, u = left[i, j], up[i, j]
            belief = odds[i, j] * raise_to((a * right[i, j]) * (u * down[i, j]), rho)
            total = 0.0
            if j > 0:
                code, weight = h_codes[i, j - 1], to_right[i, j - 1]
                to_right[i, j - 1] = 0.0
                pulled = _pull_message(weight, False, a, belief, h_tables[code], h_adj[code], rho)
                to_left[i, j] -= pulled
                total += pulled
            if i > 0:
                code, weight = v_codes[i - 1, j], to_down[i - 1, j]
                to_down[i - 1, j] = 0.0
                pulled = _pull_message(weight, False, u, belief, v_tables[code], v_adj[code], rho)
                to_up[i, j] -= pulled
                total += pulled
            _add_score_adjoint(total, i, j, rho, adjoint, s_adj)
    right, down = before[1], before[3]  # the forward pass read those of the previous sweep
    for i in range(height - 1, -1, -1):
        for j in range(width - 1, -1, -1):
            r, d = right[i, j], down[i, j]
            belief = odds[i, j] * raise_to((left[i, j] * r) * (up[i, j] * d), rho)
            total = 0.0
            if j + 1 < width:
                code, weight = h_codes[i, j], to_left[i, j + 1]
                to_left[i, j + 1] = 0.0
                pulled = _pull_message(weight, True, r, belief, h_tables[code], h_adj[code], rho)
                to_right[i, j] -= pulled
                total += pulled
            if i + 1 < height:
                code, weight = v_codes[i, j], to_up[i + 1, j]
                to_up[i + 1, j] = 0.0
                pulled = _pull_message(weight, True, d, belief, v_tables[code], v_adj[code], rho)
                to_down[i, j] -= pulled
                total += pulled
            _add_score_adjoint(total, i, j, rho, adjoint, s_adj)


@njit(cache=True, nogil=True)
def univariate_loss(kind, sharpness, true, false):  # type: ignore[no-untyped-def]
    """Return the loss of the true label's marginal and its derivative in the label's log odds.

    The other label's marginal is also an argument: if ``true`` rounds to 0 or 1, the difference
    1 - true has lost all its digits.
    """
    if kind == UNIVARIATE_LOGISTIC:
        return -log(max(true, FLOOR)), -false
    if kind == UNIVARIATE_QUADRATIC:
        return false * false, -2.0 * false * (true * false)
    value = 1.0 / (1.0 + exp(sharpness * (true - false)))
    return value, -2.0 * sharpness * value * (1.0 - value) * (true * false)


@njit(cache=True, nogil=True, inline="always")
def _slope(theta, probability, rho):  # type: ignore[no-untyped-def]
    """Return the derivative of theta tau - rho tau log tau in tau, up to a constant."""
    return theta - rho * log(max(probability, FLOOR))


@njit(cache=True, nogil=True, error_model="numpy")
def _edge_loss(kind, seen, first_odds, second_odds, psi, theta, rho, t_adj, code):  # type: ignore[no-untyped-def]
    """Return the loss of one edge's pseudomarginals and the adjoints of its two log cavities.

    ``seen`` is the entry of the observed pair; ``psi``, ``theta`` and ``t_adj``, which receives the
    adjoint of theta, are (n_codes, 4): the edge's row is ``code``.
    """
    q0, q1 = psi[code, 0], psi[code, 1] * second_odds
    q2, q3 = psi[code, 2] * first_odds, psi[code, 3] * first_odds * second_odds
    share = 1.0 / (q0 + q1 + q2 + q3)
    t0, t1, t2, t3 = q0 * share, q1 * share, q2 * share, q3 * share
    if kind == SURROGATE_LIKELIHOOD:
        s0, s1 = _slope(theta[code, 0], t0, rho), _slope(theta[code, 1], t1, rho)
        s2, s3 = _slope(theta[code, 2], t2, rho), _slope(theta[code, 3], t3, rho)
        mean = t0 * s0 + t1 * s1 + t2 * s2 + t3 * s3
        value = mean - theta[code, seen]
        t_adj[code, 0] += t0
        t_adj[code, 1] += t1
        t_adj[code, 2] += t2
        t_adj[code, 3] += t3
        t_adj[code, seen] -= 1.0
        t0, t1, t2, t3 = t0 * (s0 - mean), t1 * (s1 - mean), t2 * (s2 - mean), t3 * (s3 - mean)
    else:
        value = -log(max((t0, t1, t2, t3)[seen], FLOOR))
        t0, t1 = t0 - (seen == 0), t1 - (seen == 1)
        t2, t3 = t2 - (seen == 2), t3 - (seen == 3)
    t_adj[code, 0] += t0 / rho
    t_adj[code, 1] += t1 / rho
    t_adj[code, 2] += t2 / rho
    t_adj[code, 3] += t3 / rho
    return value, t2 + t3, t1 + t3


@njit(cache=True, nogil=True, error_model="numpy")
def begin_adjoint(
    kind: int,
    sharpness: float,
    labels: NDArray[Any],
    scores: FloatArray,
    h_theta: FloatArray,
    v_theta: FloatArray,
    factors: GridFactors,
    messages: FloatArray,
    adjoints: Adjoints,
) -> float:
    """Return the loss of the pseudomarginals after the last sweep, and initialise the adjoints.

    Edge pseudomarginals are those of the factors, tau_ij ~ psi_ij c_i c_j with the cavities c.
    The surrogate likelihood is -<theta, phi(Y)> + <theta, tau> + H_rho(tau), derivatives
    through tau included (truncated likelihood).

    Parameters
    ----------
    labels : (H, W) bool
    scores : (H, W), h_theta, v_theta : (n_codes, 4): the scores behind ``odds`` and tables
    messages : (4, H, W)
    adjoints : Adjoints, all 0
    """
    odds, h_codes, v_codes, h_tables, v_tables, rho = factors
    adjoint, s_adj, h_adj, v_adj = adjoints
    height, width = odds.shape
    beliefs = np.empty((height, width))
    total = 0.0
    for i in range(height):
        for j in range(width):
            product = (messages[0, i, j] * messages[1, i, j]) * (
                messages[2, i, j] * messages[3, i, j]
            )
            beliefs[i, j] = odds[i, j] * raise_to(product, rho)
            not_p = 1.0 / (1.0 + beliefs[i, j])
            p = beliefs[i, j] * not_p
            slope = 0.0  # in the log belief
            if kind == SURROGATE_LIKELIHOOD:
                degree = (i > 0) + (i + 1 < height) + (j > 0) + (j + 1 < width)
                weight = 1.0 - rho * degree
                a, b = log(max(p, FLOOR)), log(max(not_p, FLOOR))
                observed = 1.0 if labels[i, j] else 0.0
                total += scores[i, j] * (p - observed) - weight * (p * a + not_p * b)
                slope = (scores[i, j] - weight * (a - b)) * p * not_p
                s_adj[i, j] += p - observed
            elif kind != CLIQUE_LOGISTIC and labels[i, j]:
                value, slope = univariate_loss(kind, sharpness, p, not_p)
                total += value
            elif kind != CLIQUE_LOGISTIC:
                value, slope = univariate_loss(kind, sharpness, not_p, p)
                total += value
                slope = -slope
            _add_score_adjoint(slope, i, j, rho, adjoint, s_adj)
    if kind < CLIQUE_LOGISTIC:
        return total
    for i in range(height):
        for j in range(width):
            first = 1 if labels[i, j] else 0
            if j + 1 < width:
                seen = 2 * first + (1 if labels[i, j + 1] else 0)
                cavity = beliefs[i, j] / messages[1, i, j]
                other = beliefs[i, j + 1] / messages[0, i, j + 1]
                value, x_adj, y_adj = _edge_loss(
                    kind, seen, cavity, other, h_tables, h_theta, rho, h_adj, h_codes[i, j]
                )
                total += value
                _add_score_adjoint(x_adj, i, j, rho, adjoint, s_adj)
                _add_score_adjoint(y_adj, i, j + 1, rho, adjoint, s_adj)
                adjoint[1, i, j] -= x_adj
                adjoint[0, i, j + 1] -= y_adj
            if i + 1 < height:
                seen = 2 * first + (1 if labels[i + 1, j] else 0)
                cavity = beliefs[i, j] / messages[3, i, j]
                other = beliefs[i + 1, j] / messages[2, i + 1, j]
                value, x_adj, y_adj = _edge_loss(
                    kind, seen, cavity, other, v_tables, v_theta, rho, v_adj, v_codes[i, j]
                )
                total += value
                _add_score_adjoint(x_adj, i, j, rho, adjoint, s_adj)
                _add_score_adjoint(y_adj, i + 1, j, rho, adjoint, s_adj)
                adjoint[3, i, j] -= x_adj
                adjoint[2, i + 1, j] -= y_adj
    return total
