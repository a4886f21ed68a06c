"""Folds: which trees never saw a pixel, by picture or, of few pictures, by blocks of pixels."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

FOLDS = 4

BLOCKS = 6
"""Blocks a side in which the pixels are dealt into folds, where pictures are fewer than folds."""

Folds = NDArray[np.int64]
"""Fold of a whole picture, shape (), or of each of its pixels, (rows, columns)."""


def deal_folds(
    shapes: Sequence[tuple[int, ...]],
    lightness: Sequence[float],
    rng: np.random.Generator,
    owners: Sequence[int] | None = None,
) -> list[Folds]:
    """Fold of every picture, shape (); of few pictures, of every pixel, in blocks.

    Of pictures one after the other by lightness every fold has one: where two of twenty are of
    another kind (stained tissue among fluorescence) they are of two folds, and no trees know but
    one kind. Windows of one picture (``owners``, a number each) share its fold, unless pictures are
    fewer than folds.
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
    """Folds of the pixels of a lone picture: blocks, so that no pixel's neighbour gives it away."""
    rows, columns = (np.arange(side) * BLOCKS // side for side in shape)
    return (rows[:, None] * 3 + columns[None] * 2) % FOLDS
