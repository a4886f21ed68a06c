"""Reweighted messages on binary grids, one number a message, no exponentials inside the loop.

A message m is the ratio m(1) / m(0). With B_j = exp(theta_j(1) - theta_j(0)) (product of the
messages into j)^rho and edge tables psi = exp(theta / rho), the message over an edge is

    m_new = (psi_01 m_back + psi_11 B) / (psi_00 m_back + psi_10 B)

where m_back is the message that comes the other way over the same edge. Arrays are skewed: node
(i, j) is stored at [i + j + 1, i + 1], so that the neighbours right and below lie in the next
row and those left and above in the previous one. A row holds an anti-diagonal of the grid, whose
nodes do not depend on each other: the sequential raster order, vectorised. Cells outside the
grid hold neutral tables, hence messages of one.

``packed`` has shape (11, H + W + 1, H + 2): node ratio; psi_01, psi_11, psi_10 over psi_00 of the
edge to the right and of the edge below; messages from left, above, right, below.

Beside `engine.kernels.grid_chains`: these kernels are for inference in any binary grid. Every edge
has a table of its own, rho may be anything up to 1 (loopy belief propagation), and damping, the
checkerboard order and the largest residual are there. Learning needs none of these, and holds many
pictures at once: its kernels store a byte an edge instead of three numbers, a quarter of the memory
altogether, and keep messages in the layout that back-propagation reads. Their sweep takes four
fifths of the time, 11 instead of 14 ns a pixel at rho = 1/2.

References: Wainwright, Jaakkola and Willsky 2005; Domke 2013, equation 18.
"""

import math

import numpy as np
from numba import njit

from engine.core.arguments import FloatArray

UNARY, RIGHT, BELOW, MESSAGES = 0, 1, 4, 7


@njit(cache=True, nogil=True)
def pack_scores(
    nodes: FloatArray, horizontal: FloatArray, vertical: FloatArray, rho: float, packed: FloatArray
) -> float:
    """Write node ratios and edge tables; return the largest |log ratio| that can be met.

    A log message is at most twice the largest entry of its table. Four of them are multiplied,
    raised to rho, and what a belief holds is divided by one and multiplied by a table entry.
    """
    height, width = nodes.shape[0], nodes.shape[1]
    largest_node = 0.0
    largest_edge = 0.0
    packed[UNARY:MESSAGES] = 1.0
    for i in range(height):
        for j in range(width):
            d = i + j + 1
            ratio = nodes[i, j, 1] - nodes[i, j, 0]
            largest_node = max(largest_node, abs(ratio))
            packed[UNARY, d, i + 1] = math.exp(ratio)
            for which in range(2):
                if which == 0:
                    if j + 1 >= width:
                        continue
                    table = horizontal[i, j]
                    start = RIGHT
                else:
                    if i + 1 >= height:
                        continue
                    table = vertical[i, j]
                    start = BELOW
                a = (table[0, 1] - table[0, 0]) / rho
                b = (table[1, 1] - table[0, 0]) / rho
                c = (table[1, 0] - table[0, 0]) / rho
                largest_edge = max(largest_edge, abs(a), abs(b), abs(c))
                packed[start, d, i + 1] = math.exp(a)
                packed[start + 1, d, i + 1] = math.exp(b)
                packed[start + 2, d, i + 1] = math.exp(c)
    return largest_node + max(8.0, 8.0 * rho + 4.0) * largest_edge


@njit(cache=True, nogil=True)
def _power(product: float, rho: float) -> float:
    if rho == 0.5:
        return math.sqrt(product)
    if rho == 1.0:
        return product
    return float(product**rho)


@njit(cache=True, nogil=True)
def _belief(packed: FloatArray, d: int, k: int, rho: float) -> float:
    """Return tau(1) / tau(0) of the node at skewed place [d, k]."""
    product = packed[7, d, k] * packed[8, d, k] * packed[9, d, k] * packed[10, d, k]
    return float(packed[UNARY, d, k] * _power(product, rho))


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _send_forward(
    d: int,
    low: int,
    high: int,
    rho: float,
    damping: float,
    tolerance: float,
    packed: FloatArray,
    beliefs: FloatArray,
) -> int:
    """Update the messages right and down from anti-diagonal ``d``; return how many moved.

    What is not a number counts as moved, hence the negated comparison.

    No denominator is 0 for scores that `pack_scores` finds small enough; a test of each for 0, as
    Python divides, would keep the compiler from dividing several at once.
    """
    u = packed[0, d]
    ra, rb, rc = packed[1, d], packed[2, d], packed[3, d]
    da, db, dc = packed[4, d], packed[5, d], packed[6, d]
    left, above, right, below = packed[7, d], packed[8, d], packed[9, d], packed[10, d]
    to_right, to_below = packed[7, d + 1], packed[8, d + 1]
    keep = 1.0 - damping
    moved = 0
    for i in range(low, high):
        beliefs[i] = u[i] * _power(left[i] * above[i] * right[i] * below[i], rho)
    for i in range(low, high):
        belief = beliefs[i]
        back = right[i]
        old = to_right[i]
        new = (ra[i] * back + rb[i] * belief) / (back + rc[i] * belief)
        new = keep * new + damping * old
        moved += not (abs(new - old) <= tolerance * (new + old))
        to_right[i] = new
    for i in range(low, high):
        belief = beliefs[i]
        back = below[i]
        old = to_below[i + 1]
        new = (da[i] * back + db[i] * belief) / (back + dc[i] * belief)
        new = keep * new + damping * old
        moved += not (abs(new - old) <= tolerance * (new + old))
        to_below[i + 1] = new
    return moved


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _send_backward(
    d: int,
    low: int,
    high: int,
    rho: float,
    damping: float,
    tolerance: float,
    packed: FloatArray,
    beliefs: FloatArray,
) -> int:
    """Update the messages left and up from anti-diagonal ``d``; return how many moved."""
    u = packed[0, d]
    ra, rb, rc = packed[1, d - 1], packed[2, d - 1], packed[3, d - 1]
    da, db, dc = packed[4, d - 1], packed[5, d - 1], packed[6, d - 1]
    left, above, right, below = packed[7, d], packed[8, d], packed[9, d], packed[10, d]
    to_left, to_above = packed[9, d - 1], packed[10, d - 1]
    keep = 1.0 - damping
    moved = 0
    for i in range(low, high):
        beliefs[i] = u[i] * _power(left[i] * above[i] * right[i] * below[i], rho)
    for i in range(low, high):
        belief = beliefs[i]
        back = left[i]
        old = to_left[i]
        new = (rc[i] * back + rb[i] * belief) / (back + ra[i] * belief)
        new = keep * new + damping * old
        moved += not (abs(new - old) <= tolerance * (new + old))
        to_left[i] = new
    for i in range(low, high):
        belief = beliefs[i]
        back = above[i]
        old = to_above[i - 1]
        new = (dc[i - 1] * back + db[i - 1] * belief) / (back + da[i - 1] * belief)
        new = keep * new + damping * old
        moved += not (abs(new - old) <= tolerance * (new + old))
        to_above[i - 1] = new
    return moved


@njit(cache=True, nogil=True)
def sweep(
    height: int,
    width: int,
    rho: float,
    damping: float,
    tolerance: float,
    checkerboard: bool,
    limit: int,
    packed: FloatArray,
) -> tuple[int, int]:
    """Iterate until no message moves by more than ``tolerance`` or ``limit`` is reached.

    An iteration updates each message once: a forward and a backward sweep over the
    anti-diagonals (raster order), or all messages out of the even, then of the odd nodes.
    Return (iterations, number of messages that moved in the last one).
    """
    last = height + width - 1
    beliefs = np.empty(height + 2)  # of one anti-diagonal
    moved = 0
    for iteration in range(limit):
        moved = 0
        if checkerboard:
            for colour in range(2):
                for d in range(1 + colour, last + 1, 2):
                    low = max(1, d - width + 1)
                    high = min(height, d) + 1
                    moved += _send_forward(d, low, high, rho, damping, tolerance, packed, beliefs)
                    moved += _send_backward(d, low, high, rho, damping, tolerance, packed, beliefs)
        else:
            for d in range(1, last):
                low = max(1, d - width + 1)
                high = min(height, d) + 1
                moved += _send_forward(d, low, high, rho, damping, tolerance, packed, beliefs)
            for d in range(last, 1, -1):
                low = max(1, d - width + 1)
                high = min(height, d) + 1
                moved += _send_backward(d, low, high, rho, damping, tolerance, packed, beliefs)
        if moved == 0:
            return iteration + 1, 0
    return limit, moved


@njit(cache=True, nogil=True)
def table_from_margins(p: float, q: float, odds: float, table: FloatArray) -> None:
    """Write the 2 x 2 table with margins (1-p, p), (1-q, q) and odds ratio t00 t11 / (t01 t10).

    It maximises the entropy-regularised edge score for given margins (Welling and Teh 2001).
    """
    swapped = odds > 1.0
    if swapped:  # work with the cell (1, 0) and the inverse ratio, so that nothing overflows
        odds = 1.0 / odds
        q = 1.0 - q
    linear = 1.0 - (1.0 - odds) * (p + q)
    root = math.sqrt(linear * linear + 4.0 * odds * (1.0 - odds) * p * q)
    if linear >= 0.0:
        denominator = linear + root  # zero only for margins of exactly 0 and 1, where p q = 0
        both = 2.0 * odds * p * q / denominator if denominator > 0.0 else 0.0
    else:
        both = (root - linear) / (2.0 * (1.0 - odds))
    both = min(max(both, max(0.0, p + q - 1.0)), min(p, q))
    first = p - both
    second = q - both
    neither = max(0.0, 1.0 - p - q + both)
    if swapped:
        table[1, 0] = both
        table[1, 1] = first
        table[0, 0] = second
        table[0, 1] = neither
    else:
        table[1, 1] = both
        table[1, 0] = first
        table[0, 1] = second
        table[0, 0] = neither


@njit(cache=True, nogil=True)
def read_marginals(
    packed: FloatArray, rho: float, nodes: FloatArray, horizontal: FloatArray, vertical: FloatArray
) -> None:
    """Write node marginals and the best edge tables that have exactly these margins."""
    height, width = nodes.shape[0], nodes.shape[1]
    for i in range(height):
        for j in range(width):
            d = i + j + 1
            belief = _belief(packed, d, i + 1, rho)
            nodes[i, j, 0] = 1.0 / (1.0 + belief)
            nodes[i, j, 1] = belief / (1.0 + belief)
    for i in range(height):
        for j in range(width):
            d = i + j + 1
            if j + 1 < width:
                odds = packed[2, d, i + 1] / (packed[1, d, i + 1] * packed[3, d, i + 1])
                table_from_margins(nodes[i, j, 1], nodes[i, j + 1, 1], odds, horizontal[i, j])
            if i + 1 < height:
                odds = packed[5, d, i + 1] / (packed[4, d, i + 1] * packed[6, d, i + 1])
                table_from_margins(nodes[i, j, 1], nodes[i + 1, j, 1], odds, vertical[i, j])


@njit(cache=True, nogil=True)
def _edge_slack(
    a: float, b: float, c: float, belief: float, other_belief: float, toward: float, back: float
) -> float:
    """Return the larger of log(S(x) / M(x)) over both ends of an edge, summed, in nats.

    ``toward`` is the message into the second node, ``back`` the one into the first; S are the
    messages that would be sent now, with psi_00 = 1.
    """
    r = belief / back
    second = max(1.0 + c * r, (a + b * r) / toward)
    r = other_belief / toward
    first = max(1.0 + a * r, (c + b * r) / back)
    product = first * second
    if product < math.inf:
        return math.log(product)  # one logarithm, and nearly always
    return math.log(first) + math.log(second)


@njit(cache=True, nogil=True)
def upper_bound(
    nodes: FloatArray,
    horizontal: FloatArray,
    vertical: FloatArray,
    packed: FloatArray,
    rho: float,
    beliefs: FloatArray,
) -> tuple[float, float]:
    """Return an upper bound on the reweighted log Z that holds for any messages, rho <= 1/2.

    And, since the bound is exact but for rounding, the sum of the absolute values of its terms.

    Each edge's mutual information is split into two conditional entropies of weight rho / 2, and
    what a node keeps, 1 - degree rho / 2, is not negative. Relaxing the agreement of the tables
    with the messages as multipliers leaves closed forms: a log-sum a node, and the largest log
    change of a message an edge end. It is tight at a fixed point. beliefs (H, W) is work space.
    """
    height, width = nodes.shape[0], nodes.shape[1]
    total, magnitude = 0.0, 0.0
    for i in range(height):
        row = 0.0
        for j in range(width):
            d = i + j + 1
            belief = _belief(packed, d, i + 1, rho)
            beliefs[i, j] = belief
            degree = (i > 0) + (j > 0) + (i + 1 < height) + (j + 1 < width)
            kept = 1.0 - 0.5 * rho * degree
            free = kept * math.log1p(belief)
            row += nodes[i, j, 0] + free
            magnitude += abs(nodes[i, j, 0]) + free
        total += row
    for i in range(height):
        row = 0.0
        for j in range(width):
            d = i + j + 1
            k = i + 1
            if j + 1 < width:
                slack = _edge_slack(
                    packed[1, d, k],
                    packed[2, d, k],
                    packed[3, d, k],
                    beliefs[i, j],
                    beliefs[i, j + 1],
                    packed[7, d + 1, k],
                    packed[9, d, k],
                )
                row += horizontal[i, j, 0, 0] + 0.5 * rho * slack
                magnitude += abs(horizontal[i, j, 0, 0]) + 0.5 * rho * abs(slack)
            if i + 1 < height:
                slack = _edge_slack(
                    packed[4, d, k],
                    packed[5, d, k],
                    packed[6, d, k],
                    beliefs[i, j],
                    beliefs[i + 1, j],
                    packed[8, d + 1, k + 1],
                    packed[10, d, k],
                )
                row += vertical[i, j, 0, 0] + 0.5 * rho * slack
                magnitude += abs(vertical[i, j, 0, 0]) + 0.5 * rho * abs(slack)
        total += row
    return total, magnitude


@njit(cache=True, nogil=True)
def largest_residual(height: int, width: int, packed: FloatArray, rho: float) -> float:
    """Return the largest |log(sent / held)|: what updating any one message would change it by."""
    largest = 0.0
    for d in range(1, height + width):
        for k in range(max(1, d - width + 1), min(height, d) + 1):
            for which in range(2):
                down = which == 1
                i = k - 1
                j = d - k
                if (down and i + 1 >= height) or (not down and j + 1 >= width):
                    continue
                a = packed[1 + 3 * which, d, k]
                b = packed[2 + 3 * which, d, k]
                c = packed[3 + 3 * which, d, k]
                toward = packed[7 + which, d + 1, k + which]
                back = packed[9 + which, d, k]
                r = _belief(packed, d, k, rho) / back
                largest = max(largest, abs(math.log((a + b * r) / ((1.0 + c * r) * toward))))
                r = _belief(packed, d + 1, k + which, rho) / toward
                largest = max(largest, abs(math.log((c + b * r) / ((1.0 + a * r) * back))))
    return largest
