"""Elimination against enumeration."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.core.errors import InfeasibleError, InvalidProblemError
from engine.graphs.factor_graph import Factor, FactorGraph
from engine.graphs.grid import Grid
from engine.graphs.pairwise import PairwiseModel
from engine.inference.elimination import Elimination
from tests.graphs.test_factor_graph import third_order
from tests.reference.pairwise_models import (
    as_factor_graph,
    enumerate_model,
    exact_node_marginals,
    random_model,
)


@settings(max_examples=40, deadline=None)
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


def test_wide_models_are_refused_in_a_sentence():
    graph = Grid(30, 30).to_pairwise()
    with pytest.raises(InvalidProblemError, match="too wide for exact inference"):
        Elimination(as_factor_graph(PairwiseModel(graph, np.zeros(graph.size))))
