"""Mean field on grids of several labels, one pass at a time, and back through the passes.

    q_i(x) = exp( theta_i(x) + sum_j sum_y theta_ij(x, y) q_j(y) ) / (its sum over x)

in raster order and back. The state is log q, so that values rounded to 0 or 1 still have a slope;
reversed passes take derivatives in log q. Scores are double precision, nats; theta_ij is a table
of label pairs for each direction, and an agreement of equal labels by the edge's code.

References: Domke 2013, section 3.2 and algorithm 2.
"""

from math import exp, log

import numpy as np
from numba import njit

from engine.core.arguments import FloatArray
from engine.kernels.class_messages import neighbour
from engine.kernels.compiling import inner


@inner
def _add_neighbour(
    table: FloatArray, agreement: float, marginals: FloatArray, logits: FloatArray
) -> None:
    """Add the expected scores of an edge; the pixel's own label is first in ``table``."""
    for x in range(logits.size):
        total = agreement * marginals[x]
        for y in range(logits.size):
            total += table[x, y] * marginals[y]
        logits[x] += total


@njit(cache=True, nogil=True, error_model="numpy")
def pass_once(nodes, codes_right, codes_down, tables, agreement, is_forth, marginals, logs):  # type: ignore[no-untyped-def]
    """Update every pixel in place, in raster order or reversed; return the largest change.

    Parameters
    ----------
    nodes : (H, W, L) float64; -inf forbids a label
    codes_right : (H, W - 1) uint8; codes_down : (H - 1, W) uint8
    tables : (4, L, L) float64, the own label first, of edges to the right, left, down and up
    agreement : (2, n_codes) float64
    marginals, logs : (H, W, L) float64, q and log q, changed in place
    """
    height, width, count = nodes.shape
    logits = np.empty(count)
    change = 0.0
    for step in range(height * width):
        place = step if is_forth else height * width - 1 - step
        i, j = place // width, place % width
        logits[:] = nodes[i, j]
        for side in range(4):
            k = side // 2
            ni, nj, _, axis = neighbour(i, j, k, side % 2 == 0)
            if min(ni, nj) < 0 or ni == height or nj == width:
                continue
            code = codes_right[i, min(j, nj)] if k == 0 else codes_down[min(i, ni), j]
            _add_neighbour(tables[axis], agreement[k, code], marginals[ni, nj], logits)
        top, total = logits.max(), 0.0
        for x in range(count):
            total += exp(logits[x] - top)
        norm = top + log(total)
        for x in range(count):
            logs[i, j, x] = logits[x] - norm
            new = exp(logs[i, j, x])
            change = max(change, abs(new - marginals[i, j, x]))
            marginals[i, j, x] = new
    return change


@njit(cache=True, nogil=True, error_model="numpy")
def reverse_pass(  # type: ignore[no-untyped-def]
    codes_right,
    codes_down,
    tables,
    agreement,
    is_forth,
    before,
    after,
    adjoint,
    node_adjoint,
    agreement_adjoint,
    pair_adjoint,
):
    """Turn derivatives in log q after a pass into those before it.

    Parameters
    ----------
    before, after : (H, W, L) float64, the marginals at either end
    adjoint : (H, W, L) float64, derivatives in log q, changed in place
    node_adjoint, agreement_adjoint : as the scores, incremented
    pair_adjoint : (2, L, L) float64, incremented: in the tables of edges to the right and down
    """
    height, width, count = before.shape
    slope = np.empty(count)
    for step in range(height * width):
        place = height * width - 1 - step if is_forth else step
        i, j = place // width, place % width
        total = 0.0
        for x in range(count):
            total += adjoint[i, j, x]
        for x in range(count):
            slope[x] = adjoint[i, j, x] - after[i, j, x] * total
            node_adjoint[i, j, x] += slope[x]
            adjoint[i, j, x] = 0.0
        for side in range(4):
            k, is_later = side // 2, side % 2 == 0
            ni, nj, _, axis = neighbour(i, j, k, is_later)
            if min(ni, nj) < 0 or ni == height or nj == width:
                continue
            code = codes_right[i, min(j, nj)] if k == 0 else codes_down[min(i, ni), j]
            seen = before[ni, nj] if is_later == is_forth else after[ni, nj]
            for y in range(count):
                pull = agreement[k, code] * slope[y]
                for x in range(count):
                    pull += tables[axis, x, y] * slope[x]
                    first, second = (x, y) if is_later else (y, x)
                    pair_adjoint[k, first, second] += slope[x] * seen[y]
                agreement_adjoint[k, code] += slope[y] * seen[y]
                adjoint[ni, nj, y] += seen[y] * pull
