"""Which loss the weights of masks are learned by, and on which pictures that is found out."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from engine.core.status import Status
from engine.crf.grid_features import GridExample
from engine.learning.segmentation import mask_weights
from engine.learning.segmentation.boosted_model import boosted_features, tree_evidence, trees_alone
from engine.learning.segmentation.clock import Clock
from engine.learning.segmentation.edge_learning import held_out_errors
from engine.learning.segmentation.folds import FOLDS, deal_folds
from engine.learning.segmentation.held_out_choice import choose_candidate, is_clearly_less
from engine.learning.segmentation.mask_weights import (
    LEAST_JUDGED,
    MaskWeights,
    cut_in_two,
    mean_result,
)
from engine.solvers.result import unsolved
from tests.learning.segmentation.leaf_pictures import leaves


def examples(count: int, noise: float, shape: tuple[int, int] = (20, 28)) -> list[GridExample]:
    """Leaves whose log-odds are right on average, pixel by pixel as wrong as the noise."""
    rng = np.random.default_rng(0)
    made = []
    for image, mask in zip(*leaves(count, shape=shape), strict=True):
        odds = (2.0 * mask - 1.0 + noise * rng.normal(size=mask.shape)).astype(np.float32)
        made.append(GridExample(boosted_features(image, odds), mask))
    return made


def weights_of(pictures: list[GridExample], max_seconds: float | None = None) -> MaskWeights:
    clock = Clock(lambda progress: None, max_seconds)
    return MaskWeights(pictures, None, 1.0, 0.5, 1e-3, clock, lambda: False)


@pytest.mark.parametrize("count", [1, 5])
def test_edges_are_learned_where_neighbours_tell_more_than_a_pixel(count: int) -> None:
    found = weights_of(examples(count, 1.5)).learn(None, np.random.default_rng(0))
    assert found.loss in ("univariate", "likelihood")
    assert {len(each) for each in found.errors.values()} == {max(count, 2)}
    assert found.errors[found.loss].mean() < 0.6 * found.errors["trees"].mean()


def test_edges_have_to_spare_more_than_the_draw_of_the_pictures_would(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    """With two of twenty pictures of another kind the lower mean was once enough, of six."""
    plain = trees_alone()

    def errors(judged, theta, rho, should_stop):  # type: ignore[no-untyped-def]
        if np.array_equal(theta, plain):
            return np.full(len(judged), 0.10)
        return np.array([0.01] + [0.112] * (len(judged) - 1))

    monkeypatch.setattr(mask_weights, "held_out_errors", errors)
    monkeypatch.setattr(mask_weights, "COMPARED", ("trees", "univariate"))
    found = weights_of(examples(12, 1.5)).learn(None, np.random.default_rng(0))
    assert found.errors["univariate"].mean() < found.errors["trees"].mean()
    assert found.loss == "trees"
    assert_array_equal(found.result.theta, plain)


def test_what_is_clearly_worse_by_the_first_half_is_not_learned_from_the_second() -> None:
    weights = weights_of(examples(5, 1.5))
    _, errors = weights.judge("univariate", np.random.default_rng(0))
    _, worse = weights.judge("univariate", np.random.default_rng(0), before=np.zeros(5))
    assert_array_equal(worse[:2], errors[:2])
    assert_allclose(worse[2:], errors[:2].mean())
    _, better = weights.judge("univariate", np.random.default_rng(0), before=np.ones(5))
    assert_array_equal(better, errors)


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
    weights = replace(weights_of(made[:6]), others=made[6:])
    taught, errors = weights.judge("univariate", np.random.default_rng(0))
    assert_allclose(errors, held_out_errors(made[6:], taught.theta, 0.5, lambda: False))
    few = replace(weights, others=made[7:])
    assert len(few.judge("trees", np.random.default_rng(0))[1]) == 6


def test_without_time_for_more_the_trees_stand_alone() -> None:
    found = weights_of(examples(4, 1.5), max_seconds=1e-9).learn(None, np.random.default_rng(0))
    assert list(found.errors) == ["trees"]
    assert found.loss == "trees"


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
