"""Removal of labels by a bound, and elimination of what is left, against enumeration."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.core.errors import InfeasibleError, InvalidProblemError, StoppedError
from engine.datasets.uai import read_uai
from engine.graphs.factor_graph import FactorGraph, to_pairwise
from engine.inference.factors.elimination import Elimination
from engine.inference.factors.exact_map import map_by_elimination, possible_labels
from engine.inference.pairwise.map_linear_programme import SmoothedDual, map_by_linear_programme
from tests.graphs.test_factor_graph import third_order
from tests.reference.pairwise_models import as_factor_graph, enumerate_model, random_model
from tests.shared_data import shared_data

# The five of the sixty side-chain problems on which the linear programme leaves a gap.
LOOSE = ("pdb1dk8", "pdb1euo", "pdb1hbk", "pdb1vls", "pdb3kvt")


def solve(graph: FactorGraph, iterations: int = 2000, **options):
    form = to_pairwise(graph)
    dual = SmoothedDual(form.model, 1.0)
    estimate = map_by_linear_programme(form.model, dual=dual, max_iterations=iterations)
    return estimate, map_by_elimination(graph, form, estimate, dual, **options)


@settings(max_examples=60)
@given(
    seed=st.integers(0, 10**6),
    zeros=st.sampled_from([0.0, 0.15]),
    scale=st.sampled_from([0.0, 0.1, 1.0, 10.0, 1e6]),
    iterations=st.sampled_from([5, 2000]),
)
def test_it_finds_a_best_configuration_however_loose_the_bound(seed, zeros, scale, iterations):
    model = random_model(seed, 6, zeros=zeros, scale=scale, density=0.8)
    best = enumerate_model(model)[0].max()
    graph = as_factor_graph(model)
    if best == -np.inf:
        with pytest.raises(InfeasibleError):
            solve(graph, iterations)
        return
    _, found = solve(graph, iterations)
    assert found.value == pytest.approx(best, rel=1e-9, abs=1e-9)
    assert found.upper_bound == found.value == graph.score(found.labels)


@settings(max_examples=60)
@given(seed=st.integers(0, 10**6), updates=st.integers(0, 60))
def test_no_label_of_a_best_labelling_is_ever_removed(seed, updates):
    """Whole scores make ties, so several labellings are best; any dual variables must do."""
    model = random_model(seed, 6, density=0.8)
    scores = np.random.default_rng(seed).integers(-2, 3, model.graph.size).astype(float)
    dual = SmoothedDual(type(model)(model.graph, scores), 2.0)
    dual.run(updates)
    values, labellings = enumerate_model(dual.model)
    kept = possible_labels(dual, values.max())
    for labels in labellings[values == values.max()]:
        assert all(x in kept[i] for i, x in enumerate(labels))


@pytest.mark.parametrize("seed", range(6))
def test_reduced_costs_bound_every_labelling_with_that_label(seed):
    dual = SmoothedDual(random_model(seed, 5, density=0.9, scale=3.0), 4.0)
    dual.run(12)
    values, labellings = enumerate_model(dual.model)
    costs = dual.reduced_costs()
    assert (costs >= 0).all()
    for i, first in enumerate(dual.model.graph.node_start[:-1]):
        for x in range(dual.model.graph.cardinalities[i]):
            best = values[labellings[:, i] == x].max()
            assert best <= dual.upper_bound() - costs[first + x] + 1e-9


def test_factors_of_higher_order_are_restricted_with_their_variables():
    graph = third_order(1, 0.05)
    values = [graph.score(np.array(x)) for x in np.ndindex(*graph.cardinalities)]
    _, found = solve(graph)
    assert found.value == pytest.approx(max(values))
    assert len(found.labels) == graph.n_variables


@pytest.mark.parametrize("name", LOOSE)
def test_proteins_with_a_gap_are_closed(name):
    graph = read_uai(shared_data("protein_sidechain") / f"{name}.uai.gz")
    with pytest.raises(InvalidProblemError, match="too wide"):
        Elimination(graph)
    estimate, found = solve(graph)
    assert not estimate.is_exact
    assert estimate.value <= found.value <= estimate.upper_bound
    assert graph.score(found.labels) == found.value
    assert found.guarantee.startswith("Optimal")


def test_limits_of_cost_and_time_are_kept():
    graph = as_factor_graph(random_model(3, 6, density=1.0))
    with pytest.raises(InvalidProblemError, match="table entries"):
        solve(graph, max_work=1)
    with pytest.raises(StoppedError):
        solve(graph, should_stop=lambda: True)
