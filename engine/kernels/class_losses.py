"""Losses of messages on grids of several labels, and the start of their derivatives.

The messages are those of `engine.kernels.class_messages`, converged or not. Beliefs of nodes and
edges are functions of them, and so is

    log Z = sum_i (1 - degree_i / 2) log sum_x B_i(x) + 1/2 sum_ij log sum_xy B_ij(x, y),

which is log Z_rho, and stationary in the messages, once these have converged. Derivatives in node
scores are those in log potentials.
"""

from math import exp, log

import numpy as np
from numba import njit

from engine.core.arguments import FloatArray
from engine.kernels.compiling import inner

UNIVARIATE_LOGISTIC, UNIVARIATE_QUADRATIC, SMOOTHED_CLASSIFICATION = 0, 1, 2

SMALLEST = 1e-30
"""Smallest probability, and smallest sum of a table, in a logarithm."""


@inner
def _node_loss(
    kind: int, sharpness: float, marginals: FloatArray, label: int, slope: FloatArray
) -> float:
    """Write the derivatives of a known node's loss in the log beliefs, (L,); return the loss."""
    count = marginals.size
    chance = max(marginals[label], SMALLEST)
    if kind == UNIVARIATE_LOGISTIC:
        for x in range(count):
            slope[x] = marginals[x]
        slope[label] -= 1.0
        return -log(chance)
    loss, mean = 0.0, 0.0
    if kind == UNIVARIATE_QUADRATIC:
        for x in range(count):
            slope[x] = marginals[x] - (1.0 if x == label else 0.0)
            loss += 0.5 * slope[x] * slope[x]
    else:
        rival = 1 if label == 0 else 0
        for x in range(count):
            slope[x] = 0.0
            if x != label and marginals[x] > marginals[rival]:
                rival = x
        loss = 1.0 / (1.0 + exp(min(sharpness * (chance - marginals[rival]), 700.0)))
        slope[rival] = sharpness * loss * (1.0 - loss)
        slope[label] = -slope[rival]
    for x in range(count):
        mean += slope[x] * marginals[x]
    for x in range(count):
        slope[x] = marginals[x] * (slope[x] - mean)
    return loss


@njit(cache=True, nogil=True, error_model="numpy")
def begin_nodes(kind, sharpness, marginals, labels, weights, messages, adjoint, node_adjoint):  # type: ignore[no-untyped-def]
    """Return a loss of the marginals of known pixels, and initialise its derivatives.

    Parameters
    ----------
    kind : one of the three losses; sharpness : of the last
    marginals : (H, W, L) float32, see `fill_marginals`
    labels : (H, W) uint8; labels from L on are unknown and cost nothing
    weights : (L,) float64, of the pixels of each class
    messages : (4, H, W, L) float32; (0, H, W, L) for marginals without messages
    adjoint : as the messages, output: derivatives in them
    node_adjoint : (H, W, L) float32, output: derivatives in the node scores
    """
    height, width, count = marginals.shape
    loss, slope = 0.0, np.empty(count)
    for i in range(height):
        for j in range(width):
            label = labels[i, j]
            if label >= count:
                node_adjoint[i, j] = 0.0
                adjoint[:, i, j] = 0.0
                continue
            loss += weights[label] * _node_loss(kind, sharpness, marginals[i, j], label, slope)
            for x in range(count):
                part = weights[label] * slope[x]
                node_adjoint[i, j, x] = part
                for d in range(len(messages)):
                    adjoint[d, i, j, x] = 0.5 * part / messages[d, i, j, x]
    return loss


@njit(cache=True, nogil=True, error_model="numpy")
def begin_edges(  # type: ignore[no-untyped-def]
    potentials,
    codes_right,
    codes_down,
    tables,
    extra,
    messages,
    labels,
    is_clique,
    adjoint,
    node_adjoint,
    extra_adjoint,
    pair_adjoint,
):
    """Return the clique logistic loss of edges with known ends, or log Z; see `begin_nodes`.

    Parameters
    ----------
    potentials, codes_right, codes_down, tables, extra, messages : see `class_messages.sweep`
    is_clique : bool; if False, log Z less the scale of the potentials and tables
    extra_adjoint : (2, n_codes) float64, incremented: in log(1 + extra)
    pair_adjoint : (2, L, L) float64, incremented: in the logarithms of the pair tables
    """
    height, width, count = potentials.shape
    beliefs, slopes = np.empty((height, width, count)), np.zeros((height, width, count))
    backs = np.zeros((4, height, width, count))
    total = 0.0
    for i in range(height):
        for j in range(width):
            norm = 0.0
            for x in range(count):
                product = 1.0 * potentials[i, j, x] * potentials[i, j, x]
                for d in range(4):
                    product *= messages[d, i, j, x]
                beliefs[i, j, x] = np.sqrt(product)
                norm += beliefs[i, j, x]
            if not is_clique:
                degree = (i > 0) + (i + 1 < height) + (j > 0) + (j + 1 < width)
                share = 1.0 - 0.5 * degree
                total += share * log(max(norm, SMALLEST))
                for x in range(count):
                    slopes[i, j, x] = share * beliefs[i, j, x] / norm
    table = np.empty((count, count))
    for i in range(height):
        for j in range(width):
            for axis in range(2):
                ni, nj = (i, j + 1) if axis == 0 else (i + 1, j)
                if ni >= height or nj >= width:
                    continue
                first, second = labels[i, j], labels[ni, nj]
                if is_clique and (first >= count or second >= count):
                    continue
                code = codes_right[i, j] if axis == 0 else codes_down[i, j]
                to_first, to_second = 2 * axis + 1, 2 * axis
                norm = 0.0
                for x in range(count):
                    own = beliefs[i, j, x] / messages[to_first, i, j, x]
                    for y in range(count):
                        value = own * tables[2 * axis, x, y]
                        value *= beliefs[ni, nj, y] / messages[to_second, ni, nj, y]
                        if x == y:
                            value *= 1.0 + extra[axis, code]
                        table[x, y] = value
                        norm += value
                share = 1.0 if is_clique else 0.5
                if is_clique:
                    total -= log(max(table[first, second] / norm, SMALLEST))
                else:
                    total += 0.5 * log(max(norm, SMALLEST))
                for x in range(count):
                    for y in range(count):
                        slope = share * table[x, y] / norm
                        if is_clique and x == first and y == second:
                            slope -= 1.0
                        pair_adjoint[axis, x, y] += slope
                        if x == y:
                            extra_adjoint[axis, code] += slope
                        backs[to_first, i, j, x] += slope
                        backs[to_second, ni, nj, y] += slope
    for i in range(height):
        for j in range(width):
            for x in range(count):
                slope = slopes[i, j, x]
                for d in range(4):
                    slope += backs[d, i, j, x]
                node_adjoint[i, j, x] = slope
                for d in range(4):
                    part = 0.5 * slope - backs[d, i, j, x]
                    adjoint[d, i, j, x] = part / messages[d, i, j, x]
    return total
