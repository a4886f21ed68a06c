"""All solvers of the learning problem share one optimum, and no certificate is ever too good."""

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from engine.core.checkpoint import FileCheckpoint
from engine.core.errors import InvalidProblemError
from engine.core.status import Status
from engine.crf.survey_features import make_survey_features
from engine.learning.survey_problem import SurveyProblem
from engine.objectives.matching_block import make_survey_block
from engine.solvers.block_orders import CyclicOrder, RandomOrder, ShuffledOrder
from engine.solvers.control import Limits, Watch
from engine.solvers.frank_wolfe import BlockCoordinateFrankWolfe, FrankWolfe
from engine.solvers.pairwise_frank_wolfe import PairwiseFrankWolfe
from engine.solvers.step_rules import LineProblem, LineSearch, OpenLoop
from engine.solvers.theta_ascent import ThetaAscent
from engine.solvers.walk import Walk
from tests.learning.roommate_cohorts import random_cohorts
from tests.reference import perfect_matchings as reference

RIDGE = 4.0


def make_problems(n, rho, count=2):
    cohorts = random_cohorts(n, count)
    features = make_survey_features([survey for survey, _ in cohorts])
    return [SurveyProblem(s, p, features, rho) for s, p in cohorts]


def make_blocks(n, rho, count=2):
    cohorts = random_cohorts(n, count)
    features = make_survey_features([survey for survey, _ in cohorts])
    return [make_survey_block(s, p, features, rho) for s, p in cohorts]


def solve_in_theta(n, rho, gap=1e-9, count=2):
    return ThetaAscent(make_problems(n, rho, count), RIDGE, Limits(gap)).solve()


def walkers(blocks, limits):
    rng = np.random.default_rng(0)
    return {
        "batch": FrankWolfe(blocks, RIDGE, limits=limits),
        "open loop": FrankWolfe(blocks, RIDGE, OpenLoop(), limits=limits),
        "block": BlockCoordinateFrankWolfe(blocks, RIDGE, rng, limits=limits),
        "block open loop": BlockCoordinateFrankWolfe(
            blocks, RIDGE, rng, OpenLoop(), RandomOrder(), limits=limits
        ),
        "pairwise": PairwiseFrankWolfe(blocks, RIDGE, limits=limits),
    }


@pytest.mark.parametrize("rho", [1.0, 0.5])
def test_the_solve_in_theta_agrees_with_enumeration(rho):
    n = 6
    problem = make_problems(n, rho, count=1)[0]
    result = ThetaAscent([problem], RIDGE, Limits(1e-9)).solve()
    one_hot = problem.features.one_hot(problem.survey)
    weights = np.full(n, rho)

    def dual(tau):
        residual = problem.observed - problem.features.statistics(one_hot.T @ tau @ one_hot)
        return residual @ residual / (2 * RIDGE) - reference.entropy(tau, weights)

    optimum = reference.minimise_over_hull(dual, n, rng=np.random.default_rng(0))
    assert result.is_certified
    assert result.objective == pytest.approx(optimum, abs=1e-6)
    assert result.lower_bound <= optimum + 1e-9


@pytest.mark.parametrize("rho", [1.0, 0.5])
@pytest.mark.parametrize("name", ["batch", "open loop", "block", "block open loop", "pairwise"])
def test_every_walker_agrees_with_the_solve_in_theta(name, rho):
    best = solve_in_theta(10, rho)
    assert best.is_certified
    result = walkers(make_blocks(10, rho), Limits(5e-3, max_iterations=4000))[name].solve()
    assert result.lower_bound <= best.objective + 1e-9
    assert result.objective >= best.lower_bound - 1e-9
    assert result.objective - best.objective <= result.duality_gap + 1e-9
    assert result.objective == pytest.approx(best.objective, rel=5e-3)
    assert np.abs(result.theta - best.theta).max() < 0.1 * np.abs(best.theta).max() + 0.01


@pytest.mark.parametrize("name", ["batch", "block", "pairwise"])
def test_no_gap_is_ever_below_the_true_suboptimality(name):
    best = solve_in_theta(10, 1.0)
    for steps in (2, 5, 20):
        limits = Limits(1e-12, max_iterations=steps)
        result = walkers(make_blocks(10, 1.0), limits)[name].solve()
        assert result.status is Status.ITERATION_LIMIT
        assert result.objective - best.lower_bound >= -1e-9
        assert result.objective - best.objective <= result.duality_gap + 1e-9
        bounds = [p for p in result.trajectory if p.lower_bound is not None]
        assert all(p.lower_bound <= best.objective + 1e-9 <= p.objective + 2e-9 for p in bounds)


def test_the_lower_bound_is_the_likelihood_of_the_returned_weights():
    problems = make_problems(10, 1.0)
    result = ThetaAscent(problems, RIDGE, Limits(1e-6)).solve()
    solved = [p.solve(np.array(result.theta), None, 1e-9) for p in problems]
    observed = sum(p.observed for p in problems)
    likelihood = (
        result.theta @ observed
        - sum(s.log_partition for s in solved)
        - RIDGE / 2 * result.theta @ result.theta
    )
    assert result.lower_bound == pytest.approx(likelihood, abs=1e-5)


def test_the_gradient_of_the_likelihood_agrees_with_finite_differences():
    problem = make_problems(12, 1.0, count=1)[0]
    rng = np.random.default_rng(0)
    theta = 0.1 * rng.normal(size=len(problem.observed))
    gradient = problem.solve(theta, None, 1e-11).statistics
    for _ in range(4):
        direction = rng.normal(size=len(theta))
        up = problem.solve(theta + 1e-4 * direction, None, 1e-11).log_partition
        down = problem.solve(theta - 1e-4 * direction, None, 1e-11).log_partition
        assert (up - down) / 2e-4 == pytest.approx(gradient @ direction, abs=1e-5)


def test_averaged_iterates_come_close_too():
    best = solve_in_theta(10, 1.0)
    limits = Limits(1e-12, max_iterations=400)
    result = FrankWolfe(
        make_blocks(10, 1.0), RIDGE, OpenLoop(), averaged=True, limits=limits
    ).solve()
    assert np.abs(result.theta - best.theta).max() < 0.1 * np.abs(best.theta).max()


def test_the_average_weighs_each_step_by_its_number(monkeypatch):
    """theta_bar_t = (1 - r) theta_bar_{t-1} + r theta_t, r = 2 / (t + 2) for t = 0, 1, ..."""
    visited = []
    ask = Walk.ask

    def noted(walk, block, theta):
        visited.append(theta)
        return ask(walk, block, theta)

    monkeypatch.setattr(Walk, "ask", noted)
    limits, rng = Limits(1e-12, max_iterations=6), np.random.default_rng(0)
    batch = FrankWolfe(make_blocks(10, 1.0), RIDGE, OpenLoop(), averaged=True, limits=limits)
    blocks = BlockCoordinateFrankWolfe(
        make_blocks(10, 1.0, count=6), RIDGE, rng, OpenLoop(), averaged=True, limits=limits
    )
    for solver, asks in ((batch, 2), (blocks, 1)):
        visited.clear()
        theta = solver.solve().theta
        steps = np.array(visited[: 6 * asks : asks])
        weights = np.arange(1, 7)
        assert_allclose(theta, weights @ steps / weights.sum(), rtol=1e-10, atol=1e-12)
        assert np.abs(theta - steps[-1]).max() > 1e-3 * np.abs(theta).max()


def test_moves_carry_statistics_on_without_computing_them(monkeypatch):
    blocks = make_blocks(10, 1.0)
    walk = Walk(blocks, RIDGE)
    walk.begin()
    with monkeypatch.context() as patch:
        patch.setattr(type(blocks[0]), "statistics", None)
        for step in range(6):
            m = step % 2
            direction = walk.ask(m, walk.theta)
            segment = blocks[m].segment(walk.points[m], direction.vertex)
            walk.move(m, segment, direction.statistics - walk.statistics[m], 0.3)
    exact = [block.statistics(point) for block, point in zip(blocks, walk.points, strict=True)]
    assert_allclose(walk.statistics, exact, atol=1e-10)
    observed = sum(block.observed for block in blocks)
    assert_allclose(walk.theta, (observed - np.sum(exact, axis=0)) / RIDGE, atol=1e-9)


def test_the_open_loop_steps_are_those_of_the_papers():
    """2 / (t + 2) for all at once, 2 M / (2 M + t) for one of M."""
    segment = SimpleNamespace(longest=1.0)
    everyone = LineProblem(np.zeros(1), np.zeros(1), RIDGE, [segment] * 5)
    alone = LineProblem(np.zeros(1), np.zeros(1), RIDGE, [segment])
    for t in (1, 2, 10, 1000):
        assert OpenLoop().choose(t, 5, everyone) == 2 / (t + 2)
        assert OpenLoop().choose(t, 5, alone) == 2 * 5 / (2 * 5 + t)
    short = LineProblem(np.zeros(1), np.zeros(1), RIDGE, [SimpleNamespace(longest=0.1)])
    assert OpenLoop().choose(1, 1, short) == pytest.approx(0.1, rel=1e-8)
    assert OpenLoop().choose(1, 1, short) < 0.1


def test_line_search_beats_the_fixed_rule_per_step():
    limits = Limits(1e-12, max_iterations=30)
    searched = FrankWolfe(make_blocks(10, 1.0), RIDGE, LineSearch(), limits=limits).solve()
    fixed = FrankWolfe(make_blocks(10, 1.0), RIDGE, OpenLoop(), limits=limits).solve()
    assert searched.objective < fixed.objective


@pytest.mark.parametrize("order", [ShuffledOrder(), CyclicOrder(), RandomOrder()])
def test_block_orders_name_existing_blocks(order):
    blocks = list(order.one_pass(5, np.random.default_rng(0)))
    assert len(blocks) == 5
    assert set(blocks) <= set(range(5))
    if not isinstance(order, RandomOrder):
        assert sorted(blocks) == list(range(5))


def test_limits_never_read_as_converged():
    result = ThetaAscent(make_problems(10, 1.0), RIDGE, Limits(1e-12, max_iterations=1)).solve()
    assert result.status is Status.ITERATION_LIMIT
    assert not result.status.is_converged
    stopped = ThetaAscent(
        make_problems(10, 1.0), RIDGE, Limits(1e-12), Watch(should_stop=lambda: True)
    ).solve()
    assert stopped.status is Status.CANCELLED


def test_a_killed_walk_resumes_to_the_same_answer(tmp_path, monkeypatch):
    monkeypatch.setattr("engine.solvers.control.CHECKPOINT_SECONDS", 0.0)
    limits = Limits(1e-12, max_iterations=40)

    def solver(watch):
        rng = np.random.default_rng(3)
        return BlockCoordinateFrankWolfe(
            make_blocks(10, 1.0), RIDGE, rng, limits=limits, watch=watch
        )

    whole = solver(Watch()).solve()
    checkpoint = FileCheckpoint(tmp_path / "state.npz")
    asked = []

    def stop():
        asked.append(1)
        return len(asked) > 7

    solver(Watch(should_stop=stop, checkpoint=checkpoint)).solve()
    resumed = solver(Watch(checkpoint=checkpoint)).solve()
    assert resumed.iterations == whole.iterations
    assert np.array_equal(resumed.theta, whole.theta)


@pytest.mark.parametrize("after", [1, 2, 3])
def test_a_killed_ascent_resumes_to_the_very_same_answer(after, tmp_path, monkeypatch):
    """Once it agreed within the gap only: bundle, L-BFGS pairs and warm states were lost."""
    monkeypatch.setattr("engine.solvers.control.CHECKPOINT_SECONDS", 0.0)
    checkpoint = FileCheckpoint(tmp_path / "state.npz")
    asked = []

    def stop():
        asked.append(1)
        return len(asked) > after

    def solve(**options):
        return ThetaAscent(make_problems(30, 1.0), 1.0, Limits(1e-9), Watch(**options)).solve()

    whole = solve()
    assert solve(should_stop=stop, checkpoint=checkpoint).status is Status.CANCELLED
    resumed = solve(checkpoint=checkpoint)
    assert resumed.status is Status.CONVERGED
    assert whole.iterations > after
    assert (resumed.iterations, resumed.oracle_calls) == (whole.iterations, whole.oracle_calls)
    assert (resumed.objective, resumed.lower_bound) == (whole.objective, whole.lower_bound)
    assert np.array_equal(resumed.theta, whole.theta)


def test_progress_reports_carry_both_bounds():
    reports = []
    ThetaAscent(make_problems(10, 1.0), RIDGE, Limits(1e-8), Watch(reports.append)).solve()
    assert all(r.objective >= r.lower_bound - 1e-9 for r in reports)
    gaps = [r.relative_gap for r in reports]
    assert gaps == sorted(gaps, reverse=True)
    assert reports[-1].fraction == 1.0


def test_learning_without_observations_or_ridge_is_refused():
    with pytest.raises(InvalidProblemError, match="at least one observation"):
        ThetaAscent([], 1.0).solve()
    with pytest.raises(InvalidProblemError, match="ridge"):
        ThetaAscent(make_problems(6, 1.0), 0.0).solve()
