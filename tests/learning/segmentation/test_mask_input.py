"""What learning to segment refuses: arrays of another type or shape, masks that mark nothing."""

from collections.abc import Callable

import numpy as np
import pytest

from engine.core.errors import InvalidProblemError
from engine.core.status import Status
from engine.datasets.synthetic_images import generate_leaf_images
from engine.learning.segmentation.mask_learning import train_segmentation


def one_leaf(shape: tuple[int, int] = (24, 32)) -> tuple[np.ndarray, np.ndarray]:
    (leaf,) = generate_leaf_images(1, rng=np.random.default_rng(0), shape=shape)
    return leaf.image, leaf.mask


@pytest.mark.parametrize(
    "change",
    [
        lambda image: image[:, :, 0],
        lambda image: np.dstack([image, image[:, :, 0]]),
        lambda image: image.astype(np.float64),
        lambda image: image[:0, :0],
    ],
)
def test_a_picture_of_another_shape_or_type_is_refused(
    change: Callable[[np.ndarray], np.ndarray],
) -> None:
    image, mask = one_leaf()
    wrong = change(image)
    with pytest.raises(InvalidProblemError, match=r"image 2: expected bytes of shape"):
        train_segmentation([image, wrong], [mask, mask[: len(wrong), : wrong.shape[1]]])


@pytest.mark.parametrize("max_side", [16, 200])
def test_a_mask_of_bytes_is_refused(max_side: int) -> None:
    """White is 255: times 255 that is 1 in a byte, and the shrunken mask was empty."""
    image, mask = one_leaf()
    grey = mask.astype(np.uint8) * 255
    with pytest.raises(InvalidProblemError, match=r"image 1: expected a mask of booleans"):
        train_segmentation([image], [grey], max_side=max_side)


def test_what_shrinking_removes_is_told_from_masks_that_mark_nothing() -> None:
    image, mask = np.zeros((200, 200, 3), dtype=np.uint8), np.zeros((200, 200), dtype=bool)
    with pytest.raises(InvalidProblemError, match="No mask marks any pixel"):
        train_segmentation([image], [mask], max_side=20)
    mask[100:104, 100:104] = True
    with pytest.raises(InvalidProblemError, match=r"too small to be seen .* 20 pixels a side"):
        train_segmentation([image], [mask], max_side=20)


def test_the_factor_multiplies_the_default_lambda() -> None:
    image, mask = one_leaf((16, 24))
    trained = train_segmentation([image], [mask], ridge_factor=10.0, max_seconds=0)
    assert trained.model.ridge == pytest.approx(10 * 1e-3 * 16 * 24)
    assert trained.result.status is Status.TIME_LIMIT
    with pytest.raises(InvalidProblemError, match="ridge_factor"):
        train_segmentation([image], [mask], ridge_factor=0.0)


@pytest.mark.parametrize("solver", ["theta", "frank-wolfe", "block-coordinate"])
def test_no_held_out_picture_is_no_preview(solver: str) -> None:
    image, mask = one_leaf((16, 24))
    reports: list[object] = []
    trained = train_segmentation(
        [image], [mask], holdout=([], []), solver=solver, max_seconds=0, on_progress=reports.append
    )
    assert trained.result.status is Status.TIME_LIMIT
    assert all(getattr(report, "preview", None) is None for report in reports)
