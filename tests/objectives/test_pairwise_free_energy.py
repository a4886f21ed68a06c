"""Frank-Wolfe on the free energy agrees with messages; gap and bounds certify."""

import numpy as np
import pytest

from engine.core.errors import InvalidProblemError
from engine.core.status import Status
from engine.entropies.pairwise import graph_entropy, grid_entropy
from engine.graphs.grid import Grid
from engine.graphs.pairwise import PairwiseGraph, PairwiseModel
from engine.graphs.spanning_trees import uniform_tree_probabilities
from engine.inference.pairwise.dual_oracle import DualOracle
from engine.inference.pairwise.frank_wolfe import frank_wolfe_marginals, interior_start
from engine.inference.pairwise.grid_tree_reweighted import GridTreeReweighted
from engine.inference.pairwise.tree_reweighted import TreeReweighted
from engine.objectives.objective import FixedScores
from engine.objectives.pairwise_free_energy import PairwiseFreeEnergy
from engine.oracles.grid_roof_duality import GridRoofDuality
from engine.oracles.local_polytope import LocalPolytopeProgramme
from engine.oracles.roof_duality import RoofDuality
from engine.solvers.iterate import Iterate, find_direction
from engine.solvers.step_rules import LineSearch
from tests.reference.pairwise_models import (
    enumerate_model,
    exact_node_marginals,
    infeasibility,
    random_model,
)


@pytest.mark.parametrize("seed", range(3))
def test_frank_wolfe_and_messages_agree_on_grids(seed):
    grid = Grid(5, 6)
    scores = np.random.default_rng(seed).normal(size=grid.size)
    energy = PairwiseFreeEnergy(scores, grid_entropy(grid, 0.5), GridRoofDuality(grid))
    answer = frank_wolfe_marginals(energy, grid.uniform().flat, max_iterations=3000, tolerance=0.02)
    messages = GridTreeReweighted(grid).solve(scores, tolerance=1e-12)
    assert answer.status is Status.CONVERGED
    assert answer.log_partition <= messages.log_partition + 1e-9 <= answer.upper_bound + 2e-9
    # H is strongly concave in the node tables, so the gap bounds their distance.
    np.testing.assert_allclose(answer.tables, messages.tables, atol=0.06)
    assert infeasibility([2] * 30, grid.edges(), answer.tables) < 1e-9


def test_frank_wolfe_and_messages_agree_for_many_labels():
    model = random_model(1, 5, most_labels=4)
    graph = model.graph
    rho = uniform_tree_probabilities(graph)
    energy = PairwiseFreeEnergy(
        model.scores, graph_entropy(graph, rho), LocalPolytopeProgramme(graph)
    )
    answer = frank_wolfe_marginals(energy, graph.uniform(), max_iterations=300, tolerance=0.02)
    messages = TreeReweighted(graph, rho).solve(model, tolerance=1e-12)
    assert answer.log_partition <= messages.log_partition + 1e-6
    assert messages.log_partition <= answer.upper_bound + 1e-6
    assert answer.log_partition == pytest.approx(messages.log_partition, abs=0.05)


def test_frank_wolfe_and_propagation_agree_on_the_bethe_energy_of_a_tree():
    graph = PairwiseGraph(np.full(5, 2), np.array([[0, 1], [1, 2], [1, 3], [3, 4]]))
    model = PairwiseModel(graph, np.random.default_rng(0).normal(size=graph.size))
    energy = PairwiseFreeEnergy(model.scores, graph_entropy(graph, 1.0), RoofDuality(graph))
    answer = frank_wolfe_marginals(energy, graph.uniform(), max_iterations=5000, tolerance=0.01)
    messages = TreeReweighted(graph, 1.0).solve(model)
    assert answer.is_converged
    assert messages.log_partition == pytest.approx(exact_node_marginals(model)[0])
    assert answer.log_partition <= messages.log_partition + 1e-9 <= answer.upper_bound + 2e-9


def test_a_step_is_never_made_to_an_impossible_point():
    """Its mass on impossible entries counted as 0, and the value could exceed the bound."""
    same, other = np.where(np.eye(2) > 0, 0.0, -np.inf), np.where(np.eye(2) > 0, -np.inf, 0.0)
    graph = PairwiseGraph(np.full(3, 2), np.array([[0, 1], [1, 2], [0, 2]]))
    scores = np.concatenate([[0.0, 0.3], np.zeros(4), *(t.ravel() for t in (same, same, other))])
    model = PairwiseModel(graph, scores)  # no labelling fits, but margins of one half do
    oracle = DualOracle(graph)
    energy = PairwiseFreeEnergy(scores, graph_entropy(graph, 2 / 3), oracle)
    start = interior_start(model).tables
    answer = frank_wolfe_marginals(energy, start, max_iterations=20, tolerance=0.0)
    assert oracle.compute_extreme_point(scores).value == -np.inf
    assert answer.status is Status.STALLED
    assert (answer.tables[np.isneginf(scores)] == 0).all()
    assert answer.log_partition <= answer.upper_bound + 1e-9


@pytest.mark.parametrize("oracle_of", [LocalPolytopeProgramme, DualOracle])
@pytest.mark.parametrize("seed", [0, 3, 4])
def test_models_with_zeros_and_bounded_oracles(seed, oracle_of):
    model = random_model(seed, 5, most_labels=4, zeros=0.15)
    graph = model.graph
    log_z, _ = exact_node_marginals(model)
    assert log_z > -np.inf
    rho = uniform_tree_probabilities(graph)
    energy = PairwiseFreeEnergy(model.scores, graph_entropy(graph, rho), oracle_of(graph))
    start = interior_start(model).tables
    cards = [int(c) for c in graph.cardinalities]
    assert infeasibility(cards, graph.edges, start) < 1e-9
    answer = frank_wolfe_marginals(energy, start, max_iterations=150, tolerance=0.02)
    messages = TreeReweighted(graph, rho).solve(model, tolerance=1e-12)
    assert (answer.tables[np.isneginf(model.scores)] == 0).all()
    assert answer.log_partition <= messages.log_partition + 1e-6
    assert answer.upper_bound >= messages.log_partition - 1e-6
    assert answer.upper_bound >= log_z
    if oracle_of is LocalPolytopeProgramme:
        assert answer.log_partition == pytest.approx(messages.log_partition, abs=0.1)


def test_a_start_outside_the_polytope_proves_no_bound_until_steps_have_brought_it_in():
    """Fitting leaves margins of a search cut short apart; the gap from such a point is no bound."""
    model = random_model(62, 6, zeros=0.35, scale=2.0)
    graph = model.graph
    start = interior_start(model, should_stop=lambda: True)
    cards = [int(c) for c in graph.cardinalities]
    assert start.inconsistency > 1e-4
    assert start.inconsistency == pytest.approx(infeasibility(cards, graph.edges, start.tables))
    entropy = graph_entropy(graph, uniform_tree_probabilities(graph))
    energy = PairwiseFreeEnergy(model.scores, entropy, LocalPolytopeProgramme(graph))
    for limit in (2, 6):  # the last point is only looked at
        answer = frank_wolfe_marginals(
            energy,
            start.tables,
            inconsistency=start.inconsistency,
            max_iterations=limit,
            tolerance=100.0,
        )
        assert answer.upper_bound is None
        assert not answer.is_converged
        assert answer.dual_gap == np.inf
        left = infeasibility(cards, graph.edges, answer.tables)
        assert answer.inconsistency == pytest.approx(left, rel=1e-3)
        assert left < start.inconsistency


def test_a_caller_can_stop_the_search_for_a_start():
    model = random_model(4, 6, zeros=0.35, scale=2.0)
    assert interior_start(model).inconsistency < 1e-9
    assert interior_start(model, should_stop=lambda: True).inconsistency > 1e-9


@pytest.mark.parametrize("seed", range(6))
def test_the_dual_oracle_never_promises_too_little(seed):
    model = random_model(seed, 6, most_labels=4, zeros=0.1 * (seed % 2))
    point = DualOracle(model.graph).compute_extreme_point(model.scores)
    best = enumerate_model(model)[0].max()
    assert point.upper_bound >= best - 1e-9
    assert point.value <= point.upper_bound
    cards = [int(c) for c in model.graph.cardinalities]
    assert infeasibility(cards, model.graph.edges, point.vertex.values) < 1e-9


def test_the_gap_bounds_the_true_error_at_every_step():
    grid = Grid(4, 4)
    scores = np.random.default_rng(7).normal(size=grid.size) * 2
    entropy, start = grid_entropy(grid, 0.5), grid.uniform().flat
    energy = PairwiseFreeEnergy(scores, entropy, GridRoofDuality(grid))
    best = GridTreeReweighted(grid).solve(scores, tolerance=1e-12).log_partition
    structure = FixedScores(scores, GridRoofDuality(grid), entropy, start)
    iterate = Iterate([structure], structure.free_energy)
    iterate.begin()
    for iterate.iteration in range(1, 31):
        before = iterate.points[0].copy()
        directions = iterate.ask([0], iterate.theta)
        assert directions[0].gap >= best - energy.value(before) - 1e-9
        iterate.move([0], directions, LineSearch())
        assert 0 < iterate.step < 1
        assert iterate.value == pytest.approx(-energy.value(iterate.points[0]), abs=1e-9)
        assert energy.value(iterate.points[0]) >= energy.value(before)
        for factor in (0.9, 1.1):  # the step is the best on the segment
            other = before.copy()
            directions[0].vertex.move(other, min(0.999, factor * iterate.step))
            assert energy.value(other) <= energy.value(iterate.points[0]) + 1e-9


@pytest.mark.parametrize("rho", [0.5, 1.0])
def test_the_gap_is_the_derivative_towards_the_vertex(rho):
    grid = Grid(3, 4)
    scores = np.random.default_rng(8).normal(size=grid.size)
    energy = PairwiseFreeEnergy(scores, grid_entropy(grid, rho), GridRoofDuality(grid))
    tables = GridTreeReweighted(grid).solve(0.3 * scores).tables
    structure = FixedScores(scores, energy.oracle, energy.entropy, tables)
    direction = find_direction(structure, np.ones(1), tables)
    gap, step = direction.gap, 1e-6 * (direction.vertex.values - tables)
    difference = energy.value(tables + step) - energy.value(tables - step)
    assert gap > 0.1
    assert difference / 2e-6 == pytest.approx(gap, rel=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_three_oracles_agree_on_binary_grids(seed):
    grid = Grid(3, 4)
    scores = np.random.default_rng(seed).normal(size=grid.size)
    graph = grid.to_pairwise()
    points = [
        oracle.compute_extreme_point(scores)
        for oracle in (GridRoofDuality(grid), RoofDuality(graph), LocalPolytopeProgramme(graph))
    ]
    for point in points:
        assert point.value == pytest.approx(points[0].value, abs=1e-7)
        assert points[0].value - 1e-7 <= point.upper_bound <= points[0].value + 1e-6


def test_scores_must_be_finite_and_fit():
    grid = Grid(2, 2)
    entropy, oracle = grid_entropy(grid, 0.5), GridRoofDuality(grid)
    for bad in (np.nan, np.inf):
        with pytest.raises(InvalidProblemError, match="finite"):
            PairwiseFreeEnergy(np.full(grid.size, bad), entropy, oracle)
    with pytest.raises(InvalidProblemError, match="shape"):
        PairwiseFreeEnergy(np.zeros(3), entropy, oracle)
