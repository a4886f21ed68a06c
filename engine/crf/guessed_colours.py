"""Colours of a guess: the excess frequency with which each colour of a picture is marked.

A trained model knows the colours of other pictures. A first guess that is right in most places
gives those of this one: a white horse partly taken for snow is found by its other part.

References
----------
Rother, Kolmogorov and Blake 2004, "GrabCut": colours of one picture, recounted for each guess.
"""

import numpy as np
from numpy.typing import NDArray

from engine.core.arguments import FloatArray
from engine.crf.filter_bank import FloatPlanes, blur_into, plane_names

BINS = 16
"""Bins of lightness and of each colour axis, between which counts are smoothed."""

BOUNDS = ((0.0, 1.0), (-0.5, 0.5), (-0.5, 0.5))
"""Range of the bins of lightness and of the colour axes; values beyond count in the last bin."""

KNOWN = 0.001
"""Share of the pixels at which a colour's counts weigh as much as the prior."""

_NAMES = plane_names()
_AXES = ("lightness", "green-red", "blue-yellow")
_COARSE = ("Gaussian at 2.8", "green-red at 2.8", "blue-yellow at 2.8")
COUNTED = tuple(tuple(_NAMES.index(name) for name in names) for names in (_AXES, _COARSE))
"""Planes of the filter bank that form a colour: at one pixel, and averaged around it."""

AVERAGES = (1.4, 5.6)
"""Scales at which the evidence of single pixels' colours is averaged, pixels of the model."""

N_COLOURS = len(COUNTED) + len(AVERAGES)
"""Number of features per pixel."""


class ColourCounts:
    """Counts of every colour in a picture, tile by tile, and the guessed part of each."""

    def __init__(self) -> None:
        self._all = np.zeros((len(COUNTED), BINS**3))
        self._marked = np.zeros_like(self._all)

    def add(self, guess: FloatPlanes, planes: FloatPlanes) -> None:
        """Count a tile: probabilities, (rows, columns), and its filters, (K, rows, columns)."""
        weights = guess.ravel().astype(np.float64)
        for k, axes in enumerate(COUNTED):
            colours = _bins(planes, axes).ravel()
            self._all[k] += np.bincount(colours, minlength=BINS**3)
            self._marked[k] += np.bincount(colours, weights, minlength=BINS**3)

    def tell(self) -> FloatPlanes:
        """Return the evidence of each colour, shape (2, `BINS` ** 3), nats: the log-odds of pixels
        of that colour less those of all pixels."""
        total = max(float(self._all[0].sum()), 1.0)
        share = np.clip(self._marked[0].sum() / total, 1e-6, 1 - 1e-6)
        prior = KNOWN * total
        counts, marked = _smoothed(self._all), _smoothed(self._marked)
        share_here = (marked + prior * share) / (counts + prior)
        odds = np.log(share_here / (1 - share_here)) - np.log(share / (1 - share))
        return np.asarray(odds, dtype=np.float32)


def fill_colours(told: FloatPlanes, planes: FloatPlanes, out: FloatPlanes) -> None:
    """Write the evidence of the pixels' colours.

    Parameters
    ----------
    told : ndarray, from `ColourCounts.tell`
    planes : ndarray, shape (K, rows, columns), float32, of the filter bank
    out : ndarray, shape (N_COLOURS, rows, columns), float32, output
    """
    for table, axes, plane in zip(told, COUNTED, out, strict=False):
        plane[:] = table[_bins(planes, axes)]
    for scale, plane in zip(AVERAGES, out[len(COUNTED) :], strict=True):
        blur_into(out[0], scale, plane)


def _bins(planes: FloatPlanes, axes: tuple[int, ...]) -> NDArray[np.int64]:
    """Return the bin of every pixel's colour, (rows, columns)."""
    place = np.zeros(planes.shape[1:], dtype=np.int64)
    for axis, (low, high) in zip(axes, BOUNDS, strict=True):
        step = ((planes[axis] - np.float32(low)) * np.float32(BINS / (high - low))).astype(np.int64)
        place = place * BINS + np.clip(step, 0, BINS - 1)
    return place


def _smoothed(counts: FloatArray) -> FloatArray:
    """Return counts smoothed by weights 1/4, 1/2, 1/4 along every axis of each table."""
    tables = counts.reshape(-1, BINS, BINS, BINS)
    for axis in (1, 2, 3):
        padded = np.pad(tables, [(int(k == axis),) * 2 for k in range(4)], mode="edge")
        parts = [np.take(padded, np.arange(BINS) + shift, axis=axis) for shift in range(3)]
        tables = 0.25 * parts[0] + 0.5 * parts[1] + 0.25 * parts[2]
    return tables.reshape(counts.shape)
