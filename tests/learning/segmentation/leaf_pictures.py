"""Small pictures of leaves with their masks."""

import numpy as np
from numpy.typing import NDArray

from engine.datasets.synthetic_images import generate_leaf_images


def leaves(
    count: int, seed: int = 0, shape: tuple[int, int] = (48, 64)
) -> tuple[list[NDArray[np.uint8]], list[NDArray[np.bool_]]]:
    pictures = generate_leaf_images(count, rng=np.random.default_rng(seed), shape=shape)
    return [p.image for p in pictures], [p.mask for p in pictures]
