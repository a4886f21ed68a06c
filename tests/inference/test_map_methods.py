"""Best labellings: bounds against enumeration and a linear programme, guarantees kept."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.core.errors import InvalidProblemError
from engine.core.status import Status
from engine.graphs.grid import Grid
from engine.graphs.pairwise import PairwiseGraph, PairwiseModel
from engine.inference.pairwise.expansion import map_by_expansion
from engine.inference.pairwise.fusion import FusionMoves
from engine.inference.pairwise.map_linear_programme import SmoothedDual, map_by_linear_programme
from engine.inference.pairwise.roof_dual_map import map_by_roof_duality
from engine.kernels.star_updates import dual_marginals, star_update
from tests.reference.pairwise_models import (
    enumerate_model,
    infeasibility,
    random_model,
    solve_local_polytope,
)

METHODS = (map_by_linear_programme, map_by_expansion)


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    zeros=st.sampled_from([0.0, 0.15]),
    scale=st.sampled_from([0.1, 1.0, 10.0]),
    method=st.sampled_from(METHODS),
)
def test_values_and_bounds_enclose_the_optimum(seed, zeros, scale, method):
    model = random_model(seed, 5, zeros=zeros, scale=scale)
    best = enumerate_model(model)[0].max()
    estimate = method(model)
    slack = 1e-9 * max(1.0, abs(best)) if np.isfinite(best) else 0.0
    assert estimate.value <= best + slack
    assert estimate.upper_bound >= best - slack
    assert model.graph.score(model.scores, estimate.labels) == estimate.value
    if estimate.is_exact:
        assert estimate.value == pytest.approx(best, rel=1e-7, abs=1e-7)


@pytest.mark.parametrize("seed", range(4))
def test_star_updates_reach_the_linear_programme(seed):
    model = random_model(seed, 6, scale=2.0)
    cards = [int(c) for c in model.graph.cardinalities]
    expected = solve_local_polytope(cards, model.graph.edges, model.scores)
    dual = SmoothedDual(model, 200.0)
    dual.run(4000)
    entropy = sum(np.log(c) for c in cards)
    entropy += sum(np.log(cards[i] * cards[j]) for i, j in model.graph.edges)
    assert dual.upper_bound() >= expected - 1e-9
    point = dual.point()
    assert infeasibility(cards, model.graph.edges, point.tables) < 1e-9
    assert point.primal_value <= expected + 1e-9
    # The smoothed optimum lies within H_max / beta of the linear programme's.
    assert abs(point.smoothed - expected) <= entropy / 200.0 + 1e-6
    assert point.upper_bound - point.primal_value <= 2 * entropy / 200.0 + 1e-2


def test_every_star_update_lowers_the_smoothed_dual():
    model = random_model(9, 7, scale=2.0)
    dual = SmoothedDual(model, 3.0)
    values = [dual.smoothed_value()]
    arguments = (dual.beta, dual.layout, dual.scores, dual.messages, dual.sent)
    for node in range(30):
        star_update(node % 7, *arguments, np.empty(3))
        values.append(dual.smoothed_value())
    assert (np.diff(values) <= 1e-9).all()
    assert values[-1] < values[0]


def test_the_star_update_balances_node_and_edge_beliefs():
    """After the update at a node its belief equals the margin of each of its edges."""
    model = random_model(2, 5, density=1.0)
    graph, dual = model.graph, SmoothedDual(model, 2.0)
    arguments = (dual.beta, dual.layout, dual.scores, dual.messages)
    node = int(np.argmax(graph.cardinalities))

    def largest_difference():
        tables = np.zeros(graph.size)
        dual_marginals(*arguments, tables)
        ends = [(e, k) for e, k in np.argwhere(graph.edges == node)]
        margins = [graph.edge_table(tables, e).sum(axis=1 - k) for e, k in ends]
        return max(np.abs(margin - graph.node_table(tables, node)).max() for margin in margins)

    assert largest_difference() > 1e-3
    star_update(node, *arguments, dual.sent, np.empty(3))
    assert largest_difference() < 1e-12


@pytest.mark.parametrize("seed", range(8))
def test_attractive_binary_models_are_solved_by_all_methods(seed):
    model = random_model(seed, 6, binary=True)
    scores = model.scores.copy()
    for table in scores[12:].reshape(-1, 2, 2):
        table[0, 0] = table[0, 1] + table[1, 0] - table[1, 1] + 0.1
    model = PairwiseModel(model.graph, scores)
    best = enumerate_model(model)[0].max()
    for method in (map_by_roof_duality, map_by_expansion, map_by_linear_programme):
        estimate = method(model)
        assert estimate.value == pytest.approx(best, abs=1e-9)
        assert estimate.is_exact
        if method is not map_by_linear_programme:
            assert estimate.guarantee.startswith("Optimal")


@pytest.mark.parametrize("seed", range(10))
def test_an_optimal_guarantee_is_never_wrong(seed):
    model = random_model(seed, 6, binary=True, density=0.4)
    best = enumerate_model(model)[0].max()
    for method in (map_by_roof_duality, map_by_expansion):
        estimate = method(model)
        if estimate.guarantee.startswith("Optimal"):
            assert estimate.value == pytest.approx(best, abs=1e-9)


def test_expansion_of_a_potts_model_improves_every_label():
    rng = np.random.default_rng(0)
    edges = np.array([[i, i + 1] for i in range(9)] + [[i, i + 3] for i in range(7)])
    graph = PairwiseGraph(np.full(10, 4), edges)
    scores = np.concatenate(
        [rng.normal(size=40), *(np.eye(4).ravel() * 0.7 for _ in range(len(edges)))]
    )
    model = PairwiseModel(graph, scores)
    estimate = map_by_expansion(model)
    assert estimate.status is Status.CONVERGED
    assert estimate.guarantee.startswith("No expansion of any label")
    for alpha in range(4):
        for chosen in range(1 << 10):
            labels = np.where((chosen >> np.arange(10)) & 1, alpha, estimate.labels)
            assert graph.score(scores, labels) <= estimate.value + 1e-9


@pytest.mark.parametrize("seed", range(8))
def test_expansion_of_a_metric_model_costs_at_most_twice_the_best(seed):
    """What ``guarantee`` promises, from the worst start: costs are what the scores lack."""
    rng = np.random.default_rng(seed)
    graph = random_graph_of_labels(rng, n_nodes=6, n_labels=3)
    weights = rng.exponential(size=graph.n_edges)
    metric = np.abs(np.subtract.outer(np.arange(3), np.arange(3)))
    costs = np.concatenate([rng.exponential(size=18), *(w * metric.ravel() for w in weights)])
    model = PairwiseModel(graph, -costs)
    values, labellings = enumerate_model(model)
    estimate = map_by_expansion(model, start=labellings[values.argmin()])
    assert "for metric edge costs" in estimate.guarantee
    largest_over_smallest = 2.0  # |x - y| of three labels is 1 or 2
    assert -estimate.value <= 2 * largest_over_smallest * -values.max() + 1e-9


def random_graph_of_labels(rng, n_nodes, n_labels):
    pairs = [(i, j) for i in range(n_nodes) for j in range(i) if rng.random() < 0.7]
    return PairwiseGraph(np.full(n_nodes, n_labels), np.array(pairs))


def test_what_expansion_says_it_guarantees_is_so():
    said = set()
    for seed in range(12):
        rng = np.random.default_rng(seed)
        graph = PairwiseGraph(np.full(7, 3), np.array([(i, j) for i in range(7) for j in range(i)]))
        pulls = np.round(2 * rng.normal(size=graph.n_edges))  # of both signs, and with ties
        scores = [0.1 * rng.normal(size=21), *(pull * np.eye(3).ravel() for pull in pulls)]
        model = PairwiseModel(graph, np.concatenate(scores))
        estimate = map_by_expansion(model)
        moves = [
            graph.score(
                model.scores, np.where((chosen >> np.arange(7)) & 1, alpha, estimate.labels)
            )
            for alpha in range(3)
            for chosen in range(1 << 7)
        ]
        said.add(estimate.guarantee.split(" improves")[0])
        if estimate.guarantee.startswith("No expansion"):
            assert max(moves) <= estimate.value + 1e-9
    assert said == {"No expansion of any label", "No move that persistency decides"}


def test_expansion_that_is_stopped_guarantees_nothing():
    model = random_model(1, 8, density=1.0, scale=3.0)
    values, labellings = enumerate_model(model)
    stopped = map_by_expansion(model, start=labellings[values.argmin()], max_rounds=1)
    assert stopped.status is Status.ITERATION_LIMIT
    assert stopped.guarantee.startswith("None")
    assert stopped.value > values.min()


def test_expansion_is_stopped_between_two_moves():
    """It was asked once a round, and never while the bound was computed."""
    model = random_model(1, 6, density=1.0, scale=3.0)
    values, labellings = enumerate_model(model)
    asked = []

    def should_stop():
        asked.append(True)
        return len(asked) > 1

    stopped = map_by_expansion(model, start=labellings[values.argmin()], should_stop=should_stop)
    assert len(asked) == 3  # before each of two moves, and before a sweep for the bound
    assert stopped.status is Status.CANCELLED
    assert stopped.guarantee.startswith("None")
    assert stopped.upper_bound >= values.max()


@pytest.mark.parametrize("method", METHODS)
def test_a_single_node_has_its_best_label(method):
    graph = PairwiseGraph(np.array([3]), np.zeros((0, 2)))
    estimate = method(PairwiseModel(graph, np.array([0.5, 2.0, 1.0])))
    assert estimate.labels.tolist() == [1]
    assert estimate.value == 2.0
    assert estimate.is_exact


@pytest.mark.parametrize("seed", range(6))
def test_roof_duality_serves_nodes_of_a_single_label(seed):
    model = random_model(seed, 8, most_labels=2, density=0.6)
    assert set(model.graph.cardinalities) == {1, 2}
    best = enumerate_model(model)[0].max()
    estimate = map_by_roof_duality(model)
    assert estimate.value <= best + 1e-12 <= estimate.upper_bound + 2e-12
    if estimate.guarantee.startswith("Optimal"):
        assert estimate.value == pytest.approx(best)


def test_a_cut_is_proven_optimal_beside_many_impossible_pairs():
    """Their penalties, larger than any score, made the allowance for rounding far too large."""
    graph = Grid(60, 60).to_pairwise()
    scores = np.random.default_rng(0).normal(size=graph.size)
    scores[2 * graph.n_nodes :].reshape(-1, 2, 2)[:, 1, 0] = -np.inf
    estimate = map_by_roof_duality(PairwiseModel(graph, scores))
    assert estimate.guarantee.startswith("Optimal")
    assert estimate.is_exact


@pytest.mark.parametrize("seed", range(6))
def test_fusions_never_lose_and_are_best_when_they_say_so(seed):
    model = random_model(seed, 7, most_labels=4, density=0.5)
    graph = model.graph
    rng = np.random.default_rng(seed)
    one, two = rng.integers(0, graph.cardinalities), rng.integers(0, graph.cardinalities)
    fused, best = FusionMoves(graph, model.scores).fuse(one, two)
    choices = [np.where((k >> np.arange(7)) & 1, two, one) for k in range(1 << 7)]
    values = [graph.score(model.scores, labels) for labels in choices]
    value = graph.score(model.scores, fused)
    assert value >= graph.score(model.scores, one) - 1e-12
    if best:
        assert value == pytest.approx(max(values))


def graph_score(model, estimate):
    return model.graph.score(model.scores, estimate.labels)


def test_roof_duality_refuses_more_labels():
    with pytest.raises(InvalidProblemError, match="two labels"):
        map_by_roof_duality(random_model(0, 4, most_labels=3))


def test_an_impossible_model_is_never_called_solved():
    """A score of -inf once met every bound, since its tolerance was infinite too."""
    graph = PairwiseGraph(np.array([2, 2]), np.array([[0, 1]]))
    model = PairwiseModel(graph, np.concatenate([np.zeros(4), np.full(4, -np.inf)]))
    for method in (map_by_linear_programme, map_by_expansion, map_by_roof_duality):
        estimate = method(model)
        assert estimate.value == -np.inf
        assert not estimate.is_exact
        assert "Optimal" not in estimate.guarantee
        if method is not map_by_linear_programme:
            assert estimate.guarantee.startswith("None")
    assert not map_by_linear_programme(model).status.is_converged


def test_limits_never_read_as_converged():
    model = random_model(1, 8, density=1.0, scale=3.0)
    assert map_by_linear_programme(model, should_stop=lambda: True).status in {
        Status.CANCELLED,
        Status.CONVERGED,
    }
    assert map_by_expansion(model, max_rounds=1).status is Status.ITERATION_LIMIT


@pytest.mark.parametrize("scale", [1e-300, 1e-12, 1e8, 1e200])
@pytest.mark.parametrize("seed", range(8))
def test_bounds_hold_at_any_scale(seed, scale):
    """Messages of order 1 / beta once swamped tiny scores: the bound fell below the best score."""
    model = random_model(seed, 4, density=0.6, binary=True)
    model = PairwiseModel(model.graph, model.scores * scale)
    best = enumerate_model(model)[0].max()
    for method in (map_by_linear_programme, map_by_expansion, map_by_roof_duality):
        estimate = method(model)
        assert estimate.value <= best * (1 + 1e-12)
        assert estimate.upper_bound >= best * (1 - 1e-12)
