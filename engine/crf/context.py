"""Auto-context: features from a first guess around each pixel.

A mask has 37 features: the log-odds of the guess; its probabilities averaged at several scales, and
around places at several distances in eight directions; the position of the pixel relative to the
whole guess, in standard deviations from its centre; the size of the guess; and how typical the
pixel's colour is of the guess. Windows of large pictures use only the first 30, the surroundings of
the pixel; models made before colours were counted use the first 33.

Each of several classes has 14 features: its score; its probability averaged at several scales, and
around places above, below and beside the pixel at two distances. All lie within 68 pixels (three
scales of the widest average), so that tiles and the whole picture give the same features.

References
----------
Tu and Bai 2010, "Auto-context and its application to high-level vision tasks".
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from engine.core.arguments import FloatArray
from engine.crf.filter_bank import FloatPlanes, blur_into
from engine.crf.guessed_colours import N_COLOURS, ColourCounts, fill_colours

AVERAGES = (1.4, 2.8, 5.6, 11.2, 22.4)
"""Scales of the averages at the pixel itself, pixels of the model."""

RINGS = ((8, 2.8), (18, 5.6), (40, 11.2))
"""Distances of the surrounding places, and the scale of the averages there."""

DIRECTIONS = tuple(
    (float(np.sin(angle)), float(np.cos(angle))) for angle in np.arange(8) * (np.pi / 4)
)

PLACES = tuple(
    (round(distance * down), round(distance * across), scale)
    for distance, scale in RINGS
    for down, across in DIRECTIONS
)

LOG_ODDS_LIMIT = 6.0
"""Guesses more certain than this are clipped: no tree is more certain on a held-out picture."""

N_LOCAL = 1 + len(AVERAGES) + len(RINGS) * len(DIRECTIONS)
"""Number of features per pixel of masks that depend on its surroundings alone."""

N_PLACED = N_LOCAL + 2 + 1
"""Number of these features and of the pixel's position within the guess."""

N_CONTEXT = N_PLACED + N_COLOURS
"""Number of features per pixel of masks."""

CLASS_PLACES = tuple(
    (distance * down, distance * across, scale)
    for distance, scale in ((10, 2.8), (30, 11.2))
    for down, across in ((-1, 0), (0, 1), (1, 0), (0, -1))
)


@dataclass(frozen=True, slots=True)
class GuessPlace:
    """Position of a guess in the whole: its centre and spread, rows and columns; its share."""

    middle: tuple[float, float]
    spread: tuple[float, float]
    share: float

    @staticmethod
    def share_of(log_odds: FloatPlanes) -> FloatPlanes:
        """Return probabilities of a guess with clipped certainty, float32."""
        cut = np.clip(log_odds, -LOG_ODDS_LIMIT, LOG_ODDS_LIMIT)
        return np.asarray(1 / (1 + np.exp(-cut)), dtype=np.float32)

    @classmethod
    def of_sums(cls, down: FloatArray, across: FloatArray) -> "GuessPlace":
        """Return the position from the summed probabilities of every row and of every column."""
        total = float(down.sum()) + 1e-6
        middles, spreads = [], []
        for sums in (down, across):
            weights, steps = sums / total, np.arange(len(sums))
            middle = float(weights @ steps)
            variance = float(weights @ (steps - middle) ** 2)
            middles.append(middle)
            spreads.append(max(float(np.sqrt(max(variance, 0.0))), 1.0))
        share = total / (len(down) * len(across))
        return cls((middles[0], middles[1]), (spreads[0], spreads[1]), share)

    def seen_from(self, top: int, left: int) -> "GuessPlace":
        """Return the position relative to a window whose first row and column are given."""
        return replace(self, middle=(self.middle[0] - top, self.middle[1] - left))


@dataclass(frozen=True, slots=True)
class GuessedWhole:
    """Summary of a whole guess: its position, and the evidence of each colour for it."""

    place: GuessPlace
    colours: FloatPlanes

    def seen_from(self, top: int, left: int) -> "GuessedWhole":
        """Return the summary relative to a window whose first row and column are given."""
        return replace(self, place=self.place.seen_from(top, left))


class GuessCount:
    """Counter that summarises a whole guess from tiles that do not overlap."""

    def __init__(self, shape: tuple[int, int]) -> None:
        self._down, self._across = np.zeros(shape[0]), np.zeros(shape[1])
        self._colours = ColourCounts()

    def add(self, top: int, left: int, log_odds: FloatPlanes, planes: FloatPlanes) -> None:
        """Count a tile: its log-odds, (rows, columns), and filters, (K, rows, columns)."""
        share = GuessPlace.share_of(log_odds)
        rows, columns = share.shape
        self._down[top : top + rows] += share.sum(axis=1, dtype=np.float64)
        self._across[left : left + columns] += share.sum(axis=0, dtype=np.float64)
        self._colours.add(share, planes)

    def whole(self) -> GuessedWhole:
        """Return the summary of all tiles."""
        return GuessedWhole(GuessPlace.of_sums(self._down, self._across), self._colours.tell())


def average_around(
    guess: FloatPlanes,
    averages: Sequence[float],
    places: Sequence[tuple[int, int, float]],
    planes: FloatPlanes,
) -> None:
    """Write averages of a guess at every pixel and at places around it, one plane each.

    Parameters
    ----------
    guess : ndarray, shape (rows, columns), float32
    averages : scales at the pixel itself, pixels.
    places : rows down, columns across, and one of the scales.
    planes : ndarray, shape (len(averages) + len(places), rows, columns), output
    """
    rows, columns = guess.shape
    for scale, plane in zip(averages, planes, strict=False):
        blur_into(guess, scale, plane)
    at_scale = dict(zip(averages, planes, strict=False))
    for (down, across, scale), plane in zip(places, planes[len(averages) :], strict=True):
        y = np.clip(np.arange(rows) + down, 0, rows - 1)
        x = np.clip(np.arange(columns) + across, 0, columns - 1)
        plane[:] = at_scale[scale][np.ix_(y, x)]


def compute_context(
    log_odds: FloatPlanes,
    filters: FloatPlanes,
    n_planes: int = N_CONTEXT,
    whole: GuessedWhole | None = None,
) -> FloatPlanes:
    """Compute the context of every pixel, one plane per feature.

    Parameters
    ----------
    log_odds : ndarray, shape (rows, columns), float32, of the first guess
    filters : ndarray, shape (K, rows, columns), float32, of the filter bank
    n_planes : `N_LOCAL`, `N_PLACED` or `N_CONTEXT`; the kinds of features
    whole : summary of the whole guess, if this is a window of it

    Returns
    -------
    ndarray, shape (n_planes, rows, columns), float32
    """
    planes = np.empty((n_planes, *log_odds.shape), dtype=np.float32)
    np.clip(log_odds, -LOG_ODDS_LIMIT, LOG_ODDS_LIMIT, out=planes[0])
    guess = 1 / (1 + np.exp(-planes[0]))
    average_around(guess, AVERAGES, PLACES, planes[1:N_LOCAL])
    if n_planes == N_LOCAL:
        return planes
    if whole is None:
        count = GuessCount((log_odds.shape[0], log_odds.shape[1]))
        count.add(0, 0, log_odds, filters)
        whole = count.whole()
    _fill_place_within(whole.place, planes[N_LOCAL:N_PLACED])
    if n_planes == N_CONTEXT:
        fill_colours(whole.colours, filters, planes[N_PLACED:])
    return planes


def _fill_place_within(place: GuessPlace, planes: FloatPlanes) -> None:
    """Write the offset from the guess's centre in standard deviations, and its share."""
    for axis, size in enumerate(planes.shape[1:]):
        line = ((np.arange(size) - place.middle[axis]) / place.spread[axis]).astype(np.float32)
        planes[axis] = line[:, None] if axis == 0 else line[None]
    planes[2] = place.share


def compute_class_context(scores: FloatPlanes) -> FloatPlanes:
    """Return the context of every pixel, one plane per feature.

    Parameters
    ----------
    scores : ndarray, shape (rows, columns, L), float32, of the first guess

    Returns
    -------
    ndarray, shape (n_context(L), rows, columns), float32
    """
    rows, columns, n_classes = scores.shape
    planes = np.empty((n_context(n_classes), rows, columns), dtype=np.float32)
    share = np.exp(scores - scores.max(axis=2, keepdims=True))
    share /= share.sum(axis=2, keepdims=True)
    for label, own in enumerate(planes.reshape(n_classes, -1, rows, columns)):
        np.clip(scores[:, :, label], -LOG_ODDS_LIMIT, LOG_ODDS_LIMIT, out=own[0])
        guess = np.ascontiguousarray(share[:, :, label])
        average_around(guess, AVERAGES, CLASS_PLACES, own[1:])
    return planes


def n_context(n_outputs: int, *, is_local: bool = False) -> int:
    """Return the context features per pixel for guesses of ``n_outputs``; class ones are local."""
    if n_outputs == 1:
        return N_LOCAL if is_local else N_CONTEXT
    return n_outputs * (1 + len(AVERAGES) + len(CLASS_PLACES))


def context_of(scores: FloatPlanes, filters: FloatPlanes, n_planes: int) -> FloatPlanes:
    """Return the context of log-odds, (rows, columns, 1), or of scores of classes."""
    if scores.shape[2] == 1:
        return compute_context(scores[:, :, 0], filters, n_planes)
    return compute_class_context(scores)
