"""Mean field: always a lower bound, zeros included."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.core.status import Status
from engine.graphs.factor_graph import Factor, FactorGraph
from engine.graphs.pairwise import PairwiseGraph, PairwiseModel
from engine.inference.factors.mean_field import mean_field
from tests.reference.pairwise_models import (
    enumerate_model,
    exact_node_marginals,
    random_model,
)


def as_factors(model: PairwiseModel) -> FactorGraph:
    """The same model with a factor for each node and each edge."""
    graph, scores = model.graph, model.scores
    nodes = [Factor((i,), graph.node_table(scores, i)) for i in range(graph.n_nodes)]
    pairs = [
        Factor(tuple(map(int, pair)), graph.edge_table(scores, e))
        for e, pair in enumerate(graph.edges)
    ]
    return FactorGraph(graph.cardinalities, (*nodes, *pairs))


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    zeros=st.sampled_from([0.0, 0.2]),
    scale=st.sampled_from([0.2, 1.0, 6.0]),
    iterations=st.sampled_from([1, 3, 200]),
)
def test_it_is_a_lower_bound_at_every_iteration(seed, zeros, scale, iterations):
    model = random_model(seed, 5, zeros=zeros, scale=scale)
    log_z, _ = exact_node_marginals(model)
    answer = mean_field(as_factors(model), max_iterations=iterations)
    assert answer.lower_bound <= (log_z + 1e-9 * (1.0 + abs(log_z)) if log_z > -np.inf else log_z)
    assert all(own.sum() == pytest.approx(1.0) and own.min() >= 0.0 for own in answer.marginals)


def test_independent_nodes_are_exact():
    graph = PairwiseGraph(np.array([2, 3]), np.zeros((0, 2), dtype=np.int64))
    model = PairwiseModel(graph, np.array([0.3, -1.0, 2.0, 0.0, 1.0]))
    log_z, _ = exact_node_marginals(model)
    assert mean_field(as_factors(model)).lower_bound == pytest.approx(log_z, abs=1e-12)


def test_a_possible_start_keeps_the_bound_finite():
    rescued = 0
    for seed in range(40):
        model = random_model(seed, 6, zeros=0.2)
        values, labellings = enumerate_model(model)
        if values.max() == -np.inf:
            continue
        answer = mean_field(as_factors(model), start=labellings[values.argmax()])
        assert answer.lower_bound >= values.max() - 1e-9
        rescued += mean_field(as_factors(model)).lower_bound == -np.inf
    assert rescued > 0  # the start mattered for some


def test_it_converges_and_says_so():
    model = random_model(0, 6)
    assert mean_field(as_factors(model)).status.is_converged
    assert not mean_field(as_factors(model), max_iterations=1).status.is_converged


@pytest.mark.parametrize("zeros", [0.0, 0.2])
def test_it_stops_after_the_sweep_in_which_it_is_asked_to(zeros):
    model = random_model(0, 6, zeros=zeros)
    values, labellings = enumerate_model(model)
    start = labellings[values.argmax()]
    answer = mean_field(as_factors(model), start=start, should_stop=lambda: True)
    assert answer.status is Status.CANCELLED
    assert answer.iterations <= 2  # at most one on the softened model, and one on the model itself
    log_z, _ = exact_node_marginals(model)
    assert values.max() - 1e-9 <= answer.lower_bound <= log_z + 1e-9
