"""Elimination against enumeration."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.core.errors import InfeasibleError, InvalidProblemError, StoppedError
from engine.graphs.factor_graph import Factor, FactorGraph
from engine.graphs.grid import Grid
from engine.graphs.pairwise import PairwiseModel
from engine.inference.factors.elimination import Elimination
from tests.graphs.test_factor_graph import third_order
from tests.reference.pairwise_models import (
    as_factor_graph,
    enumerate_model,
    exact_node_marginals,
    random_model,
)


@settings(max_examples=40)
@given(seed=st.integers(0, 10**6), zeros=st.sampled_from([0.0, 0.2]))
def test_it_is_exact(seed, zeros):
    model = random_model(seed, 6, zeros=zeros)
    solver = Elimination(as_factor_graph(model))
    log_z, marginals = exact_node_marginals(model)
    assert solver.log_partition() == pytest.approx(log_z, abs=1e-9)
    if log_z == -np.inf:
        with pytest.raises(InfeasibleError):
            solver.best()
        with pytest.raises(InfeasibleError):
            solver.marginals()
        return
    values, _ = enumerate_model(model)
    labels, value = solver.best()
    assert value == pytest.approx(values.max(), abs=1e-9)
    assert model.graph.score(model.scores, labels) == pytest.approx(value, abs=1e-9)
    for found, expected in zip(solver.marginals()[1], marginals, strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-12)


def test_factors_of_four_variables_and_constants_count():
    graph = third_order(1, 0.05)
    scores = [graph.score(np.array(x)) for x in np.ndindex(*graph.cardinalities)]
    solver = Elimination(graph)
    assert solver.log_partition() == pytest.approx(np.logaddexp.reduce(scores))
    assert solver.best()[1] == pytest.approx(max(scores))


def test_narrow_grids_are_eliminated_row_by_row():
    grid = Grid(40, 6).to_pairwise()
    model = PairwiseModel(grid, np.zeros(grid.size))
    solver = Elimination(as_factor_graph(model))
    assert solver.width <= 8
    assert solver.log_partition() == pytest.approx(240 * np.log(2))


def test_variables_without_factors_count():
    graph = FactorGraph(np.array([2, 3]), (Factor((0,), np.array([0.0, 1.0])),))
    assert Elimination(graph).log_partition() == pytest.approx(np.log((1 + np.e) * 3))


def test_wide_models_are_refused_with_their_width_and_memory():
    graph = Grid(40, 40).to_pairwise()
    model = as_factor_graph(PairwiseModel(graph, np.zeros(graph.size)))
    refusal = r"too wide for exact inference: .* over \d+ variables .* at least .* GB of memory"
    with pytest.raises(InvalidProblemError, match=refusal):
        Elimination(model)
    solver = Elimination(model_of_grid(12, 12, seed=0), memory_limit=120_000)
    assert np.isfinite(solver.log_partition())
    for read_back in (solver.marginals, solver.best):
        with pytest.raises(InvalidProblemError, match="too wide for exact inference"):
            read_back()


def model_of_grid(height, width, seed, scale=2.0):
    graph = Grid(height, width).to_pairwise()
    scores = np.random.default_rng(seed).normal(size=graph.size) * scale
    return as_factor_graph(PairwiseModel(graph, scores))


@pytest.mark.parametrize("limit", [600_000, 1 << 30])
def test_reading_back_from_checkpoints_changes_nothing(limit):
    """The messages of a 30 x 9 grid take 0.9 MB, so the smaller limit allows only some of them."""
    model = model_of_grid(30, 9, seed=3)
    solver = Elimination(model, memory_limit=limit)
    assert len(solver._segments()) == (1 if limit > 10**6 else 4)
    log_z, marginals = solver.marginals()
    assert log_z == pytest.approx(solver.log_partition(), rel=1e-13)
    whole = Elimination(model)
    for found, expected in zip(marginals, whole.marginals()[1], strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-12)
    labels, value = solver.best()
    assert value == pytest.approx(whole.best()[1], rel=1e-13)
    assert model.score(labels) == value


@pytest.mark.parametrize("seed", range(6))
def test_one_pass_finds_what_is_read_back(monkeypatch, seed):
    """States kept on the way, messages read back, and messages read back from checkpoints."""
    rng = np.random.default_rng(seed)
    cards = rng.integers(1, 5, 60)
    pairs = [(v, v + step) for step in (1, 6) for v in range(60 - step)]
    tables = [rng.normal(size=(cards[i], cards[j])) for i, j in pairs]
    for table in (table for table in tables[::7] if table.size > 3):
        table.flat[rng.integers(table.size)] = -np.inf
    model = FactorGraph(cards, tuple(map(Factor, pairs, tables)))
    labels, value = Elimination(model).best()
    assert model.score(labels) == value > -np.inf
    monkeypatch.setattr("engine.inference.factors.elimination.MOST_STATES", 0)
    whole = Elimination(model)
    assert whole.best()[1] == pytest.approx(value, rel=1e-13)
    widest = 8 * int(whole._alive.max())
    cut = next(
        solver
        for solver in (Elimination(model, memory_limit=k * widest) for k in range(4, 99))
        if _is_read_back(solver)
    )
    assert cut.best()[1] == pytest.approx(value, rel=1e-13)


def _is_read_back(solver):
    """Whether the memory suffices, be it from checkpoints."""
    try:
        solver._segments()
    except InvalidProblemError:
        return False
    return True


def test_a_model_with_no_possible_configuration_is_said_so():
    never = FactorGraph(np.array([2, 2]), (Factor((0, 1), np.full((2, 2), -np.inf)),))
    with pytest.raises(InfeasibleError, match="probability zero"):
        Elimination(never).best()


def test_a_dense_model_is_refused_at_once():
    """Counting the edges that each elimination adds once took minutes on such a graph."""
    pairs = [(i, j) for i in range(300) for j in range(i)]
    factors = tuple(Factor(pair, np.zeros((2, 2))) for pair in pairs)
    with pytest.raises(InvalidProblemError, match="too wide"):
        Elimination(FactorGraph(np.full(300, 2), factors))


def test_it_stops_when_asked():
    solver = Elimination(model_of_grid(4, 4, seed=0))
    for task in (solver.log_partition, solver.best, solver.marginals):
        with pytest.raises(StoppedError, match="stopped"):
            task(should_stop=lambda: True)


@pytest.mark.parametrize("scale", [1e-300, 1e4, 1e300])
def test_extreme_scores_neither_overflow_nor_vanish(scale):
    model = model_of_grid(3, 3, seed=5, scale=scale)
    scores = [model.score(np.array(x)) for x in np.ndindex(*model.cardinalities)]
    solver = Elimination(model)
    assert solver.log_partition() == pytest.approx(np.logaddexp.reduce(scores), rel=1e-12)
    assert solver.best()[1] == pytest.approx(max(scores), rel=1e-12)
    for vector in solver.marginals()[1]:
        assert vector.sum() == pytest.approx(1.0)


@settings(max_examples=20)
@given(seed=st.integers(0, 10**6), zeros=st.sampled_from([0.0, 0.3]))
def test_ties_zeros_and_single_states_on_sparse_graphs(seed, zeros):
    """Disconnected graphs of small whole scores: many optima, some models impossible."""
    rng = np.random.default_rng(seed)
    model = random_model(seed, 6, zeros=zeros, density=0.25)
    whole = np.where(np.isfinite(model.scores), rng.integers(-1, 2, model.graph.size), -np.inf)
    model = PairwiseModel(model.graph, whole)
    log_z, _ = exact_node_marginals(model)
    solver = Elimination(as_factor_graph(model))
    assert solver.log_partition() == pytest.approx(log_z)
    if np.isfinite(log_z):
        assert solver.best()[1] == enumerate_model(model)[0].max()
