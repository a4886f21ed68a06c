"""Weights above trees: the loss with the fewest mistakes on held-out pictures, and time limits."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from engine.core.status import Status
from engine.crf.grid_features import GridExample
from engine.learning.segmentation import mask_weights
from engine.learning.segmentation.clock import Clock
from engine.learning.segmentation.mask_weights import (
    TREES,
    MaskWeights,
    cut_in_two,
    mask_candidates,
)
from engine.learning.segmentation.training_pictures import FOLDS, deal_folds
from engine.learning.segmentation.tree_features import boosted_features, tree_evidence, trees_alone
from engine.learning.segmentation.weight_learning import (
    LEAST_JUDGED,
    Candidate,
    ComparedWeights,
    WeightLearner,
    added,
    choose_candidate,
    is_clearly_less,
    mean_result,
    n_wrong,
)
from engine.metrics.classes import Confusion
from engine.solvers.result import unsolved
from tests.learning.segmentation.leaf_pictures import leaves

UNIVARIATE = Candidate("univariate", "univariate")


def examples(count: int, noise: float, shape: tuple[int, int] = (20, 28)) -> list[GridExample]:
    """Leaves whose log-odds are right on average, pixel by pixel as wrong as the noise."""
    rng = np.random.default_rng(0)
    made = []
    for image, mask in zip(*leaves(count, shape=shape), strict=True):
        odds = (2.0 * mask - 1.0 + noise * rng.normal(size=mask.shape)).astype(np.float32)
        made.append(GridExample(boosted_features(image, odds), mask))
    return made


def learner_of(
    pictures: list[GridExample], max_seconds: float | None = None
) -> WeightLearner[GridExample]:
    clock = Clock(lambda progress: None, max_seconds)
    problem = MaskWeights(0, 0.5, 1e-3, lambda: False, np.random.default_rng(0))
    return WeightLearner(problem, pictures, None, clock)


def compared(learner: WeightLearner[GridExample]) -> ComparedWeights:
    return learner.learn(mask_candidates(None))


@pytest.mark.parametrize("count", [1, 5])
def test_edges_are_learned_where_neighbours_tell_more_than_a_pixel(count: int) -> None:
    found = compared(learner_of(examples(count, 1.5)))
    assert found.candidate.loss in ("univariate", "likelihood")
    assert {len(counts) for counts in found.counts.values()} == {max(count, 2)}
    assert found.errors[found.candidate.name] < 0.6 * found.errors["trees"]
    assert found.left_out == ()


def test_edges_have_to_spare_more_than_the_draw_of_the_pictures_would(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Regression: two unusual pictures of twenty once decided which of six losses was chosen."""
    plain = trees_alone()

    def judge(
        problem: MaskWeights, judged: Sequence[GridExample], theta: np.ndarray
    ) -> list[Confusion]:
        if np.array_equal(theta, plain):
            return [Confusion(np.array([[90, 10], [0, 0]]))] * len(judged)
        return [Confusion(np.array([[99 - 10 * (k > 0), 1 + 10 * (k > 0)], [0, 0]])) for k in
                range(len(judged))]  # fmt: skip

    monkeypatch.setattr(MaskWeights, "judge", judge)
    monkeypatch.setattr(mask_weights, "COMPARED", ("trees", "univariate"))
    found = compared(learner_of(examples(24, 1.5)))
    assert found.errors["univariate"] > found.errors["trees"] - 0.002
    assert found.candidate == TREES
    assert_array_equal(found.result.theta, plain)


def test_a_loss_clearly_worse_on_the_first_half_is_not_learned_from_the_second() -> None:
    """Its error is that of the first half: it once included values that no weights produced."""
    learner = learner_of(examples(5, 1.5))
    found = learner.learn([UNIVARIATE])
    (counts,) = found.counts.values()
    none_wrong = [Confusion(np.array([[1, 0], [0, 1]]))] * 5
    worse = learner.learn([TREES, UNIVARIATE], before=none_wrong)
    assert list(worse.counts) == [] or UNIVARIATE not in worse.counts
    assert worse.errors["univariate"] == added(counts[:2]).error
    all_wrong = [Confusion(np.array([[0, 10**6], [0, 0]]))] * 5
    better = learner.learn([UNIVARIATE], before=all_wrong)
    assert_array_equal(n_wrong(better.counts[UNIVARIATE]), n_wrong(counts))


def test_a_loss_without_time_for_a_step_has_no_error_and_is_listed() -> None:
    """A run at its limit once reported an error of zero weights: the share of marked pixels."""
    found = compared(learner_of(examples(4, 1.5), max_seconds=1e-9))
    assert list(found.errors) == ["trees"]
    assert found.candidate == TREES
    assert found.left_out == (
        "univariate: no time to learn its weights",
        "likelihood: no time to learn its weights",
    )


def test_a_fit_that_ends_at_its_limit_before_a_step_is_not_evaluated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(mask_weights, "COMPARED", ("trees", "univariate"))
    learner = learner_of(examples(4, 1.5), max_seconds=100.0)

    def fit(*arguments: object, **options: object) -> object:
        return replace(unsolved(trees_alone()), status=Status.TIME_LIMIT)

    monkeypatch.setattr(MaskWeights, "fit", fit)
    found = compared(learner)
    assert list(found.errors) == ["trees"]
    assert found.left_out == ("univariate: no time to learn its weights",)


def test_weights_cut_short_are_evaluated_and_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mask_weights, "COMPARED", ("trees", "univariate"))
    learner = learner_of(examples(4, 1.5), max_seconds=100.0)
    usual = MaskWeights.fit

    def fit(*arguments, **options):  # type: ignore[no-untyped-def]
        return replace(usual(*arguments, **options), status=Status.TIME_LIMIT)

    monkeypatch.setattr(MaskWeights, "fit", fit)
    found = compared(learner)
    assert set(found.errors) == {"trees", "univariate"}
    assert found.left_out == ("univariate: stopped before its weights had converged",)
    assert found.result.status is Status.TIME_LIMIT


def test_a_limit_that_is_not_reached_changes_nothing() -> None:
    """A busy machine once shipped the trees alone: a comparison was left out by an estimate."""
    with_limit = compared(learner_of(examples(4, 1.5), max_seconds=1e6))
    without = compared(learner_of(examples(4, 1.5)))
    assert with_limit.errors == without.errors
    assert_array_equal(with_limit.result.theta, without.result.theta)
    assert with_limit.left_out == ()


def test_the_mean_of_halves_says_where_one_of_them_ended_at_a_limit() -> None:
    whole = unsolved(np.array([1.0, 2.0]))
    short = replace(whole, theta=np.array([3.0, 2.0]), status=Status.TIME_LIMIT, iterations=4)
    both = mean_result([replace(whole, iterations=3), short])
    assert_array_equal(both.theta, [2.0, 2.0])
    assert (both.iterations, both.status) == (7, Status.TIME_LIMIT)
    assert not both.is_certified
    assert mean_result([whole, whole]).status is Status.CONVERGED


def test_of_many_pictures_others_judge_the_mean_of_what_both_halves_taught() -> None:
    made = examples(6 + LEAST_JUDGED, 1.5)
    learner = replace(learner_of(made[:6]), others=made[6:])
    found = learner.learn([UNIVARIATE])
    expected = learner.problem.judge(made[6:], found.result.theta)
    assert_array_equal(n_wrong(found.counts[UNIVARIATE]), n_wrong(expected))
    few = replace(learner, others=made[7:])
    assert len(few.learn([TREES]).counts[TREES]) == 6


@pytest.mark.parametrize("shape", [(20, 28), (31, 20)])
def test_the_halves_of_a_picture_hold_all_but_the_edges_between_them(
    shape: tuple[int, int],
) -> None:
    (whole,) = examples(1, 1.0, shape)
    halves = cut_in_two(whole)
    axis = int(shape[1] >= shape[0])
    labels = np.concatenate([half.labels for half in halves], axis=axis)
    odds = np.concatenate([tree_evidence(half.features) for half in halves], axis=axis)
    assert_array_equal(labels, whole.labels)
    assert_array_equal(odds, tree_evidence(whole.features))
    left, right = (half.features.observed_statistics(half.labels) for half in halves)
    lost = whole.features.observed_statistics(whole.labels) - left - right
    n_nodes = 2 * whole.features.nodes.n_features
    assert_allclose(lost[:n_nodes], 0.0, atol=1e-9)
    always_one = lost[n_nodes:].reshape(4, -1).sum(axis=0)
    assert always_one.max() == min(shape)


@pytest.mark.parametrize("seed", range(8))
def test_pictures_of_another_kind_are_of_different_folds(seed: int) -> None:
    lightness = [20.0 + k for k in range(18)] + [210.0, 205.0]
    folds = deal_folds([(8, 8)] * 20, lightness, np.random.default_rng(seed))
    assert folds[18] != folds[19]
    assert np.bincount([int(fold) for fold in folds]).tolist() == [20 // FOLDS] * FOLDS


def test_the_first_way_is_kept_unless_another_is_clearly_better() -> None:
    ways = {"first": np.array([3.0, 3.0, 3.0]), "second": np.array([2.9, 2.0, 4.0])}
    assert choose_candidate(ways) == "first"
    assert choose_candidate(ways | {"third": np.array([2.0, 2.5, 2.0])}) == "third"
    assert choose_candidate({"first": np.array([1.0]), "second": np.array([0.5])}) == "second"
    assert not is_clearly_less(np.array([1.0, 2.0]), np.array([1.0, 2.0]))
    spared, nothing = np.array([1.0, 2.0, 0.1]), np.zeros(3)
    assert is_clearly_less(nothing, spared)
    assert not is_clearly_less(nothing, spared, standard_errors=2.0)
    assert choose_candidate({"first": spared, "second": nothing}, standard_errors=2.0) == "first"
