"""Messages on grids of several labels whose edges may each perturb one entry of their table.

Derivatives by perturbation move scores along the slope of a loss. If the loss depends on edges,
each edge moves only the entry of its own two labels: ``bumps[axis, i, j]`` is the factor, less 1,
on that entry of the edge to the right (0) or down (1) of a pixel, in exp(2 theta).
Everything else is as in `engine.kernels.class_messages`, in double precision.
"""

import numpy as np
from numba import njit

from engine.core.arguments import FloatArray, IntArray
from engine.kernels.class_messages import neighbour, send
from engine.kernels.compiling import inner


@inner
def _send_bumped(
    sender: FloatArray,
    table: FloatArray,
    extra: float,
    is_plain: bool,
    bump: float,
    ends: IntArray,
    out: FloatArray,
) -> None:
    """Write a message of mean 1; the bump is on the entry ``ends`` of the table, sender first."""
    divisor = send(sender, table, extra, is_plain, out)
    if bump != 0.0:
        x, y = ends
        entry = table[x, y] * (1.0 + extra if x == y else 1.0)
        added = bump * entry * sender[x] / divisor
        out[y] += added
        scale = out.size / (out.size + added)
        for z in range(out.size):
            out[z] *= scale


@njit(cache=True, nogil=True, error_model="numpy")
def bumped_sweep(  # type: ignore[no-untyped-def]
    potentials, codes_right, codes_down, tables, extra, is_plain, messages, labels, bumps
):
    """Run one forward and one backward pass over the grid; return the largest relative change.

    Parameters
    ----------
    potentials .. messages : see `class_messages.sweep`, in float64
    labels : (H, W) uint8, the labels of the entries with bumps
    bumps : (2, H, W) float64, 0 for none
    """
    height, width, count = potentials.shape
    belief, sender, out = np.empty(count), np.empty(count), np.empty(count)
    ends = np.zeros(2, np.int64)
    change = 0.0
    for turn in range(2):
        for step in range(height * width):
            place = step if turn == 0 else height * width - 1 - step
            i, j = place // width, place % width
            for x in range(count):
                product = 1.0
                for d in range(4):
                    product *= messages[d, i, j, x]
                belief[x] = potentials[i, j, x] * np.sqrt(product)
            for k in range(2):
                ni, nj, back, axis = neighbour(i, j, k, turn == 0)
                if min(ni, nj) < 0 or ni == height or nj == width:
                    continue
                code = codes_right[i, min(j, nj)] if k == 0 else codes_down[min(i, ni), j]
                for x in range(count):
                    sender[x] = belief[x] / messages[back, i, j, x]
                ends[0], ends[1] = labels[i, j], labels[ni, nj]
                bump = bumps[k, min(i, ni), min(j, nj)]
                _send_bumped(sender, tables[axis], extra[k, code], is_plain, bump, ends, out)
                old = messages[axis, ni, nj]
                for x in range(count):
                    change = max(change, abs(out[x] - old[x]) / (out[x] + old[x]))
                    old[x] = out[x]
    return change


@njit(cache=True, nogil=True, error_model="numpy")
def sum_marginals(  # type: ignore[no-untyped-def]
    potentials,
    codes_right,
    codes_down,
    tables,
    extra,
    messages,
    labels,
    bumps,
    nodes,
    by_code,
    by_pair,
    chances,
):
    """Write marginals of nodes and of each edge's own entry, and sum the marginals of edges.

    Parameters
    ----------
    potentials .. bumps : see `bumped_sweep`; the messages have converged
    nodes : (H, W, L) float64, output
    by_code : (2, n_codes) float64, incremented: tau_ij of equal labels
    by_pair : (2, L, L) float64, incremented
    chances : (2, H, W) float64, output: tau_ij of the labels; 1 without an edge or without a label
        at an end
    """
    height, width, count = potentials.shape
    table = np.empty((count, count))
    chances[:] = 1.0
    for i in range(height):
        for j in range(width):
            total = 0.0
            for x in range(count):
                product = 1.0
                for d in range(4):
                    product *= messages[d, i, j, x]
                nodes[i, j, x] = potentials[i, j, x] * np.sqrt(product)
                total += nodes[i, j, x]
            for x in range(count):
                nodes[i, j, x] /= total
    for i in range(height):
        for j in range(width):
            for axis in range(2):
                ni, nj = (i, j + 1) if axis == 0 else (i + 1, j)
                if ni >= height or nj >= width:
                    continue
                code = codes_right[i, j] if axis == 0 else codes_down[i, j]
                first, second = labels[i, j], labels[ni, nj]
                is_known = first < count and second < count
                norm = 0.0
                for x in range(count):
                    own = nodes[i, j, x] / messages[2 * axis + 1, i, j, x]
                    for y in range(count):
                        value = own * tables[2 * axis, x, y]
                        value *= nodes[ni, nj, y] / messages[2 * axis, ni, nj, y]
                        if x == y:
                            value *= 1.0 + extra[axis, code]
                        if is_known and x == first and y == second:
                            value *= 1.0 + bumps[axis, i, j]
                        table[x, y] = value
                        norm += value
                for x in range(count):
                    for y in range(count):
                        by_pair[axis, x, y] += table[x, y] / norm
                    by_code[axis, code] += table[x, x] / norm
                if is_known:
                    chances[axis, i, j] = table[first, second] / norm
