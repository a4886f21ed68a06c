"""Training pictures of trees with a random sample of known pixels, dealt into folds.

If there are few pictures, blocks of pixels are dealt instead.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.crf.class_features import ClassLabels
from engine.crf.filter_bank import Frame

FOLDS = 4

BLOCKS = 6
"""Number of blocks a side for folds of pixels, used if there are fewer pictures than folds."""

Folds = NDArray[np.int64]
"""Fold of a whole picture, shape (), or of each of its pixels, (rows, columns)."""


@dataclass(frozen=True, slots=True, eq=False)
class TrainingPicture:
    """Training picture, or a window of one, at the size of its model.

    Parameters
    ----------
    colours : ndarray, shape (rows, columns, 3), uint8
    maps : ndarray, shape (rows, columns, C), float32, log-odds
    labels : ndarray, shape (rows, columns), uint8; unknown from the number of classes on
    frame : Frame, position in the whole picture
    folds : ndarray, shape () if the whole picture is in one fold, else that of the labels
    pixels : ndarray of the flat indices of known pixels that trees learn from
    """

    colours: NDArray[np.uint8]
    maps: NDArray[np.float32]
    labels: ClassLabels
    frame: Frame
    folds: Folds
    pixels: NDArray[np.int64]

    @property
    def sampled_labels(self) -> ClassLabels:
        """Label of every sampled pixel."""
        return self.labels.ravel()[self.pixels]

    @property
    def sampled_folds(self) -> Folds:
        """Fold of every sampled pixel."""
        return np.broadcast_to(self.folds, self.labels.shape).ravel()[self.pixels]


def deal_pictures(
    read: Sequence[tuple[NDArray[np.uint8], NDArray[np.float32], ClassLabels, Frame]],
    n_classes: int,
    each: int,
    rng: np.random.Generator,
    *,
    owners: Sequence[int] | None = None,
) -> list[TrainingPicture]:
    """Deal pictures (or blocks of few pictures) into folds, and sample known pixels of each.

    Parameters
    ----------
    read : colours, maps, labels and frame of every picture; see `TrainingPicture`.
    n_classes : int; labels from it on are unknown.
    each : int, number of pixels to sample from a picture
    rng : numpy.random.Generator
    owners : number of the picture that each window is from, ascending; by default all differ
    """
    dealt = []
    lightness = [float(colours.mean()) for colours, _, _, _ in read]
    all_folds = deal_folds([labels.shape for _, _, labels, _ in read], lightness, rng, owners)
    for (colours, maps, labels, frame), folds in zip(read, all_folds, strict=True):
        known = np.flatnonzero(labels.ravel() < n_classes)
        pixels = np.sort(rng.choice(known, min(max(each, 1), len(known)), replace=False))
        dealt.append(TrainingPicture(colours, maps, labels, frame, folds, pixels))
    return dealt


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
