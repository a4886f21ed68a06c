"""Orders of star updates, and the gradient that greedy updates and gradient methods follow."""

import numpy as np
import pytest

from benchmarks.papers.meshi2012.dual_coordinates import gradient_of
from benchmarks.papers.meshi2012.schedules import (
    SCHEDULES,
    disagreement,
    update_greedily,
    update_in_order,
)
from engine.inference.pairwise.map_linear_programme import SmoothedDual
from engine.kernels.star_updates import star_update
from tests.reference.pairwise_models import infeasibility, random_model, solve_local_polytope

SERIAL = sorted(SCHEDULES.keys() - {"asynchronous"})


@pytest.mark.parametrize("schedule", SERIAL)
@pytest.mark.parametrize("seed", range(4))
def test_star_updates_reach_the_linear_programme(seed: int, schedule: str) -> None:
    model = random_model(seed, 6, scale=2.0)
    cards = [int(c) for c in model.graph.cardinalities]
    expected = solve_local_polytope(cards, model.graph.edges, model.scores)
    dual = SmoothedDual(model, 200.0)
    sweep = SCHEDULES[schedule](np.random.default_rng(seed))
    for _ in range(667):
        sweep(dual)
    entropy = sum(np.log(c) for c in cards)
    entropy += sum(np.log(cards[i] * cards[j]) for i, j in model.graph.edges)
    assert dual.upper_bound() >= expected - 1e-9
    point = dual.point()
    assert infeasibility(cards, model.graph.edges, point.tables) < 1e-9
    assert point.primal_value <= expected + 1e-9
    # The smoothed optimum lies within H_max / beta of the linear programme's.
    assert abs(point.smoothed - expected) <= entropy / 200.0 + 1e-6
    assert point.upper_bound - point.primal_value <= 2 * entropy / 200.0 + 1e-2


@pytest.mark.parametrize("schedule", SERIAL)
def test_every_sweep_lowers_the_smoothed_dual(schedule: str) -> None:
    dual = SmoothedDual(random_model(9, 7, scale=2.0), 3.0)
    sweep = SCHEDULES[schedule](np.random.default_rng(0))
    values = [dual.smoothed_value()]
    for _ in range(6):
        sweep(dual)
        values.append(dual.smoothed_value())
    assert (np.diff(values) <= 1e-9).all()
    assert values[-1] < values[0]


def test_a_greedy_update_is_at_the_node_of_largest_gradient() -> None:
    model = random_model(9, 7, scale=2.0)
    dual, work = SmoothedDual(model, 3.0), np.empty((2, 3))
    dual.run(3)
    before = dual.messages.copy()
    arguments = (dual.beta, dual.layout, dual.scores, dual.messages, dual.sent)
    sizes = [disagreement(v, *arguments, work) for v in range(model.graph.n_nodes)]
    update_greedily(1, *arguments)
    chosen = dual.messages.copy()
    dual.messages[:] = before
    dual.set_beta(dual.beta)
    update_in_order(np.array([np.argmax(sizes)]), *arguments)
    assert np.array_equal(chosen, dual.messages)


def test_the_gradient_of_the_smoothed_dual_matches_finite_differences() -> None:
    dual = SmoothedDual(random_model(3, 5, density=0.8), 2.0)
    dual.run(3)
    gradient = gradient_of(dual)
    for k in range(0, len(gradient), 3):
        values = []
        for h in (1e-5, -1e-5):
            dual.messages[k] += h
            values.append(dual.smoothed_value())
            dual.messages[k] -= h
        assert gradient[k] == pytest.approx((values[0] - values[1]) / 2e-5, abs=1e-8)


def test_the_star_update_balances_node_and_edge_beliefs() -> None:
    """After the update at a node its belief equals the margin of each of its edges."""
    model = random_model(2, 5, density=1.0)
    dual, work = SmoothedDual(model, 2.0), np.empty((2, 3))
    arguments = (dual.beta, dual.layout, dual.scores, dual.messages, dual.sent)
    node = int(np.argmax(model.graph.cardinalities))
    assert disagreement(node, *arguments, work) > 1e-3
    star_update(node, *arguments, work[0])
    assert disagreement(node, *arguments, work) < 1e-12
