"""The size of models that pays: fine for fine things, coarse for coarse ones."""

import weakref

import numpy as np
import pytest

from engine.core.errors import InvalidProblemError, StoppedError
from engine.learning.segmentation import detail_choice
from engine.learning.segmentation.detail_choice import choose_detail, sides_to_try
from engine.learning.segmentation.model import Detail


@pytest.fixture(autouse=True)
def few_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detail_choice, "TREES", 8)
    monkeypatch.setattr(detail_choice, "SAMPLES", 6000)


def dotted(count: int, *, dot: int, noise: float) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Squares of ``dot`` pixels a side, randomly placed on 128 pixels a side."""
    rng = np.random.default_rng(0)
    images, masks = [], []
    for _ in range(count):
        coarse = rng.random((128 // dot, 128 // dot)) < 0.3
        mask = np.kron(coarse, np.ones((dot, dot))).astype(np.uint8)
        image = 90.0 + 60 * mask[:, :, None] + rng.normal(0, noise, (*mask.shape, 3))
        images.append(np.clip(image, 0, 255).astype(np.uint8))
        masks.append(mask)
    return images, masks


DETAILS = [Detail(32), Detail(64), Detail(128)]


def test_fine_things_are_learned_at_full_size() -> None:
    choice = choose_detail(*dotted(5, dot=2, noise=10), 2, DETAILS)
    assert choice.detail == DETAILS[2]
    assert choice.errors[0] > 2 * choice.errors[2]


def test_what_gains_nothing_stays_coarse() -> None:
    choice = choose_detail(*dotted(5, dot=32, noise=10), 2, [Detail(64), Detail(128)])
    assert choice.detail in choice.tried
    assert len(choice.errors) == len(choice.tried)
    coarse = choose_detail(*dotted(5, dot=64, noise=120), 2, DETAILS)
    assert coarse.detail != DETAILS[2]


def test_unknown_pixels_do_not_count() -> None:
    images, masks = dotted(4, dot=8, noise=10)
    for mask in masks:
        mask[:, 64:] = 255
    assert choose_detail(images, masks, 2, DETAILS[1:]).errors[-1] < 0.2


def test_what_cannot_be_tried_is_refused() -> None:
    images, masks = dotted(2, dot=8, noise=10)
    with pytest.raises(InvalidProblemError, match="two known classes"):
        choose_detail(images, [np.zeros_like(mask) for mask in masks], 2, DETAILS)
    with pytest.raises(InvalidProblemError, match="at least one size"):
        choose_detail(images, masks, 2, [])
    with pytest.raises(StoppedError):
        choose_detail(images, masks, 2, DETAILS, should_stop=lambda: True)


@pytest.mark.parametrize(
    ("shapes", "most", "expected"),
    [
        ([(300, 200)] * 3, 1000, [100, 200, 300]),
        ([(3000, 4000)], 1000, [100, 200, 400, 1000]),
        ([(60, 80)], 1000, [80]),
        ([(3000, 4000)], 10_000, [100, 200, 400, 800, 1600, 4000]),
    ],
)
def test_sides_are_doubled_up_to_the_pictures_own(shapes, most, expected) -> None:  # type: ignore[no-untyped-def]
    assert sides_to_try(shapes, most=most) == expected


def test_pictures_are_cut_down_one_by_one() -> None:
    images, masks = dotted(1, dot=8, noise=10)
    wide, labels = np.tile(images[0], (1, 4, 1)), np.tile(masks[0], (1, 4))
    held, most = [], 0

    def pictures():  # type: ignore[no-untyped-def]
        nonlocal most
        for _ in range(6):
            image = wide.copy()
            held.append(weakref.ref(image))
            most = max(most, sum(one() is not None for one in held))
            yield image
            del image

    choose_detail(pictures(), (labels.copy() for _ in range(6)), 2, [Detail(64), Detail(512)])
    assert len(held) == 6
    assert most <= 2
