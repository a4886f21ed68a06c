"""Refits of the trees beside their messages: taken where held-out error falls, and only there."""

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from engine.core.status import Status
from engine.crf.filter_bank import Frame
from engine.learning.segmentation import (
    class_learning,
    label_learning,
    mask_weights,
    tree_learning,
)
from engine.learning.segmentation.boosted_learning import train_boosted_segmentation
from engine.learning.segmentation.boosted_trees import fit_forest
from engine.learning.segmentation.class_learning import TrainedClasses, train_class_segmentation
from engine.learning.segmentation.clock import Clock
from engine.learning.segmentation.label_learning import has_fallen, has_time_for_refit
from engine.learning.segmentation.model import load_segmentation_model
from engine.learning.segmentation.training_pictures import deal_pictures
from engine.learning.segmentation.tree_learning import TreeLearning
from engine.learning.segmentation.tree_options import TreeOptions
from tests.learning.segmentation.class_pictures import CLASSES, class_pictures

WEAK = TreeOptions(n_trees=2, n_leaves=3, rate=0.1, min_leaf=10)


@pytest.fixture(autouse=True)
def weak_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_learning, "FIRST", WEAK)
    monkeypatch.setattr(tree_learning, "SECOND", WEAK)
    monkeypatch.setattr(tree_learning, "MASK_LEAVES", 1)
    monkeypatch.setattr(class_learning, "EDGE_LABELS", 20_000)


def learn_classes(noise: float) -> TrainedClasses:
    return train_class_segmentation(
        *class_pictures(4, side=32, noise=noise), CLASSES, loss="univariate"
    )


def test_trees_of_classes_go_on_from_messages_where_they_left_much_open(tmp_path: Path) -> None:
    trained = learn_classes(60.0)
    (before,) = [trained.errors[k[: -len(", refitted")]] for k in trained.errors if "refit" in k]
    (after,) = (v for k, v in trained.errors.items() if k.endswith("refitted"))
    assert after < 0.9 * before
    assert trained.model.unaries.n_refits == 1
    forests = trained.model.unaries.second
    assert all(len(forest.starts) > WEAK.n_trees for forest in forests)
    trained.model.save(tmp_path / "model.npz")
    read = load_segmentation_model(tmp_path / "model.npz")
    assert read.unaries.n_refits == 1
    image = class_pictures(1, seed=9)[0][0]
    assert_array_equal(read.unaries.scores(image), trained.model.unaries.scores(image))


def test_no_refit_is_taken_where_nothing_is_left_to_explain(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tree_learning, "SECOND", TreeOptions(20, 8, 0.3, min_leaf=10))
    trained = learn_classes(0.0)
    (after,) = (v for k, v in trained.errors.items() if k.endswith("refitted"))
    before = min(v for k, v in trained.errors.items() if not k.endswith("refitted"))
    assert not has_fallen(before, after)
    assert trained.model.unaries.n_refits == 0
    assert all(len(forest.starts) <= 20 for forest in trained.model.unaries.second)


def test_trees_of_masks_go_on_from_messages_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mask_weights, "COMPARED", ("univariate",))
    images, labels = class_pictures(6, side=32, noise=60.0)
    trained = train_boosted_segmentation(images, [label == 2 for label in labels], max_side=48)
    (after,) = (v for k, v in trained.errors.items() if k.endswith("refitted"))
    assert after < 0.98 * trained.errors[trained.loss]
    assert trained.model.unaries.n_refits == 1
    path = tmp_path / "model.npz"
    trained.model.save(path)
    read = load_segmentation_model(path)
    found, expected = (model.features(images[0]).nodes for model in (read, trained.model))
    assert_array_equal(found.values, expected.values)
    parts = dict(np.load(path))
    del parts["n_refits"], parts["n_maps"]
    np.savez(path, **parts)
    assert load_segmentation_model(path).unaries.n_refits == 0  # older files know of none


def test_a_refit_of_masks_that_tells_nothing_of_other_pictures_is_left() -> None:
    rng = np.random.default_rng(0)
    read = [
        (
            rng.integers(0, 256, (24, 24, 3), dtype=np.uint8),
            np.zeros((24, 24, 0), np.float32),
            rng.integers(0, 2, (24, 24), dtype=np.uint8),
            Frame(0, 0, 24, 24),
        )
        for _ in range(8)
    ]
    pictures = deal_pictures(read, 2, 300, rng)
    how = TreeLearning(1, None, False, lambda *_: None, lambda: False, thinned_from=0)
    unaries = how.learn(pictures)
    undecided = [np.full((24, 24, 2), np.log(0.5), np.float32)] * 8
    assert how.refit(unaries, pictures, undecided, 1.0) is unaries


def test_forests_are_joined_by_adding_what_they_say() -> None:
    rng = np.random.default_rng(0)
    samples = rng.normal(size=(3, 400)).astype(np.float32)
    labels = (samples[0] > 0).astype(np.uint8)
    one, other = (
        fit_forest(samples, y, 2, TreeOptions(6, 5, 0.3), rng=rng)
        for y in (labels, (samples[1] > 0).astype(np.uint8))
    )
    joined = one.joined(other)
    assert_allclose(joined.scores(samples), one.scores(samples) + other.scores(samples), atol=1e-5)
    both = joined.scores(samples)
    odds = joined.of_log_odds().scores(samples)
    assert_allclose(odds[:, 0], both[:, 1] - both[:, 0], atol=1e-5)


def test_a_refit_needs_time_and_a_fall_that_pays() -> None:
    clock = Clock(lambda progress: None, None)
    assert has_time_for_refit(clock)
    assert not has_time_for_refit(Clock(lambda progress: None, 10.0, started=clock.started - 9.0))
    assert not has_fallen(0.0, 0.0)
    assert not has_fallen(0.1, 0.099)
    assert has_fallen(0.1, 0.09)


def test_no_refit_without_messages_or_pictures_to_evaluate_it() -> None:
    for options in ({"loss": "trees"}, {"loss": "likelihood"}):
        trained = train_class_segmentation(*class_pictures(4, side=32), CLASSES, **options)
        assert not any(name.endswith("refitted") for name in trained.errors)
    images, labels = class_pictures(4, side=32)
    masks = [label == 1 for label in labels]
    trained = train_boosted_segmentation(images, masks, max_side=48, loss="univariate")
    assert trained.errors == {}
    assert trained.model.unaries.n_refits == 0


def test_a_refit_that_time_did_not_allow_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(label_learning, "has_time_for_refit", lambda clock: False)
    trained = train_class_segmentation(
        *class_pictures(4, side=32, noise=60.0), CLASSES, loss="univariate", max_seconds=900.0
    )
    assert trained.left_out == ("a refit of the trees",)
    assert trained.result.status is Status.TIME_LIMIT
