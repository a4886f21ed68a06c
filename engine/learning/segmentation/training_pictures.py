"""Training pictures of trees, dealt into folds, with a random sample of known pixels."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.crf.class_features import ClassLabels
from engine.crf.filter_bank import Frame
from engine.learning.segmentation.folds import Folds, deal_folds
from engine.learning.segmentation.tree_unaries import Planes


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
    maps: Planes
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
    read: Sequence[tuple[NDArray[np.uint8], Planes, ClassLabels, Frame]],
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
