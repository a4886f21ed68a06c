"""Learning several classes: what is learned, what is refused, and going on after a kill."""

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from engine.core.checkpoint import FileCheckpoint
from engine.core.errors import InvalidProblemError, StoppedError
from engine.learning.segmentation import class_candidates, class_learning, tree_learning
from engine.learning.segmentation.boosted_trees import fit_forest
from engine.learning.segmentation.class_learning import TrainedClasses, train_class_segmentation
from engine.learning.segmentation.class_weights import fit_loss
from engine.learning.segmentation.model import Detail, load_segmentation_model
from engine.learning.segmentation.prediction import predict_segmentation
from engine.metrics.classes import confusion
from tests.learning.segmentation.class_pictures import CLASSES, class_pictures
from tests.small_trees import learned_trees


@pytest.fixture(scope="module", autouse=True)
def small_trees():  # type: ignore[no-untyped-def]
    with learned_trees(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(class_learning, "EDGE_LABELS", 10_000)
        yield


@pytest.fixture(scope="module")
def trained() -> TrainedClasses:
    return train_class_segmentation(*class_pictures(5), CLASSES)


def test_new_pictures_are_labelled(trained: TrainedClasses) -> None:
    images, labels = class_pictures(2, seed=9)
    for image, label in zip(images, labels, strict=True):
        prediction = predict_segmentation(trained.model, image, with_best=True)
        error = confusion(prediction.labels, label, 3).error
        assert error < 0.04
        assert confusion(prediction.read_out("map"), label, 3).error < 0.05


def test_a_model_file_gives_the_same_answer_and_damage_is_refused(
    trained: TrainedClasses, tmp_path: Path
) -> None:
    path = tmp_path / "m.npz"
    trained.model.save(path)
    image = class_pictures(1, seed=4)[0][0]
    ours, theirs = (
        predict_segmentation(m, image) for m in (trained.model, load_segmentation_model(path))
    )
    assert_array_equal(ours.probabilities, theirs.probabilities)
    with np.load(path) as file:
        parts = dict(file)
    for name, value in (
        ("theta", parts["theta"][:-1]),
        ("classes", parts["classes"][:2]),
        ("first_0_children", parts["first_0_children"] + 10_000),
        ("max_side", np.array(2)),
        ("values", np.array([0, 0, 1])),
    ):
        np.savez(tmp_path / "bad.npz", **(parts | {name: value}))
        with pytest.raises(InvalidProblemError, match=r"bad\.npz is damaged"):
            load_segmentation_model(tmp_path / "bad.npz")


def test_a_killed_run_goes_on_after_the_last_forest(
    trained: TrainedClasses, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = FileCheckpoint(tmp_path / "c.npz")
    count = 0

    def should_stop() -> bool:
        nonlocal count
        count += 1
        return count > 120

    with pytest.raises(StoppedError):
        train_class_segmentation(
            *class_pictures(5), CLASSES, checkpoint=place, should_stop=should_stop
        )
    saved = place.load()
    assert saved is not None
    done = sum(name.endswith("_offsets") for name in saved)
    assert 0 < done < 8
    fits = []

    def fit(*args, **options):  # type: ignore[no-untyped-def]
        if options["start"] is None:  # a refit is none of the eight that are left
            fits.append(1)
        return fit_forest(*args, **options)

    monkeypatch.setattr(tree_learning, "fit_forest", fit)
    again = train_class_segmentation(*class_pictures(5), CLASSES, checkpoint=place)
    assert len(fits) == 8 - done
    assert_array_equal(again.model.theta, trained.model.theta)
    with pytest.raises(InvalidProblemError, match="image digest"):
        train_class_segmentation(*class_pictures(5, seed=1), CLASSES, checkpoint=place)


def test_a_run_killed_among_the_weights_goes_on_after_the_last_that_were_learned(
    trained: TrainedClasses, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every interruption lost minutes of learning: the weights of all losses."""
    place = FileCheckpoint(tmp_path / "c.npz")
    fits = []

    def fit_or_end(*args, **options):  # type: ignore[no-untyped-def]
        if len(fits) == 3:
            raise StoppedError("The process is killed.")
        fits.append(1)
        return fit_loss(*args, **options)

    monkeypatch.setattr(class_candidates, "fit_loss", fit_or_end)
    with pytest.raises(StoppedError):
        train_class_segmentation(*class_pictures(5), CLASSES, checkpoint=place)
    left = []

    def fit(*args, **options):  # type: ignore[no-untyped-def]
        left.append(1)
        return fit_loss(*args, **options)

    def grow(*args, **options):  # type: ignore[no-untyped-def]
        assert options["start"] is not None, "forests of both stages are there"
        return fit_forest(*args, **options)

    monkeypatch.setattr(class_candidates, "fit_loss", fit)
    monkeypatch.setattr(tree_learning, "fit_forest", grow)
    again = train_class_segmentation(*class_pictures(5), CLASSES, checkpoint=place)
    whole = FileCheckpoint(tmp_path / "w.npz")
    n_left = len(left)
    monkeypatch.setattr(tree_learning, "fit_forest", fit_forest)
    train_class_segmentation(*class_pictures(5), CLASSES, checkpoint=whole)
    assert n_left == len(left) - n_left - 3  # three fewer than a whole run
    assert_array_equal(again.model.theta, trained.model.theta)
    assert again.errors == trained.errors


def test_scribbles_alone_are_enough(trained: TrainedClasses) -> None:
    images, labels = class_pictures(2)
    rng = np.random.default_rng(0)
    strokes = [np.where(rng.random(y.shape) < 0.05, y, 255).astype(np.uint8) for y in labels]
    learned = train_class_segmentation(images, strokes, CLASSES)
    assert sum(learned.n_known) == sum(int((s < 3).sum()) for s in strokes)
    new, truth = class_pictures(1, seed=9)
    error = confusion(predict_segmentation(learned.model, new[0]).labels, truth[0], 3).error
    assert error < 0.2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda i, y: ([], []), "no labelled images"),
        (lambda i, y: (i, y[:1]), "no label map"),
        (lambda i, y: (i, [a[:5] for a in y]), "of shape"),
        (lambda i, y: (i, [a + 7 for a in y]), "none of the 3 classes"),
        (lambda i, y: (i, [np.full_like(a, 255) for a in y]), "No pixel has a known label"),
        (lambda i, y: (i, [np.full_like(a, 1) for a in y]), "All known pixels are water"),
    ],
)
def test_labels_that_teach_nothing_are_refused(change, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InvalidProblemError, match=message):
        train_class_segmentation(*change(*class_pictures(2)), CLASSES)


def test_maps_must_be_probabilities_and_as_many_for_all() -> None:
    images, labels = class_pictures(2)
    planes = np.full((24, 28, 2), 0.5)
    for maps, message in (
        ([planes, planes[:, :, :1]], "image 2: expected 2 maps"),
        ([planes * 3, planes], "from 0 to 1"),
        ([planes, planes[:10]], "image 2: its maps are 28 x 10 pixels but it is 56 x 48"),
        ([planes], "image 2 has no map"),
        ([planes] * 3, "map 3 has no image"),
        ([np.zeros((24, 28, 33))] * 2, "at most 32"),
    ):
        with pytest.raises(InvalidProblemError, match=message):
            train_class_segmentation(images, labels, CLASSES, maps=maps)


def test_detail_is_a_share_of_the_picture_or_its_longest_side() -> None:
    assert Detail(200).shape(1000, 500) == (200, 100)
    assert Detail(200, 1.0).shape(1000, 500) == (1000, 500)
    assert Detail(200, 0.5).shape(1000, 500) == (500, 250)
    with pytest.raises(InvalidProblemError):
        Detail(200, 1.5)
