"""Mean field on grids of any number of labels, one pass at a time, and back through the passes.

    q_i(x) = exp( theta_i(x) + sum_j sum_y theta_ij(x, y) q_j(y) ) / (its sum over x)

in raster order and back. The state is log q, so that values rounded to 0 or 1 still have a slope;
reversed passes take derivatives in log q. Scores are double precision, nats; theta_ij is the table
of the edge's code, the first label that of the left or upper pixel.

References: Domke 2013, section 3.2 and algorithm 2.
"""

from math import exp, log

import numpy as np
from numba import njit

from engine.core.arguments import FloatArray
from engine.kernels.compiling import inner


@inner
def _add_neighbour(
    table: FloatArray, is_first: bool, marginals: FloatArray, logits: FloatArray
) -> None:
    """Add the expected scores of an edge; ``is_first`` if the pixel's own label is the first."""
    for x in range(logits.size):
        total = 0.0
        for y in range(logits.size):
            total += (table[x, y] if is_first else table[y, x]) * marginals[y]
        logits[x] += total


@njit(cache=True, nogil=True, error_model="numpy")
def pass_once(nodes, codes_right, codes_down, right, down, is_forth, marginals, logs):  # type: ignore[no-untyped-def]
    """Update every pixel in place, in raster order or reversed; return the largest change.

    Parameters
    ----------
    nodes : (H, W, L) float64; -inf forbids a label
    codes_right : (H, W - 1) uint8; codes_down : (H - 1, W) uint8
    right, down : (n_codes, L, L) float64
    marginals, logs : (H, W, L) float64, q and log q, changed in place
    """
    height, width, count = nodes.shape
    logits = np.empty(count)
    change = 0.0
    for step in range(height * width):
        place = step if is_forth else height * width - 1 - step
        i, j = place // width, place % width
        logits[:] = nodes[i, j]
        if j > 0:
            _add_neighbour(right[codes_right[i, j - 1]], False, marginals[i, j - 1], logits)
        if j + 1 < width:
            _add_neighbour(right[codes_right[i, j]], True, marginals[i, j + 1], logits)
        if i > 0:
            _add_neighbour(down[codes_down[i - 1, j]], False, marginals[i - 1, j], logits)
        if i + 1 < height:
            _add_neighbour(down[codes_down[i, j]], True, marginals[i + 1, j], logits)
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


@inner
def _pull_neighbour(
    table: FloatArray,
    is_first: bool,
    seen: FloatArray,
    slope: FloatArray,
    adjoint: FloatArray,
    table_adjoint: FloatArray,
) -> None:
    """Add the adjoints of the neighbour's log marginals and of the table; see `_add_neighbour`."""
    for y in range(slope.size):
        pull = 0.0
        for x in range(slope.size):
            first, second = (x, y) if is_first else (y, x)
            pull += table[first, second] * slope[x]
            table_adjoint[first, second] += slope[x] * seen[y]
        adjoint[y] += seen[y] * pull


@njit(cache=True, nogil=True, error_model="numpy")
def reverse_pass(  # type: ignore[no-untyped-def]
    codes_right,
    codes_down,
    right,
    down,
    is_forth,
    before,
    after,
    adjoint,
    node_adjoint,
    right_adjoint,
    down_adjoint,
):
    """Turn derivatives in log q after a pass into those before it.

    Parameters
    ----------
    before, after : (H, W, L) float64, the marginals at either end
    adjoint : (H, W, L) float64, derivatives in log q, changed in place
    node_adjoint, right_adjoint, down_adjoint : as the scores, incremented
    """
    height, width, count = before.shape
    slope = np.empty(count)
    earlier, later = (after, before) if is_forth else (before, after)
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
        if j > 0:
            c = codes_right[i, j - 1]
            args = (earlier[i, j - 1], slope, adjoint[i, j - 1], right_adjoint[c])
            _pull_neighbour(right[c], False, *args)
        if j + 1 < width:
            c = codes_right[i, j]
            args = (later[i, j + 1], slope, adjoint[i, j + 1], right_adjoint[c])
            _pull_neighbour(right[c], True, *args)
        if i > 0:
            c = codes_down[i - 1, j]
            args = (earlier[i - 1, j], slope, adjoint[i - 1, j], down_adjoint[c])
            _pull_neighbour(down[c], False, *args)
        if i + 1 < height:
            c = codes_down[i, j]
            args = (later[i + 1, j], slope, adjoint[i + 1, j], down_adjoint[c])
            _pull_neighbour(down[c], True, *args)
