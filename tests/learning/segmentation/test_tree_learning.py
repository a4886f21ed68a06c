"""Trees grown against a limit: what is left of them still tells classes apart."""

import numpy as np
import pytest

from engine.crf.filter_bank import Frame
from engine.learning.segmentation import tree_learning
from engine.learning.segmentation.training_pictures import deal_pictures
from engine.learning.segmentation.tree_learning import FEWEST_TREES, TreeLearning
from engine.learning.segmentation.tree_unaries import TreeUnaries
from tests.learning.segmentation.class_pictures import CLASSES, class_pictures


def grown(late_from: str) -> tuple[TreeUnaries, float]:
    """Trees whose time is over from a step on, and the share of other pixels they get right."""
    images, labels = class_pictures(5)
    now = [0.0]

    def report(sentence: str, fraction: float) -> None:
        now[0] = max(now[0], float(sentence.startswith(late_from)))

    read = [
        (image, np.zeros((*label.shape, 0), np.float32), label, Frame(0, 0, *label.shape))
        for image, label in zip(images[:4], labels[:4], strict=True)
    ]
    pictures = deal_pictures(read, len(CLASSES), 500, np.random.default_rng(0))
    how = TreeLearning(len(CLASSES), None, False, report, lambda: False, passed=lambda: now[0])
    unaries = how.learn(pictures)
    assert how.left_out
    right = unaries.scores(images[4], read[0][1]).argmax(axis=2) == labels[4]
    return unaries, float(right.mean())


def test_without_time_for_second_trees_the_first_speak(monkeypatch: pytest.MonkeyPatch) -> None:
    """There were none, and all was marked as what had been painted most."""
    monkeypatch.setattr(tree_learning, "FEW_SAMPLES", 0)
    unaries, right = grown("Growing the second")
    n_first = [len(forest.starts) for forest in unaries.first]
    assert [len(forest.starts) for forest in unaries.second] == n_first
    assert min(n_first) > FEWEST_TREES
    assert right > 0.75


def test_from_few_samples_some_trees_are_grown_without_time() -> None:
    unaries, right = grown("Growing the first")
    for forest in (*unaries.first, *unaries.second):
        assert len(forest.starts) == FEWEST_TREES
    assert right > 0.75
