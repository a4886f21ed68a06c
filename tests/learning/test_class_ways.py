"""Ways to learn the weights of classes: the best on pictures kept from them, and how it does."""

import numpy as np
import pytest

from engine.learning import class_segmentation, class_ways, tree_learning
from engine.learning.class_segmentation import train_class_segmentation
from engine.learning.class_weights import fit_loss, trees_alone
from engine.learning.tree_options import TreeOptions
from engine.metrics.classes import class_figures, confusion
from tests.learning.class_pictures import CLASSES, class_pictures

SMALL = TreeOptions(n_trees=12, n_leaves=8, rate=0.3, min_leaf=10)


@pytest.fixture(autouse=True)
def small_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_learning, "FIRST", SMALL)
    monkeypatch.setattr(tree_learning, "SECOND", SMALL)
    monkeypatch.setattr(class_segmentation, "EDGE_LABELS", 10_000)


def test_every_picture_is_judged_by_what_never_saw_it() -> None:
    trained = train_class_segmentation(*class_pictures(5), CLASSES, loss="univariate")
    assert len(trained.kept) >= 3
    figures = class_figures(trained.kept)
    assert figures is not None
    assert figures.error < 0.08
    assert min(row["iou"] for row in figures.classes) > 0.8
    assert "trees alone" in trained.errors


def test_trees_stand_alone_where_every_way_of_weights_does_worse(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def spoilt(examples, loss, **options):  # type: ignore[no-untyped-def]
        result = fit_loss(examples, loss, **options)
        object.__setattr__(result, "theta", -result.theta)
        return result

    monkeypatch.setattr(class_ways, "fit_loss", spoilt)
    monkeypatch.setattr(class_ways, "MOST_COMPARED_BY_LIKELIHOOD", 1)
    trained = train_class_segmentation(*class_pictures(4), CLASSES)
    assert trained.loss == "trees"
    layout = class_ways.Layout(3)
    assert np.array_equal(trained.model.theta, trees_alone(layout))
    assert trained.errors["trees alone"] == min(trained.errors.values())


def test_a_lone_picture_is_judged_block_by_block() -> None:
    images, labels = class_pictures(1, side=64)
    rng = np.random.default_rng(1)
    painted = np.where(rng.random(labels[0].shape) < 0.1, labels[0], 255).astype(np.uint8)
    trained = train_class_segmentation(images, [painted], CLASSES, loss="univariate")
    (counts,) = trained.kept
    window = 64 * 64
    assert 0 < counts.counts.sum() <= min(int((painted < 3).sum()), window)
    assert counts.error < 0.3


def test_figures_are_means_over_pictures_and_rows_over_all_pixels() -> None:
    truth = np.array([[0, 0, 1, 255]], dtype=np.uint8)
    right = confusion(truth.clip(0, 1), truth, 3)
    wrong = confusion(np.array([[0, 1, 1, 2]], dtype=np.uint8), truth, 3)
    empty = confusion(truth.clip(0, 1), np.full_like(truth, 255), 3)
    figures = class_figures([right, wrong, empty])
    assert figures is not None
    assert figures.n_pictures == 2
    assert figures.error == pytest.approx((0 + 1 / 3) / 2)
    assert figures.overlap == pytest.approx((1 + 0.5) / 2)
    assert figures.classes[0] == {"pixels": 4, "iou": 0.75, "found": 0.75, "right": 1.0}
    assert np.isnan(figures.classes[2]["iou"])
    assert class_figures([empty]) is None
