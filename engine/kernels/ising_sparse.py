"""Conversion of binary pairwise tables on any graph to fields and couplings, and back, arrays only.

A labelling is s in {-1, 1}^n and its score  constant + sum field_i s_i + sum coupling_ij s_i s_j.
``scores`` and ``vertex`` are flat: two entries per node, then four per edge (see PairwiseGraph).

References: Boros and Hammer 2002.
"""

from numba import njit

from engine.core.arguments import FloatArray, IntArray
from engine.kernels.compiling import inner
from engine.kernels.long_sums import add_exactly


@njit(cache=True, nogil=True)
def read_ising(
    edges: IntArray, scores: FloatArray, field: FloatArray, coupling: FloatArray
) -> tuple[float, float]:
    """Write ``field`` (n,) and ``coupling`` (m,) of the tables; return size and least.

    The size is the sum of |scores|, the least is the smallest coupling (0 without edges).
    """
    n = field.shape[0]
    size, least = 0.0, 0.0
    for i in range(n):
        field[i] = 0.5 * (scores[2 * i + 1] - scores[2 * i])
        size += abs(scores[2 * i + 1]) + abs(scores[2 * i])
    for e in range(edges.shape[0]):
        k = 2 * n + 4 * e
        t00, t01, t10, t11 = scores[k], scores[k + 1], scores[k + 2], scores[k + 3]
        # Differences of equal entries cancel exactly in this order: no spurious tiny couplings.
        coupling[e] = 0.25 * ((t00 - t01) - (t10 - t11))
        field[edges[e, 0]] += 0.25 * ((t10 + t11) - (t00 + t01))
        field[edges[e, 1]] += 0.25 * ((t01 + t11) - (t00 + t10))
        size += abs(t00) + abs(t01) + abs(t10) + abs(t11)
        least = min(least, coupling[e])
    return size, least


@njit(cache=True, nogil=True)
def read_cut(
    level: IntArray,
    residual: FloatArray,
    there: IntArray,
    coupling: FloatArray,
    high: FloatArray,
    flow: FloatArray,
) -> int:
    """Write ``high`` (n,) and ``flow`` (m,) of one or two copies; return the number undecided.

    ``level`` is at least 0 on the source side and ``there`` (m,) the arc out of each first node.
    With two copies a node is decided if they disagree, and the flow is that of their mean.
    """
    n, m = high.shape[0], flow.shape[0]
    mirrored = level.shape[0] == 2 * n
    n_undecided = 0
    for i in range(n):
        high[i] = 1.0 if level[i] >= 0 else 0.0
        if mirrored and (level[i] >= 0) == (level[n + i] >= 0):
            high[i] = 0.5
            n_undecided += 1
    for e in range(m):
        if mirrored:
            flow[e] = 0.5 * (residual[there[e] + 2 * m] - residual[there[e]])
        else:
            flow[e] = abs(coupling[e]) - residual[there[e]]
    return n_undecided


@njit(cache=True, nogil=True)
def write_vertex(
    edges: IntArray, coupling: FloatArray, high: FloatArray, vertex: FloatArray
) -> None:
    """Write the best tables with P(s_i = 1) = ``high`` (n,), each 0, 1/2 or 1.

    Two undecided nodes agree or differ by the sign of their coupling; otherwise the margins leave
    no choice.
    """
    n = high.shape[0]
    for i in range(n):
        vertex[2 * i] = 1.0 - high[i]
        vertex[2 * i + 1] = high[i]
    for e in range(edges.shape[0]):
        p, q = high[edges[e, 0]], high[edges[e, 1]]
        k = 2 * n + 4 * e
        if p == 0.5 and q == 0.5:
            same = 0.5 if coupling[e] >= 0.0 else 0.0
            vertex[k] = vertex[k + 3] = same
            vertex[k + 1] = vertex[k + 2] = 0.5 - same
        else:
            vertex[k] = (1.0 - p) * (1.0 - q)
            vertex[k + 1] = (1.0 - p) * q
            vertex[k + 2] = p * (1.0 - q)
            vertex[k + 3] = p * q


@inner
def _twice_precise(first: float, second: float, third: float) -> tuple[float, float]:
    """Return the sum of three numbers as a number and a far smaller remainder."""
    total, lost = add_exactly(first, 0.0, second)
    return add_exactly(total, lost, third)


@njit(cache=True, nogil=True)
def flow_bound(
    edges: IntArray, scores: FloatArray, coupling: FloatArray, flow: FloatArray, moved: FloatArray
) -> float:
    """Return an upper bound on the score of every labelling, for any ``flow`` (m,).

    Each edge passes its two fields, and the flow over it, to its nodes; the bound is the sum of the
    largest remaining entries of all tables. Large numbers may cancel in it, for instance penalties
    for impossible entries, so it is summed in twice the precision. ``moved`` (2, n) is work space.
    """
    n = moved.shape[1]
    moved[:] = 0.0
    total, lost = 0.0, 0.0
    for e in range(edges.shape[0]):
        i, j = edges[e, 0], edges[e, 1]
        k = 2 * n + 4 * e
        t00, t01, t10, t11 = scores[k], scores[k + 1], scores[k + 2], scores[k + 3]
        given = 0.25 * ((t10 + t11) - (t00 + t01)) - flow[e]
        arrived = 0.25 * ((t01 + t11) - (t00 + t10)) + (flow[e] if coupling[e] > 0.0 else -flow[e])
        moved[0, i], moved[1, i] = add_exactly(moved[0, i], moved[1, i], given)
        moved[0, j], moved[1, j] = add_exactly(moved[0, j], moved[1, j], arrived)
        best, rest = _twice_precise(t00, given, arrived)
        for score, first, second in (
            (t01, given, -arrived),
            (t10, -given, arrived),
            (t11, -given, -arrived),
        ):
            value, left = _twice_precise(score, first, second)
            if (value - best) + (left - rest) > 0.0:  # sums would lose the remainders
                best, rest = value, left
        total, lost = add_exactly(total, lost + rest, best)
    for i in range(n):
        low, low_rest = add_exactly(scores[2 * i], -moved[1, i], -moved[0, i])
        high, high_rest = add_exactly(scores[2 * i + 1], moved[1, i], moved[0, i])
        if (high - low) + (high_rest - low_rest) > 0.0:
            low, low_rest = high, high_rest
        total, lost = add_exactly(total, lost + low_rest, low)
    return total + lost
