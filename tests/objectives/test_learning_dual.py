"""The learning problem from both sides: gradients by finite differences, and weak duality."""

import numpy as np
import pytest

from engine.crf.bipartite import BipartiteItems
from engine.learning.bipartite_problem import BipartiteProblem
from engine.objectives.learning_dual import make_learning_dual
from engine.objectives.matching_block import make_bipartite_block

RHOS = [0.0, 0.5, 1.0]


def observation(rho):
    rng = np.random.default_rng(0)
    items, columns = BipartiteItems(rng.normal(size=(5, 5, 3))), rng.permutation(5)
    block = make_bipartite_block(items, columns, rho)
    return BipartiteProblem(items, columns, rho), block, make_learning_dual([block.observed], 0.7)


@pytest.mark.parametrize("rho", RHOS)
def test_the_gradient_in_theta(rho):
    problem, _, dual = observation(rho)
    theta = np.array([0.4, -0.3, 0.8])

    def likelihood(theta):
        return dual.primal_value(theta, problem.solve(theta, None, 1e-12).log_partition)

    gradient = dual.primal_gradient(theta, problem.solve(theta, None, 1e-12).statistics)
    for k, step in enumerate(1e-4 * np.eye(3)):
        numeric = (likelihood(theta + step) - likelihood(theta - step)) / 2e-4
        assert numeric == pytest.approx(gradient[k], abs=1e-5)


@pytest.mark.parametrize("rho", RHOS)
def test_the_gradient_in_tau_is_the_oracles_gap(rho):
    """d/dg L(tau + g (s - tau)) = -<s - tau, A theta(tau) + grad H(tau)>."""
    _, block, dual = observation(rho)

    def value(point):
        return dual.dual_value(block.statistics(point), block.entropy(point))

    point = block.initial_point()
    theta = dual.parameters(block.statistics(point))
    answer = block.compute_extreme_direction(theta, point)

    def moved(step):
        return value(block.segment(block.initial_point(), answer.vertex).point(step))

    # Both steps forward: a segment starts at tau. The second order cancels.
    slope = (4 * moved(1e-5) - moved(2e-5) - 3 * value(point)) / 2e-5
    assert answer.gap > 0.1
    assert slope == pytest.approx(-answer.gap, abs=1e-4)


@pytest.mark.parametrize("rho", RHOS)
def test_every_theta_is_below_every_tau(rho):
    problem, block, dual = observation(rho)
    rng = np.random.default_rng(1)
    point = block.initial_point()
    for _ in range(10):
        answer = block.compute_extreme_direction(rng.normal(size=3), point)
        point = block.segment(point, answer.vertex).point(0.3)
        above = dual.dual_value(block.statistics(point), block.entropy(point))
        theta = rng.normal(size=3)
        assert dual.primal_value(theta, problem.solve(theta, None, 1e-9).log_partition) <= above
