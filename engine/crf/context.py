"""Auto-context: what a first guess says around a pixel, 40 numbers a pixel.

The log-odds of the guess; its probabilities averaged at several scales, and around places at
several distances in eight directions; where the pixel lies within the whole of what was guessed,
in standard deviations from its middle; and how large that is.

References
----------
Tu and Bai 2010, "Auto-context and its application to high-level vision tasks".
"""

import numpy as np
from numpy.typing import NDArray

from engine.crf.filter_bank import blur_into

FloatPlanes = NDArray[np.float32]

AVERAGES = (1.4, 2.8, 5.6, 11.2, 22.4)
"""Scales of the averages at the pixel itself, pixels of the model."""

RINGS = ((8, 2.8), (18, 5.6), (40, 11.2))
"""Distances of the places around it, and the scale of the averages there."""

DIRECTIONS = tuple(
    (float(np.sin(angle)), float(np.cos(angle))) for angle in np.arange(8) * (np.pi / 4)
)

LOG_ODDS_LIMIT = 6.0
"""Guesses more certain than this are cut: trees that never saw the picture can be no surer."""

N_CONTEXT = 1 + len(AVERAGES) + len(RINGS) * len(DIRECTIONS) + 2 + 1


def compute_context(log_odds: FloatPlanes) -> FloatPlanes:
    """Return the context of every pixel, one plane a feature.

    Parameters
    ----------
    log_odds : ndarray, shape (rows, columns), float32, of the first guess

    Returns
    -------
    ndarray, shape (N_CONTEXT, rows, columns), float32
    """
    rows, columns = log_odds.shape
    planes = np.empty((N_CONTEXT, rows, columns), dtype=np.float32)
    np.clip(log_odds, -LOG_ODDS_LIMIT, LOG_ODDS_LIMIT, out=planes[0])
    guess = 1 / (1 + np.exp(-planes[0]))
    place = 1
    averages = {}
    for scale in AVERAGES:
        blur_into(guess, scale, planes[place])
        averages[scale] = planes[place]
        place += 1
    for distance, scale in RINGS:
        for down, across in DIRECTIONS:
            y = np.clip(np.arange(rows) + round(distance * down), 0, rows - 1)
            x = np.clip(np.arange(columns) + round(distance * across), 0, columns - 1)
            planes[place] = averages[scale][np.ix_(y, x)]
            place += 1
    _fill_place_within(guess, planes[place:])
    return planes


def _fill_place_within(guess: FloatPlanes, planes: FloatPlanes) -> None:
    """Write the offset from the guess's middle in its standard deviations, and its share."""
    rows, columns = guess.shape
    total = float(guess.sum()) + 1e-6
    for axis, size in enumerate((rows, columns)):
        weights = guess.sum(axis=1 - axis, dtype=np.float64) / total
        steps = np.arange(size)
        middle = float(weights @ steps)
        spread = max(float(np.sqrt(max(weights @ (steps - middle) ** 2, 0.0))), 1.0)
        line = ((steps - middle) / spread).astype(np.float32)
        planes[axis] = line[:, None] if axis == 0 else line[None]
    planes[2] = total / guess.size
