"""Strokes in, labels out: what is learned while somebody paints."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from engine.core.errors import InvalidProblemError
from engine.crf.class_features import UNKNOWN
from engine.learning.segmentation import live_segmenter
from engine.learning.segmentation.live_segmenter import LiveSegmenter
from tests.learning.segmentation.class_pictures import CLASSES, class_pictures


def painted(labels: np.ndarray, count: int = 6) -> np.ndarray:
    """Short strokes on each class."""
    rng, strokes = np.random.default_rng(1), np.full(labels.shape, UNKNOWN, np.uint8)
    for label in range(3):
        for place in rng.permutation(np.argwhere(labels == label))[:count]:
            row, columns = place[0], slice(max(place[1] - 4, 0), place[1] + 5)
            own = labels[row, columns] == label
            strokes[row, columns][own] = label
    return strokes


@pytest.fixture(scope="module")
def scene() -> tuple[LiveSegmenter, np.ndarray]:
    images, labels = class_pictures(1, side=96)
    live = LiveSegmenter(CLASSES)
    live.add_image("a", images[0])
    live.learn({"a": painted(labels[0])})
    return live, labels[0]


def test_a_few_strokes_label_the_whole_picture(scene) -> None:  # type: ignore[no-untyped-def]
    live, truth = scene
    answer = live.predict("a")
    assert np.mean(answer.labels != truth) < 0.15
    assert answer.probabilities.sum(axis=2) == pytest.approx(1, abs=1e-4)
    assert 0 <= answer.doubt.min() <= answer.doubt.max() <= 1 + 1e-6
    strokes = painted(truth)
    assert_array_equal(answer.labels[strokes < 3], strokes[strokes < 3])


def test_a_window_says_what_the_whole_says_there(scene) -> None:  # type: ignore[no-untyped-def]
    live, _ = scene
    window = slice(30, 70), slice(20, 61)
    part = live.predict("a", window)
    assert part.labels.shape == (40, 41)
    assert np.mean(part.labels != live.predict("a").labels[window]) < 0.005
    row, column = part.next_place
    assert 30 <= row < 70
    assert 20 <= column < 61


def test_a_large_window_is_answered_at_every_other_pixel(scene, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    live, truth = scene
    monkeypatch.setattr(live_segmenter, "ANSWERED", truth.size // 3)
    answer = live.predict("a")
    assert answer.stride == 2
    assert answer.labels.shape == truth.shape
    assert np.mean(answer.labels != truth) < 0.2


def test_strokes_taken_back_are_forgotten_and_order_does_not_matter() -> None:
    images, labels = class_pictures(2, side=64)
    strokes = [painted(label) for label in labels]
    both, again = LiveSegmenter(CLASSES), LiveSegmenter(CLASSES)
    for live in (both, again):
        for key, image in zip("ab", images, strict=True):
            live.add_image(key, image)
    both.learn({"a": strokes[0]})
    both.learn({"b": strokes[1]})
    both.learn({"b": np.full(labels[1].shape, UNKNOWN, np.uint8)})
    again.learn({"a": strokes[0], "b": np.full(labels[1].shape, UNKNOWN, np.uint8)})
    assert_array_equal(both.predict("b").labels, again.predict("b").labels)


def test_what_cannot_be_answered_is_said() -> None:
    live = LiveSegmenter(CLASSES, most_pixels=5000)
    images, labels = class_pictures(1, side=48)
    with pytest.raises(InvalidProblemError, match="too large"):
        LiveSegmenter(CLASSES, most_pixels=100).add_image("a", images[0])
    with pytest.raises(InvalidProblemError, match="no such picture"):
        live.learn({"a": labels[0]})
    live.add_image("a", images[0])
    with pytest.raises(InvalidProblemError, match="Nothing is painted"):
        live.predict("a")
    with pytest.raises(InvalidProblemError, match="Nothing is painted"):
        live.learn({"a": np.full(labels[0].shape, UNKNOWN, np.uint8)})
    with pytest.raises(InvalidProblemError, match="label 7"):
        live.learn({"a": np.full_like(labels[0], 7)})
    live.learn({"a": np.where(labels[0] == 1, 1, 255).astype(np.uint8)})  # one class: all is it
    assert (live.predict("a").labels == 1).all()
    with pytest.raises(InvalidProblemError, match="outside"):
        live.predict("a", (slice(1000, 1001), slice(None)))
