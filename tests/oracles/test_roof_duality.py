"""Roof duality on arbitrary graphs against a generic linear programme and enumeration."""

import itertools
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.core.errors import InvalidProblemError
from engine.graphs.grid import Grid
from engine.graphs.pairwise import PairwiseGraph, PairwiseModel
from engine.inference.pairwise.map_linear_programme import SmoothedDual
from engine.kernels.ising_sparse import flow_bound
from engine.kernels.maxflow_sparse import max_flow_sparse
from engine.oracles.grid_roof_duality import GridRoofDuality
from engine.oracles.local_polytope import LocalPolytopeProgramme
from engine.oracles.roof_duality import RoofDuality
from tests.reference.pairwise_models import (
    enumerate_model,
    infeasibility,
    random_model,
    solve_local_polytope,
)


def test_a_bound_takes_the_larger_of_two_entries_that_round_alike():
    """Their rests decide: compared as rounded sums, the bound came out below the optimum."""
    big = float(2**53 - 2**51 + 1)
    table = [big, big - 3, big - 4, big + 2]
    scores = np.array([0.0, 0.0, 0.0, 0.0, -big, -big, *table])  # the third node stands alone
    room = np.empty((2, 3))
    edges, coupling = np.array([[0, 1]]), np.array([0.25 * 9.0])
    bound = flow_bound(edges, scores, coupling, np.zeros(1), room)
    assert bound >= 2.0  # both labels 1: (big + 2) - big


@settings(max_examples=60)
@given(
    seed=st.integers(0, 10**6),
    scale=st.sampled_from([1e-6, 1.0, 1e5]),
    integers=st.booleans(),
    density=st.sampled_from([0.3, 1.0]),
)
def test_it_equals_the_linear_programme(seed, scale, integers, density):
    model = random_model(seed, 6, binary=True, scale=scale, density=density)
    scores = np.round(model.scores) if integers else model.scores
    point = RoofDuality(model.graph).compute_extreme_point(scores)
    reference = solve_local_polytope([2] * 6, model.graph.edges, scores)
    tolerance = 1e-9 * (1 + np.abs(scores).sum())
    assert point.value == pytest.approx(reference, abs=tolerance)
    assert point.value <= point.upper_bound <= point.value + tolerance
    assert infeasibility([2] * 6, model.graph.edges, point.vertex.values) == 0
    best = enumerate_model(model)[0].max()
    if not integers:
        assert point.upper_bound >= best


@pytest.mark.parametrize("seed", range(6))
def test_the_generic_programme_bounds_and_attains(seed):
    model = random_model(seed, 5, most_labels=4)
    cards = [int(c) for c in model.graph.cardinalities]
    point = LocalPolytopeProgramme(model.graph).compute_extreme_point(model.scores)
    reference = solve_local_polytope(cards, model.graph.edges, model.scores)
    assert point.value == pytest.approx(reference, abs=1e-7)
    assert reference - 1e-9 <= point.upper_bound <= reference + 1e-6
    assert infeasibility(cards, model.graph.edges, point.vertex.values) < 1e-9


@pytest.mark.parametrize("seed", range(20, 30))
def test_bounds_hold_where_large_numbers_cancel(seed):
    """Exactly, in fractions: the grid's allowance counted only what the cancelling had left."""
    rng = np.random.default_rng(seed)
    grid = Grid(2, 3)
    graph = grid.to_pairwise()
    scores = rng.normal(size=grid.size)
    tables = scores[2 * graph.n_nodes :].reshape(-1, 4)
    tables += 1e9 * rng.choice([-1, 1], size=(len(tables), 1)) * rng.random((len(tables), 1))
    best = max(
        sum(Fraction(float(entry)) for entry in scores[graph.indicator(np.array(labels)) == 1.0])
        for labels in itertools.product(range(2), repeat=6)
    )
    dual = SmoothedDual(PairwiseModel(graph, scores), np.inf)
    dual.run(300)
    assert Fraction(dual.upper_bound()) >= best
    for oracle in (GridRoofDuality(grid), RoofDuality(graph), LocalPolytopeProgramme(graph)):
        assert Fraction(oracle.compute_extreme_point(scores).upper_bound) >= best


@pytest.mark.parametrize(("repelling", "copies"), [(0, 1), (1, 2)])
def test_only_a_repelling_edge_doubles_the_graph(monkeypatch, repelling, copies):
    sizes = []

    def record(start, head, mate, residual, excess, level, work):
        sizes.append(len(excess))
        return max_flow_sparse(start, head, mate, residual, excess, level, work)

    monkeypatch.setattr("engine.oracles.roof_duality.max_flow_sparse", record)
    graph = PairwiseGraph(np.full(4, 2), np.array([[0, 1], [1, 2], [2, 3], [3, 0]]))
    scores = np.concatenate([np.arange(8.0), np.tile(np.eye(2).ravel(), 4)])
    scores[8 : 8 + 4 * repelling] *= -1.0
    RoofDuality(graph).compute_extreme_point(scores)
    assert sizes == [4 * copies]


def test_relabelling_nodes_changes_nothing():
    model = random_model(5, 6, binary=True)
    point = RoofDuality(model.graph).compute_extreme_point(model.scores)
    flipped = model.scores.copy()
    flipped[:12] = model.scores[:12].reshape(6, 2)[:, ::-1].ravel()
    flipped[12:] = model.scores[12:].reshape(-1, 2, 2)[:, ::-1, ::-1].ravel()
    other = RoofDuality(model.graph).compute_extreme_point(flipped)
    assert other.value == pytest.approx(point.value, abs=1e-12)


def test_more_labels_are_refused():
    with pytest.raises(InvalidProblemError, match="two labels"):
        RoofDuality(random_model(0, 4, most_labels=3).graph)


def test_calls_in_the_same_room_do_not_influence_each_other():
    """One copy or two, in any order: the room that is allocated once holds nothing over."""
    model = random_model(7, 9, binary=True, density=0.7)
    attractive = model.scores.copy()
    attractive[18:].reshape(-1, 2, 2)[:] += 5.0 * np.eye(2)
    oracle = RoofDuality(model.graph)
    for scores in (attractive, model.scores, attractive, -model.scores, model.scores):
        found = oracle.compute_extreme_point(scores)
        alone = RoofDuality(model.graph).compute_extreme_point(scores)
        np.testing.assert_array_equal(found.vertex.values, alone.vertex.values)
        assert found.upper_bound == alone.upper_bound


def test_a_call_allocates_no_array_when_the_vertex_is_reused():
    n = 4000
    ring = np.array([(i, (i + k) % n) for k in (1, 7) for i in range(n)])
    graph = PairwiseGraph(np.full(n, 2), ring)
    rng = np.random.default_rng(0)
    mixed = rng.normal(size=graph.size)
    attractive = mixed.copy()
    attractive[2 * n :].reshape(-1, 2, 2)[:] += 9.0 * np.eye(2)
    oracle = RoofDuality(graph, reuse_vertex=True)
    room = oracle.compute_extreme_point(mixed).vertex.values
    for scores in (mixed, attractive):
        kept = RoofDuality(graph).compute_extreme_point(scores)
        tracemalloc.start()
        try:
            point = oracle.compute_extreme_point(scores)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < n  # less than a single byte a node
        assert point.vertex.values is room
        np.testing.assert_array_equal(room, kept.vertex.values)
        assert point.upper_bound == kept.upper_bound
        assert not kept.vertex.values.flags.writeable


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_one_bad_entry_anywhere_is_refused(bad):
    graph = random_model(0, 4, binary=True, density=1.0).graph
    for place in (0, 2 * graph.n_nodes, graph.size - 1):
        scores = np.zeros(graph.size)
        scores[place] = bad
        with pytest.raises(InvalidProblemError, match="finite"):
            RoofDuality(graph).compute_extreme_point(scores)
    with pytest.raises(InvalidProblemError, match="shape"):
        RoofDuality(graph).compute_extreme_point(np.zeros(graph.size + 1))


@pytest.mark.parametrize(("n_nodes", "density"), [(1, 0.0), (5, 0.0), (8, 0.1)])
def test_single_nodes_and_disconnected_graphs(n_nodes, density):
    model = random_model(3, n_nodes, binary=True, density=density)
    point = RoofDuality(model.graph).compute_extreme_point(model.scores)
    assert point.value == pytest.approx(enumerate_model(model)[0].max(), abs=1e-12)
    level = RoofDuality(model.graph).compute_extreme_point(np.zeros(model.graph.size))
    assert level.value == level.upper_bound == 0.0
