"""Pictures whose marks are two pixels wide: wires on noise, at any size."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Picture = tuple[NDArray[np.uint8], NDArray[np.bool_]]


def wires(shape: tuple[int, int], seed: int, *, share: float = 0.08, length: int = 40) -> Picture:
    """Upright and level wires of two pixels, slightly brighter than the noise around them.

    About ``share`` of the pixels are marked.
    """
    rng = np.random.default_rng(seed)
    rows, columns = shape
    mask = np.zeros(shape, dtype=bool)
    for k in range(int(share * rows * columns / (2 * length))):
        top, left = rng.integers(rows - 2), rng.integers(columns - 2)
        if k % 2:
            mask[top : top + 2, left : left + length] = True
        else:
            mask[top : top + length, left : left + 2] = True
    grey = 100 + 45 * mask + rng.normal(0, 12, shape)
    image = np.repeat(np.clip(grey, 0, 255).astype(np.uint8)[:, :, None], 3, axis=2)
    return image, mask


def wire_pictures(count: int, shape: tuple[int, int], seed: int = 0) -> Iterator[Picture]:
    """Several of them, one at a time."""
    return (wires(shape, seed + k) for k in range(count))
