"""Learning from observed assignments: gradients, curvature, certificate, sandwich."""

import numpy as np
import pytest

from engine.crf.bipartite import BipartiteItems
from engine.inference.matching.exact import compute_bipartite_marginals
from engine.objectives.learning_dual import make_learning_dual
from engine.solvers.block_orders import ShuffledOrder
from engine.solvers.control import Limits
from engine.solvers.frank_wolfe import FrankWolfe
from engine.solvers.theta_ascent import ThetaAscent
from engine.structures.bipartite import BipartiteStructure

RIDGE = 0.5


UNEQUAL = np.linspace(0.4, 1.0, 10)
"""A rho per node, rows before columns."""


def make_problems(
    rho: float | np.ndarray, n_problems: int = 4, n: int = 5
) -> list[BipartiteStructure]:
    rng = np.random.default_rng(0)
    return [
        BipartiteStructure(BipartiteItems(rng.standard_normal((n, n, 3))), rng.permutation(n), rho)
        for _ in range(n_problems)
    ]


def log_likelihood(problems: list[BipartiteStructure], theta: np.ndarray, exact: bool) -> float:
    total = -0.5 * RIDGE * theta @ theta
    for problem in problems:
        if exact:
            scores = problem.items.scores(theta)
            log_partition = compute_bipartite_marginals(scores).log_partition
        else:
            log_partition = problem.maximise(theta, None, 1e-11).log_partition
        total += theta @ problem.observed - log_partition
    return float(total)


@pytest.mark.parametrize("rho", [0.5, 1.0, UNEQUAL])
def test_statistics_are_the_gradient_and_curvature_its_derivative(rho: float | np.ndarray) -> None:
    problem, step = make_problems(rho)[0], 1e-4
    theta = np.array([0.3, -0.5, 0.2])
    here = problem.maximise(theta, None, 1e-12)
    curvature = problem.curvature(theta, here.state)
    for k in range(3):
        moved = [problem.maximise(theta + s * step * np.eye(3)[k], None, 1e-12) for s in (1, -1)]
        slope = (moved[0].log_partition - moved[1].log_partition) / (2 * step)
        assert slope == pytest.approx(here.statistics[k], abs=1e-5)
        bend = (moved[0].statistics - moved[1].statistics) / (2 * step)
        np.testing.assert_allclose(bend, curvature[k], atol=2e-4)


@pytest.mark.parametrize("rho", [0.5, 0.75, 1.0])
def test_the_solve_in_theta_certifies_its_optimum(rho: float) -> None:
    problems = make_problems(rho)
    result = ThetaAscent(problems, RIDGE, Limits(relative_gap=1e-8)).solve()
    assert result.status.is_converged
    value = log_likelihood(problems, result.theta, exact=False)
    assert value <= result.objective + 1e-9
    rng = np.random.default_rng(3)
    for _ in range(20):
        other = result.theta + 0.1 * rng.standard_normal(3)
        assert log_likelihood(problems, other, exact=False) <= result.objective + 1e-9


def test_the_sandwich_of_likelihoods_holds_at_random_parameters_and_at_the_optima() -> None:
    """l_RW <= l <= l_Bethe everywhere, hence also between their maxima."""
    bethe, reweighted = make_problems(1.0), make_problems(0.5)
    rng = np.random.default_rng(1)
    for _ in range(20):
        theta = 2 * rng.standard_normal(3)
        exact = log_likelihood(bethe, theta, exact=True)
        assert log_likelihood(reweighted, theta, exact=False) <= exact + 1e-9
        assert exact <= log_likelihood(bethe, theta, exact=False) + 1e-8
    optima = [
        ThetaAscent(problems, RIDGE, Limits(relative_gap=1e-7)).solve()
        for problems in (reweighted, bethe)
    ]
    at_bethe = log_likelihood(bethe, optima[1].theta, exact=True)
    assert optima[0].lower_bound <= at_bethe <= optima[1].objective + 1e-9


def test_ones_at_every_node_are_the_bethe_problem() -> None:
    one, each = make_problems(1.0)[0], make_problems(np.ones(10))[0]
    theta = np.array([0.3, -0.5, 0.2])
    answers = [problem.maximise(theta, None, 1e-9) for problem in (one, each)]
    assert answers[0].log_partition == answers[1].log_partition
    np.testing.assert_array_equal(answers[0].statistics, answers[1].statistics)


@pytest.mark.parametrize("rho", [0.5, 1.0, UNEQUAL])
def test_frank_wolfe_and_the_solve_in_theta_agree(rho: float | np.ndarray) -> None:
    problems = make_problems(rho)
    direct = ThetaAscent(problems, RIDGE, Limits(relative_gap=1e-8)).solve()
    dual = make_learning_dual([p.observed for p in problems], RIDGE)
    limits = Limits(relative_gap=1e-3, max_iterations=4000)
    walked = FrankWolfe(problems, dual, ShuffledOrder(), limits=limits).solve()
    assert walked.status.is_converged
    assert walked.lower_bound <= direct.objective + 1e-9
    assert walked.objective >= direct.lower_bound - 1e-9
    np.testing.assert_allclose(walked.theta, direct.theta, atol=2e-3)
