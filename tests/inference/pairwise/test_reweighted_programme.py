"""Interior points beside sweeps: one optimum, strong models, zeros, and what is too large."""

import numpy as np
import pytest

from benchmarks.hunts.reweighted_gaps import frustrated_grid, parity_checks
from engine.core.status import Status
from engine.graphs.factor_graph import FactorGraph, to_pairwise
from engine.graphs.spanning_trees import tree_probabilities
from engine.inference.factors.elimination import Elimination
from engine.inference.factors.log_partition import log_partition
from engine.inference.pairwise.reweighted_programme import interior_programme
from engine.inference.pairwise.tree_reweighted import TreeReweighted
from engine.inference.pairwise.zeros import possible_scores
from tests.reference.factor_models import smokers, sparse_factors
from tests.reference.pairwise_models import infeasibility, random_model

SWEEPS = "engine.inference.pairwise.tree_reweighted.SWEEPS_FIRST"


def solver_of(model):
    return TreeReweighted(model.graph, tree_probabilities(model.graph), from_trees=True)


def strong_models() -> list[FactorGraph]:
    triples = [sparse_factors(12, 1.5, s, seed) for seed, s in enumerate((20.0, 50.0, 100.0, 1e3))]
    checks = [parity_checks(12, 10.0, 0), parity_checks(12, 10.0, 1), parity_checks(40, 30.0, 2)]
    return [*triples, *checks, frustrated_grid(4, 100.0, 0), smokers(4, 30.0)]


@pytest.mark.parametrize("seed", range(8))
def test_interior_points_and_sweeps_have_one_optimum(seed, monkeypatch):
    model = random_model(seed, 6, zeros=0.1 * (seed % 2), scale=1.5)
    swept = solver_of(model).solve(model, tolerance=1e-12)
    monkeypatch.setattr(SWEEPS, 0)
    inside = solver_of(model).solve(model)
    assert inside.is_converged
    assert inside.iterations < 30
    assert inside.log_partition == pytest.approx(swept.log_partition, abs=1e-7)
    assert inside.upper_bound == pytest.approx(swept.upper_bound, abs=1e-6)
    np.testing.assert_allclose(inside.tables, swept.tables, atol=1e-5)


@pytest.mark.parametrize("graph", strong_models())
def test_strong_models_converge(graph):
    """After 2,000 sweeps gaps of .001 to 10 nats were left, and tables that did not agree."""
    answer = log_partition(graph)
    assert answer.is_converged
    assert answer.iterations < 300
    log_z = Elimination(graph).log_partition()
    assert answer.upper_bound >= log_z - 1e-12 * abs(log_z)
    form = to_pairwise(graph)
    found = solver_of(form.model).solve(form.model, max_iterations=300)
    cards = [int(c) for c in form.model.graph.cardinalities]
    assert infeasibility(cards, form.model.graph.edges, found.tables) < 1e-9
    assert -1e-9 * abs(log_z) <= found.dual_gap <= 1e-5 * form.model.graph.n_nodes


@pytest.mark.parametrize("kind", ["with a core", "in one piece"])
@pytest.mark.parametrize("graph", strong_models()[2::2])
def test_every_way_to_factorise_ends_at_one_gap(graph, kind, monkeypatch):
    """Large graphs without structure have a core; equations in one piece are factorised whole."""
    if kind == "with a core":
        monkeypatch.setattr("engine.solvers.core_factors.LISTS_ALONE", 0.0)
        monkeypatch.setattr("engine.solvers.core_factors.BESIDE", 0.0)
    else:
        monkeypatch.setattr("engine.solvers.entropy_programme.plan_saddle", lambda *_: None)
    form = to_pairwise(graph)
    found = solver_of(form.model).solve(form.model, max_iterations=300)
    assert found.is_converged
    assert found.dual_gap <= 1e-5 * form.model.graph.n_nodes


def test_messages_are_bounds_wherever_a_step_stops():
    """From the first on, and finite and centred."""
    graph = sparse_factors(10, 1.5, 30.0, seed=4)
    form = to_pairwise(graph)
    solver = solver_of(form.model)
    programme = interior_programme(form.model, solver._shares)
    log_z = Elimination(graph).log_partition()
    starts = form.model.graph.message_start[:-1]
    for _ in range(12):
        messages = programme.messages()
        assert np.isfinite(messages).all()
        ends = np.maximum.reduceat(messages, starts) + np.minimum.reduceat(messages, starts)
        np.testing.assert_allclose(ends, 0.0, atol=1e-9 * np.abs(messages).max())
        solver._messages[:] = messages
        assert solver._upper_bound(form.model) >= log_z
        assert programme.solver.step()


def test_labels_that_no_point_of_the_polytope_has_do_no_harm():
    """Zeros that no propagation finds leave the polytope without an inside."""
    model = possible_scores(random_model(62, 6, zeros=0.35, scale=2.0))
    answer = solver_of(model).solve(model)
    assert answer.is_converged
    assert answer.inconsistency < 1e-9


def test_models_that_are_too_large_are_swept_on(monkeypatch):
    monkeypatch.setattr("engine.inference.pairwise.reweighted_programme.MOST_WORK", 10)
    model = to_pairwise(sparse_factors(20, 1.5, 50.0, 1)).model
    answer = solver_of(model).solve(model, max_iterations=230)
    assert answer.status is Status.ITERATION_LIMIT
    assert answer.iterations == 230


@pytest.mark.parametrize("steps", [0, 1, 4])
def test_a_caller_can_stop_between_steps(steps, monkeypatch):
    monkeypatch.setattr(SWEEPS, 1)
    asked = []
    graph = sparse_factors(12, 1.5, 50.0, 1)
    model = to_pairwise(graph).model

    def should_stop() -> bool:
        asked.append(0)
        return len(asked) > 1 + steps

    answer = solver_of(model).solve(model, should_stop=should_stop)
    assert answer.status is Status.CANCELLED
    assert answer.upper_bound >= Elimination(graph).log_partition()
    limited = solver_of(model).solve(model, max_iterations=1 + steps)
    assert limited.iterations == 1 + steps
    assert limited.status is Status.ITERATION_LIMIT
