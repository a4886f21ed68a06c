"""All solvers of the learning problem share one optimum, and no certificate is ever too good."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from engine.core.checkpoint import FileCheckpoint
from engine.core.errors import InvalidProblemError
from engine.core.status import Status
from engine.crf.survey_features import make_survey_features
from engine.objectives.learning_dual import make_learning_dual
from engine.solvers.block_orders import AllTogether, RandomOrder, ShuffledOrder
from engine.solvers.control import Callbacks, Limits
from engine.solvers.frank_wolfe import FrankWolfe
from engine.solvers.iterate import Iterate
from engine.solvers.step_rules import Line, LineSearch, OpenLoop
from engine.solvers.theta_ascent import ThetaAscent
from engine.structures.survey import SurveyStructure
from tests.learning.roommates.cohorts import random_cohorts
from tests.reference import perfect_matchings as reference

RIDGE = 4.0


def make_problems(n, rho, count=2):
    cohorts = random_cohorts(n, count)
    features = make_survey_features([survey for survey, _ in cohorts])
    return [SurveyStructure(s, p, features, rho) for s, p in cohorts]


def frank_wolfe(structures, order=None, step_rule=None, seed=0, **options):
    dual = make_learning_dual([s.observed for s in structures], RIDGE)
    order, rule = order or AllTogether(), step_rule or LineSearch()
    return FrankWolfe(structures, dual, order, rule, rng=np.random.default_rng(seed), **options)


def solve_in_theta(n, rho, gap=1e-9, count=2):
    return ThetaAscent(make_problems(n, rho, count), RIDGE, Limits(gap)).solve()


KINDS = {
    "batch": (AllTogether(), LineSearch()),
    "open loop": (AllTogether(), OpenLoop()),
    "capped": (AllTogether(), LineSearch(is_capped=True)),
    "block": (ShuffledOrder(), LineSearch()),
    "block open loop": (RandomOrder(), OpenLoop()),
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
@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_frank_wolfe_agrees_with_the_solve_in_theta(name, rho):
    best = solve_in_theta(10, rho)
    assert best.is_certified
    limits = Limits(5e-3, max_iterations=4000)
    result = frank_wolfe(make_problems(10, rho), *KINDS[name], limits=limits).solve()
    assert result.lower_bound <= best.objective + 1e-9
    assert result.objective >= best.lower_bound - 1e-9
    assert result.objective - best.objective <= result.duality_gap + 1e-9
    assert result.objective == pytest.approx(best.objective, rel=5e-3)
    assert np.abs(result.theta - best.theta).max() < 0.1 * np.abs(best.theta).max() + 0.01


@pytest.mark.parametrize("name", ["batch", "capped", "block"])
def test_no_gap_is_ever_below_the_true_suboptimality(name):
    best = solve_in_theta(10, 1.0)
    for steps in (2, 5, 20):
        limits = Limits(1e-12, max_iterations=steps)
        result = frank_wolfe(make_problems(10, 1.0), *KINDS[name], limits=limits).solve()
        assert result.status is Status.ITERATION_LIMIT
        assert result.objective - best.lower_bound >= -1e-9
        assert result.objective - best.objective <= result.duality_gap + 1e-9
        bounds = [p for p in result.trajectory if p.lower_bound is not None]
        assert all(p.lower_bound <= best.objective + 1e-9 <= p.objective + 2e-9 for p in bounds)


def test_the_lower_bound_is_the_likelihood_of_the_returned_weights():
    problems = make_problems(10, 1.0)
    result = ThetaAscent(problems, RIDGE, Limits(1e-6)).solve()
    solved = [p.maximise(np.array(result.theta), None, 1e-9) for p in problems]
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
    gradient = problem.maximise(theta, None, 1e-11).statistics
    for _ in range(4):
        direction = rng.normal(size=len(theta))
        up = problem.maximise(theta + 1e-4 * direction, None, 1e-11).log_partition
        down = problem.maximise(theta - 1e-4 * direction, None, 1e-11).log_partition
        assert (up - down) / 2e-4 == pytest.approx(gradient @ direction, abs=1e-5)


def test_averaged_iterates_come_close_too():
    best = solve_in_theta(10, 1.0)
    limits = Limits(1e-12, max_iterations=400)
    solver = frank_wolfe(make_problems(10, 1.0), *KINDS["open loop"], averaged=True, limits=limits)
    result = solver.solve()
    assert np.abs(result.theta - best.theta).max() < 0.1 * np.abs(best.theta).max()


def test_the_average_weighs_each_step_by_its_number(monkeypatch):
    """theta_bar_t = (1 - r) theta_bar_{t-1} + r theta_t, r = 2 / (t + 2) for t = 0, 1, ..."""
    visited = []
    ask = Iterate.ask

    def noted(iterate, chosen, theta):
        visited.append(theta)
        return ask(iterate, chosen, theta)

    monkeypatch.setattr(Iterate, "ask", noted)
    options = {"step_rule": OpenLoop(), "averaged": True, "limits": Limits(1e-12, 6)}
    batch = frank_wolfe(make_problems(10, 1.0), **options)
    blocks = frank_wolfe(make_problems(10, 1.0, count=6), ShuffledOrder(), **options)
    for solver in (batch, blocks):
        visited.clear()
        theta = solver.solve().theta
        steps = np.array(visited[:6])
        weights = np.arange(1, 7)
        assert_allclose(theta, weights @ steps / weights.sum(), rtol=1e-10, atol=1e-12)
        assert np.abs(theta - steps[-1]).max() > 1e-3 * np.abs(theta).max()


def test_moves_carry_statistics_on_without_computing_them(monkeypatch):
    structures = make_problems(10, 1.0)
    iterate = Iterate(structures, make_learning_dual([s.observed for s in structures], RIDGE))
    iterate.begin()
    kind, of_points = type(structures[0]), []
    statistics = kind.statistics

    def counted(structure, at):
        of_points.extend([at] if isinstance(at, np.ndarray) else [])
        return statistics(structure, at)

    with monkeypatch.context() as patch:
        patch.setattr(kind, "statistics", counted)
        for step in range(6):
            chosen = [step % 2]
            iterate.iteration += 1
            iterate.move(chosen, iterate.ask(chosen, iterate.theta), LineSearch())
    assert not of_points
    exact = [s.statistics(point) for s, point in zip(structures, iterate.points, strict=True)]
    assert_allclose(iterate.statistics, exact, atol=1e-10)
    values = [s.entropy.value(point) for s, point in zip(structures, iterate.points, strict=True)]
    assert_allclose(iterate.entropies, values, atol=1e-10)
    observed = sum(structure.observed for structure in structures)
    assert_allclose(iterate.theta, (observed - np.sum(exact, axis=0)) / RIDGE, atol=1e-9)


def test_the_open_loop_steps_are_those_of_the_papers():
    """2 / (t + 2) for all at once, 2 M / (2 M + t) for one of M."""
    flat = [lambda step: (0.0, 0.0, 0.0)]
    everyone, alone = Line(0.0, 0.0, 5 * flat, 5), Line(0.0, 0.0, flat, 5)
    for t in (1, 2, 10, 1000):
        assert OpenLoop().choose(t, everyone) == 2 / (t + 2)
        assert OpenLoop().choose(t, alone) == 2 * 5 / (2 * 5 + t)


def test_the_capped_search_finds_the_same_step_up_to_its_cap():
    bent = [lambda step: (-((step - 0.3) ** 2), -2 * (step - 0.3), -2.0)]
    line = Line(0.0, 0.0, bent, 1)
    for t in (1, 4, 5, 100):
        expected = min(0.3, 2 / (t + 2))
        assert LineSearch(is_capped=True).choose(t, line) == pytest.approx(expected, rel=1e-6)
        assert LineSearch().choose(t, line) == pytest.approx(0.3, rel=1e-6)


def test_line_search_beats_the_fixed_rule_per_step():
    limits = Limits(1e-12, max_iterations=30)
    searched = frank_wolfe(make_problems(10, 1.0), limits=limits).solve()
    fixed = frank_wolfe(make_problems(10, 1.0), *KINDS["open loop"], limits=limits).solve()
    assert searched.objective < fixed.objective


@pytest.mark.parametrize(
    "order", [kind(k) for kind in (ShuffledOrder, RandomOrder) for k in (1, 2)]
)
def test_orders_name_existing_structures(order):
    steps = list(order.one_pass(5, np.random.default_rng(0)))
    assert all(len(step) <= order.size for step in steps)
    named = [m for step in steps for m in step]
    assert set(named) <= set(range(5))
    if not isinstance(order, RandomOrder):
        assert sorted(named) == list(range(5))


def test_limits_never_read_as_converged():
    result = ThetaAscent(make_problems(10, 1.0), RIDGE, Limits(1e-12, max_iterations=1)).solve()
    assert result.status is Status.ITERATION_LIMIT
    assert not result.status.is_converged
    stopped = ThetaAscent(
        make_problems(10, 1.0), RIDGE, Limits(1e-12), Callbacks(should_stop=lambda: True)
    ).solve()
    assert stopped.status is Status.CANCELLED


def test_a_killed_frank_wolfe_resumes_to_the_same_answer(tmp_path, monkeypatch):
    monkeypatch.setattr("engine.solvers.control.CHECKPOINT_SECONDS", 0.0)
    limits = Limits(1e-12, max_iterations=40)

    def solver(callbacks):
        structures = make_problems(10, 1.0)
        return frank_wolfe(structures, ShuffledOrder(), seed=3, limits=limits, callbacks=callbacks)

    whole = solver(Callbacks()).solve()
    checkpoint = FileCheckpoint(tmp_path / "state.npz")
    asked = []

    def stop():
        asked.append(1)
        return len(asked) > 7

    solver(Callbacks(should_stop=stop, checkpoint=checkpoint)).solve()
    resumed = solver(Callbacks(checkpoint=checkpoint)).solve()
    assert resumed.iterations == whole.iterations
    np.testing.assert_array_equal(resumed.theta, whole.theta)


@pytest.mark.parametrize("after", [1, 2])
def test_a_killed_ascent_goes_on_from_theta_alone(after, tmp_path, monkeypatch):
    """Bounds are those of the whole run or closer, and what was learned costs one more step."""
    monkeypatch.setattr("engine.solvers.control.CHECKPOINT_SECONDS", 0.0)
    checkpoint = FileCheckpoint(tmp_path / "state.npz")
    asked = []

    def stop():
        asked.append(1)
        return len(asked) > after

    def solve(**options):
        return ThetaAscent(make_problems(30, 1.0), 1.0, Limits(1e-9), Callbacks(**options)).solve()

    whole = solve()
    assert solve(should_stop=stop, checkpoint=checkpoint).status is Status.CANCELLED
    resumed = solve(checkpoint=checkpoint)
    assert resumed.status is Status.CONVERGED
    assert whole.iterations > after
    assert set(checkpoint.load()) >= {"theta", "seconds", "run_bounds"}
    assert not {"metric", "history"} & set(checkpoint.load())
    assert after < resumed.iterations <= whole.iterations + 1
    assert resumed.objective - resumed.lower_bound <= 1e-9 * abs(whole.objective)
    assert resumed.objective == pytest.approx(whole.objective, rel=1e-9)
    np.testing.assert_allclose(resumed.theta, whole.theta, atol=1e-4)


def test_progress_reports_carry_both_bounds():
    reports = []
    ThetaAscent(make_problems(10, 1.0), RIDGE, Limits(1e-8), Callbacks(reports.append)).solve()
    assert all(r.objective >= r.lower_bound - 1e-9 for r in reports)
    gaps = [r.relative_gap for r in reports]
    assert gaps == sorted(gaps, reverse=True)
    assert reports[-1].fraction == 1.0


def test_learning_without_observations_or_ridge_is_refused():
    with pytest.raises(InvalidProblemError, match="at least one observation"):
        ThetaAscent([], 1.0).solve()
    with pytest.raises(InvalidProblemError, match="ridge"):
        ThetaAscent(make_problems(6, 1.0), 0.0).solve()
