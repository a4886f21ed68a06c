"""Tree-reweighted messages on grids with any number of labels, and derivatives back through them.

Every edge has the weight 1/2: the rows and the columns of a grid are two spanning forests,

    log Z_rho <= 1/2 log Z(theta_rows) + 1/2 log Z(theta_columns)

with theta_rows + theta_columns = 2 theta.

Node potentials phi_i(x) = exp(theta_i(x)) are scaled to a largest entry of 1. An edge table is a
table of label pairs, one for all horizontal and one for all vertical edges, and a weight of equal
labels by the edge's code: exp(2 theta_ij(x, y)) = pairs[x, y] (1 + extra[code] [x = y]).

``messages[d]``, (H, W, L), holds what a node receives from the left (0), the right (1), above (2)
and below (3), scaled to a mean of 1; it stays 1 at the border. The belief is
B_i = phi_i (product of the four messages)^(1/2). The rows get B_i / (horizontal messages) and
the columns B_i / (vertical messages): any messages give a bound.

``tables`` is (4, L, L): for messages to the right, left, down and up, the sender's label first.

References: Wainwright, Jaakkola and Willsky 2005; Meltzer, Globerson and Weiss 2009 (sequential
order); Kolmogorov 2006 (monotonic chains, maximisation); Domke 2013 (derivatives).
"""

import numpy as np
from numba import njit

from engine.core.arguments import FloatArray, IntArray
from engine.kernels.compiling import inner

FLOOR = 1e-9
"""Lower limit of messages, so that divisions by them are safe."""


@inner
def send(
    sender: FloatArray, table: FloatArray, extra: float, is_plain: bool, out: FloatArray
) -> float:
    """Write the message from a sender's belief, (L,), with mean 1; return the divisor."""
    count = sender.size
    if is_plain:
        total = sender[0]
        for x in range(1, count):
            total += sender[x]
        for y in range(count):
            out[y] = total + extra * sender[y]
    else:
        for y in range(count):
            out[y] = extra * table[y, y] * sender[y]
        for x in range(count):
            weight = sender[x]
            row = table[x]
            for y in range(count):
                out[y] += weight * row[y]
    total = out[0]
    for y in range(1, count):
        total += out[y]
    mean = total / count
    scale = 1 / mean
    for y in range(count):
        out[y] = max(out[y] * scale, FLOOR)
    return mean  # type: ignore[no-any-return]


@inner
def neighbour(i: int, j: int, k: int, is_forth: bool) -> tuple[int, int, int, int]:
    """Return the pixel right of (k = 0) or below a pixel, or left or above if not forth, which may
    be outside; and the indices of the messages from there and to there.
    """
    if is_forth:
        return (i, j + 1, 1, 0) if k == 0 else (i + 1, j, 3, 2)
    return (i, j - 1, 0, 1) if k == 0 else (i - 1, j, 2, 3)


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "reassoc", "nsz"})
def sweep(potentials, codes_right, codes_down, tables, extra, is_plain, messages, first, last):  # type: ignore[no-untyped-def]
    """Run one forward and one backward pass over rows first .. last; return the largest change.

    Messages across the ends of the range are read and not written: ranges may run at once, and
    `cross` then sends the messages between them.

    Parameters
    ----------
    potentials : (H, W, L) float32, or all four in float64
    codes_right : (H, W - 1) uint8; codes_down : (H - 1, W) uint8
    tables : (4, L, L) float32
    extra : (2, n_codes) float32
    is_plain : bool, whether all entries of ``tables`` are 1
    messages : (4, H, W, L) float32, changed in place
    """
    _, width, count = potentials.shape
    left, right, up, down = messages[0], messages[1], messages[2], messages[3]
    belief, sender = np.empty(count, potentials.dtype), np.empty(count, potentials.dtype)
    out = np.empty(count, potentials.dtype)
    change = potentials.dtype.type(0.0)
    for i in range(first, last):
        for j in range(width):
            a, b, c, d, phi = left[i, j], right[i, j], up[i, j], down[i, j], potentials[i, j]
            for x in range(count):
                belief[x] = phi[x] * np.sqrt((a[x] * b[x]) * (c[x] * d[x]))
            if j + 1 < width:
                for x in range(count):
                    sender[x] = belief[x] / b[x]
                send(sender, tables[0], extra[0, codes_right[i, j]], is_plain, left[i, j + 1])
            if i + 1 < last:
                for x in range(count):
                    sender[x] = belief[x] / d[x]
                send(sender, tables[2], extra[1, codes_down[i, j]], is_plain, up[i + 1, j])
    for i in range(last - 1, first - 1, -1):
        for j in range(width - 1, -1, -1):
            a, b, c, d, phi = left[i, j], right[i, j], up[i, j], down[i, j], potentials[i, j]
            for x in range(count):
                belief[x] = phi[x] * np.sqrt((a[x] * b[x]) * (c[x] * d[x]))
            if j > 0:
                for x in range(count):
                    sender[x] = belief[x] / a[x]
                send(sender, tables[1], extra[0, codes_right[i, j - 1]], is_plain, out)
                old = right[i, j - 1]
                for x in range(count):
                    change = max(change, abs(out[x] - old[x]) / (out[x] + old[x]))
                    old[x] = out[x]
            if i > first:
                for x in range(count):
                    sender[x] = belief[x] / c[x]
                send(sender, tables[3], extra[1, codes_down[i - 1, j]], is_plain, out)
                old = down[i - 1, j]
                for x in range(count):
                    change = max(change, abs(out[x] - old[x]) / (out[x] + old[x]))
                    old[x] = out[x]
    return change


@njit(cache=True, nogil=True, error_model="numpy")
def cross(potentials, _, codes_down, tables, extra, is_plain, messages, row):  # type: ignore[no-untyped-def]
    """Send the messages between the rows ``row - 1`` and ``row``; see `sweep`."""
    _, width, count = potentials.shape
    sender = np.empty(count, potentials.dtype)
    fresh = np.empty((2, width, count), potentials.dtype)
    for j in range(width):
        for side in range(2):
            i = row - 1 + side
            a, b, c = messages[0, i, j], messages[1, i, j], messages[2, i, j]
            d, phi = messages[3, i, j], potentials[i, j]
            back = d if side == 0 else c
            for x in range(count):
                sender[x] = phi[x] * np.sqrt((a[x] * b[x]) * (c[x] * d[x])) / back[x]
            strength = extra[1, codes_down[row - 1, j]]
            send(sender, tables[2 + side], strength, is_plain, fresh[side, j])
    messages[2, row] = fresh[0]
    messages[3, row - 1] = fresh[1]


@njit(cache=True, nogil=True, error_model="numpy")
def fill_marginals(potentials, messages, marginals):  # type: ignore[no-untyped-def]
    """Write tau_i(x), (H, W, L), the beliefs divided by their sums."""
    height, width, count = potentials.shape
    for i in range(height):
        for j in range(width):
            a, b, c, d = messages[0, i, j], messages[1, i, j], messages[2, i, j], messages[3, i, j]
            out = marginals[i, j]
            total = potentials.dtype.type(0.0)
            for x in range(count):
                out[x] = potentials[i, j, x] * np.sqrt((a[x] * b[x]) * (c[x] * d[x]))
                total += out[x]
            for x in range(count):
                out[x] /= total


@inner
def _pull(
    sender: FloatArray,
    table: FloatArray,
    extra: float,
    is_plain: bool,
    divisor: float,
    adjoint: FloatArray,
    pairs: FloatArray,
    is_forth: bool,
    pull: FloatArray,
) -> float:
    """Write the derivative in the sender; add that in the pairs; return that in the agreement.

    Messages may be scaled freely, so the derivative is orthogonal to the message and the divisor
    counts as a constant.
    """
    count = sender.size
    agreement = 0.0
    scale = 1.0 / divisor
    for y in range(count):
        adjoint[y] *= scale
    if is_plain:
        total = adjoint[0]
        for y in range(1, count):
            total += adjoint[y]
        for x in range(count):
            pull[x] = total + extra * adjoint[x]
            agreement += (1 + extra) * sender[x] * adjoint[x]
    else:
        for x in range(count):
            row, value = table[x], adjoint[x] * 0
            for y in range(count):
                value += row[y] * adjoint[y]
            own = extra * row[x] * adjoint[x]
            pull[x] = value + own
            agreement += sender[x] * (row[x] * adjoint[x] + own)
            if is_forth:
                for y in range(count):
                    pairs[x, y] += sender[x] * row[y] * adjoint[y]
                pairs[x, x] += sender[x] * own
            else:
                for y in range(count):
                    pairs[y, x] += sender[x] * row[y] * adjoint[y]
                pairs[x, x] += sender[x] * own
    return agreement


@inner
def _reverse_node(
    pulls: FloatArray,
    belief: FloatArray,
    values: FloatArray,
    backs: IntArray,
    node_adjoint: FloatArray,
    adjoints: FloatArray,
) -> None:
    """Pass the derivatives of up to two messages sent by a node to its received messages.

    ``pulls`` (2, L) are derivatives in B / values[backs[k]]; the other two arrays are (4, L).
    """
    for x in range(belief.size):
        slope = 0.0
        for k in range(2):
            back = backs[k]
            if back >= 0:
                part = pulls[k, x] * belief[x] / values[back, x]
                slope += part
                adjoints[back, x] -= part / values[back, x]
        node_adjoint[x] += slope
        for d in range(4):
            adjoints[d, x] += 0.5 * slope / values[d, x]


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "reassoc", "nsz"})
def reverse_sweep(  # type: ignore[no-untyped-def]
    potentials,
    codes_right,
    codes_down,
    tables,
    extra,
    is_plain,
    before,
    after,
    adjoint,
    node_adjoint,
    extra_adjoint,
    pair_adjoint,
):
    """Turn derivatives in the messages after a whole `sweep` into those before it.

    Parameters
    ----------
    before, after : (4, H, W, L) float32, the messages at either end
    adjoint : (4, H, W, L) float32, changed in place
    node_adjoint : (H, W, L) float32, incremented: derivatives in log potentials
    extra_adjoint : (2, n_codes) float64, incremented: in log(1 + extra)
    pair_adjoint : (2, L, L) float64, incremented: in the logarithms of the pair tables
    """
    height, width, count = potentials.shape
    belief, out = np.empty(count, potentials.dtype), np.empty(count, potentials.dtype)
    sender, pulls = np.empty(count, potentials.dtype), np.empty((2, count), potentials.dtype)
    values, sums = np.empty((4, count), potentials.dtype), np.empty((4, count), potentials.dtype)
    backs = np.empty(2, np.int64)
    for back_pass in range(2):
        is_forth = back_pass == 1  # the later pass is reversed first
        for step in range(height * width):
            place = height * width - 1 - step if is_forth else step
            i, j = place // width, place % width
            source = before if is_forth else after
            for x in range(count):
                values[0, x], values[2, x] = after[0, i, j, x], after[2, i, j, x]
                values[1, x], values[3, x] = source[1, i, j, x], source[3, i, j, x]
                product = (values[0, x] * values[1, x]) * (values[2, x] * values[3, x])
                belief[x] = potentials[i, j, x] * np.sqrt(product)
            backs[0], backs[1] = -1, -1
            for k in range(2):
                ni, nj, back, axis = neighbour(i, j, k, is_forth)
                if min(ni, nj) < 0 or ni == height or nj == width:
                    continue
                code = codes_right[i, min(j, nj)] if k == 0 else codes_down[min(i, ni), j]
                for x in range(count):
                    sender[x] = belief[x] / values[back, x]
                divisor = send(sender, tables[axis], extra[k, code], is_plain, out)
                arrived = adjoint[axis, ni, nj]
                extra_adjoint[k, code] += _pull(
                    sender,
                    tables[axis],
                    extra[k, code],
                    is_plain,
                    divisor,
                    arrived,
                    pair_adjoint[k],
                    is_forth,
                    pulls[k],
                )
                for x in range(count):
                    arrived[x] = 0.0
                backs[k] = back
            for d in range(4):
                for x in range(count):
                    sums[d, x] = adjoint[d, i, j, x]
            _reverse_node(pulls, belief, values, backs, node_adjoint[i, j], sums)
            for d in range(4):
                for x in range(count):
                    adjoint[d, i, j, x] = sums[d, x]


@njit(cache=True, nogil=True, error_model="numpy")
def max_sweep(nodes, codes_right, codes_down, pairs, agreement, messages):  # type: ignore[no-untyped-def]
    """Run one forward and one backward pass of max-sum messages (TRW-S) over the grid.

    Parameters
    ----------
    nodes : (H, W, L) float64, node scores
    pairs : (2, L, L) float64, twice the scores of label pairs
    agreement : (2, n_codes) float64, twice the score added for equal labels
    messages : (4, H, W, L) float64, logarithms, changed in place; zeros to begin with
    """
    height, width, count = nodes.shape
    sender = np.empty(count)
    for turn in range(2):
        for step in range(height * width):
            place = step if turn == 0 else height * width - 1 - step
            i, j = place // width, place % width
            for k in range(2):
                ni, nj, back, axis = neighbour(i, j, k, turn == 0)
                if min(ni, nj) < 0 or ni == height or nj == width:
                    continue
                code = codes_right[i, min(j, nj)] if k == 0 else codes_down[min(i, ni), j]
                for x in range(count):
                    total = 0.0
                    for d in range(4):
                        total += messages[d, i, j, x]
                    sender[x] = nodes[i, j, x] + 0.5 * total - messages[back, i, j, x]
                out = messages[axis, ni, nj]
                top = -np.inf
                for y in range(count):
                    best = -np.inf
                    for x in range(count):
                        pair = pairs[k, x, y] if turn == 0 else pairs[k, y, x]
                        value = sender[x] + pair
                        if x == y:
                            value += agreement[k, code]
                        best = max(best, value)
                    out[y] = best
                    top = max(top, best)
                for y in range(count):
                    out[y] -= top


@njit(cache=True, nogil=True, error_model="numpy")
def bound_maximum(nodes, codes_right, codes_down, pairs, agreement, messages):  # type: ignore[no-untyped-def]
    """Return an upper bound of the best labelling's score: half the best of rows and of columns.

    See `max_sweep` for the arguments; any messages give a bound.
    """
    height, width, count = nodes.shape
    total = 0.0
    state, fresh = np.empty(count), np.empty(count)
    columns = np.empty((width, count))
    for i in range(height):
        for j in range(width):
            for axis in range(2):
                old = state if axis == 0 else columns[j]
                is_first = j == 0 if axis == 0 else i == 0
                top = -np.inf
                for y in range(count):
                    h = messages[0, i, j, y] + messages[1, i, j, y]
                    v = messages[2, i, j, y] + messages[3, i, j, y]
                    fresh[y] = nodes[i, j, y] + (0.5 * (v - h) if axis == 0 else 0.5 * (h - v))
                    if not is_first:
                        code = codes_right[i, j - 1] if axis == 0 else codes_down[i - 1, j]
                        best = old[y] + pairs[axis, y, y] + agreement[axis, code]
                        for x in range(count):
                            if x != y:
                                best = max(best, old[x] + pairs[axis, x, y])
                        fresh[y] += best
                    top = max(top, fresh[y])
                total += 0.5 * top
                for y in range(count):
                    old[y] = fresh[y] - top
    return total
