"""Ways to learn the weights of classes: the best on pictures kept from them, and how it does."""

from collections.abc import Iterator

import numpy as np
import pytest

from engine.core.status import Status
from engine.crf.class_features import ClassLayout
from engine.learning.segmentation import class_candidates, class_learning
from engine.learning.segmentation.class_candidates import ClassWeights
from engine.learning.segmentation.class_learning import train_class_segmentation
from engine.learning.segmentation.class_weights import fit_loss, trees_alone
from engine.learning.segmentation.prediction import predict_segmentation
from engine.learning.segmentation.weight_learning import Candidate, choose_candidate
from engine.metrics.classes import class_figures, confusion
from tests.learning.segmentation.class_pictures import CLASSES, class_pictures
from tests.small_trees import learned_trees


@pytest.fixture(autouse=True)
def small_trees(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(class_learning, "EDGE_LABELS", 10_000)
    with learned_trees():
        yield


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

    monkeypatch.setattr(class_candidates, "fit_loss", spoilt)
    monkeypatch.setattr(class_candidates, "MOST_COMPARED_BY_LIKELIHOOD", 1)
    trained = train_class_segmentation(*class_pictures(4), CLASSES)
    assert trained.loss == "trees"
    layout = class_candidates.ClassLayout(3)
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


def test_no_half_of_a_stroke_judges_the_other() -> None:
    """A short stroke over a border between blocks was once judged by its own other half: 100 %."""
    painted = np.full((60, 60), 255, dtype=np.uint8)
    painted[17:24, 30] = 0  # over the border at 20, within the size of a block
    painted[5:50, 10] = 1
    painted[40, 20:26] = 2
    assert class_candidates.classes_in_one_place([painted], 3) == [0, 2]
    elsewhere = np.full((60, 60), 255, dtype=np.uint8)
    elsewhere[3, 3] = 2
    assert class_candidates.classes_in_one_place([painted, elsewhere], 3) == [0]


def _strokes(labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Two level strokes a class within a label map, 3 pixels wide."""
    painted = np.full_like(labels, 255)
    for label in (0, 1, 2, 0, 1, 2):
        inside = (labels[1:-1, :-12] == label) & (labels[1:-1, 12:] == label)
        places = np.argwhere(inside & (labels[1:-1, 6:-6] == label))
        if len(places):
            row, left = places[rng.integers(len(places))]
            some = painted[row : row + 3, left : left + 12]
            some[labels[row : row + 3, left : left + 12] == label] = label
    return painted


def test_edges_learned_from_strokes_do_not_smooth_things_away() -> None:
    rng = np.random.default_rng(3)
    images, labels = class_pictures(6, side=64, seed=5)
    painted = [_strokes(label, rng) for label in labels]
    trained = train_class_segmentation(images, painted, CLASSES, position=False)
    assert "likelihood" not in trained.errors
    pictures, truths = class_pictures(3, side=64, seed=8)
    wrong = [
        np.mean(predict_segmentation(trained.model, picture).labels != truth)
        for picture, truth in zip(pictures, truths, strict=True)
    ]
    alone = [
        np.mean(trained.model.unaries.scores(picture).argmax(axis=2) != truth)
        for picture, truth in zip(pictures, truths, strict=True)
    ]
    assert np.mean(wrong) < 1.1 * np.mean(alone)  # learned freely, some times as many


def test_of_strokes_another_candidate_must_be_clearly_better() -> None:
    first, other = class_candidates.CANDIDATES_FOR_STROKES[:2]

    def best(wrong: list[float], *, is_sparse: bool = True) -> Candidate:
        rules = ClassWeights(ClassLayout(2), np.ones(2), lambda: False, is_sparse).rules
        both = {first: np.full(4, 20.0), other: np.array(wrong)}
        return choose_candidate(both, standard_errors=rules.standard_errors)

    assert best([2, 3, 2, 1]) is other
    assert best([0, 20, 38, 20]) is first
    assert best([0, 20, 38, 20], is_sparse=False) is other
    assert best([20, 20, 20, 20], is_sparse=False) is first


def test_at_the_limit_candidates_are_left_out_and_listed() -> None:
    trained = train_class_segmentation(*class_pictures(4), CLASSES, max_seconds=0.01)
    assert set(trained.errors) == {"trees alone"}
    assert trained.loss == "trees"
    assert trained.result.status is Status.TIME_LIMIT
    assert {
        f"{name}: no time to learn its weights"
        for name in ("univariate, pairs of classes", "univariate, agreement", "likelihood")
    } <= set(trained.left_out)


def test_every_fit_has_an_equal_part_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    given = []

    def watched(examples, loss, **options):  # type: ignore[no-untyped-def]
        given.append(options["max_seconds"])
        return fit_loss(examples, loss, **options)

    monkeypatch.setattr(class_candidates, "fit_loss", watched)
    trained = train_class_segmentation(
        *class_pictures(4), CLASSES, max_seconds=900.0, loss="univariate"
    )
    assert given[0] <= 900 / 6  # of two halves of two candidates, and twice that for the final fit
    assert given[1] <= 900 / 5
    assert trained.left_out == ()


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
