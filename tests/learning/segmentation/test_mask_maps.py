"""Probabilities of another program beside masks: what they add, and what is refused."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from engine.core.errors import InvalidProblemError
from engine.crf.grid_features import DenseNodeFeatures, NodeFeaturesWithMaps
from engine.crf.image_features import N_NODE_FEATURES, compute_image_features
from engine.crf.image_grid import shrink_image, shrink_maps
from engine.crf.picture_windows import ArrayMaps, ArraySource, ShrunkMaps
from engine.learning.segmentation import (
    detail_choice,
    mask_weights,
    picture_window,
    prediction,
    tiled_prediction,
)
from engine.learning.segmentation.boosted_learning import TrainedBoosted, train_boosted_segmentation
from engine.learning.segmentation.class_learning import train_class_segmentation
from engine.learning.segmentation.detail_choice import choose_detail
from engine.learning.segmentation.example_store import ExampleStore, content_key
from engine.learning.segmentation.mask_learning import TrainedSegmentation, train_segmentation
from engine.learning.segmentation.model import Detail, SegmentationModel, load_segmentation_model
from engine.learning.segmentation.prediction import predict_segmentation
from engine.learning.segmentation.spread_pictures import PicturesHere
from engine.learning.segmentation.tiled_prediction import TiledPrediction, sink_of
from engine.learning.segmentation.tree_options import TreeOptions
from tests.learning.segmentation.told_pictures import told_leaves, useless
from tests.small_trees import learned_trees

SMALL = TreeOptions(n_trees=15, n_leaves=8, rate=0.3)
COUNT = 8
TRAINING, NEW = told_leaves(COUNT), told_leaves(10, seed=9)

Map = NDArray[Any]
Train = Callable[..., TrainedBoosted | TrainedSegmentation]


@pytest.fixture(autouse=True)
def small_trees() -> Iterator[None]:
    with learned_trees(SMALL):
        yield


def error(model: SegmentationModel, maps: list[Map] | None) -> float:
    """Share of wrong pixels of new pictures."""
    images, masks, _ = NEW
    beside = [None] * len(images) if maps is None else maps
    found = [predict_segmentation(model, *pair).labels for pair in zip(images, beside, strict=True)]
    return float(np.mean([a != b for a, b in zip(found, masks, strict=True)]))


def boosted(*given: Any, **options: Any) -> TrainedBoosted:
    return train_boosted_segmentation(*given, **{"loss": "univariate"} | options)


def linear(*given: Any, **options: Any) -> TrainedSegmentation:
    return train_segmentation(*given, **{"relative_gap": 1e-2} | options)


@pytest.fixture(scope="module")
def trained() -> TrainedBoosted:
    with learned_trees(SMALL):
        images, masks, maps = TRAINING
        return boosted(images, masks, maps=maps)


@pytest.mark.parametrize("train", [boosted, linear])
def test_maps_lower_the_error_and_useless_ones_do_little_harm(train: Train) -> None:
    images, masks, maps = TRAINING
    alone = error(train(images, masks).model, None)
    with_maps = error(train(images, masks, maps=maps).model, NEW[2])
    told_alone = np.mean([(m > 0.5) != mask for m, mask in zip(NEW[2], NEW[1], strict=True)])
    assert with_maps < 0.6 * alone
    assert with_maps < 0.9 * told_alone
    noise = error(train(images, masks, maps=useless(maps)).model, useless(NEW[2]))
    assert noise < alone + 0.03  # about the standard error of the difference over ten pictures


def test_of_all_ways_one_that_uses_the_maps_is_chosen_on_pictures_kept_out() -> None:
    images, masks, maps = TRAINING
    trained = train_boosted_segmentation(images, masks, maps=maps)
    assert set(mask_weights.COMPARED) <= set(trained.errors)
    plain = train_boosted_segmentation(images, masks)
    assert min(trained.errors.values()) < 0.6 * min(plain.errors.values())
    assert error(trained.model, NEW[2]) < 0.6 * error(plain.model, None)


def test_maps_are_features_of_the_trees_and_of_the_nodes(trained: TrainedBoosted) -> None:
    model = trained.model
    assert model.n_maps == 1
    assert len(model.theta) == 174 + 2
    plain = model.unaries.bank.n_features
    assert all(forest.n_features == plain + 1 for forest in model.unaries.first)
    assert any((forest.features == plain).any() for forest in model.unaries.first)
    shape = model.grid_shape(*NEW[0][0].shape[:2])
    planes = shrink_maps(NEW[2][0][:, :, None], shape)
    features = model.features(shrink_image(NEW[0][0], shape), planes)
    assert isinstance(features.nodes, DenseNodeFeatures)
    log_odds = np.log(NEW[2][0] / (1 - NEW[2][0])).clip(-6, 6)
    assert_allclose(features.nodes.values[:, :, 3], log_odds, atol=0.02)
    assert abs(model.theta[3]) > 1e-3  # the weight of the map, background


@pytest.mark.parametrize("train", [boosted, linear])
def test_a_model_file_keeps_its_maps(train: Train, tmp_path: Path) -> None:
    images, masks, maps = TRAINING
    two = [np.stack([one, 1 - one], axis=2) for one in maps]
    model = train(images, masks, maps=two).model
    model.save(tmp_path / "model.npz")
    read = load_segmentation_model(tmp_path / "model.npz")
    assert read.n_maps == model.n_maps == 2
    new = np.stack([NEW[2][0], 1 - NEW[2][0]], axis=2)
    expected = predict_segmentation(model, NEW[0][0], new).marginals
    assert_array_equal(predict_segmentation(read, NEW[0][0], new).marginals, expected)
    parts = dict(np.load(tmp_path / "model.npz"))
    for wrong in (1, 33, -2, 0.5):
        np.savez(tmp_path / "other.npz", **parts | {"n_maps": np.array(wrong)})
        with pytest.raises(InvalidProblemError, match=r"other\.npz (is damaged|was learned)"):
            load_segmentation_model(tmp_path / "other.npz")


def test_a_linear_model_without_maps_has_the_file_it_always_had(tmp_path: Path) -> None:
    images, masks, _ = TRAINING
    linear(images[:3], masks[:3]).model.save(tmp_path / "model.npz")
    assert "n_maps" not in np.load(tmp_path / "model.npz").files
    assert load_segmentation_model(tmp_path / "model.npz").n_maps == 0


@pytest.mark.parametrize("train", [boosted, linear])
def test_maps_that_do_not_fit_are_refused_in_a_sentence(train: Train) -> None:
    images, masks, maps = TRAINING
    nothing = np.full_like(maps[0], np.nan)
    for wrong, sentence in (
        (maps[:-1], f"image {COUNT} has no map"),
        ([*maps, maps[0]], f"map {COUNT + 1} has no image"),
        ([*maps[:-1], None], f"image {COUNT}: expected 1 map as of the others, got 0"),
        ([*maps[:-1], np.stack([maps[-1]] * 2, axis=2)], "expected 1 map as of the others, got 2"),
        ([*maps[:-1], maps[-1].T], "its maps are 48 x 64 pixels but it is 64 x 48"),
        ([nothing, *maps[1:]], "image 1: maps must hold probabilities"),
        ([200 * maps[0], *maps[1:]], "image 1: maps must hold probabilities"),
    ):
        with pytest.raises(InvalidProblemError, match=sentence):
            train(images, masks, maps=wrong)
    with pytest.raises(InvalidProblemError, match="image 1: expected 1 map as of the others"):
        train(images, masks, maps=maps, holdout=NEW[:2])


def test_predictions_need_the_maps_that_were_learned_with(trained: TrainedBoosted) -> None:
    image, one = NEW[0][0], NEW[2][0]
    for wrong, sentence in (
        (None, "learned with 1 map beside each image; this one comes with 0"),
        (np.stack([one, one], axis=2), "this one comes with 2"),
        (one[:, :30], "its maps are 30 x 48 pixels but it is 64 x 48"),
        (one + np.float32(np.nan), "numbers from 0 to 1"),
    ):
        with pytest.raises(InvalidProblemError, match=sentence):
            predict_segmentation(trained.model, image, wrong)
    plain = boosted(*TRAINING[:2], loss="trees").model
    with pytest.raises(InvalidProblemError, match="learned with 0 maps"):
        predict_segmentation(plain, image, one)


def test_certain_maps_and_maps_of_half_the_size_are_learned_from() -> None:
    """Log-odds of 0 and 1 are infinite."""
    images, masks, maps = TRAINING
    sure = [(one > 0.5).astype(np.float32) for one in maps]
    trained = boosted(images, masks, maps=[one[::2, ::2] for one in sure])
    assert np.isfinite(trained.model.theta).all()
    new = [(one > 0.5).astype(np.float32)[::2, ::2] for one in NEW[2]]
    assert error(trained.model, new) < 0.1
    empty = [np.zeros_like(one) for one in maps]
    assert np.isfinite(boosted(images, masks, maps=empty).model.theta).all()


def test_held_out_pictures_are_shown_with_their_maps() -> None:
    images, masks, maps = TRAINING
    previews: list[Any] = []

    def keep(report: Any) -> None:
        previews.append(getattr(report, "preview", None))

    trained = boosted(images, masks, maps=maps, holdout=NEW, on_progress=keep)
    assert previews[-1].error == pytest.approx(error(trained.model, NEW[2]), abs=1e-9)
    shown = linear(images, masks, maps=maps, holdout=NEW, on_progress=keep)
    assert previews[-1].error == pytest.approx(error(shown.model, NEW[2]), abs=1e-9)


def test_a_lone_picture_is_learned_from_with_its_map() -> None:
    images, masks, maps = TRAINING
    trained = train_boosted_segmentation(images[:1], masks[:1], maps=maps[:1])
    assert trained.model.n_maps == 1


def test_sizes_are_chosen_with_maps_and_they_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detail_choice, "TREES", 8)
    monkeypatch.setattr(detail_choice, "SAMPLES", 6000)
    images, masks, maps = TRAINING
    labels = [mask.view(np.uint8) for mask in masks]
    alone = choose_detail(images, labels, 2, [Detail(64)]).errors[0]
    assert choose_detail(images, labels, 2, [Detail(64)], maps=maps).errors[0] < 0.7 * alone
    with pytest.raises(InvalidProblemError, match="image 3 has no map"):
        choose_detail(images, labels, 2, [Detail(64)], maps=maps[:2])
    choose_detail(images, labels, 2, [Detail(48), Detail(64)], maps=[one[::2, ::2] for one in maps])


def tiled(model: Any, image: Map, maps: Map, core: int) -> Map:
    depth = () if model.is_mask else (model.n_classes,)
    out = np.empty((*image.shape[:2], *depth), dtype=np.float32)

    def write(top: int, left: int, values: Map) -> None:
        out[top : top + values.shape[0], left : left + values.shape[1]] = values

    report = TiledPrediction(model, ArraySource(image), ArrayMaps(maps), core=core).run(write)
    assert report.n_tiles > 3
    return out


@pytest.mark.parametrize("is_local", [False, True])
def test_masks_in_tiles_are_those_of_the_whole(
    is_local: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    shape = (220, 300)
    if is_local:
        monkeypatch.setattr(picture_window, "WHOLE_SIDE", 40)
        monkeypatch.setattr(picture_window, "CORE", 40)
    images, masks, maps = (part[:4] for part in TRAINING)
    model = boosted(images, masks, maps=maps, max_side=400, loss="trees").model
    assert model.unaries.is_local == is_local
    (image,), _, (one,) = told_leaves(1, seed=5, shape=shape)
    whole = predict_segmentation(model, image, one)
    parts = tiled(model, image, one[:, :, None], 150)
    assert np.mean((parts > 0.5) != whole.labels) < 1e-3
    assert np.abs(parts - whole.marginals).mean() < 1e-3
    monkeypatch.setattr(prediction, "WHOLE_PIXELS", 1000)
    monkeypatch.setattr(tiled_prediction, "WHOLE_PIXELS", 1000)
    monkeypatch.setattr(tiled_prediction, "core_side", lambda n_classes: 150)
    large = predict_segmentation(model, image, one)
    assert_allclose(large.marginals, parts, atol=1e-6)
    without = TiledPrediction(model, ArraySource(image))
    with pytest.raises(InvalidProblemError, match="this one comes with 0"):
        without.run(sink_of(np.empty(shape, dtype=np.float32)))


def test_classes_in_tiles_are_those_of_the_whole(tmp_path: Path) -> None:
    images, masks, maps = (part[:4] for part in TRAINING)
    labels = [mask.view(np.uint8) for mask in masks]
    options: dict[str, Any] = {"detail": Detail(scale=1.0), "loss": "trees"}
    model = train_class_segmentation(images, labels, ["a", "b"], maps=maps, **options).model
    model.save(tmp_path / "model.npz")
    assert load_segmentation_model(tmp_path / "model.npz").n_maps == 1
    (image,), _, (one,) = told_leaves(1, seed=5, shape=(200, 260))
    whole = predict_segmentation(model, image, one).probabilities
    parts = tiled(model, image, one[:, :, None], 100)
    assert np.mean(parts.argmax(axis=2) != whole.argmax(axis=2)) < 1e-3


@pytest.mark.parametrize("shape", [(33, 25), (101, 77), (50, 30), (130, 90)])
def test_a_window_of_shrunk_maps_is_part_of_them(shape: tuple[int, int]) -> None:
    noise = np.random.default_rng(0).normal(0.5, 2, (101, 77, 2))
    maps = gaussian_filter(noise, (4, 4, 0)).clip(0, 1).astype(np.float32)
    whole = shrink_maps(maps, shape)
    part = ShrunkMaps(ArrayMaps(maps), shape).window(7, 3, 20, 15)
    assert np.ptp(whole[:, :, 0]) > 1
    apart = np.abs(part - whole[7:27, 3:18])
    assert apart.mean() < 1e-2
    assert np.mean(apart > 1e-3) < 0.2  # where a border halves a pixel, either side may have it


def test_node_features_with_maps_are_those_without_and_the_maps() -> None:
    rng = np.random.default_rng(0)
    colours = rng.integers(0, 256, (21, 30, 3), dtype=np.uint8)
    maps = rng.normal(size=(21, 30, 2)).astype(np.float32)
    plain, nodes = (compute_image_features(colours, m).nodes for m in (None, maps))
    assert isinstance(nodes, NodeFeaturesWithMaps)
    assert nodes.n_features == N_NODE_FEATURES + 2
    pixels = np.array([3, 200, 629])
    rows = nodes.rows(pixels)
    assert_allclose(rows[:, :-2], plain.rows(pixels))
    assert_allclose(rows[:, -2:], maps.reshape(-1, 2)[pixels])
    weights, residual = rng.normal(size=nodes.n_features), rng.normal(size=(21, 30))
    assert_allclose(nodes.scores(weights).ravel()[pixels], rows @ weights)
    assert np.sum(residual * nodes.scores(weights)) == pytest.approx(
        nodes.project(residual) @ weights
    )


def test_maps_are_kept_in_files_caches_and_on_other_hosts(tmp_path: Path) -> None:
    images, masks, maps = TRAINING
    planes = [shrink_maps(one[:, :, None], one.shape) for one in maps]
    stores = [ExampleStore(), ExampleStore(memory_bytes=0), ExampleStore(tmp_path / "cache", 0)]
    for store in stores:
        for picture in zip(images, masks, planes, strict=True):
            store.append(*picture)
    weights = np.random.default_rng(0).normal(size=stores[0][0].features.n_parameters)
    expected = stores[0][1].features.scores(weights).node
    for store in stores[1:]:
        assert_array_equal(store[1].features.scores(weights).node, expected)
        assert store.digest == stores[0].digest
    plain = ExampleStore()
    plain.append(images[0], masks[0])
    lone = ExampleStore()
    lone.append(images[0], masks[0], planes[0])
    assert plain.digest != lone.digest
    assert content_key(images[0]) != content_key(images[0], planes[0])
    there = PicturesHere()
    there.append([(images[1], np.packbits(masks[1]), planes[1])])
    found, _ = there.begin([0], [0], 0.5)
    assert_allclose(found[0], stores[0][1].features.observed_statistics(masks[1]))


def test_a_model_of_windows_keeps_the_maps_of_its_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(picture_window, "WHOLE_SIDE", 60)
    monkeypatch.setattr(picture_window, "CORE", 40)
    images, masks, maps = told_leaves(5, shape=(96, 128))
    new = told_leaves(3, seed=5, shape=(96, 128))
    alone = boosted(images, masks, loss="trees").model
    model = boosted(images, masks, maps=maps, holdout=new, loss="trees").model
    wrong = []
    for found, beside in ((alone, [None] * 3), (model, new[2])):
        pairs = zip(new[0], beside, strict=True)
        guessed = [predict_segmentation(found, *pair).labels for pair in pairs]
        wrong.append(np.mean([a != b for a, b in zip(guessed, new[1], strict=True)]))
    assert wrong[1] < 0.7 * wrong[0]
