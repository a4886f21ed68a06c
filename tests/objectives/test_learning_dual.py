"""The learning problem from both sides: gradients by finite differences, and weak duality."""

import numpy as np
import pytest

from engine.crf.bipartite import BipartiteItems
from engine.objectives.learning_dual import as_semidefinite, make_learning_dual
from engine.solvers.iterate import find_direction
from engine.structures.bipartite import BipartiteStructure

RHOS = [0.0, 0.5, 1.0]


def observation(rho):
    rng = np.random.default_rng(0)
    items, columns = BipartiteItems(rng.normal(size=(5, 5, 3))), rng.permutation(5)
    structure = BipartiteStructure(items, columns, rho)
    return structure, make_learning_dual([structure.observed], 0.7)


@pytest.mark.parametrize("rho", RHOS)
def test_the_gradient_in_theta(rho):
    problem, dual = observation(rho)
    theta = np.array([0.4, -0.3, 0.8])

    def likelihood(theta):
        return dual.primal_value(theta, problem.maximise(theta, None, 1e-12).log_partition)

    gradient = dual.primal_gradient(theta, problem.maximise(theta, None, 1e-12).statistics)
    for k, step in enumerate(1e-4 * np.eye(3)):
        numeric = (likelihood(theta + step) - likelihood(theta - step)) / 2e-4
        assert numeric == pytest.approx(gradient[k], abs=1e-5)


@pytest.mark.parametrize("rho", RHOS)
def test_the_gradient_in_tau_is_the_oracles_gap(rho):
    """d/dg L(tau + g (s - tau)) = -<s - tau, A theta(tau) + grad H(tau)>."""
    structure, dual = observation(rho)

    def value(point):
        return dual.dual_value(structure.statistics(point), structure.entropy.value(point))

    point = structure.start
    theta = dual.parameters(structure.statistics(point))
    answer = find_direction(structure, theta, point)

    def moved(step):
        point = structure.start
        answer.vertex.move(point, step)
        return value(point)

    # Both steps forward: a segment starts at tau. The second order cancels.
    slope = (4 * moved(1e-5) - moved(2e-5) - 3 * value(point)) / 2e-5
    assert answer.gap > 0.1
    assert slope == pytest.approx(-answer.gap, abs=1e-4)


@pytest.mark.parametrize("rho", RHOS)
def test_every_theta_is_below_every_tau(rho):
    structure, dual = observation(rho)
    rng = np.random.default_rng(1)
    point = structure.start
    for _ in range(10):
        answer = find_direction(structure, rng.normal(size=3), point)
        answer.vertex.move(point, 0.3)
        above = dual.dual_value(structure.statistics(point), structure.entropy.value(point))
        theta = rng.normal(size=3)
        assert (
            dual.primal_value(theta, structure.maximise(theta, None, 1e-9).log_partition) <= above
        )


def test_a_hessian_is_made_semidefinite_and_silent_on_overflow():
    indefinite = np.array([[1.0, 2.0], [2.0, 1.0]])  # eigenvalues 3 and -1
    np.testing.assert_allclose(as_semidefinite(indefinite), np.full((2, 2), 1.5), atol=1e-12)
    assert as_semidefinite(np.array([[np.inf, 0.0], [0.0, 1.0]])).tolist() == [[0, 0], [0, 0]]


def test_a_semidefinite_hessian_is_taken_as_it_is_without_its_eigenvalues(monkeypatch):
    """Regression: with 2,760 features and 40 students, eigenvalues took 6 of 10 seconds a step."""
    wide = np.random.default_rng(0).normal(size=(20, 400))
    monkeypatch.setattr(np.linalg, "eigh", lambda matrix: pytest.fail("not needed"))
    np.testing.assert_allclose(as_semidefinite(wide.T @ wide), wide.T @ wide, atol=1e-9)
