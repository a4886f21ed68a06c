"""Rehearsals on growing sets change the way to the optimum, not the optimum."""

import time

import numpy as np
import pytest
from numpy.testing import assert_allclose

from engine.core.arguments import FloatArray
from engine.core.errors import InvalidProblemError, StoppedError
from engine.core.status import Status
from engine.crf.grid_features import DenseNodeFeatures, GridExample, GridFeatures
from engine.learning.segmentation import marginal_fitting
from engine.learning.segmentation.marginal_fitting import (
    REHEARSAL_DECREASE,
    estimate_metric,
    fit_marginals,
    fit_marginals_on_growing_sets,
)
from engine.learning.segmentation.mask_solvers import subset_sizes
from engine.objectives.grid_losses import Tape, loss_and_gradient
from engine.objectives.marginal_losses import LossOptions
from tests.reference.tiny_grids import tiny_example

CONVEX = LossOptions("surrogate-likelihood", threshold=1e-12)  # one optimum
RIDGE = 2.0


def examples(count: int) -> list[GridExample]:
    """Grids of different sizes, so that shares of pixels are not shares of pictures."""
    return [tiny_example(np.random.default_rng(k), rows=3 + k % 3) for k in range(count)]


def badly_scaled(count: int) -> list[GridExample]:
    """Grids whose first node feature is thirty times larger than the others."""
    made = []
    for example in examples(count):
        nodes = example.features.nodes
        assert isinstance(nodes, DenseNodeFeatures)
        values = nodes.values * np.array([30.0, 1.0, 1.0])
        features = GridFeatures(DenseNodeFeatures(values), example.features.edges)
        made.append(GridExample(features, example.labels))
    return made


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def test_growing_sets_reach_the_optimum_of_a_convex_loss() -> None:
    everything = examples(20)
    assert len(subset_sizes(20)) == 2
    plain = fit_marginals(everything, CONVEX, ridge=RIDGE, tolerance=1e-12)
    grown = fit_marginals_on_growing_sets(
        everything, CONVEX, ridge=RIDGE, tolerance=1e-12, rng=rng()
    )
    assert plain.status is grown.status is Status.CONVERGED
    assert_allclose(grown.objective, plain.objective, rtol=1e-9)
    assert_allclose(grown.theta, plain.theta, atol=1e-4)


def test_each_stage_starts_at_the_last_with_its_share_of_the_ridge(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    everything, stages = examples(50), []

    def spy(chosen, options, **arguments):  # type: ignore[no-untyped-def]
        fit = fit_marginals(chosen, options, **arguments)
        stages.append((list(chosen), arguments, fit))
        return fit

    monkeypatch.setattr(marginal_fitting, "fit_marginals", spy)
    outcome = fit_marginals_on_growing_sets(
        everything, CONVEX, ridge=RIDGE, tolerance=1e-7, rng=rng()
    )
    assert [len(chosen) for chosen, _, _ in stages] == list(subset_sizes(50)) == [5, 16, 50]
    total, passes = sum(example.labels.size for example in everything), 0.0
    for chosen, arguments, fit in stages:
        share = sum(example.labels.size for example in chosen) / total
        assert_allclose(arguments["ridge"], share * RIDGE)
        passes += share * fit.evaluations
    assert outcome.evaluations == round(passes)
    ids = [{id(example) for example in chosen} for chosen, _, _ in stages]
    assert ids[0] < ids[1] < ids[2]
    assert stages[1][1]["start"] is stages[0][2].theta
    assert stages[2][1]["start"] is stages[1][2].theta
    tolerances = [arguments["tolerance"] for _, arguments, _ in stages]
    assert tolerances == [REHEARSAL_DECREASE, REHEARSAL_DECREASE, 1e-7]


def test_fewer_pictures_than_the_smallest_subset_are_fitted_at_once() -> None:
    few, told = examples(3), []
    plain = fit_marginals(few, CONVEX, ridge=RIDGE, tolerance=1e-12)
    grown = fit_marginals_on_growing_sets(
        few,
        CONVEX,
        ridge=RIDGE,
        tolerance=1e-12,
        rng=rng(),
        on_evaluation=lambda theta, value, now: told.append(value),
    )
    assert_allclose(grown.theta, plain.theta, atol=1e-4)
    assert grown.evaluations == len(told)


@pytest.mark.parametrize(
    "options", [CONVEX, LossOptions("clique-logistic", iterations=5)], ids=lambda o: o.loss
)
def test_a_metric_changes_neither_objective_nor_optimum_but_the_number_of_steps(
    options: LossOptions,
) -> None:
    everything, start = badly_scaled(6), np.full(14, 0.1)
    metric = estimate_metric(everything, start, RIDGE)
    told: list[tuple[FloatArray, float]] = []
    plain, scaled = (
        fit_marginals(
            everything,
            options,
            ridge=RIDGE,
            start=start,
            metric=each,
            tolerance=1e-12,
            on_evaluation=lambda theta, value, now: told.append((theta, value)),
        )
        for each in (None, metric)
    )
    first, again = told[0], told[plain.evaluations]
    assert_allclose(again[0], first[0], atol=1e-9)
    assert_allclose(again[1], first[1], rtol=1e-9)
    assert_allclose(scaled.objective, plain.objective, rtol=1e-6)
    assert scaled.evaluations < plain.evaluations


def test_the_metric_is_the_hessian_of_the_likelihood_at_zero_but_for_sampling() -> None:
    everything = [tiny_example(np.random.default_rng(k), 6, 7) for k in range(200)]
    metric = estimate_metric(everything, None, RIDGE)
    n = 6  # parameters of nodes
    step = 1e-4

    def gradient(theta: FloatArray) -> FloatArray:
        slopes = [loss_and_gradient(e, theta, CONVEX, Tape())[1] for e in everything]
        return np.asarray(np.sum(slopes, axis=0) + RIDGE * theta)

    columns = [gradient(step * row) - gradient(-step * row) for row in np.eye(14)[:n]]
    hessian = np.array(columns)[:, :n] / (2 * step)
    assert_allclose(metric[:n, :n], hessian, atol=0.25 * np.abs(hessian).max())
    assert np.linalg.eigvalsh(metric).min() > 0.9 * RIDGE


def test_the_limit_covers_all_stages_and_everything_is_evaluated() -> None:
    everything = examples(50)
    outcome = fit_marginals_on_growing_sets(
        everything, CONVEX, ridge=RIDGE, tolerance=1e-15, max_seconds=1e-6, rng=rng()
    )
    assert outcome.status is Status.TIME_LIMIT
    assert outcome.evaluations == 1  # one pass over everything; those over 5 and 16 round away
    again = fit_marginals(everything, CONVEX, ridge=RIDGE, start=outcome.theta, max_iterations=1)
    assert again.objective <= outcome.objective


def test_callbacks_tell_of_the_last_stage_with_the_time_of_all() -> None:
    told: list[tuple[FloatArray, float, float]] = []
    asked = 0

    def ask() -> bool:
        nonlocal asked
        asked += 1
        time.sleep(0.002)
        return False

    outcome = fit_marginals_on_growing_sets(
        examples(20),
        CONVEX,
        ridge=RIDGE,
        rng=rng(),
        on_evaluation=lambda theta, value, now: told.append((theta, value, now)),
        should_stop=ask,
    )
    assert min(value for _, value, _ in told) == outcome.objective
    rehearsals = asked - len(told)
    assert rehearsals > 1
    assert told[0][2] > 0.002 * rehearsals  # seconds
    times = [now for _, _, now in told]
    assert times == sorted(times)
    assert times[-1] <= outcome.seconds


def test_stopping_in_a_rehearsal_gives_no_result_and_later_the_best_so_far() -> None:
    with pytest.raises(StoppedError, match="before all images"):
        fit_marginals_on_growing_sets(
            examples(20), CONVEX, ridge=RIDGE, rng=rng(), should_stop=lambda: True
        )
    told: list[float] = []
    outcome = fit_marginals_on_growing_sets(
        examples(20),
        CONVEX,
        ridge=RIDGE,
        rng=rng(),
        on_evaluation=lambda theta, value, now: told.append(value),
        should_stop=lambda: len(told) == 2,
    )
    assert outcome.status is Status.CANCELLED
    assert outcome.objective == min(told)


@pytest.mark.parametrize("change", [{"ridge": 0.0}, {"tolerance": 0.0}, {"tolerance": np.nan}])
def test_bad_numbers_are_refused(change: dict[str, float]) -> None:
    for count in (0, 3, 20):
        with pytest.raises(InvalidProblemError):
            fit_marginals_on_growing_sets(
                examples(count), CONVEX, rng=rng(), **({"ridge": RIDGE} | change)
            )
