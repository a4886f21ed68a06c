"""Both maximum-flow kernels against SciPy's, with capacities, cuts and conservation checked."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import coo_array
from scipy.sparse.csgraph import maximum_flow

from engine.kernels.maxflow_grid import SOURCE, max_flow_four_arcs
from engine.kernels.maxflow_sparse import arc_lists, max_flow_sparse


def scipy_value(n, tails, heads, forward, backward, excess) -> int:
    """Maximum flow of whole-number capacities by SciPy."""
    source, sink = n, n + 1
    rows = [*tails, *heads]
    columns = [*heads, *tails]
    values = [*forward, *backward]
    for p in range(n):
        rows.append(source if excess[p] > 0 else p)
        columns.append(p if excess[p] > 0 else sink)
        values.append(abs(excess[p]))
    matrix = coo_array((np.array(values, dtype=np.int32), (rows, columns)), shape=(n + 2, n + 2))
    matrix = matrix.tocsr()
    matrix.sum_duplicates()
    return int(maximum_flow(matrix, source, sink).flow_value)


@settings(max_examples=60)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 12), m=st.integers(0, 30))
def test_sparse_flow_is_maximal_and_its_cut_minimal(seed, n, m):
    rng = np.random.default_rng(seed)
    tails, heads = rng.integers(0, n, m), rng.integers(0, n, m)
    kept = tails != heads
    tails, heads = tails[kept], heads[kept]
    forward = rng.integers(0, 9, len(tails)).astype(float)
    backward = rng.integers(0, 9, len(tails)).astype(float)
    excess = rng.integers(-9, 10, n).astype(float)
    start, head, mate, place = arc_lists(n, tails, heads)
    residual = np.empty(2 * len(tails))
    residual[place[:, 0]], residual[place[:, 1]] = forward, backward
    left, level = excess.copy(), np.zeros(n, dtype=np.int64)
    work = np.zeros((3, n + 1), dtype=np.int64)
    value = max_flow_sparse(start, head, mate, residual, left, level, work)
    assert value == scipy_value(n, tails, heads, forward, backward, excess)
    assert (residual >= 0).all()
    flow = forward - residual[place[:, 0]]
    np.testing.assert_allclose(residual[place[:, 1]], backward + flow)
    balance = excess - left
    np.add.at(balance, tails, -flow)
    np.add.at(balance, heads, flow)
    np.testing.assert_allclose(balance, 0)
    inside = level >= 0
    cut = forward[inside[tails] & ~inside[heads]].sum()
    cut += backward[inside[heads] & ~inside[tails]].sum()
    cut += excess[~inside & (excess > 0)].sum() - excess[inside & (excess < 0)].sum()
    assert cut == value


@pytest.mark.parametrize("real", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_four_arc_flow_agrees_with_the_sparse_one(seed, real):
    """Random grids with unequal capacities in both directions: more than roof duality needs."""
    rng = np.random.default_rng(seed)
    height, width = rng.integers(1, 8, 2)
    n = int(height * width)

    def draw(*shape):
        return rng.exponential(size=shape) if real else rng.integers(0, 6, shape).astype(float)

    neighbour = np.full((n + 1, 4), n, dtype=np.uint32)
    residual = np.zeros((n + 1, 4))
    tails, heads, capacities = [], [], []
    for p in range(n):
        for d, inside, q in (
            (0, p % width + 1 < width, p + 1),
            (2, p // width + 1 < height, p + width),
        ):
            if inside:
                forward, backward = draw(2)
                neighbour[p, d], neighbour[q, d ^ 1] = q, p
                residual[p, d], residual[q, d ^ 1] = forward, backward
                tails.append(p)
                heads.append(q)
                capacities += [forward, backward]
    excess = np.append(draw(n) * rng.choice([-1, 1], n), 0.0)
    first = np.array(tails, dtype=np.int64)
    second = np.array(heads, dtype=np.int64)
    start, head, mate, place = arc_lists(n, first, second)
    arcs = np.empty(2 * len(tails))
    arcs[place.ravel()] = capacities
    level, work = np.zeros(n, dtype=np.int64), np.zeros((3, n + 1), dtype=np.int64)
    expected = max_flow_sparse(start, head, mate, arcs, excess[:n].copy(), level, work)
    tree, queued = np.zeros(n + 1, np.int8), np.zeros(n + 1, np.int8)
    stamp, distance = np.zeros(n + 1, np.int32), np.zeros(n + 1, np.int32)
    queue, orphans = np.zeros(n + 1, np.uint32), np.zeros(n + 1, np.uint32)
    value = max_flow_four_arcs(
        neighbour,
        residual,
        excess,
        tree,
        np.zeros(n + 1, np.uint8),
        stamp,
        distance,
        queue,
        queued,
        orphans,
        np.zeros((2, 4), np.uint32),
    )
    assert value == pytest.approx(expected, rel=1e-12)
    assert (residual >= 0).all()
    if not real:  # both return the smallest minimum cut
        np.testing.assert_array_equal(tree[:n] == SOURCE, level >= 0)
