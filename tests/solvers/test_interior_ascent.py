"""Learning assignments from inside the polytope: bounds that hold, gaps that stayed open."""

from itertools import pairwise

import numpy as np
import pytest

from benchmarks.hunts import assignments
from engine.core.arguments import FloatArray
from engine.core.errors import InvalidProblemError
from engine.core.status import Status
from engine.crf.bipartite import BipartiteItems
from engine.estimators import StructuredModel
from engine.inference.matching.bipartite_points import (
    bracket_value,
    counting_numbers,
    round_to_doubly_stochastic,
)
from engine.inference.matching.exact import compute_bipartite_marginals
from engine.solvers.control import Callbacks, Limits
from engine.solvers.interior_ascent import FEW_STEPS, InteriorAscent
from engine.solvers.theta_ascent import ThetaAscent
from engine.structures.bipartite import BipartiteStructure


def make_years(
    n: int, rho: float | FloatArray, seed: int, scale: float = 1.0
) -> list[BipartiteStructure]:
    rng = np.random.default_rng(seed)
    return [
        BipartiteStructure(
            BipartiteItems(scale * rng.standard_t(2.0, size=(n, n, 3))), rng.permutation(n), rho
        )
        for _ in range(2)
    ]


def likelihood(years: list[BipartiteStructure], theta: FloatArray, ridge: float) -> float:
    """The penalised log-likelihood by enumeration."""
    total = -0.5 * ridge * float(theta @ theta)
    for year in years:
        exact = compute_bipartite_marginals(year.items.scores(theta)).log_partition
        total += float(theta @ year.observed) - exact
    return total


@pytest.mark.parametrize("ridge", [1e-4, 0.1, 10.0])
@pytest.mark.parametrize("seed", range(3))
def test_the_exact_likelihood_lies_between_its_bounds(seed: int, ridge: float) -> None:
    """l_RW <= l <= l_Bethe, by enumeration at the optima and elsewhere."""
    limits, rng = Limits(1e-6), np.random.default_rng(seed)
    bethe = InteriorAscent(make_years(5, 1.0, seed, 3.0), ridge, limits).solve()
    years = make_years(5, 0.5, seed, 3.0)
    reweighted = InteriorAscent(years, ridge, limits).solve()
    assert bethe.status is reweighted.status is Status.CONVERGED
    assert reweighted.lower_bound <= likelihood(years, reweighted.theta, ridge) + 1e-8
    for share in rng.uniform(0.0, 1.5, size=10):
        assert likelihood(years, share * bethe.theta, ridge) <= bethe.objective + 1e-8


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.75, 1.0, np.linspace(0.4, 1.0, 12)])
def test_both_bounds_hold_at_any_theta_and_any_point(rho: float | FloatArray) -> None:
    years, ridge, rng = make_years(6, rho, 1), 0.05, np.random.default_rng(7)
    result = InteriorAscent(years, ridge, Limits(1e-7)).solve()
    assert result.status is Status.CONVERGED
    counts = counting_numbers(rho, 6)
    for _ in range(20):
        theta = result.theta + 0.1 * rng.standard_normal(3)
        value = -0.5 * ridge * float(theta @ theta)
        for year in years:
            value += float(theta @ year.observed) - year.maximise(theta, None, 1e-9).log_partition
        assert value <= result.objective + 1e-9
        points = [round_to_doubly_stochastic(rng.dirichlet(np.ones(6), size=6)) for _ in years]
        left = sum(y.observed - y.items.statistics(t) for y, t in zip(years, points, strict=True))
        entropy = sum(bracket_value(np.zeros((6, 6)), counts, t)[0] for t in points)
        assert left @ left / (2.0 * ridge) - entropy >= result.lower_bound - 1e-9


@pytest.mark.parametrize("rho", [0.3, 0.7, 1.0])
def test_it_agrees_with_the_solve_in_theta(rho: float) -> None:
    inside = InteriorAscent(make_years(8, rho, 2), 1.0, Limits(1e-8)).solve()
    in_theta = ThetaAscent(make_years(8, rho, 2), 1.0, Limits(1e-8)).solve()
    np.testing.assert_allclose(inside.theta, in_theta.theta, atol=1e-4)
    assert inside.lower_bound <= in_theta.objective + 1e-9
    assert in_theta.lower_bound <= inside.objective + 1e-9


def test_single_items_teach_nothing_and_larger_ones_beside_them_do() -> None:
    alone = BipartiteStructure(BipartiteItems(np.ones((1, 1, 3))), np.array([0]), 1.0)
    nothing = InteriorAscent([alone], 1.0).solve()
    assert nothing.status is Status.CONVERGED
    assert nothing.theta.tolist() == [0.0, 0.0, 0.0]
    years = make_years(4, 1.0, 3)
    beside = InteriorAscent([*years, alone], 1.0, Limits(1e-8)).solve()
    without = InteriorAscent(years, 1.0, Limits(1e-8)).solve()
    np.testing.assert_allclose(beside.theta, without.theta, atol=1e-6)


def test_limits_and_wrong_input_are_told() -> None:
    years = make_years(6, 1.0, 4)
    few = InteriorAscent(years, 1e-4, Limits(1e-9, max_iterations=2)).solve()
    assert few.status is Status.ITERATION_LIMIT
    assert few.lower_bound <= few.objective
    stopped = InteriorAscent(years, 1.0, callbacks=Callbacks(should_stop=lambda: True)).solve()
    assert stopped.status is Status.CANCELLED
    with pytest.raises(InvalidProblemError, match="no interior"):
        InteriorAscent([object()], 1.0).solve()
    with pytest.raises(InvalidProblemError, match="ridge"):
        InteriorAscent(years, 0.0).solve()


def test_a_gap_that_rounding_keeps_open_ends_as_stalled() -> None:
    result = InteriorAscent(make_years(6, 1.0, 5), 1.0, Limits(1e-15)).solve()
    assert result.status is Status.STALLED
    assert result.relative_gap <= 1e-8


@pytest.mark.parametrize("rho", [0.5, 0.7, 1.0])
@pytest.mark.parametrize("kind", ["heavy", "lognormal", "repeated"])
def test_sharp_problems_of_sixty_items_are_certified(kind: str, rho: float) -> None:
    """After 30 seconds gaps of 1e-4 to 4,000 times the value stood open at small lambda."""
    for seed in range(2):
        years = assignments.make_years(kind, seed, (60,))
        model = assignments.learn(years, 1e-4, rho, 1e-4, 60.0)
        assert model.result_.status is Status.CONVERGED
        assert model.result_.relative_gap <= 1e-4


@pytest.mark.parametrize("kind", sorted(assignments.KINDS))
def test_the_hunt_finds_no_exception(kind: str) -> None:
    found = list(assignments.hunt(kind, range(2), 1e-4, 60.0, (1e-4, 1.0), (0.7, 1.0)))
    inner = list(assignments.hunt_inner(kind, range(2), 1e-6, (0.5, 0.7, 1.0), (4, 20)))
    assert [one for one in found + inner if one.is_exception] == []


def test_the_model_names_the_way_from_inside() -> None:
    years = make_years(5, 0.8, 6)
    model = StructuredModel(solver="interior", relative_gap=1e-6).fit(years)
    assert model.result_.status is Status.CONVERGED
    other = StructuredModel(solver="theta", relative_gap=1e-6).fit(years)
    np.testing.assert_allclose(model.theta_, other.theta_, atol=1e-2)


def test_both_ways_are_one_run() -> None:
    """Theta takes too many steps for this one: what follows goes on from its bounds and clock."""
    result = assignments.learn(
        assignments.make_years("heavy", 0, (60,)), 1e-4, 0.7, 1e-4, 60.0
    ).result_
    assert result.status is Status.CONVERGED
    assert len(result.trajectory) > FEW_STEPS + 2
    gaps = [point.relative_gap for point in result.trajectory]
    assert all(later <= sooner for sooner, later in pairwise(gaps))
    assert gaps[-1] == pytest.approx(result.relative_gap)
    seconds = [point.seconds for point in result.trajectory]
    assert all(later >= sooner for sooner, later in pairwise(seconds))
