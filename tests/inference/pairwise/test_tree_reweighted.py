"""General reweighted messages: bounds, zeros, trees, agreement with the grid kernel."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.core.errors import InfeasibleError, InvalidProblemError
from engine.core.status import Status
from engine.datasets.uai import read_uai
from engine.graphs.factor_graph import Factor, FactorGraph, to_pairwise
from engine.graphs.grid import Grid
from engine.graphs.pairwise import PairwiseGraph, PairwiseModel
from engine.graphs.spanning_trees import uniform_tree_probabilities
from engine.inference.pairwise.grid_tree_reweighted import GridTreeReweighted
from engine.inference.pairwise.tree_reweighted import TreeReweighted
from engine.inference.pairwise.tree_weights import optimise_tree_weights
from tests.reference.pairwise_models import exact_node_marginals, infeasibility, random_model
from tests.shared_data import shared_data


def solver_of(model: PairwiseModel) -> TreeReweighted:
    return TreeReweighted(model.graph, uniform_tree_probabilities(model.graph))


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    zeros=st.sampled_from([0.0, 0.15]),
    scale=st.sampled_from([0.2, 1.0, 6.0]),
    iterations=st.sampled_from([1, 2, 5, 40]),
    damping=st.sampled_from([0.0, 0.3]),
)
def test_the_bound_is_never_on_the_wrong_side(seed, zeros, scale, iterations, damping):
    model = random_model(seed, 5, zeros=zeros, scale=scale)
    log_z, _ = exact_node_marginals(model)
    try:
        answer = solver_of(model).solve(model, max_iterations=iterations, damping=damping)
    except InfeasibleError:
        assert log_z == -np.inf
        return
    assert answer.upper_bound >= log_z - 1e-9 * max(1.0, abs(log_z))


@pytest.mark.parametrize("seed", range(6))
def test_value_and_bound_meet_and_tables_agree(seed):
    model = random_model(seed, 6)
    answer = solver_of(model).solve(model, tolerance=1e-12)
    assert answer.status is Status.CONVERGED
    assert abs(answer.dual_gap) < 1e-8
    cards = [int(c) for c in model.graph.cardinalities]
    assert infeasibility(cards, model.graph.edges, answer.tables) < 1e-10


@pytest.mark.parametrize(("seed", "scale"), [(32, 5.0), (11, 10.0), (26, 30.0)])
def test_messages_go_on_until_the_gap_is_closed(seed, scale):
    """At rest to the tolerance, edge tables of strong models still missed their margins."""
    rng = np.random.default_rng(seed)
    triples = [tuple(map(int, rng.choice(10, 3, replace=False))) for _ in range(9)]
    tables = scale * rng.normal(size=(9, 2, 2, 2))
    graph = FactorGraph(np.full(10, 2), tuple(map(Factor, triples, tables)))
    model = to_pairwise(graph).model
    answer = solver_of(model).solve(model, max_iterations=2000, tolerance=1e-8)
    assert answer.status is Status.CONVERGED
    assert abs(answer.dual_gap) <= 1e-5 * model.graph.n_nodes


@pytest.mark.parametrize("is_loopy", [False, True])
def test_damped_messages_converge_to_the_same_point(is_loopy):
    """Loopy propagation too, where couplings are weak and the fixed point is unique."""
    model = random_model(8, 7, most_labels=4, density=0.7, scale=0.3 if is_loopy else 1.5)
    rho = 1.0 if is_loopy else uniform_tree_probabilities(model.graph)
    one, two = (
        TreeReweighted(model.graph, rho).solve(model, tolerance=1e-12, damping=damping)
        for damping in (0.0, 0.3)
    )
    assert one.is_converged
    assert two.is_converged
    np.testing.assert_allclose(two.tables, one.tables, atol=1e-8)
    assert two.log_partition == pytest.approx(one.log_partition, abs=1e-8)


@pytest.mark.parametrize("zeros", [0.0, 0.2])
def test_trees_are_exact(zeros):
    rng = np.random.default_rng(1)
    edges = np.array([[0, 1], [2, 1], [1, 3], [4, 3]])
    graph = PairwiseGraph(np.array([2, 3, 2, 3, 2]), edges)
    scores = rng.normal(size=graph.size)
    tail = scores[graph.node_start[-1] :]
    tail[rng.random(len(tail)) < zeros] = -np.inf
    model = PairwiseModel(graph, scores)
    log_z, marginals = exact_node_marginals(model)
    answer = TreeReweighted(graph, 1.0).solve(model)
    assert answer.log_partition == pytest.approx(log_z, abs=1e-9)
    assert answer.upper_bound == pytest.approx(log_z, abs=1e-9)
    for i, expected in enumerate(marginals):
        np.testing.assert_allclose(graph.node_table(answer.tables, i), expected, atol=1e-9)


def test_loopy_propagation_has_no_bound():
    model = random_model(3, 5, density=1.0)
    assert TreeReweighted(model.graph, 1.0).solve(model, damping=0.3).upper_bound is None


@pytest.mark.parametrize("tails", [0, 3])
def test_loopy_propagation_on_one_cycle_is_neither_exact_nor_bounded(tails):
    """Both were claimed there: the value, and the bound, were 0.55 nats below log Z."""
    edges = [(0, 1), (1, 2), (0, 2), *((2 + k, 3 + k) for k in range(tails))]
    graph = PairwiseGraph(np.full(3 + tails, 2), np.array(edges))
    coupled = np.log([20.0, 1.0, 1.0, 20.0])
    model = PairwiseModel(
        graph, np.concatenate([np.zeros(2 * graph.n_nodes)] + len(edges) * [coupled])
    )
    log_z, _ = exact_node_marginals(model)
    answer = TreeReweighted(graph, 1.0).solve(model)
    assert answer.is_converged
    assert answer.log_partition < log_z - 0.5
    assert answer.lower_bound is None
    assert answer.upper_bound is None
    for rho in (0.9, 0.7):
        with pytest.raises(InvalidProblemError, match="not probabilities"):
            TreeReweighted(graph, np.where(np.arange(len(edges)) < 3, rho, 1.0))
        answer = TreeReweighted(graph, rho, bounded=False).solve(model, max_iterations=50)
        assert answer.upper_bound is None
    valid = np.where(np.arange(len(edges)) < 3, 2 / 3, 1.0)
    assert TreeReweighted(graph, valid).solve(model).upper_bound >= log_z


@pytest.mark.parametrize("rho", [0.5, 0.4])
def test_it_agrees_with_the_grid_kernel_iteration_by_iteration(rho):
    grid = Grid(4, 5)
    scores = np.random.default_rng(0).normal(size=grid.size)
    graph = grid.to_pairwise()
    for iterations in (1, 3, 500):
        fast = GridTreeReweighted(grid, rho).solve(scores, max_iterations=iterations)
        slow = TreeReweighted(graph, rho).solve(
            PairwiseModel(graph, scores), max_iterations=iterations
        )
        nodes = 2 * grid.n_nodes
        np.testing.assert_allclose(fast.tables[:nodes], slow.tables[:nodes], atol=1e-9)
        assert (
            fast.upper_bound <= slow.upper_bound + 1e-9
        )  # of whole rows and columns, not of edges
    assert fast.upper_bound == pytest.approx(slow.upper_bound, abs=1e-9)


def test_impossible_models_are_named():
    graph = PairwiseGraph(np.array([2, 2]), np.array([[0, 1]]))
    model = PairwiseModel(graph, np.concatenate([np.zeros(4), np.full(4, -np.inf)]))
    with pytest.raises(InfeasibleError, match="probability zero"):
        TreeReweighted(graph, 1.0).solve(model)


@pytest.mark.parametrize("seed", [4, 7, 15, 16, 62, 197])
@pytest.mark.parametrize("limit", [1, 3, 100])
def test_tables_that_cannot_be_made_consistent_prove_no_gap(seed, limit):
    """Their value exceeded the bound, so that the gap was negative and read as met."""
    model = random_model(seed, 6, zeros=0.35, scale=2.0)
    answer = solver_of(model).solve(model, max_iterations=limit)
    cards = [int(c) for c in model.graph.cardinalities]
    error = infeasibility(cards, model.graph.edges, answer.tables)
    assert answer.inconsistency == pytest.approx(error, rel=1e-3, abs=1e-12)
    assert answer.dual_gap >= -1e-9
    assert (answer.dual_gap < np.inf) == (answer.inconsistency <= 1e-9)
    met = solver_of(model).solve(model, max_iterations=limit, accuracy=1e-3)
    assert met.inconsistency <= 1e-9 or not met.is_converged


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("limit", [1, 3, 30])
def test_tables_without_zeros_are_always_consistent(seed, limit):
    """Proportional fitting alone left margins apart where couplings are strong."""
    model = random_model(seed, 6, scale=25.0)
    answer = solver_of(model).solve(model, max_iterations=limit)
    cards = [int(c) for c in model.graph.cardinalities]
    assert infeasibility(cards, model.graph.edges, answer.tables) < 1e-12
    assert answer.inconsistency < 1e-12
    assert -1e-9 <= answer.dual_gap < np.inf


def shifted_ring(labels: int, free: int) -> PairwiseModel:
    """A triangle x1 = x0, x2 = x1, x2 = x0 + 1 over ``labels``; only ``free`` further ones fit."""
    same, shifted = (np.full((labels + free,) * 2, -np.inf) for _ in range(2))
    np.fill_diagonal(same, 0.0)
    shifted[np.arange(labels - 1), np.arange(1, labels)] = 0.0
    shifted[np.arange(labels, labels + free), np.arange(labels, labels + free)] = 0.0
    graph = PairwiseGraph(np.full(3, labels + free), np.array([[0, 1], [1, 2], [0, 2]]))
    nodes = np.zeros(3 * (labels + free))
    return PairwiseModel(
        graph, np.concatenate([nodes, same.ravel(), same.ravel(), shifted.ravel()])
    )


def test_a_label_that_becomes_impossible_is_a_change():
    """Each round rules out one label more, and no finite entry of a message moves."""
    model = shifted_ring(6, 2)
    answer = TreeReweighted(model.graph, 2 / 3).solve(model)
    assert answer.is_converged
    assert answer.upper_bound == pytest.approx(np.log(2))
    for node in range(3):
        np.testing.assert_allclose(
            model.graph.node_table(answer.tables, node), [0] * 6 + [0.5] * 2, atol=1e-12
        )
    impossible = shifted_ring(6, 0)
    with pytest.raises(InfeasibleError, match="probability zero"):
        TreeReweighted(impossible.graph, 2 / 3).solve(impossible)


def test_invalid_weights_and_foreign_models_are_refused():
    model = random_model(0, 5, density=1.0)
    with pytest.raises(InvalidProblemError, match="not probabilities"):
        TreeReweighted(model.graph, 0.95)
    with pytest.raises(InvalidProblemError, match="above 0"):
        TreeReweighted(model.graph, 0.0)
    with pytest.raises(InvalidProblemError, match="another graph"):
        solver_of(model).solve(random_model(1))


def test_a_warm_start_needs_fewer_iterations():
    model = random_model(4, 8, scale=2.0)
    solver = solver_of(model)
    first = solver.solve(model)
    again = solver.solve(model, warm=True)
    assert again.iterations < first.iterations
    np.testing.assert_allclose(again.tables, first.tables, atol=1e-7)


def test_a_warm_start_forgets_what_another_model_ruled_out():
    """Two labels that were impossible there ruled each other out: log Z was 0 and not 10."""
    graph = PairwiseGraph(np.array([2, 2]), np.array([[0, 1]]))
    same = [0.0, -np.inf, -np.inf, 0.0]
    without, likely = (
        PairwiseModel(graph, np.array([0.0, own, 0.0, 0.0, *same])) for own in (-np.inf, 10.0)
    )
    solver = TreeReweighted(graph, 1.0)
    assert solver.solve(without).upper_bound == pytest.approx(0.0, abs=1e-9)
    answer = solver.solve(likely, warm=True)
    assert answer.upper_bound == pytest.approx(np.logaddexp(0.0, 10.0))
    assert answer.lower_bound == pytest.approx(np.logaddexp(0.0, 10.0))


def test_rows_of_the_smallest_numbers_are_scaled_to_numbers():
    """The factor was infinite, and the zeros beside them became NaN."""
    graph = PairwiseGraph(np.array([2, 2]), np.array([[0, 1]]))
    rare = np.log(1e-313)
    model = PairwiseModel(graph, np.array([0.0, 0.0, 0.0, 0.0, rare, rare, 0.0, 0.0]))
    answer = TreeReweighted(graph, 1.0).solve(model, damping=0.99, max_iterations=1)
    assert np.isfinite(answer.log_partition)
    assert np.isfinite(answer.tables).all()


@pytest.mark.parametrize("rho", ["trees", 1.0])
def test_a_single_node_is_its_own_sum(rho):
    graph = PairwiseGraph(np.array([3]), np.zeros((0, 2)))
    model = PairwiseModel(graph, np.log([1.0, 2.0, 5.0]))
    weights = uniform_tree_probabilities(graph) if rho == "trees" else rho
    answer = TreeReweighted(graph, weights).solve(model)
    assert answer.is_converged
    for value in (answer.log_partition, answer.lower_bound, answer.upper_bound):
        assert value == pytest.approx(np.log(8.0))
    np.testing.assert_allclose(answer.tables, [0.125, 0.25, 0.625])


def test_a_caller_can_stop_it():
    model = random_model(5, 8, scale=3.0)
    answer = solver_of(model).solve(model, should_stop=lambda: True)
    assert answer.status is Status.CANCELLED
    assert not answer.is_converged


@pytest.mark.parametrize("seed", range(3))
def test_optimised_weights_tighten_the_bound_and_stay_above(seed):
    model = random_model(seed, 6, density=0.9, scale=2.0)
    log_z, _ = exact_node_marginals(model)
    weights = optimise_tree_weights(model, max_steps=8)
    assert list(weights.bounds) == sorted(weights.bounds, reverse=True)
    assert weights.bounds[-1] >= log_z - 1e-9
    assert weights.bounds[-1] < weights.bounds[0]
    assert weights.rho.sum() == pytest.approx(uniform_tree_probabilities(model.graph).sum())


def test_optimised_edge_probabilities_keep_improving_on_strong_grids():
    """The search once gave up after three steps: a whole tree was too long a step near the end."""
    model = to_pairwise(read_uai(shared_data("uai") / "Grids_14.uai")).model
    weights = optimise_tree_weights(model, max_iterations=100)
    log10_bounds = np.array(weights.bounds) / np.log(10)
    assert (np.diff(log10_bounds) < 0).all()
    assert log10_bounds[0] > 627.7
    assert 497.7635 <= log10_bounds[-1] < 627.1
    # The bound belongs to the edge probabilities, whoever evaluates it.
    answer = TreeReweighted(model.graph, weights.rho).solve(model, max_iterations=500)
    assert answer.upper_bound / np.log(10) == pytest.approx(log10_bounds[-1], abs=0.02)
