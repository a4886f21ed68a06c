"""Trees grown against a limit: what is left of them still tells classes apart."""

import numpy as np
import pytest

from engine.crf.filter_bank import Frame
from engine.learning.segmentation import tree_learning
from engine.learning.segmentation.training_pictures import deal_pictures
from engine.learning.segmentation.tree_learning import FEWEST_TREES, TreeLearning
from engine.learning.segmentation.tree_unaries import TreeUnaries
from tests.learning.segmentation.class_pictures import CLASSES, class_pictures
from tests.small_trees import learned_trees


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


@pytest.mark.parametrize("n_unseen", [0, 1])
def test_no_tree_splits_on_a_map_that_it_must_not_see(n_unseen: int) -> None:
    """The second map says everything; trees still take it at prediction, and it changes nothing."""
    images, labels = class_pictures(4)
    read = [
        (image, np.stack([0.0 * label, label]).transpose(1, 2, 0).astype(np.float32), label)
        for image, label in zip(images, labels, strict=True)
    ]
    pictures = deal_pictures(
        [(*one, Frame(0, 0, *one[2].shape)) for one in read],
        len(CLASSES),
        200,
        np.random.default_rng(0),
    )
    with learned_trees():
        how = TreeLearning(
            *(len(CLASSES), None, False, lambda *_: None, lambda: False), n_unseen=n_unseen
        )
        unaries = how.learn(pictures)
    place = unaries.bank.n_features + 1
    forests = (*unaries.first, *unaries.second)
    assert any((forest.features == place).any() for forest in forests) == (not n_unseen)
    told, other = (unaries.scores(images[0], sign * read[0][1]) for sign in (1, -1))
    assert np.array_equal(told, other) == bool(n_unseen)
