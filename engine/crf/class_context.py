"""What a first guess of several classes says around a pixel; see `engine.crf.context`.

Of every class: the score; its probability averaged at several scales, and around places above,
below and beside the pixel at two distances. All of it lies within `REACH` of the pixel, so that
tiles see what the whole picture sees.
"""

import numpy as np
from numpy.typing import NDArray

from engine.crf.context import average_around

FloatPlanes = NDArray[np.float32]

AVERAGES = (1.4, 2.8, 5.6, 11.2, 22.4)
"""Scales of the averages at the pixel itself, pixels of the model."""

RINGS = ((10, 2.8), (30, 11.2))
"""Distances of the places around it, and the scale of the averages there."""

DIRECTIONS = ((-1, 0), (0, 1), (1, 0), (0, -1))

PLACES = tuple(
    (distance * down, distance * across, scale)
    for distance, scale in RINGS
    for down, across in DIRECTIONS
)

SCORE_LIMIT = 6.0
"""Guesses more certain than this are cut: trees that never saw the picture can be no surer."""

REACH = 68
"""Pixels that a context looks away at most: three scales of the widest average."""


def n_class_context(n_classes: int) -> int:
    """Numbers a pixel."""
    return n_classes * (1 + len(AVERAGES) + len(RINGS) * len(DIRECTIONS))


def compute_class_context(scores: FloatPlanes) -> FloatPlanes:
    """Return the context of every pixel, one plane a feature.

    Parameters
    ----------
    scores : ndarray, shape (rows, columns, L), float32, of the first guess

    Returns
    -------
    ndarray, shape (n_class_context(L), rows, columns), float32
    """
    rows, columns, n_classes = scores.shape
    planes = np.empty((n_class_context(n_classes), rows, columns), dtype=np.float32)
    share = np.exp(scores - scores.max(axis=2, keepdims=True))
    share /= share.sum(axis=2, keepdims=True)
    for label, own in enumerate(planes.reshape(n_classes, -1, rows, columns)):
        np.clip(scores[:, :, label], -SCORE_LIMIT, SCORE_LIMIT, out=own[0])
        average_around(np.ascontiguousarray(share[:, :, label]), AVERAGES, PLACES, own[1:])
    return planes
