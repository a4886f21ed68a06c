"""Roof duality on grids against a generic linear programme, enumeration and sabotage."""

import os
import subprocess
import sys
import threading
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.core.errors import InvalidProblemError
from engine.graphs.grid import Grid, GridTables
from engine.kernels.ising_grid import dual_bound
from engine.oracles.grid_roof_duality import GridRoofDuality, decode_vertex
from tests.reference.pairwise_models import (
    enumerate_grid,
    infeasibility,
    solve_local_polytope,
)

SHAPES = [(1, 1), (1, 5), (4, 1), (2, 2), (3, 4), (5, 3)]


def random_scores(grid: Grid, seed: int, scale: float = 1.0, integers: bool = False) -> np.ndarray:
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=grid.size) * scale
    return np.round(scores) if integers else scores


@settings(max_examples=60)
@given(
    shape=st.sampled_from(SHAPES),
    seed=st.integers(0, 10**6),
    scale=st.sampled_from([1e-6, 1.0, 3.0, 1e6]),
    integers=st.booleans(),
)
def test_it_equals_the_linear_programme(shape, seed, scale, integers):
    grid = Grid(*shape)
    scores = random_scores(grid, seed, scale, integers)
    point = GridRoofDuality(grid).compute_extreme_point(scores)
    reference = solve_local_polytope([2] * grid.n_nodes, grid.edges(), scores)
    tolerance = 1e-9 * (1 + np.abs(scores).sum())
    assert point.value == pytest.approx(reference, abs=tolerance)
    assert point.value <= point.upper_bound <= point.value + tolerance
    assert infeasibility([2] * grid.n_nodes, grid.edges(), point.vertex.values) == 0
    assert set(np.unique(GridTables(grid, point.vertex.values).nodes)) <= {0.0, 0.5, 1.0}


@pytest.mark.parametrize("seed", range(10))
def test_attractive_models_give_a_best_labelling(seed):
    grid = Grid(3, 4)
    scores = GridTables(grid, random_scores(grid, seed))
    for edges in (scores.horizontal, scores.vertical):
        edges[..., 0, 0] = edges[..., 0, 1] + edges[..., 1, 0] - edges[..., 1, 1]
        edges[..., 1, 1] += np.random.default_rng(seed).exponential(size=edges.shape[:2])
    oracle = GridRoofDuality(grid)
    point = oracle.compute_extreme_point(scores.flat)
    values, _ = enumerate_grid(grid, scores.flat)
    assert point.value == pytest.approx(values.max(), abs=1e-12)
    assert oracle.n_undecided == 0
    labels = decode_vertex(grid, point.vertex.values)
    assert grid.indicator(labels).flat @ scores.flat == pytest.approx(values.max(), abs=1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_decided_labels_belong_to_a_best_labelling(seed):
    grid = Grid(3, 3)
    scores = random_scores(grid, seed)
    vertex = GridRoofDuality(grid).compute_extreme_point(scores).vertex.values
    values, indicators = enumerate_grid(grid, scores)
    nodes = vertex[: 2 * grid.n_nodes]
    best = indicators[values > values.max() - 1e-9][:, : 2 * grid.n_nodes]
    decided = nodes != 0.5
    assert any((row[decided] == nodes[decided]).all() for row in best)


def test_a_frustrated_square_is_undecided():
    grid = Grid(2, 2)
    scores = grid.zeros()
    for edges in (scores.horizontal, scores.vertical):
        edges[..., 0, 0] = edges[..., 1, 1] = 1.0
    scores.horizontal[0, 0] = [[0.0, 1.0], [1.0, 0.0]]
    oracle = GridRoofDuality(grid)
    point = oracle.compute_extreme_point(scores.flat)
    assert point.value == 4.0
    assert oracle.n_undecided == 4


def test_one_oracle_serves_attractive_and_mixed_scores_in_turn():
    """The work space grows to two copies once and must not remember anything between calls."""
    grid = Grid(4, 5)
    oracle = GridRoofDuality(grid)
    attractive = grid.zeros()
    attractive.nodes[:] = np.random.default_rng(0).normal(size=attractive.nodes.shape)
    attractive.horizontal[..., 0, 0] = 0.7
    mixed = random_scores(grid, 1)
    for scores in (attractive.flat, mixed, attractive.flat, mixed):
        expected = GridRoofDuality(grid).compute_extreme_point(scores)
        point = oracle.compute_extreme_point(scores)
        np.testing.assert_array_equal(point.vertex.values, expected.vertex.values)
        assert point.upper_bound == expected.upper_bound


def test_reused_vertices_are_overwritten_and_others_are_not():
    grid = Grid(3, 3)
    first, second = random_scores(grid, 0), random_scores(grid, 1)
    keeping = GridRoofDuality(grid)
    kept = keeping.compute_extreme_point(first).vertex.values
    copy = kept.copy()
    keeping.compute_extreme_point(second)
    np.testing.assert_array_equal(kept, copy)
    assert not kept.flags.writeable
    reusing = GridRoofDuality(grid, reuse_vertex=True)
    reused = reusing.compute_extreme_point(first).vertex.values
    np.testing.assert_array_equal(reused, copy)
    assert reusing.compute_extreme_point(second).vertex.values is reused


def test_the_bound_holds_for_a_sabotaged_flow():
    """A wrong flow may only widen the certificate, never break it."""
    grid = Grid(4, 4)
    oracle = GridRoofDuality(grid)
    rng = np.random.default_rng(3)
    for seed in range(10):
        scores = random_scores(grid, seed)
        point = oracle.compute_extreme_point(scores)
        oracle._residual += rng.normal(size=oracle._residual.shape)
        bound = dual_bound(
            oracle._field,
            oracle._right,
            oracle._down,
            oracle._copies,
            oracle._residual,
            oracle._spare,
        )
        constant = GridTables(grid, scores).nodes.sum() / 2 + scores[2 * grid.n_nodes :].sum() / 4
        assert constant + bound > point.value


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_it_refuses_numbers_that_are_not_finite(bad):
    grid = Grid(2, 3)
    for place in (0, grid.size - 1):
        scores = np.zeros(grid.size)
        scores[place] = bad
        with pytest.raises(InvalidProblemError, match="finite"):
            GridRoofDuality(grid).compute_extreme_point(scores)


def test_it_refuses_other_shapes_and_labels():
    with pytest.raises(InvalidProblemError, match="expected 24"):
        GridRoofDuality(Grid(2, 2)).compute_extreme_point(np.zeros(5))
    with pytest.raises(InvalidProblemError, match="two labels"):
        GridRoofDuality(Grid(2, 2, 3))
    with pytest.raises(InvalidProblemError, match="height: expected a whole number of at least 1"):
        Grid(0, 3)


def test_two_images_on_two_threads_give_the_answers_of_one():
    grid = Grid(40, 40)
    problems = [random_scores(grid, seed) for seed in range(4)]
    expected = [GridRoofDuality(grid).compute_extreme_point(s).value for s in problems]
    answers = [0.0] * 4

    def work(half: int) -> None:
        oracle = GridRoofDuality(grid)
        for k in range(half, 4, 2):
            answers[k] = oracle.compute_extreme_point(problems[k]).value

    threads = [threading.Thread(target=work, args=(half,)) for half in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == expected


def test_a_call_allocates_no_arrays_when_the_vertex_is_reused():
    grid = Grid(60, 60)
    oracle = GridRoofDuality(grid, reuse_vertex=True)
    scores = random_scores(grid, 0)
    oracle.compute_extreme_point(scores)
    tracemalloc.start()
    try:
        oracle.compute_extreme_point(scores)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 60 * 60 * 8  # less than a single number a pixel


# Numba makes one record for each array that a kernel is handed: what is above that, it allocated.
COUNT_ALLOCATIONS = """
import numpy as np
from numba.core.runtime import rtsys
import engine.oracles.grid_roof_duality as module
from engine.graphs.grid import Grid

handed = 0

def counted(kernel):
    def call(*arguments):
        global handed
        for argument in arguments:
            parts = argument if isinstance(argument, tuple) else (argument,)
            handed += sum(isinstance(part, np.ndarray) for part in parts)
        return kernel(*arguments)
    return call

for name in ("ising_form", "fill_flow_graph", "max_flow_four_arcs", "dual_bound", "read_tables"):
    setattr(module, name, counted(getattr(module, name)))
grid = Grid(12, 12)
oracle = module.GridRoofDuality(grid, reuse_vertex=True)
scores = np.random.default_rng(0).normal(size=grid.size)
oracle.compute_extreme_point(scores)
handed, before = 0, rtsys.get_allocation_stats().alloc
oracle.compute_extreme_point(scores)
print(handed, rtsys.get_allocation_stats().alloc - before)
"""


def test_the_kernels_of_a_call_allocate_nothing():
    done = subprocess.run(
        [sys.executable, "-c", COUNT_ALLOCATIONS],
        env={**os.environ, "NUMBA_NRT_STATS": "1"},
        check=True,
        capture_output=True,
        text=True,
    )
    handed, allocated = done.stdout.split()
    assert int(handed) > 0
    assert allocated == handed
