"""Back TRW: derivatives of a loss of pseudomarginals through a fixed number of message sweeps.

Conventions of `engine.kernels.grid_chains`. Adjoints are taken with respect to log messages, to
scores s_i, and to theta_ij by edge code; ``adjoint[d]`` belongs to ``messages[d]``. Stored
messages take the place of the stack: what a pass read is what the pass left behind, except that a
forward pass still read the messages from the right and from below of the sweep before.

References: Domke 2013, algorithm 3.
"""

from math import exp, log, sqrt

import numpy as np
from numba import njit

UNIVARIATE_LOGISTIC = 0
UNIVARIATE_QUADRATIC = 1
SMOOTHED_CLASSIFICATION = 2
CLIQUE_LOGISTIC = 3
SURROGATE_LIKELIHOOD = 4

FLOOR = 1e-300
"""Marginals below this count as this much in logarithms; their derivative is that of the floor."""


@njit(cache=True, nogil=True, inline="always")
def _raise(product, rho):  # type: ignore[no-untyped-def]
    return sqrt(product) if rho == 0.5 else product**rho


@njit(cache=True, nogil=True, inline="always")
def _pull_message(weight, first, cavity, table, entry, rho):  # type: ignore[no-untyped-def]
    """Add the adjoint of one sent message to its table's entry; return that of the log cavity.

    ``first`` says whether the sender's label is the first index of the table.
    """
    low, high = (1, 2) if first else (2, 1)  # entries (sender 0, receiver 1), (1, 0)
    upper = table[3] * cavity / (table[low] + table[3] * cavity)
    lower = table[high] * cavity / (table[0] + table[high] * cavity)
    scaled = weight / rho
    entry[low] += scaled * (1.0 - upper)
    entry[3] += scaled * upper
    entry[0] -= scaled * (1.0 - lower)
    entry[high] -= scaled * lower
    return weight * (upper - lower)


@njit(cache=True, nogil=True)
def reverse_pass(  # type: ignore[no-untyped-def]
    odds, h_codes, v_codes, h_tables, v_tables, rho, messages, forward, adjoint, s_adj, h_adj, v_adj
):
    """Undo one pass: turn adjoints of the messages sent into adjoints of what was read.

    Parameters
    ----------
    messages : tuple of four (H, W) float64, the values that the pass read
    forward : bool, whether the pass ran down and to the right
    adjoint : (4, H, W) float64, changed in place
    s_adj : (H, W), h_adj, v_adj : (n_codes, 4) float64, added to
    """
    height, width = odds.shape
    left, right, up, down = messages
    start, end, move = (height * width - 1, -1, -1) if forward else (0, height * width, 1)
    for place in range(start, end, move):
        i, j = place // width, place % width
        if forward:
            sideways = adjoint[0, i, j + 1] if j + 1 < width else 0.0
            along = adjoint[2, i + 1, j] if i + 1 < height else 0.0
        else:
            sideways = adjoint[1, i, j - 1] if j > 0 else 0.0
            along = adjoint[3, i - 1, j] if i > 0 else 0.0
        if sideways == 0.0 and along == 0.0:
            continue
        product = (left[i, j] * right[i, j]) * (up[i, j] * down[i, j])
        belief = odds[i, j] * _raise(product, rho)
        total = 0.0
        if sideways != 0.0:
            if forward:
                code, cavity = h_codes[i, j], belief / right[i, j]
                adjoint[0, i, j + 1] = 0.0
            else:
                code, cavity = h_codes[i, j - 1], belief / left[i, j]
                adjoint[1, i, j - 1] = 0.0
            pulled = _pull_message(sideways, forward, cavity, h_tables[code], h_adj[code], rho)
            adjoint[1 if forward else 0, i, j] -= pulled
            total += pulled
        if along != 0.0:
            if forward:
                code, cavity = v_codes[i, j], belief / down[i, j]
                adjoint[2, i + 1, j] = 0.0
            else:
                code, cavity = v_codes[i - 1, j], belief / up[i, j]
                adjoint[3, i - 1, j] = 0.0
            pulled = _pull_message(along, forward, cavity, v_tables[code], v_adj[code], rho)
            adjoint[3 if forward else 2, i, j] -= pulled
            total += pulled
        s_adj[i, j] += total
        for d in range(4):
            adjoint[d, i, j] += rho * total


@njit(cache=True, nogil=True)
def univariate_loss(kind, sharpness, probability):  # type: ignore[no-untyped-def]
    """Return the loss of the true label's marginal and its derivative."""
    if kind == UNIVARIATE_LOGISTIC:
        safe = max(probability, FLOOR)
        return -log(safe), -1.0 / safe
    if kind == UNIVARIATE_QUADRATIC:
        return (1.0 - probability) ** 2, -2.0 * (1.0 - probability)
    value = 1.0 / (1.0 + exp(-sharpness * (1.0 - 2.0 * probability)))
    return value, -2.0 * sharpness * value * (1.0 - value)


@njit(cache=True, nogil=True)
def _edge_loss(kind, seen, first_odds, second_odds, psi, theta, rho, entry):  # type: ignore[no-untyped-def]
    """Return the loss of one edge's pseudomarginals and the adjoints of its two log cavities.

    ``seen`` is the entry of the observed pair, ``psi`` and ``theta`` the edge's tables (4,);
    the adjoint of theta is added to ``entry`` (4,).
    """
    q0, q1 = psi[0], psi[1] * second_odds
    q2, q3 = psi[2] * first_odds, psi[3] * first_odds * second_odds
    norm = q0 + q1 + q2 + q3
    table = (q0 / norm, q1 / norm, q2 / norm, q3 / norm)
    value, mean = 0.0, 0.0  # mean: sum of tau times the derivative of the loss in tau
    for k in range(4):
        logarithm = log(max(table[k], FLOOR))
        if kind == SURROGATE_LIKELIHOOD:
            excess = table[k] - (1.0 if k == seen else 0.0)
            value += theta[k] * excess - rho * table[k] * logarithm
            mean += table[k] * (theta[k] - rho * logarithm)
            entry[k] += excess
        elif k == seen:
            value -= logarithm
            mean = -1.0
    first, second = 0.0, 0.0
    for k in range(4):
        if kind == SURROGATE_LIKELIHOOD:
            pulled = table[k] * (theta[k] - rho * log(max(table[k], FLOOR)) - mean)
        else:
            pulled = (-1.0 if k == seen else 0.0) - table[k] * mean
        entry[k] += pulled / rho
        first += pulled if k >= 2 else 0.0
        second += pulled if k % 2 == 1 else 0.0
    return value, first, second


@njit(cache=True, nogil=True)
def _add_score_adjoint(weight, i, j, rho, adjoint, s_adj):  # type: ignore[no-untyped-def]
    """Spread the adjoint of a log belief over its score and its four log messages."""
    s_adj[i, j] += weight
    for d in range(4):
        adjoint[d, i, j] += rho * weight


@njit(cache=True, nogil=True)
def begin_adjoint(  # type: ignore[no-untyped-def]
    kind,
    sharpness,
    labels,
    scores,
    odds,
    h_codes,
    v_codes,
    h_tables,
    v_tables,
    h_theta,
    v_theta,
    rho,
    messages,
    adjoint,
    s_adj,
    h_adj,
    v_adj,
):
    """Return the loss of the pseudomarginals after the last sweep and begin the adjoints.

    Edge pseudomarginals are those of the factors, tau_ij ~ psi_ij c_i c_j with the cavities c.
    The surrogate likelihood is -<theta, phi(Y)> + <theta, tau> + H_rho(tau), derivatives
    through tau included (truncated likelihood).

    Parameters
    ----------
    labels : (H, W) bool
    scores : (H, W), h_theta, v_theta : (n_codes, 4): the scores behind ``odds`` and tables
    """
    height, width = odds.shape
    beliefs = np.empty((height, width))
    total = 0.0
    for i in range(height):
        for j in range(width):
            product = (messages[0, i, j] * messages[1, i, j]) * (
                messages[2, i, j] * messages[3, i, j]
            )
            beliefs[i, j] = odds[i, j] * _raise(product, rho)
            p = beliefs[i, j] / (1.0 + beliefs[i, j])
            slope = 0.0
            if kind == SURROGATE_LIKELIHOOD:
                degree = (i > 0) + (i + 1 < height) + (j > 0) + (j + 1 < width)
                weight = 1.0 - rho * degree
                a, b = log(max(p, FLOOR)), log(max(1.0 - p, FLOOR))
                observed = 1.0 if labels[i, j] else 0.0
                total += scores[i, j] * (p - observed) - weight * (p * a + (1.0 - p) * b)
                slope = scores[i, j] - weight * (a - b)
                s_adj[i, j] += p - observed
            elif kind != CLIQUE_LOGISTIC:
                value, slope = univariate_loss(kind, sharpness, p if labels[i, j] else 1.0 - p)
                total += value
                slope = slope if labels[i, j] else -slope
            _add_score_adjoint(slope * p * (1.0 - p), i, j, rho, adjoint, s_adj)
    if kind < CLIQUE_LOGISTIC:
        return total
    for i in range(height):
        for j in range(width):
            for direction in range(2):
                ni, nj = i + direction, j + 1 - direction
                if ni >= height or nj >= width:
                    continue
                back, to = 1 + 2 * direction, 2 * direction
                if direction == 0:
                    code = h_codes[i, j]
                    psi, theta, entry = h_tables[code], h_theta[code], h_adj[code]
                else:
                    code = v_codes[i, j]
                    psi, theta, entry = v_tables[code], v_theta[code], v_adj[code]
                seen = (2 if labels[i, j] else 0) + (1 if labels[ni, nj] else 0)
                cavity = beliefs[i, j] / messages[back, i, j]
                other = beliefs[ni, nj] / messages[to, ni, nj]
                value, first, second = _edge_loss(kind, seen, cavity, other, psi, theta, rho, entry)
                total += value
                _add_score_adjoint(first, i, j, rho, adjoint, s_adj)
                _add_score_adjoint(second, ni, nj, rho, adjoint, s_adj)
                adjoint[back, i, j] -= first
                adjoint[to, ni, nj] -= second
    return total
