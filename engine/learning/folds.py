"""Folds: which trees never saw a pixel, by picture or, of few pictures, by blocks of pixels."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

FOLDS = 4

BLOCKS = 6
"""Blocks a side in which the pixels are dealt into folds, where pictures are fewer than folds."""

Folds = NDArray[np.int64]
"""Fold of a whole picture, shape (), or of each of its pixels, (rows, columns)."""


def deal_folds(shapes: Sequence[tuple[int, ...]], rng: np.random.Generator) -> list[Folds]:
    """Fold of every picture, shape (); of few pictures, of every pixel, in blocks."""
    order = rng.permutation(len(shapes))
    if len(shapes) < FOLDS:
        return [block_folds(shape) for shape in shapes]
    return [np.array(place % FOLDS) for place in order]


def block_folds(shape: tuple[int, ...]) -> Folds:
    """Folds of the pixels of a lone picture: blocks, so that no pixel's neighbour gives it away."""
    rows, columns = (np.arange(side) * BLOCKS // side for side in shape)
    return (rows[:, None] * 3 + columns[None] * 2) % FOLDS
