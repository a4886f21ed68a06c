"""Conversion between a photograph and the grid of its model."""

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from engine.core.errors import InvalidProblemError

MIN_SIDE = 8
"""Smallest side after enlargement: a histogram of gradients needs one cell of 8 pixels."""


def model_shape(shape: tuple[int, int], max_side: int) -> tuple[int, int]:
    """Return (rows, columns) of the model of a picture of the given height and width.

    Proportions are kept and pictures are never enlarged, except to sides of `MIN_SIDE`.

    Raises
    ------
    InvalidProblemError
        If ``max_side`` is below `MIN_SIDE`.
    """
    if max_side < MIN_SIDE:
        raise InvalidProblemError(f"max_side: expected at least {MIN_SIDE}, received {max_side}.")
    scale = min(max_side / max(shape), 1.0)
    rows, columns = (max(round(side * scale), MIN_SIDE) for side in shape)
    return rows, columns


def shrink_image(image: NDArray[np.uint8], shape: tuple[int, int]) -> NDArray[np.uint8]:
    """Average a picture, (H, W, 3) uint8, over the pixels of a model of ``shape``."""
    if image.shape[:2] == shape:
        return np.ascontiguousarray(image)
    size = (shape[1], shape[0])
    shrinks = image.shape[0] >= shape[0] and image.shape[1] >= shape[1]
    method = Image.Resampling.BOX if shrinks else Image.Resampling.BILINEAR
    return np.asarray(Image.fromarray(image).resize(size, method))


def shrink_mask(mask: NDArray[np.bool_], shape: tuple[int, int]) -> NDArray[np.bool_]:
    """Label a model pixel True when at least half of its area is True."""
    if mask.shape == shape:
        return np.ascontiguousarray(mask)
    picture = Image.fromarray(mask.astype(np.uint8) * 255)
    resized = picture.resize((shape[1], shape[0]), Image.Resampling.BOX)
    return np.asarray(resized) >= 128


def enlarge(values: NDArray[np.floating], shape: tuple[int, int]) -> NDArray[np.float32]:
    """Interpolate grid values linearly at the pixels of the original picture, float32."""
    narrow = np.ascontiguousarray(values, dtype=np.float32)
    if narrow.shape == shape:
        return narrow
    picture = Image.fromarray(narrow)
    resized = picture.resize((shape[1], shape[0]), Image.Resampling.BILINEAR)
    return np.ascontiguousarray(resized, dtype=np.float32)


def shrink_labels(
    labels: NDArray[np.uint8], shape: tuple[int, int], n_classes: int
) -> NDArray[np.uint8]:
    """Return the label that covers most of each model pixel's known area; ties to the lower label.

    Labels from ``n_classes`` on are unknown, and so is a model pixel with only such labels.
    """
    if labels.shape == shape:
        return np.ascontiguousarray(labels)
    best = np.zeros(shape, dtype=np.float32)
    shrunk = np.full(shape, 255, dtype=np.uint8)
    for label in np.flatnonzero(np.bincount(labels.ravel(), minlength=n_classes)[:n_classes]):
        area = _average((labels == label).astype(np.float32), shape)
        is_more = area > best + np.float32(1e-6)
        shrunk[is_more], best[is_more] = label, area[is_more]
    return shrunk


def shrink_maps(maps: NDArray[np.float32], shape: tuple[int, int]) -> NDArray[np.float32]:
    """Resize maps of probabilities, (H, W, C), for a model, as log-odds within 6 nats."""
    out = np.empty((*shape, maps.shape[2]), dtype=np.float32)
    for k in range(maps.shape[2]):  # one at a time: a large picture leaves little memory
        out[:, :, k] = map_log_odds(_average(maps[:, :, k], shape))
    return out


def map_log_odds(plane: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return log-odds of probabilities, clipped to 6 nats, also for probabilities 0 and 1.

    Examples
    --------
    >>> map_log_odds(np.array([0.0, 0.5, 1.0], dtype=np.float32)).round(1).tolist()
    [-6.0, 0.0, 6.0]
    """
    p = np.clip(plane, np.float32(0.0025), np.float32(0.9975))
    return np.asarray(np.log(p / (1 - p)), dtype=np.float32)


def _average(values: NDArray[np.float32], shape: tuple[int, int]) -> NDArray[np.float32]:
    """Average values over the pixels of a model, or interpolate them if the model is larger."""
    if values.shape == shape:
        return values
    shrinks = values.shape[0] >= shape[0] and values.shape[1] >= shape[1]
    method = Image.Resampling.BOX if shrinks else Image.Resampling.BILINEAR
    picture = Image.fromarray(np.ascontiguousarray(values, dtype=np.float32))
    return np.asarray(picture.resize((shape[1], shape[0]), method))
