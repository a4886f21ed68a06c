"""Sweeps of `engine.kernels.class_messages` over several pictures of one shape at once, and back.

The same arithmetic with one more axis, the last: `LANES` pictures side by side, which fill the
processor's vectors for any number of labels. Several times faster than one by one if pairs of
labels have their own table.
"""

import numpy as np
from numba import njit

from engine.core.arguments import FloatArray
from engine.kernels.class_messages import FLOOR, neighbour
from engine.kernels.compiling import arithmetic

LANES = 32
"""Number of pictures at once: four vectors of eight numbers hide the latency of instructions.

Loops still take their length from arrays: loops known to be short would be unrolled completely.
"""

ONE, HALF, LEAST = np.float32(1.0), np.float32(0.5), np.float32(FLOOR)
"""Constants in single precision, so that results stay in single precision."""


@arithmetic
def _receive(
    potentials: FloatArray,
    left: FloatArray,
    right: FloatArray,
    up: FloatArray,
    down: FloatArray,
    belief: FloatArray,
    inverses: FloatArray,
) -> None:
    """Write the belief (L, LANES) of a node, and 1 over its received messages, (4, L, LANES)."""
    for x in range(belief.shape[0]):
        phi, out = potentials[x], belief[x]
        a, b, c, d = left[x], right[x], up[x], down[x]
        e, f, g, h = inverses[0, x], inverses[1, x], inverses[2, x], inverses[3, x]
        for lane in range(out.size):
            out[lane] = phi[lane] * np.sqrt((a[lane] * b[lane]) * (c[lane] * d[lane]))
        for lane in range(out.size):
            e[lane] = ONE / a[lane]
            f[lane] = ONE / b[lane]
        for lane in range(out.size):
            g[lane] = ONE / c[lane]
            h[lane] = ONE / d[lane]


@arithmetic
def _multiply(vector: FloatArray, table: FloatArray, out: FloatArray) -> None:
    """Write sum_x vector[x] table[x, y] in every lane."""
    count = vector.shape[0]
    for y in range(count):
        weight, row, sums = table[0, y], vector[0], out[y]
        for lane in range(sums.size):
            sums[lane] = weight * row[lane]
    for x in range(1, count):
        row = vector[x]
        for y in range(count):
            weight, sums = table[x, y], out[y]
            for lane in range(sums.size):
                sums[lane] += weight * row[lane]


@arithmetic
def _times(first: FloatArray, second: FloatArray, out: FloatArray) -> None:
    """Write the product of every entry, of arrays (L, LANES)."""
    for x in range(out.shape[0]):
        a, b, c = first[x], second[x], out[x]
        for lane in range(c.size):
            c[lane] = a[lane] * b[lane]


@arithmetic
def _send(
    sender: FloatArray,
    table: FloatArray,
    strength: FloatArray,
    totals: FloatArray,
    out: FloatArray,
) -> None:
    """Write the message from a sender's belief, (L, LANES), to its neighbour, with mean 1.

    ``totals`` (LANES,) is work space.
    """
    count = sender.shape[0]
    _multiply(sender, table, out)
    totals[:] = 0.0
    for y in range(count):
        own, row, said = table[y, y], sender[y], out[y]
        for lane in range(totals.size):
            said[lane] += strength[lane] * own * row[lane]
        for lane in range(totals.size):
            totals[lane] += said[lane]
    scale = np.float32(count)
    for lane in range(totals.size):
        totals[lane] = scale / totals[lane]
    for y in range(count):
        said = out[y]
        for lane in range(totals.size):
            said[lane] = max(said[lane] * totals[lane], LEAST)


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "reassoc", "nsz"})
def sweep_batch(potentials, codes_right, codes_down, tables, extra, messages):  # type: ignore[no-untyped-def]
    """Run one forward and one backward pass over every picture.

    Parameters
    ----------
    potentials : (H, W, L, LANES) float32
    codes_right : (H, W - 1, LANES) uint8; codes_down : (H - 1, W, LANES) uint8
    tables, extra : as for `class_messages.sweep`
    messages : (4, H, W, L, LANES) float32, changed in place
    """
    height, width, count, lanes = potentials.shape
    belief, sender = np.empty((count, lanes), np.float32), np.empty((count, lanes), np.float32)
    inverses = np.empty((4, count, lanes), np.float32)
    strength, totals = np.empty(lanes, np.float32), np.empty(lanes, np.float32)
    for turn in range(2):
        for step in range(height * width):
            place = step if turn == 0 else height * width - 1 - step
            i, j = place // width, place % width
            left, right = messages[0, i, j], messages[1, i, j]
            up, down = messages[2, i, j], messages[3, i, j]
            _receive(potentials[i, j], left, right, up, down, belief, inverses)
            for k in range(2):
                ni, nj, back, axis = neighbour(i, j, k, turn == 0)
                if min(ni, nj) < 0 or ni == height or nj == width:
                    continue
                codes = codes_right[i, min(j, nj)] if k == 0 else codes_down[min(i, ni), j]
                for lane in range(lanes):
                    strength[lane] = extra[k, codes[lane]]
                _times(belief, inverses[back], sender)
                _send(sender, tables[axis], strength, totals, messages[axis, ni, nj])


@arithmetic
def _divide(
    sender: FloatArray,
    table: FloatArray,
    sums: FloatArray,
    strength: FloatArray,
    totals: FloatArray,
    adjoint: FloatArray,
) -> None:
    """Divide the derivative in a message by the divisor of the message when it was sent.

    Messages may be scaled freely, so the derivative is orthogonal to the message and the divisor
    counts as a constant: the mean over y of sum_x sender[x] table[x, y] (1 + strength [x = y]).
    """
    count = sender.shape[0]
    totals[:] = 0.0
    for x in range(count):
        total, own, row = sums[x], table[x, x], sender[x]
        for lane in range(totals.size):
            totals[lane] += row[lane] * (total + strength[lane] * own)
    scale = np.float32(count)
    for lane in range(totals.size):
        totals[lane] = scale / totals[lane]
    for y in range(count):
        row = adjoint[y]
        for lane in range(totals.size):
            row[lane] *= totals[lane]


@arithmetic
def _pull(
    sender: FloatArray,
    across: FloatArray,
    strength: FloatArray,
    adjoint: FloatArray,
    products: FloatArray,
    agreement: FloatArray,
    pull: FloatArray,
) -> None:
    """Write the derivative in the sender, and that in log(1 + strength) (LANES,).

    ``across`` is the table with the receiver's label first. ``products``, (L, L, LANES), is
    incremented: times the table, it is the derivative in the table's logarithm.
    """
    count = sender.shape[0]
    _multiply(adjoint, across, pull)
    agreement[:] = 0.0
    for x in range(count):
        row = sender[x]
        for y in range(count):
            arrived, sums = adjoint[y], products[x, y]
            for lane in range(row.size):
                sums[lane] += row[lane] * arrived[lane]
        own, arrived, sums, out = across[x, x], adjoint[x], products[x, x], pull[x]
        for lane in range(row.size):
            out[lane] += own * strength[lane] * arrived[lane]
        for lane in range(row.size):
            sums[lane] += strength[lane] * row[lane] * arrived[lane]
        for lane in range(row.size):
            agreement[lane] += own * row[lane] * arrived[lane] * (ONE + strength[lane])


@arithmetic
def _hand_on(
    pull: FloatArray, belief: FloatArray, inverse: FloatArray, slope: FloatArray, back: FloatArray
) -> None:
    """Add the contribution of one sent message to ``slope``, in the log belief (L, LANES).

    ``inverse`` and ``back`` belong to the message from the receiver of this one.
    """
    for x in range(belief.shape[0]):
        a, b, c, total, out = pull[x], belief[x], inverse[x], slope[x], back[x]
        for lane in range(a.size):
            total[lane] += a[lane] * b[lane] * c[lane]
        for lane in range(a.size):
            out[lane] -= a[lane] * b[lane] * c[lane] * c[lane]


@arithmetic
def _share(slope: FloatArray, inverse: FloatArray, adjoint: FloatArray) -> None:
    """Add the contribution of a derivative in the log belief to one of its messages."""
    for x in range(slope.shape[0]):
        part, inverted, out = slope[x], inverse[x], adjoint[x]
        for lane in range(part.size):
            out[lane] += HALF * part[lane] * inverted[lane]


@arithmetic
def _add_products(
    products: FloatArray, tables: FloatArray, is_forth: bool, pair_adjoint: FloatArray
) -> None:
    """Add the products, times the tables, to the derivatives, and set the products to 0."""
    count = tables.shape[1]
    for k in range(2):
        for x in range(count):
            for y in range(count):
                first, second = (x, y) if is_forth else (y, x)
                weight, sums = tables[2 * k, first, second], pair_adjoint[k, first, second]
                for lane in range(sums.size):
                    sums[lane] += products[k, x, y, lane] * weight
    products[:] = 0.0


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "reassoc", "nsz"})
def reverse_batch(  # type: ignore[no-untyped-def]
    potentials,
    codes_right,
    codes_down,
    tables,
    extra,
    before,
    after,
    adjoint,
    node_adjoint,
    extra_adjoint,
    pair_adjoint,
):
    """Turn derivatives in the messages after a `sweep_batch` into those before it.

    Parameters
    ----------
    before, after : (4, H, W, L, LANES) float32, the messages at either end
    adjoint : (4, H, W, L, LANES) float32, changed in place
    node_adjoint : (H, W, L, LANES) float32, incremented: derivatives in log potentials
    extra_adjoint : (2, n_codes, LANES) float64, incremented: in log(1 + extra)
    pair_adjoint : (2, L, L, LANES) float64, incremented: in the logarithms of the pair tables
    """
    height, width, count, lanes = potentials.shape
    belief, sender = np.empty((count, lanes), np.float32), np.empty((count, lanes), np.float32)
    pull, slope = np.empty((count, lanes), np.float32), np.empty((count, lanes), np.float32)
    inverses, agreement = np.empty((4, count, lanes), np.float32), np.empty(lanes, np.float32)
    strength, totals = np.empty(lanes, np.float32), np.empty(lanes, np.float32)
    products = np.zeros((2, count, count, lanes), np.float32)
    sums = np.empty((4, count), np.float32)
    for axis in range(4):
        for x in range(count):
            sums[axis, x] = tables[axis, x].sum()
    for back_pass in range(2):
        is_forth = back_pass == 1  # the later pass is reversed first
        source = before if is_forth else after
        for step in range(height * width):
            place = height * width - 1 - step if is_forth else step
            i, j = place // width, place % width
            left, right = after[0, i, j], source[1, i, j]
            up, down = after[2, i, j], source[3, i, j]
            _receive(potentials[i, j], left, right, up, down, belief, inverses)
            slope[:] = 0.0
            for k in range(2):
                ni, nj, back, axis = neighbour(i, j, k, is_forth)
                if min(ni, nj) < 0 or ni == height or nj == width:
                    continue
                codes = codes_right[i, min(j, nj)] if k == 0 else codes_down[min(i, ni), j]
                for lane in range(lanes):
                    strength[lane] = extra[k, codes[lane]]
                arrived = adjoint[axis, ni, nj]
                _times(belief, inverses[back], sender)
                _divide(sender, tables[axis], sums[axis], strength, totals, arrived)
                _pull(sender, tables[axis ^ 1], strength, arrived, products[k], agreement, pull)
                arrived[:] = 0.0
                for lane in range(lanes):
                    extra_adjoint[k, codes[lane], lane] += agreement[lane]
                _hand_on(pull, belief, inverses[back], slope, adjoint[back, i, j])
            node_adjoint[i, j] += slope
            for d in range(4):
                _share(slope, inverses[d], adjoint[d, i, j])
            if step % width == width - 1:  # keeps sums in single precision short
                _add_products(products, tables, is_forth, pair_adjoint)
