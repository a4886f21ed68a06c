"""Leaves that colours hardly tell, and what another program told of them: right but for borders."""

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from tests.learning.segmentation.leaf_pictures import leaves

Pictures = tuple[list[NDArray[np.uint8]], list[NDArray[np.bool_]], list[NDArray[np.float32]]]


def told_leaves(count: int, seed: int = 0, shape: tuple[int, int] = (48, 64)) -> Pictures:
    """Pictures under heavy grain, their masks, and a shifted, blurred, noisy map of each."""
    rng = np.random.default_rng(seed)
    images, masks = leaves(count, seed, shape)
    grey = [0.3 * image + 90 + rng.normal(0, 60, image.shape) for image in images]
    grained = [np.clip(one, 0, 255).astype(np.uint8) for one in grey]
    return grained, masks, [told(mask, rng) for mask in masks]


def told(mask: NDArray[np.bool_], rng: np.random.Generator) -> NDArray[np.float32]:
    """Probabilities of another program, (rows, columns) float32."""
    moved = np.roll(mask.astype(float), (2, -2), (0, 1))
    noise = 4.5 * gaussian_filter(rng.normal(size=mask.shape), 3)
    odds = 4 * gaussian_filter(moved, 3) - 2 + noise
    return np.asarray(1 / (1 + np.exp(-odds)), dtype=np.float32)


def useless(maps: list[NDArray[np.float32]]) -> list[NDArray[np.float32]]:
    """Maps of mere noise, of the same sizes."""
    rng = np.random.default_rng(0)
    return [rng.random(one.shape).astype(np.float32) for one in maps]
