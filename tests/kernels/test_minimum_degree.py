"""Orders of least degree against an elimination of sets."""

import numpy as np
import pytest
import scipy

from engine.kernels.minimum_degree import eliminate_least_degrees


def random_graph(seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 30))
    above = np.triu(rng.random((n, n)) < 0.4 * rng.random(), 1)
    weights = np.ones(n) if seed % 2 else rng.integers(1, 4, n) / 2.0
    return above | above.T, weights


def eliminate_sets(adjacent, weights, dense):
    near = {v: set(np.flatnonzero(adjacent[v]).tolist()) for v in range(len(weights))}
    order, left, work = [], weights.sum(), 0.0
    while near:
        degrees = {v: sum(weights[u] for u in near[v]) for v in near}
        v = min(near, key=lambda v: (degrees[v], v))
        if 0.0 < degrees[v] >= dense * (left - weights[v]):
            break
        order.append(v)
        left -= weights[v]
        work += weights[v] * (degrees[v] + weights[v]) ** 2
        around = near.pop(v)
        for u in around:
            near[u] = (near[u] | around) - {u, v}
    return order, sorted(near), work


@pytest.mark.parametrize("dense", [0.3, 1.0])
@pytest.mark.parametrize("seed", range(40))
def test_orders_are_those_of_sets(seed, dense):
    adjacent, weights = random_graph(seed)
    graph = scipy.sparse.csr_array(adjacent.astype(float))
    starts, neighbours = graph.indptr.astype(np.int64), graph.indices.astype(np.int64)
    order, core, work = eliminate_least_degrees(starts, neighbours, weights, dense, np.inf)
    expected = eliminate_sets(adjacent, weights, dense)
    assert order.tolist() == expected[0]
    assert core.tolist() == expected[1]
    assert work == pytest.approx(expected[2])


def test_the_search_ends_where_the_work_is_too_much():
    graph = scipy.sparse.csr_array(np.ones((20, 20)) - np.eye(20))
    starts, neighbours = graph.indptr.astype(np.int64), graph.indices.astype(np.int64)
    order, core, work = eliminate_least_degrees(starts, neighbours, np.ones(20), 2.0, 2000.0)
    assert len(order) == 0
    assert len(core) == 20
    assert work == 0.0
