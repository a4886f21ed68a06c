"""Masks at full detail: learned from windows of large pictures, predicted in tiles."""

import weakref
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from engine.core.errors import StoppedError
from engine.crf.class_features import UNKNOWN
from engine.crf.picture_windows import MARGIN
from engine.learning.segmentation import (
    detail_choice,
    label_learning,
    mask_weights,
    picture_window,
    prediction,
    tiled_prediction,
    tree_learning,
)
from engine.learning.segmentation.boosted_learning import train_boosted_segmentation
from engine.learning.segmentation.detail_choice import MOST_SIDE, choose_detail, sides_to_try
from engine.learning.segmentation.labelled_pictures import LabelledPicture
from engine.learning.segmentation.model import Detail, SegmentationModel, load_segmentation_model
from engine.learning.segmentation.picture_window import CORE, WindowDraw, core_of, cut_windows
from engine.learning.segmentation.prediction import predict_segmentation
from engine.learning.segmentation.training_pictures import deal_folds
from engine.learning.segmentation.tree_options import TreeOptions
from tests.learning.segmentation.leaf_pictures import leaves
from tests.learning.segmentation.test_tiled_prediction import collect
from tests.learning.segmentation.wire_pictures import wire_pictures, wires

SMALL = TreeOptions(n_trees=12, n_leaves=8, rate=0.3)
SHAPE = (160, 1600)
OLD_MODEL = Path(__file__).parent / "data" / "boosted_model_1.npz"


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_learning, "FIRST", SMALL)
    monkeypatch.setattr(tree_learning, "SECOND", SMALL)
    monkeypatch.setattr(picture_window, "WINDOWS", 4)
    monkeypatch.setattr(detail_choice, "TREES", 8)
    monkeypatch.setattr(detail_choice, "SAMPLES", 6000)


def learn(max_side: int, shape: tuple[int, int] = SHAPE) -> SegmentationModel:
    pairs = list(wire_pictures(4, shape))
    images, masks = ([pair[k] for pair in pairs] for k in (0, 1))
    return train_boosted_segmentation(images, masks, max_side=max_side, loss="trees").model


@pytest.fixture(scope="module")
def fine() -> SegmentationModel:
    with pytest.MonkeyPatch.context() as patch:
        small.__wrapped__(patch)  # type: ignore[attr-defined]
        return learn(max(SHAPE))


def test_two_pixels_are_seen_at_full_detail_and_lost_at_a_thousand_pixels_a_side(fine) -> None:  # type: ignore[no-untyped-def]
    assert fine.unaries.is_local
    image, mask = wires(SHAPE, seed=99)
    finer = predict_segmentation(fine, image)
    assert finer.grid_shape == SHAPE
    coarse = predict_segmentation(learn(1000), image)
    errors = [float(np.mean(found.labels != mask)) for found in (finer, coarse)]
    assert errors[0] < 0.01
    assert errors[0] < errors[1] / 4
    assert np.mean(finer.mask != finer.labels) < 1e-3  # trees alone: the best labelling is the same


def test_full_detail_is_found_where_no_size_between_pays() -> None:
    pairs = list(wire_pictures(4, SHAPE))
    details = [Detail(side) for side in sides_to_try([SHAPE], most=MOST_SIDE)]
    assert [detail.max_side for detail in details] == [100, 200, 400, 800, 1600]
    labels = (mask.view(np.uint8) for _, mask in pairs)
    choice = choose_detail((image for image, _ in pairs), labels, 2, details)
    assert choice.detail.max_side == 1600
    assert choice.by_side[1600] < choice.by_side[100] / 4


def test_seams_of_masks_are_below_a_thousandth(fine, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    image, _ = wires((500, 640), seed=7)
    whole = predict_segmentation(fine, image)
    tiled, report = collect(fine, image, core=160)
    assert report.n_tiles == 16
    assert np.mean((tiled > 0.5) != whole.labels) < 1e-3
    monkeypatch.setattr(prediction, "WHOLE_PIXELS", 1000)
    monkeypatch.setattr(tiled_prediction, "WHOLE_PIXELS", 1000)
    monkeypatch.setattr(tiled_prediction, "core_side", lambda n_classes: 200)
    large = predict_segmentation(fine, image)
    assert np.mean(large.mask != whole.mask) < 1e-3
    assert np.mean(large.labels != whole.labels) < 1e-3
    assert (large.score, large.upper_bound) == (-np.inf, np.inf)
    with pytest.raises(StoppedError):
        predict_segmentation(fine, image, should_stop=lambda: True)


def test_weights_and_a_refit_are_learned_from_the_cores_of_windows(monkeypatch, tmp_path) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(picture_window, "WHOLE_SIDE", 60)
    monkeypatch.setattr(picture_window, "CORE", 40)
    monkeypatch.setattr(mask_weights, "COMPARED", ("trees", "univariate"))
    monkeypatch.setattr(label_learning, "REFITTED", ("trees", "univariate"))
    monkeypatch.setattr(tree_learning._Work, "explains", lambda *anything: True)
    previews = []
    trained = train_boosted_segmentation(
        *leaves(5, shape=(300, 400)),
        max_side=400,
        holdout=leaves(2, seed=5, shape=(300, 400)),
        on_progress=lambda report: previews.append(getattr(report, "preview", None)),
    )
    assert any(name.endswith("refitted") for name in trained.errors)
    assert trained.n_pixels == 5 * 40 * 40
    assert trained.model.unaries.is_local
    assert previews[-1].marginals == ()
    assert 0 <= previews[-1].error <= 1
    trained.model.save(tmp_path / "model.npz")
    read = load_segmentation_model(tmp_path / "model.npz")
    assert read.unaries.is_local
    image = leaves(1, seed=9, shape=(300, 400))[0][0]
    expected = predict_segmentation(trained.model, image).marginals
    assert_array_equal(predict_segmentation(read, image).marginals, expected)


def ramp(shape: tuple[int, int]) -> np.ndarray:
    """A map, (rows, columns, 1), every pixel of which is another."""
    return np.arange(shape[0] * shape[1], dtype=np.float32).reshape(*shape, 1)


def test_windows_lie_within_and_only_their_cores_are_known() -> None:
    image, mask = wires((700, 1100), seed=1)
    picture = LabelledPicture(image, mask, ramp((700, 1100)), True)
    windows = cut_windows(picture, 6, WindowDraw(np.random.default_rng(0)))
    for colours, maps, labels, frame in windows:
        height, width = labels.shape
        place = slice(frame.top, frame.top + height), slice(frame.left, frame.left + width)
        assert_array_equal(colours, image[place])
        assert_array_equal(maps, picture.maps[place])
        core = core_of(labels)
        assert labels[core].shape == (CORE, CORE)
        assert_array_equal(labels[core], mask[place][core])
        assert np.count_nonzero(labels != UNKNOWN) == CORE**2
        assert core[0].start == min(MARGIN, frame.top + core[0].start)
    assert len({frame for *_, frame in windows}) == 6
    small = LabelledPicture(image[:400, :900], mask[:400, :900], ramp((400, 900)), True)
    (whole,) = cut_windows(small, 6, WindowDraw(None))  # type: ignore[arg-type]
    assert_array_equal(whole.labels, mask[:400, :900])
    assert_array_equal(whole.maps, small.maps)


def test_a_small_thing_is_looked_at_every_other_time() -> None:
    mask = np.zeros((3000, 4000), dtype=bool)
    mask[2000:2020, 3100:3130] = True
    draw = WindowDraw(np.random.default_rng(0))
    seen = []
    for _ in range(6):
        top, left = draw.corner(mask, CORE)
        seen.append(bool(mask[top : top + CORE, left : left + CORE].any()))
    assert seen[::2] == [True] * 3
    assert not all(seen)


def test_windows_of_one_picture_share_its_fold() -> None:
    owners = [0, 0, 1, 1, 2, 3, 4, 4]
    folds = deal_folds([(8, 8)] * 8, list(range(8)), np.random.default_rng(0), owners)
    of = [int(fold) for fold in folds]
    assert of[0] == of[1]
    assert of[2] == of[3]
    assert of[6] == of[7]
    assert set(of) == {0, 1, 2, 3}


def test_large_pictures_are_let_go_of_one_by_one(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(picture_window, "WINDOWS", 1)
    held, most = [], 0

    def pictures():  # type: ignore[no-untyped-def]
        nonlocal most
        for image, _ in wire_pictures(6, (64, 2000)):
            held.append(weakref.ref(image))
            most = max(most, sum(one() is not None for one in held))
            yield image
            del image

    masks = (mask for _, mask in wire_pictures(6, (64, 2000)))
    train_boosted_segmentation(pictures(), masks, max_side=2000, loss="trees")
    assert len(held) == 6
    assert most <= 3  # one is read, one is cut, and one waits in what goes through both in step


def test_a_model_file_from_before_windows_says_the_same() -> None:
    model = load_segmentation_model(OLD_MODEL)
    assert not model.unaries.is_local
    found = predict_segmentation(model, leaves(1, seed=9)[0][0])
    expected = [  # of the version before
        [0.03277892619371414, 2.3057133148540743e-05, 0.00015249480202328414],
        [0.02113659679889679, 0.999984085559845, 0.00011912014451809227],
        [0.009876944124698639, 0.9999998807907104, 5.493214484886266e-05],
        [0.0017405925318598747, 1.9875818679793156e-07, 7.012027708697133e-06],
    ]
    assert_allclose(found.marginals[::12, :48:16], expected, rtol=1e-6)
    assert found.mask.sum() == 423
    assert_allclose(found.score, 14161.621651441239, rtol=1e-12)
