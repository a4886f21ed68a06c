"""Trees, the network and the mean of both are compared without edges, and with edges."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from engine.core.errors import InvalidProblemError
from engine.crf.class_features import UNKNOWN, ClassExample, ClassLayout
from engine.crf.grid_features import GridExample
from engine.learning.segmentation.boosted_learning import train_boosted_segmentation
from engine.learning.segmentation.class_candidates import (
    MEAN_OF_BOTH,
    NETWORK_ALONE,
    TREES_ALONE,
    ClassWeights,
    compared_candidates,
)
from engine.learning.segmentation.class_learning import train_class_segmentation
from engine.learning.segmentation.clock import Clock
from engine.learning.segmentation.mask_weights import (
    MEAN,
    NETWORK,
    TREES,
    MaskWeights,
    mask_candidates,
)
from engine.learning.segmentation.model import (
    Detail,
    SegmentationModel,
    load_segmentation_model,
    make_segmentation_model,
)
from engine.learning.segmentation.prediction import predict_segmentation
from engine.learning.segmentation.tree_features import boosted_features, class_features
from engine.learning.segmentation.tree_unaries import TreeUnaries
from engine.learning.segmentation.weight_learning import (
    Candidate,
    WeightLearner,
    beginning_with_best,
    choose_candidate,
)
from engine.learning.segmentation.without_edges import fit_slope
from tests.learning.segmentation.network.test_network import TINY, grains

EDGES = Candidate("univariate", "univariate")


def mask_examples(count: int, trees: float, network: float) -> list[GridExample]:
    """Random labels without neighbours; log-odds of trees and network with noise."""
    rng = np.random.default_rng(1)
    found = []
    for _ in range(count):
        mask = rng.random((24, 24)) < 0.5
        one, two = (
            2.0 * mask - 1 + noise * rng.normal(size=mask.shape) for noise in (trees, network)
        )
        image = np.full((24, 24, 3), 90, np.uint8)
        maps = two[:, :, None].astype(np.float32)
        found.append(GridExample(boosted_features(image, one.astype(np.float32), maps), mask))
    return found


def class_examples(count: int, trees: float, network: float) -> list[ClassExample]:
    """Three random classes; scores of trees and maps of the network with noise."""
    rng = np.random.default_rng(1)
    found = []
    for _ in range(count):
        labels = rng.integers(0, 3, (24, 24)).astype(np.uint8)
        right = 2.0 * np.eye(3)[labels] - 2 / 3
        one, two = (right + noise * rng.normal(size=right.shape) for noise in (trees, network))
        image = np.full((24, 24, 3), 90, np.uint8)
        features = class_features(image, one.astype(np.float32), two.astype(np.float32))
        found.append(ClassExample(features, labels))
    return found


def mask_learner(examples: list[GridExample]) -> WeightLearner[GridExample]:
    problem = MaskWeights(1, 0.5, 1e-3, lambda: False, np.random.default_rng(0))
    return WeightLearner(problem, examples, None, Clock(lambda progress: None, None))


def class_learner(examples: list[ClassExample]) -> WeightLearner[ClassExample]:
    problem = ClassWeights(ClassLayout(3, 3), np.ones(3), lambda: False, False)
    return WeightLearner(problem, examples, None, Clock(lambda progress: None, None))


@pytest.mark.parametrize(("trees", "network", "best"), [(4.0, 0.1, "network"), (0.1, 4.0, "trees")])
def test_masks_are_never_worse_than_the_better_of_network_and_trees(
    trees: float, network: float, best: str
) -> None:
    found = mask_learner(mask_examples(4, trees, network)).learn(
        mask_candidates(None, has_network=True)
    )
    assert found.candidate.loss == best
    assert found.errors[found.candidate.name] == min(
        found.errors["trees"], found.errors["network alone"]
    )


def test_the_mean_of_two_equal_methods_makes_fewer_mistakes_than_either() -> None:
    candidates = mask_candidates(None, has_network=True)
    found = mask_learner(mask_examples(4, 1.5, 1.5)).learn(candidates)
    assert found.candidate.loss == "mean"
    better = min(found.errors["trees"], found.errors["network alone"])
    assert found.errors[found.candidate.name] < 0.8 * better
    maps = class_learner(class_examples(4, 1.5, 1.5)).learn([TREES_ALONE, NETWORK_ALONE])
    both = class_learner(class_examples(4, 1.5, 1.5)).learn(
        compared_candidates(None, 3, has_network=True)
    )
    assert both.errors[MEAN_OF_BOTH.name] < 0.9 * min(maps.errors.values())


def test_the_mean_weighs_each_by_how_sure_it_may_be() -> None:
    """Scores that are ten times too sure of themselves change nothing in the mean."""
    examples = mask_examples(4, 1.5, 1.5)
    (candidate,) = mask_candidates("mean", has_network=True)
    plain = mask_learner(examples).learn_one(candidate).result.theta
    for example in examples:
        example.features.nodes.values[:, :, 1] *= 10.0
    bold = mask_learner(examples).learn_one(candidate).result.theta
    tree, network = np.flatnonzero(plain)
    assert_allclose(bold[tree], plain[tree] / 10, rtol=1e-4)
    assert_allclose(bold[network], plain[network], rtol=1e-4)


@pytest.mark.parametrize(("trees", "network"), [(4.0, 0.1), (0.1, 4.0)])
def test_label_maps_are_never_worse_than_the_better_of_network_and_trees(
    trees: float, network: float
) -> None:
    candidates = compared_candidates(None, 3, has_network=True)
    found = class_learner(class_examples(4, trees, network)).learn(candidates)
    errors = found.errors
    assert errors[found.candidate.name] <= min(errors["trees alone"], errors["network alone"])
    better = "network alone" if network < trees else "trees alone"
    other = "trees alone" if network < trees else "network alone"
    assert errors[better] < errors[other]


def test_edges_must_be_clearly_better_than_the_network_and_the_trees() -> None:
    """Edges better than the trees by far, but hardly better than the network, are not used."""
    mistakes = {
        TREES: np.array([90.0, 95.0, 92.0]),
        NETWORK: np.array([50.0, 54.0, 48.0]),
        EDGES: np.array([49.0, 55.0, 47.0]),
    }
    ordered = beginning_with_best(mistakes)
    assert choose_candidate(ordered, standard_errors=2.0) == NETWORK
    mistakes[EDGES] = np.array([30.0, 33.0, 31.0])
    assert choose_candidate(beginning_with_best(mistakes), standard_errors=2.0) == EDGES
    without = {TREES: mistakes[TREES], EDGES: mistakes[EDGES]}
    assert list(beginning_with_best(without)) == [TREES, EDGES]


def test_with_few_pictures_the_mean_stands_where_neither_is_clearly_better() -> None:
    """Five pictures of horses: of either, the one with fewer mistakes there had more on others."""
    mistakes = {
        TREES: np.array([3160.0, 7620, 951, 2950, 2770]),
        NETWORK: np.array([4734.0, 5846, 3410, 3294, 1914]),
        MEAN: np.array([3500.0, 6900, 1600, 3000, 2200]),
        EDGES: np.array([1694.0, 2779, 791, 2947, 6389]),
    }
    assert choose_candidate(beginning_with_best(mistakes), standard_errors=2.0) == MEAN
    mistakes[TREES] = mistakes[NETWORK] - [2300, 2350, 2280, 1310, 1320]
    assert choose_candidate(beginning_with_best(mistakes), standard_errors=2.0) == TREES
    mistakes[MEAN] = mistakes[TREES] - 1
    assert choose_candidate(beginning_with_best(mistakes), standard_errors=2.0) == MEAN


def test_of_strokes_the_usual_weights_stay_where_they_are_best() -> None:
    first, *others = compared_candidates(None, 3, is_sparse=True, has_network=True)
    assert {one.loss for one in others} == {"univariate", "trees", "network", "mean"}
    mistakes = {one: np.array([20.0, 21.0]) for one in others} | {first: np.array([9.0, 9.0])}
    assert next(iter(beginning_with_best({first: mistakes[first], **mistakes}))) == first


def test_the_factor_makes_probabilities_right_and_keeps_labels() -> None:
    rng = np.random.default_rng(0)
    p = rng.uniform(0.05, 0.95, (200, 200))
    labels = (rng.random(p.shape) < p).astype(np.uint8)
    odds = np.log(p / (1 - p))
    bold = np.stack([np.zeros_like(p), 3 * odds], axis=2)
    assert_allclose(fit_slope([(bold, labels)]), 1 / 3, rtol=0.05)
    assert fit_slope([(bold, np.full(p.shape, UNKNOWN))]) == 1.0


def test_one_seen_label_gives_a_bounded_factor() -> None:
    scores = np.zeros((4, 4, 2))
    scores[:, :, 1] = 6.0
    assert 1.0 < fit_slope([(scores, np.ones((4, 4), np.uint8))]) <= 5.0


@pytest.fixture
def alone() -> SegmentationModel:
    images, masks = grains(4)
    return train_boosted_segmentation(images, masks, loss="network", network=TINY).model


def test_a_model_of_the_network_alone_is_saved_and_never_uses_its_trees(
    alone: SegmentationModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (image, *_), _ = grains(1)
    alone.save(tmp_path / "model.npz")
    model = load_segmentation_model(tmp_path / "model.npz")
    assert model.loss == "network"
    assert model.network is not None

    def refuse(*args: Any, **options: Any) -> Any:
        raise AssertionError

    monkeypatch.setattr(TreeUnaries, "scores", refuse)
    found = predict_segmentation(model, image)
    odds = model.network.log_odds(image)[:, :, 0]
    assert_array_equal(found.labels, odds > 0)
    assert_allclose(
        found.marginals,
        1 / (1 + np.exp(-model.theta[np.flatnonzero(model.theta)[0]] * odds)),
        atol=1e-5,
    )


def test_label_maps_learn_the_network_alone_too() -> None:
    images, masks = grains(4)
    labels = [mask.astype(np.uint8) for mask in masks]
    for label in labels:
        label[:8] = 2
    trained = train_class_segmentation(
        images, labels, ["a", "b", "c"], loss="network", network=TINY
    )
    assert trained.loss == "network"
    assert trained.model.network is not None
    found = predict_segmentation(trained.model, images[0]).labels
    assert_array_equal(found, trained.model.network.log_odds(images[0]).argmax(axis=2))


def test_the_comparison_names_both_and_says_which_was_chosen() -> None:
    images, masks = grains(4)
    options = replace(TINY, steps=40)
    trained = train_boosted_segmentation(images, masks, network=options)
    assert {"trees", "network alone", MEAN.name} <= set(trained.errors)
    names = {"trees": "trees", "network": "network alone", "mean": MEAN.name}
    assert trained.errors[names.get(trained.loss, trained.loss)] <= max(
        trained.errors["trees"], trained.errors["network alone"]
    )


def test_without_time_no_candidate_with_edges_has_an_error() -> None:
    images, masks = grains(4)
    trained = train_boosted_segmentation(images, masks, network=TINY, max_seconds=0.001)
    assert set(trained.errors) <= {"trees", "network alone", MEAN.name}
    assert trained.loss in ("trees", "network", "mean")
    assert any("no time to learn its weights" in one for one in trained.left_out)


@pytest.mark.parametrize("loss", ["network", "mean"])
def test_without_a_network_losses_that_need_one_are_refused(
    alone: SegmentationModel, loss: str
) -> None:
    images, masks = grains(2)
    with pytest.raises(InvalidProblemError, match=f"{loss} needs a network"):
        train_boosted_segmentation(images, masks, loss=loss)
    with pytest.raises(InvalidProblemError, match=f"{loss} needs a network"):
        train_class_segmentation(images, masks, ["a", "b"], loss=loss)
    with pytest.raises(InvalidProblemError, match=f"{loss} needs a network"):
        make_segmentation_model(
            alone.theta, unaries=alone.unaries, loss=loss, ridge=1.0, detail=Detail()
        )


def test_a_model_of_the_mean_is_saved_and_predicts_it(tmp_path: Path) -> None:
    images, masks = grains(4)
    trained = train_boosted_segmentation(images, masks, loss="mean", network=TINY)
    trained.model.save(tmp_path / "model.npz")
    model = load_segmentation_model(tmp_path / "model.npz")
    assert (trained.loss, model.loss, np.count_nonzero(model.theta)) == ("mean", "mean", 2)
    assert model.network is not None
    assert model.unaries is not None
    (image, *_), _ = grains(1)
    values = model.features(image).nodes.values
    tree, network = model.theta[np.flatnonzero(model.theta)]
    scores = tree * values[:, :, 1] + network * values[:, :, -1]
    found = predict_segmentation(model, image)
    assert_allclose(found.marginals, 1 / (1 + np.exp(-scores)), atol=1e-5)


def test_without_smoothing_only_trees_and_network_are_compared() -> None:
    assert compared_candidates(None, 3, is_smooth=False) == [TREES_ALONE]
    for is_sparse in (False, True):
        both = compared_candidates(None, 3, is_sparse=is_sparse, has_network=True, is_smooth=False)
        assert both == [TREES_ALONE, NETWORK_ALONE]
    (chosen,) = compared_candidates("likelihood", 3, has_network=True, is_smooth=False)
    assert chosen.loss == "likelihood"
