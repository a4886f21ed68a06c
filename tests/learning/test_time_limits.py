"""Limits of learning hold on a machine where every tree and every picture takes long."""

from collections.abc import Callable, Iterator

import numpy as np
import pytest

from engine.core.status import Status
from engine.crf.filter_bank import Frame
from engine.learning.segmentation import clock as clock_module
from engine.learning.segmentation import mask_weights, tree_learning
from engine.learning.segmentation.boosted_learning import train_boosted_segmentation
from engine.learning.segmentation.boosted_trees import fit_forest
from engine.learning.segmentation.class_learning import train_class_segmentation
from engine.learning.segmentation.clock import Clock
from engine.learning.segmentation.detail_choice import choose_detail
from engine.learning.segmentation.model import Detail
from engine.learning.segmentation.training_pictures import FOLDS, deal_pictures
from engine.learning.segmentation.tree_learning import FEWEST_TREES, TreeLearning
from engine.learning.segmentation.tree_options import TreeOptions
from tests.learning.segmentation.class_pictures import CLASSES, class_pictures
from tests.learning.segmentation.leaf_pictures import leaves

SMALL = TreeOptions(n_trees=40, n_leaves=8, rate=0.2)
LIMIT = 150.0
REMARKS = 25
"""How often the clock is asked besides, while nothing is done."""


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """A clock on which a second passes whenever it is asked, as it is after every tree.

    The function returned sets it to another number of seconds.
    """
    now = [clock_module.wall_seconds()]
    each = [1.0]

    def tick() -> float:
        now[0] += each[0]
        return now[0]

    monkeypatch.setattr(clock_module, "wall_seconds", tick)
    monkeypatch.setattr(mask_weights, "COMPARED", ("trees", "univariate"))
    for stage in ("FIRST", "SECOND", "REFIT"):
        monkeypatch.setattr(tree_learning, stage, SMALL)
    return lambda seconds: each.__setitem__(0, seconds)


def n_trees(forests) -> list[int]:  # type: ignore[no-untyped-def]
    return [len(forest.starts) for forest in forests]


def test_trees_end_in_time_for_weights(slow: Callable[[float], None]) -> None:
    """All trees once grew to their end, however long that took."""
    trained = train_boosted_segmentation(*leaves(5), max_side=48, max_seconds=LIMIT)
    assert trained.result.seconds <= LIMIT + REMARKS
    assert trained.result.status is Status.TIME_LIMIT
    assert "part of the first trees" in trained.left_out
    both = n_trees(trained.model.unaries.first), n_trees(trained.model.unaries.second)
    assert all(0 < count < SMALL.n_trees for counts in both for count in counts)
    assert sum(both[0][2:]) > 5  # those that come later have time of their own


def test_classes_end_in_time(slow: Callable[[float], None]) -> None:
    trained = train_class_segmentation(*class_pictures(6), CLASSES, max_seconds=LIMIT)
    assert trained.result.seconds <= LIMIT + REMARKS
    assert not trained.result.status.is_converged
    assert max(n_trees(trained.model.unaries.second)) < SMALL.n_trees
    assert trained.n_read == 6


def test_reading_may_take_half_of_the_time(slow: Callable[[float], None]) -> None:
    slow(15.0)
    asked: list[int] = []

    def counted(pictures: list[np.ndarray]) -> Iterator[np.ndarray]:
        for place, picture in enumerate(pictures):
            asked.append(place)
            yield picture

    images, labels = class_pictures(12)
    trained = train_class_segmentation(
        counted(images), labels, CLASSES, max_seconds=LIMIT, loss="trees"
    )
    assert len(asked) == trained.n_read < 8
    assert trained.result.status is Status.TIME_LIMIT
    asked.clear()
    pictures, masks = leaves(12)
    short = train_boosted_segmentation(
        counted(pictures), masks, max_side=48, max_seconds=LIMIT, loss="trees"
    )
    assert len(asked) < 8
    assert short.result.status is Status.TIME_LIMIT
    assert short.left_out[0] == f"images after the first {len(asked)}"


def test_without_any_time_one_picture_of_every_fold_is_looked_at() -> None:
    images, masks = leaves(9)
    read = [
        (image, np.zeros((*mask.shape, 0), np.float32), mask.view(np.uint8), frame)
        for image, mask, frame in (
            (image, mask, Frame(0, 0, *mask.shape))
            for image, mask in zip(images, masks, strict=True)
        )
    ]
    pictures = deal_pictures(read, 2, 200, np.random.default_rng(0))
    seen: list[str] = []
    how = TreeLearning(
        *(1, None, True, lambda sentence, _: seen.append(sentence), lambda: False),
        passed=lambda: 1.0,
    )
    unaries = how.learn(pictures)
    assert how.left_out
    assert n_trees(unaries.first) == n_trees(unaries.second) == [FEWEST_TREES] * FOLDS
    assert len(seen) == 4


def test_a_forest_learns_from_so_many_samples_of_all_pictures_at_most(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    images, masks = leaves(6)
    read = [
        (image, np.zeros((*mask.shape, 0), np.float32), mask.view(np.uint8), frame)
        for image, mask in zip(images, masks, strict=True)
        for frame in [Frame(0, 0, *mask.shape)]
    ]
    pictures = deal_pictures(read, 2, 200, np.random.default_rng(0))
    few = TreeOptions(n_trees=2, n_leaves=4, rate=0.3)
    counts = []
    real = TreeLearning.fit

    def counted(how, samples, labels, *rest):  # type: ignore[no-untyped-def]
        counts.append((samples.shape[1], len(labels)))
        return real(how, samples, labels, *rest)

    monkeypatch.setattr(TreeLearning, "fit", counted)
    for most, first, second in ((100, {50}, {100}), (None, {400, 500}, {800, 1000})):
        counts.clear()
        how = TreeLearning(
            *(1, None, True, lambda sentence, share: None, lambda: False),
            first=few,
            second=few,
            thinned_from=0,
            most=most,
        )
        how.learn(pictures)
        assert [columns for columns, _ in counts] == [n for _, n in counts]
        assert {n for _, n in counts[:FOLDS]} == first
        assert {n for _, n in counts[FOLDS:]} == second


def test_sizes_are_tried_within_their_time(slow: Callable[[float], None]) -> None:
    images, masks = leaves(5)
    labels = [mask.astype(np.uint8) for mask in masks]
    sizes = [Detail(24), Detail(32), Detail(48)]
    choice = choose_detail(images, labels, 2, sizes, max_seconds=LIMIT)
    assert len(choice.tried) == 1
    assert choice.detail == sizes[0]


def test_a_forest_ends_when_asked_and_is_the_same_up_to_there() -> None:
    rng = np.random.default_rng(0)
    samples = rng.normal(size=(500, 3)).astype(np.float32)
    labels = (samples[:, 0] > samples[:, 1] * samples[:, 2]).astype(np.uint8)
    left = iter([False] * 5 + [True] * 40)
    short, whole = (
        fit_forest(
            samples.T, labels, 2, SMALL, rng=np.random.default_rng(0), should_stop=should_stop
        )
        for should_stop in (lambda: next(left), lambda: False)
    )
    assert len(whole.starts) == SMALL.n_trees
    n_nodes = len(short.values)
    assert len(short.starts) == 5
    assert np.array_equal(short.values, whole.values[:n_nodes])


def test_the_share_of_the_time_counts_from_the_end_of_reading(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [100.0]
    monkeypatch.setattr(clock_module, "wall_seconds", lambda: now[0])
    clock = Clock(lambda _: None, max_seconds=60.0, started=100.0)
    now[0] = 131.0
    assert clock.is_reading_over()
    clock.begin(1)
    assert clock.passed() == 0.0
    now[0] = 160.0
    assert clock.passed() == 1.0
    assert Clock(lambda _: None, max_seconds=None).passed() == 0.0
    assert Clock(lambda _: None, max_seconds=0.0, started=160.0).passed() == 1.0
