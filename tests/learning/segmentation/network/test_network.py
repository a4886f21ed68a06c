"""A network is learned out of fold, and its maps become features beside those of the trees."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from engine.core.checkpoint import FileCheckpoint
from engine.core.errors import InvalidProblemError, StoppedError
from engine.crf.class_features import UNKNOWN
from engine.crf.filter_bank import Frame
from engine.learning.segmentation.boosted_learning import train_boosted_segmentation
from engine.learning.segmentation.class_learning import train_class_segmentation
from engine.learning.segmentation.clock import Clock
from engine.learning.segmentation.model import load_segmentation_model
from engine.learning.segmentation.network import learning
from engine.learning.segmentation.network.inference import Network, network_from_arrays
from engine.learning.segmentation.network.learning import (
    NetworkLearning,
    NetworkOptions,
    edge_network_options,
    n_unseen_maps,
)
from engine.learning.segmentation.network.shape import NetworkShape
from engine.learning.segmentation.network.training import (
    HOW_TO_GET,
    _compile_network,
    network_available,
)
from engine.learning.segmentation.part_store import PartStore
from engine.learning.segmentation.prediction import predict_segmentation
from engine.learning.segmentation.training_pictures import TrainingPicture, deal_pictures

TINY = NetworkOptions(width=2, steps=2, batch=2)


def grains(count: int, seed: int = 0, side: int = 32) -> tuple[list[Any], list[Any]]:
    """Pictures of two textures of the same colour: stripes along, and stripes across."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:side, :side]
    images, masks = [], []
    for _ in range(count):
        mask = (x - side * rng.uniform(0.3, 0.7)) * rng.choice([-1, 1]) > 0
        stripes = np.where(mask, y // 2 % 2, x // 2 % 2) * 120 + 60
        image = stripes[:, :, None] + rng.normal(0, 10, (side, side, 3))
        images.append(np.clip(image, 0, 255).astype(np.uint8))
        masks.append(mask)
    return images, masks


def many_labels() -> tuple[Any, Any]:
    """Return a picture of 32 labels, of a colour each, and its labels.

    Compiling a network takes longer than all else. Networks of this picture are compiled once.
    """
    rng = np.random.default_rng(0)
    label = (np.arange(64) // 8)[:, None] % 8 * 4 + (np.arange(64) // 16)[None] % 4
    colours = rng.integers(0, 255, (32, 3))
    image = np.clip(colours[label] + rng.normal(0, 5, (64, 64, 3)), 0, 255).astype(np.uint8)
    return image, label.astype(np.uint8)


def dealt(images: list[Any], labels: list[Any], n_labels: int = 2) -> list[TrainingPicture]:
    read = [
        (image, np.zeros((*image.shape[:2], 0), np.float32), label.astype(np.uint8))
        for image, label in zip(images, labels, strict=True)
    ]
    whole = [(*one, Frame(0, 0, *one[2].shape)) for one in read]
    return deal_pictures(whole, n_labels, 100, np.random.default_rng(0))


def learner(
    options: NetworkOptions = TINY,
    n_labels: int = 2,
    *,
    clock: Clock | None = None,
    should_stop: Callable[[], bool] = lambda: False,
    kept: PartStore | None = None,
    seed: int = 0,
) -> NetworkLearning:
    own = clock or Clock(lambda progress: None, None)
    return NetworkLearning(
        options, n_labels, None, True, own, should_stop, kept or PartStore(), seed
    )


def test_labels_of_a_fold_have_no_effect_on_its_network() -> None:
    images, masks = grains(4)
    pictures = dealt(images, masks)
    network, _ = learner(TINY).learn(pictures)
    fold = int(pictures[0].folds)
    turned = replace(pictures[0], labels=1 - pictures[0].labels)
    other, _ = learner(TINY).learn([turned, *pictures[1:]])
    assert_array_equal(network.weights[fold], other.weights[fold])
    assert any((network.weights[k] != other.weights[k]).any() for k in range(4) if k != fold)


def test_a_single_picture_is_held_out_in_blocks() -> None:
    image, labels = many_labels()
    (picture,) = dealt([image], [labels], 32)
    assert picture.folds.shape == picture.labels.shape
    network, (one,) = learner(TINY, 32).learn([picture])
    for fold in range(4):
        own = network.log_odds(picture.colours, np.array(fold))
        assert_array_equal(one.maps[picture.folds == fold], own[picture.folds == fold])


def test_trees_see_the_maps_of_pictures_that_are_held_out_whole() -> None:
    """In held-out blocks of a picture the network is far better than on other pictures."""
    network = Network(NetworkShape(2, 2), np.zeros((4, NetworkShape(2, 2).n_weights), np.float16))
    assert [n_unseen_maps(network, dealt(*grains(count))) for count in (1, 3, 4)] == [1, 1, 0]


def test_the_same_seed_gives_the_same_network_and_another_seed_another() -> None:
    pictures = dealt(*grains(4))
    first, again, other = (learner(TINY, seed=seed).learn(pictures)[0] for seed in (3, 3, 4))
    assert_array_equal(first.weights, again.weights)
    assert (first.weights != other.weights).any()


def test_other_pictures_and_weights_of_classes_need_no_second_compilation() -> None:
    """Compiling takes ten seconds and more, at every first learning of a number of pictures."""
    descend, measure = _compile_network(NetworkShape(2, 2))
    learner().learn(dealt(*grains(4)))
    compiled = descend._cache_size(), measure._cache_size()
    larger, masks = grains(5, side=40)
    weighted = replace(learner(), class_weights=np.array([1.0, 3.0]), position=False)
    weighted.learn(dealt(larger, masks))
    assert (descend._cache_size(), measure._cache_size()) == compiled


@pytest.mark.parametrize("at", [1, 6])
def test_a_cancelled_run_goes_on_and_gives_the_same_network(at: int, tmp_path: Path) -> None:
    pictures = dealt(*grains(4))
    options = NetworkOptions(width=2, steps=20, batch=2)
    whole, _ = learner(options).learn(pictures)
    place = FileCheckpoint(tmp_path / "state.npz")
    asked = 0

    def stop() -> bool:
        nonlocal asked
        asked += 1
        return asked == at

    with pytest.raises(StoppedError):
        learner(options, should_stop=stop, kept=PartStore(place)).learn(pictures)
    steps: list[str] = []
    clock = Clock(lambda progress: steps.append(progress.sentence), None)
    resumed, _ = learner(options, clock=clock, kept=PartStore(place)).learn(pictures)
    assert_array_equal(resumed.weights, whole.weights)
    assert sum("step" in one for one in steps) == 8 - at


def test_a_checkpoint_of_a_run_without_a_network_is_refused(tmp_path: Path) -> None:
    images, masks = grains(4)
    place = FileCheckpoint(tmp_path / "state.npz")
    train_boosted_segmentation(images, masks, loss="trees", checkpoint=place)
    with pytest.raises(InvalidProblemError, match="network none, not 2 2 2"):
        train_boosted_segmentation(images, masks, loss="trees", checkpoint=place, network=TINY)


def test_a_time_limit_is_kept_and_reported() -> None:
    clock = Clock(lambda progress: None, 0.01)
    how = learner(NetworkOptions(width=2, steps=500, batch=2), clock=clock)
    how.learn(dealt(*grains(4)))
    assert how.left_out == ["1960 of 2000 steps of the network"]


def test_strokes_with_unknown_pixels_are_learned_from() -> None:
    images, masks = grains(4)
    strokes = []
    for mask in masks:
        label = np.full(mask.shape, UNKNOWN, np.uint8)
        label[12:15] = mask[12:15]
        strokes.append(label)
    trained = train_class_segmentation(images, strokes, ["along", "across"], network=TINY)
    assert trained.model.network is not None
    assert trained.model.network.n_planes == 1
    assert predict_segmentation(trained.model, images[0]).labels.shape == masks[0].shape


def test_unknown_pixels_have_no_weight() -> None:
    """The values of unknown pixels have no effect."""
    images, masks = grains(4)
    labels = [np.where(np.arange(32) % 3 == 0, 255, mask) for mask in masks]
    others = [np.where(np.arange(32) % 3 == 0, 77, mask) for mask in masks]
    first, second = (learner(TINY).learn(dealt(images, one))[0] for one in (labels, others))
    assert_array_equal(first.weights, second.weights)


def test_thirty_two_labels_give_as_many_maps(tmp_path: Path) -> None:
    image, labels = many_labels()
    names = [f"label {k}" for k in range(32)]
    trained = train_class_segmentation([image], [labels], names, loss="trees", network=TINY)
    trained.model.save(tmp_path / "model.npz")
    model = load_segmentation_model(tmp_path / "model.npz")
    assert model.network is not None
    assert model.network.n_planes == 32
    assert model.n_maps == 0
    before, after = (predict_segmentation(one, image) for one in (trained.model, model))
    assert_array_equal(before.marginals, after.marginals)


def test_given_maps_stand_beside_those_of_the_network() -> None:
    images, masks = grains(4)
    maps = [mask[:, :, None] * 0.5 for mask in masks]
    trained = train_boosted_segmentation(images, masks, loss="trees", maps=maps, network=TINY)
    assert trained.model.n_maps == 1
    assert predict_segmentation(trained.model, images[0], maps[0]).labels.shape == masks[0].shape
    with pytest.raises(InvalidProblemError, match="learned with 1 map"):
        predict_segmentation(trained.model, images[0])


def test_pictures_of_any_shape_are_learned_from_and_predicted() -> None:
    images, masks = grains(2)
    for shape in ((1, 1), (9, 700)):
        images.append(np.full((*shape, 3), 90, np.uint8))
        masks.append(np.zeros(shape, bool))
    trained = train_boosted_segmentation(images, masks, loss="trees", max_side=64, network=TINY)
    for image in images:
        assert predict_segmentation(trained.model, image).labels.shape == image.shape[:2]


def test_pictures_of_one_label_each_are_learned_from() -> None:
    images, masks = grains(4)
    plain = [np.full(mask.shape, k % 2 == 0) for k, mask in enumerate(masks)]
    trained = train_boosted_segmentation(images, plain, loss="trees", network=TINY)
    assert np.isfinite(predict_segmentation(trained.model, images[0]).marginals).all()


def test_prediction_needs_no_jax(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    images, masks = grains(4)
    trained = train_boosted_segmentation(images, masks, loss="trees", network=TINY)
    trained.model.save(tmp_path / "model.npz")
    hide_jax(monkeypatch)
    model = load_segmentation_model(tmp_path / "model.npz")
    found = predict_segmentation(model, images[0])
    assert_array_equal(found.marginals, predict_segmentation(trained.model, images[0]).marginals)


def test_without_jax_one_sentence_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert network_available() is None
    hide_jax(monkeypatch)
    assert network_available() == HOW_TO_GET
    images, masks = grains(4)
    with pytest.raises(InvalidProblemError, match="needs JAX, which is not installed") as caught:
        train_boosted_segmentation(images, masks, network=TINY)
    assert str(caught.value) == HOW_TO_GET


def hide_jax(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "jax", None)
    monkeypatch.setattr(
        "engine.learning.segmentation.network.training.find_spec", lambda name: None
    )


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"network_shape": None}, "part of its network is missing"),
        ({"network_shape": np.array([2, 10**9])}, "shape of its network"),
        ({"network_shape": np.array([33, 2])}, "shape of its network"),
        ({"network_shape": np.array([3, 2])}, "of another shape"),
        ({"network_weights": np.zeros((4, 7), np.float16)}, "of another shape"),
        ({"network_weights": np.full((4, NetworkShape(2, 2).n_weights), np.nan, "f2")}, "finite"),
    ],
)
def test_a_damaged_network_is_refused(changes: dict[str, Any], sentence: str) -> None:
    shape = NetworkShape(2, 2)
    parts = Network(shape, np.zeros((4, shape.n_weights), np.float16)).arrays() | changes
    with pytest.raises(InvalidProblemError, match=sentence):
        network_from_arrays({k: v for k, v in parts.items() if v is not None})


@pytest.mark.parametrize("option", [{"width": 0}, {"steps": 0}, {"batch": -1}, {"width": 10**6}])
def test_options_out_of_range_are_refused(option: dict[str, int]) -> None:
    with pytest.raises(InvalidProblemError, match=f"{next(iter(option))}: expected"):
        NetworkOptions(**option)


@pytest.mark.parametrize(
    ("seconds", "device", "expected"),
    [
        (None, "cpu", (learning.EDGE_WIDTH, learning.EDGE_STEPS)),
        (learning.EDGE_SECONDS, "cpu", (learning.EDGE_WIDTH, learning.EDGE_STEPS)),
        (learning.EDGE_SECONDS - 1, "cpu", (learning.CPU_WIDTH, learning.CPU_STEPS)),
        (None, "gpu", (learning.CARD_WIDTH, learning.CARD_STEPS)),
    ],
)
def test_edges_of_objects_take_more_channels_on_a_processor_with_time(
    seconds: float | None, device: str, expected: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(learning, "device_name", lambda: device)
    found = edge_network_options(seconds).resolved()
    assert (found.width, found.steps) == expected


def test_other_options_of_the_network_are_refused() -> None:
    images, masks = grains(4)
    with pytest.raises(InvalidProblemError, match="network: expected NetworkOptions"):
        train_boosted_segmentation(images, masks, network="yes")  # type: ignore[arg-type]
