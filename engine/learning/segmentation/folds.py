"""Cross-validation folds of pictures, or of blocks of pixels if there are few pictures."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

FOLDS = 4

BLOCKS = 6
"""Number of blocks a side for folds of pixels, used if there are fewer pictures than folds."""

Folds = NDArray[np.int64]
"""Fold of a whole picture, shape (), or of each of its pixels, (rows, columns)."""


def deal_folds(
    shapes: Sequence[tuple[int, ...]],
    lightness: Sequence[float],
    rng: np.random.Generator,
    owners: Sequence[int] | None = None,
) -> list[Folds]:
    """Return the fold of every picture, shape (); of few pictures, of every pixel, in blocks.

    Pictures are ordered by lightness, and consecutive ones go to different folds: if two of twenty
    are of another kind (stained tissue among fluorescence), they are in two folds, and all trees
    learn from both kinds. Windows of one picture (``owners``, a number each) share its fold, unless
    there are fewer pictures than folds.
    """
    if owners is not None and FOLDS <= len(set(owners)) < len(owners):
        firsts = [owners.index(owner) for owner in dict.fromkeys(owners)]
        own = deal_folds([shapes[k] for k in firsts], [lightness[k] for k in firsts], rng)
        by_owner = dict(zip(dict.fromkeys(owners), own, strict=True))
        return [by_owner[owner] for owner in owners]
    if len(shapes) < FOLDS:
        return [block_folds(shape) for shape in shapes]
    folds = [np.array(0)] * len(shapes)
    order = np.argsort(lightness, kind="stable")
    for begin in range(0, len(order), FOLDS):
        dealt = rng.permutation(FOLDS)
        for fold, place in zip(dealt, order[begin : begin + FOLDS], strict=False):
            folds[place] = np.array(fold)
    return folds


def block_folds(shape: tuple[int, ...]) -> Folds:
    """Return the folds of a picture's pixels, in blocks so that most neighbours share a fold."""
    rows, columns = (np.arange(side) * BLOCKS // side for side in shape)
    return (rows[:, None] * 3 + columns[None] * 2) % FOLDS
