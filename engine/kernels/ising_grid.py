"""Binary grids in Ising form, their flow graphs, and tables read from a minimum cut.

With s = 2x - 1 a score table is  theta(x, y) = mean + b s_x + c s_y + J s_x s_y,  so a model is
constant + sum h_i s_i + sum J_ij s_i s_j. Roof duality is a minimum cut of the graph with two
copies of each node (the second has the opposite sign): arcs of capacity |J| join equal copies
where J > 0 and opposite copies where J < 0, and terminal arcs have capacity |h|.

References: Boros and Hammer 2002; Kolmogorov and Rother 2007 (QPBO).
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from engine.core.arguments import FloatArray

IndexArray = NDArray[np.uint32]
Int8Array = NDArray[np.int8]
Tables = tuple[FloatArray, FloatArray, FloatArray]


@njit(cache=True, nogil=True)
def ising_form(
    nodes: FloatArray,
    horizontal: FloatArray,
    vertical: FloatArray,
    field: FloatArray,
    right: FloatArray,
    down: FloatArray,
) -> tuple[float, float, float]:
    """Fill field (H, W), right (H, W) and down (H, W) couplings; return constant, size and least.

    nodes (H, W, 2), horizontal (H, W-1, 2, 2), vertical (H-1, W, 2, 2). Couplings that would
    leave the grid are set to zero. The size is the sum of |scores|, the least the smallest J.
    """
    height, width = field.shape
    constant = 0.0
    size = 0.0
    least = 0.0
    for i in range(height):
        row, row_size = 0.0, 0.0
        for j in range(width):
            low = nodes[i, j, 0]
            high = nodes[i, j, 1]
            row += 0.5 * (low + high)
            row_size += abs(low) + abs(high)
            field[i, j] = 0.5 * (high - low)
        constant += row
        size += row_size
    for i in range(height):
        row, row_size = 0.0, 0.0
        right[i, width - 1] = 0.0
        for j in range(width - 1):
            a = horizontal[i, j, 0, 0]
            b = horizontal[i, j, 0, 1]
            c = horizontal[i, j, 1, 0]
            d = horizontal[i, j, 1, 1]
            row += 0.25 * (a + b + c + d)
            row_size += abs(a) + abs(b) + abs(c) + abs(d)
            field[i, j] += 0.25 * (c + d - a - b)
            field[i, j + 1] += 0.25 * (b + d - a - c)
            coupling = 0.25 * ((a - b) - (c - d))
            right[i, j] = coupling
            least = min(least, coupling)
        constant += row
        size += row_size
    for j in range(width):
        down[height - 1, j] = 0.0
    for i in range(height - 1):
        row, row_size = 0.0, 0.0
        for j in range(width):
            a = vertical[i, j, 0, 0]
            b = vertical[i, j, 0, 1]
            c = vertical[i, j, 1, 0]
            d = vertical[i, j, 1, 1]
            row += 0.25 * (a + b + c + d)
            row_size += abs(a) + abs(b) + abs(c) + abs(d)
            field[i, j] += 0.25 * (c + d - a - b)
            field[i + 1, j] += 0.25 * (b + d - a - c)
            coupling = 0.25 * ((a - b) - (c - d))
            down[i, j] = coupling
            least = min(least, coupling)
        constant += row
        size += row_size
    return constant, size, least


@njit(cache=True, nogil=True)
def _write_edge(
    p: int,
    q: int,
    d: int,
    coupling: float,
    flow: float,
    copies: int,
    absent: int,
    neighbour: IndexArray,
    residual: FloatArray,
) -> None:
    """Write both arcs of an edge in all copies; ``flow`` runs from the first copy of p.

    The second copy has the mirrored flow. Arc ``d`` leads from p to q, ``d ^ 1`` back.
    """
    if coupling == 0.0:
        for copy in range(copies):
            neighbour[p + copy, d] = absent
            residual[p + copy, d] = 0.0
            neighbour[q + copy, d ^ 1] = absent
            residual[q + copy, d ^ 1] = 0.0
        return
    capacity = abs(coupling)
    crossed = 1 if coupling < 0.0 else 0
    arrived = -flow if coupling < 0.0 else flow
    for copy in range(copies):
        sign = 1.0 - 2.0 * copy
        other = copy ^ crossed
        neighbour[p + copy, d] = q + other
        residual[p + copy, d] = capacity - sign * flow
        neighbour[q + copy, d ^ 1] = p + other
        residual[q + copy, d ^ 1] = capacity + sign * arrived


@njit(cache=True, nogil=True)
def fill_flow_graph(
    field: FloatArray,
    right: FloatArray,
    down: FloatArray,
    copies: int,
    neighbour: IndexArray,
    residual: FloatArray,
    excess: FloatArray,
    spare: FloatArray,
) -> None:
    """Write the flow graph of one (all J >= 0) or two copies, after pushing over single edges.

    Node (i, j, copy) has index (i W + j) copies + copy; arcs go right, left, down, up. Most of a
    maximum flow joins neighbours that pull an edge in opposite directions: those pushes are done
    here, in one pass, before search trees grow for the rest. ``spare`` (H, W).
    """
    height, width = field.shape
    absent = height * width * copies
    for i in range(height):
        for j in range(width):
            spare[i, j] = field[i, j]
    for i in range(height):
        for j in range(width):
            p = (i * width + j) * copies
            for vertical in range(2):
                d = 2 * vertical
                down_i = i + vertical
                right_j = j + 1 - vertical
                if down_i >= height or right_j >= width:
                    for copy in range(copies):
                        neighbour[p + copy, d] = absent
                        residual[p + copy, d] = 0.0
                    continue
                coupling = down[i, j] if vertical == 1 else right[i, j]
                here = spare[i, j]
                there = spare[down_i, right_j]
                flow = 0.0
                if here * there * coupling < 0.0:
                    size = min(abs(here), abs(there), abs(coupling))
                    flow = size if here > 0.0 else -size
                    spare[i, j] = here - flow
                    spare[down_i, right_j] = there + (flow if coupling > 0.0 else -flow)
                q = (down_i * width + right_j) * copies
                _write_edge(p, q, d, coupling, flow, copies, absent, neighbour, residual)
            for copy in range(copies):
                if j == 0:
                    neighbour[p + copy, 1] = absent
                    residual[p + copy, 1] = 0.0
                if i == 0:
                    neighbour[p + copy, 3] = absent
                    residual[p + copy, 3] = 0.0
                excess[p + copy] = spare[i, j] if copy == 0 else -spare[i, j]
    excess[absent] = 0.0
    for d in range(4):
        neighbour[absent, d] = absent
        residual[absent, d] = 0.0


@njit(cache=True, nogil=True)
def dual_bound(
    field: FloatArray,
    right: FloatArray,
    down: FloatArray,
    copies: int,
    residual: FloatArray,
    spare: FloatArray,
) -> float:
    """Return the dual value of the flow.

    max sum h s + sum J s s <= sum_i |h_i - outflow_i| + sum_e max(|J|, 2|g| - |J|) for any edge
    flow g, so the bound holds whatever the flow algorithm did. ``spare`` (H, W) is work space.
    """
    height, width = field.shape
    total = 0.0
    for i in range(height):
        for j in range(width):
            spare[i, j] = field[i, j]
    for direction in (0, 2):
        rows = height if direction == 0 else height - 1
        columns = width - 1 if direction == 0 else width
        for i in range(rows):
            row = 0.0
            for j in range(columns):
                coupling = right[i, j] if direction == 0 else down[i, j]
                p = (i * width + j) * copies
                capacity = abs(coupling)
                flow = capacity - residual[p, direction]
                if copies == 2:
                    flow = 0.5 * (flow - (capacity - residual[p + 1, direction]))
                row += max(capacity, 2.0 * abs(flow) - capacity)
                spare[i, j] -= flow
                arrived = flow if coupling > 0.0 else -flow
                if direction == 0:
                    spare[i, j + 1] += arrived
                else:
                    spare[i + 1, j] += arrived
            total += row
    for i in range(height):
        row = 0.0
        for j in range(width):
            row += abs(spare[i, j])
        total += row
    return total


@njit(cache=True, nogil=True)
def _write_table(
    table: FloatArray, p: float, q: float, coupling: float, scores: FloatArray
) -> float:
    """Write the best 2 x 2 table with margins p and q in {0, 1/2, 1}; return its score."""
    if p == 0.5 and q == 0.5:
        same = 0.5 if coupling >= 0.0 else 0.0
        different = 0.5 - same
        table[0, 0] = same
        table[0, 1] = different
        table[1, 0] = different
        table[1, 1] = same
    else:
        table[0, 0] = (1.0 - p) * (1.0 - q)
        table[0, 1] = (1.0 - p) * q
        table[1, 0] = p * (1.0 - q)
        table[1, 1] = p * q
    return float(
        table[0, 0] * scores[0, 0]
        + table[0, 1] * scores[0, 1]
        + table[1, 0] * scores[1, 0]
        + table[1, 1] * scores[1, 1]
    )


@njit(cache=True, nogil=True)
def read_tables(
    tree: Int8Array,
    source: int,
    copies: int,
    right: FloatArray,
    down: FloatArray,
    scores: Tables,
    vertex: Tables,
) -> tuple[float, int]:
    """Write the vertex of the local polytope given by the minimum cut.

    ``scores`` and ``vertex`` are (nodes, horizontal, vertical). Return <vertex, scores> and the
    number of undecided nodes, those with value 1/2.
    """
    nodes, horizontal, vertical = vertex
    height, width = right.shape
    undecided = 0
    total = 0.0
    for i in range(height):
        row = 0.0
        for j in range(width):
            p = (i * width + j) * copies
            if copies == 1:
                high = 1.0 if tree[p] == source else 0.0
            else:
                first = 0.5 if tree[p] == source else 0.0
                high = first + (0.0 if tree[p + 1] == source else 0.5)
            undecided += high == 0.5
            nodes[i, j, 0] = 1.0 - high
            nodes[i, j, 1] = high
            row += (1.0 - high) * scores[0][i, j, 0] + high * scores[0][i, j, 1]
        total += row
    for i in range(height):
        row = 0.0
        for j in range(width - 1):
            row += _write_table(
                horizontal[i, j], nodes[i, j, 1], nodes[i, j + 1, 1], right[i, j], scores[1][i, j]
            )
        total += row
    for i in range(height - 1):
        row = 0.0
        for j in range(width):
            row += _write_table(
                vertical[i, j], nodes[i, j, 1], nodes[i + 1, j, 1], down[i, j], scores[2][i, j]
            )
        total += row
    return total, undecided
