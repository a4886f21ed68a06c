"""Networks of all folds, and what they say of a picture; NumPy alone, so no card is needed."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from engine.core.errors import InvalidProblemError
from engine.crf.class_features import MOST_CLASSES
from engine.crf.picture_windows import cut_tiles
from engine.kernels.threads import count_threads, one_blas_thread
from engine.learning.segmentation.model_parts import whole_numbers
from engine.learning.segmentation.network.shape import MULTIPLE, STEM, NetworkShape
from engine.learning.segmentation.training_pictures import FOLDS, Folds

Planes = NDArray[np.float32]

LARGEST_ODDS = np.float32(6.0)
"""Bound of the log-odds, nats; that of given maps."""

WHOLE_PIXELS, CORE = 640 * 640, 384
"""Largest number of pixels that pass through the network at once, and side of a tile's core."""

BAND_NUMBERS = 4_000_000
"""Numbers that the patches of a convolution may hold at once."""

MOST_WIDTH = 256
PARTS = ("network_shape", "network_weights")
"""Names of the arrays of a network in a model file."""


@dataclass(frozen=True, slots=True, eq=False)
class Network:
    """Networks of all folds. Those of a picture's fold did not learn from its labels.

    Parameters
    ----------
    shape : NetworkShape
    weights : ndarray, shape (FOLDS, n_weights), float16, with normalisation folded in
    """

    shape: NetworkShape
    weights: NDArray[np.float16]

    @property
    def n_planes(self) -> int:
        """Number of maps of a picture."""
        return self.shape.n_planes

    def log_odds(self, colours: NDArray[np.uint8], folds: Folds | None = None) -> Planes:
        """Return the maps of a picture as log-odds within 6 nats, (rows, columns, n_planes).

        Every network sees the picture and its mirror image; scores are averaged.

        Parameters
        ----------
        colours : ndarray, shape (rows, columns, 3), uint8, of the size of its model
        folds : fold whose network scores each pixel, shape (rows, columns) or (); None averages
            over all folds.
        """
        rows, columns = colours.shape[:2]
        if rows * columns <= WHOLE_PIXELS:
            return self._odds(colours, folds)
        found = np.empty((rows, columns, self.n_planes), dtype=np.float32)
        for tile in cut_tiles((rows, columns), CORE):
            own = folds if folds is None or folds.ndim == 0 else folds[tile.place]
            inner = self._odds(colours[tile.place], own)[tile.inside]
            found[tile.top : tile.top + tile.rows, tile.left : tile.left + tile.columns] = inner
        return found

    def _odds(self, colours: NDArray[np.uint8], folds: Folds | None) -> Planes:
        if folds is not None and folds.ndim == 0:
            return log_odds_of(self._scores(colours, int(folds)))
        n_threads = min(count_threads(), FOLDS)
        with one_blas_thread(), ThreadPoolExecutor(n_threads) as pool:
            scores = list(pool.map(lambda fold: self._scores(colours, fold), range(FOLDS)))
        if folds is None:
            return log_odds_of(np.mean(scores, axis=0, dtype=np.float32))
        return log_odds_of(np.choose(folds[:, :, None], scores))

    def _scores(self, colours: NDArray[np.uint8], fold: int) -> Planes:
        """Return the scores of all labels by one network, (rows, columns, L)."""
        layers = self.shape.unpacked(self.weights[fold].astype(np.float32))
        rows, columns = colours.shape[:2]
        padding = ((0, -rows % MULTIPLE), (0, -columns % MULTIPLE), (0, 0))
        values = np.pad(as_numbers(colours), padding, mode="symmetric")
        plain = _forward(layers, values)[:rows, :columns]
        values = np.pad(as_numbers(colours[:, ::-1]), padding, mode="symmetric")
        mirrored = _forward(layers, values)[:rows, :columns][:, ::-1]
        return np.asarray((plain + mirrored) / 2)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays that ``network_from_arrays`` reads, by name."""
        return {
            "network_shape": np.array([self.shape.n_labels, self.shape.width]),
            "network_weights": self.weights,
        }


def network_from_arrays(parts: Mapping[str, NDArray[Any]]) -> Network | None:
    """Build the network from the arrays of a model file, after checking them; None without any.

    Raises
    ------
    InvalidProblemError
        If an array is missing or the arrays do not fit each other.
    """
    if not set(PARTS) & set(parts):
        return None
    if not set(PARTS) <= set(parts):
        raise InvalidProblemError("a part of its network is missing.")
    numbers, weights = whole_numbers(parts["network_shape"], "network_shape"), parts[PARTS[1]]
    if len(numbers) != 2 or not 2 <= numbers[0] <= MOST_CLASSES or not 1 <= numbers[1] < MOST_WIDTH:
        raise InvalidProblemError("the shape of its network cannot be read.")
    shape = NetworkShape(*numbers)
    if weights.shape != (FOLDS, shape.n_weights) or weights.dtype != np.float16:
        raise InvalidProblemError("the weights of its network are of another shape.")
    if not np.isfinite(weights).all():
        raise InvalidProblemError("a weight of its network is not a finite number.")
    return Network(shape, weights)


def as_numbers(colours: NDArray[np.uint8]) -> Planes:
    """Return bytes as numbers from -1 to 1."""
    return np.asarray(colours, dtype=np.float32) * np.float32(1 / 127.5) - np.float32(1)


def log_odds_of(scores: Planes) -> Planes:
    """Return the log-odds of labels, within 6 nats, from scores whose softmax is meant.

    Of two labels, those of the second, shape (rows, columns, 1).
    """
    if scores.shape[2] == 2:
        odds = scores[:, :, 1:] - scores[:, :, :1]
    else:
        best = scores.max(axis=2, keepdims=True)
        p = np.exp(scores - best)
        p /= p.sum(axis=2, keepdims=True)
        p = np.clip(p, np.float32(0.0025), np.float32(0.9975))
        odds = np.log(p / (1 - p))
    return np.asarray(np.clip(odds, -LARGEST_ODDS, LARGEST_ODDS), dtype=np.float32)


def _forward(layers: Any, values: Planes) -> Planes:
    """Return the scores of a picture whose sides are multiples of `MULTIPLE`."""
    rows, columns, depth = values.shape
    blocks = values.reshape(rows // STEM, STEM, columns // STEM, STEM, depth)
    x = blocks.swapaxes(1, 2).reshape(rows // STEM, columns // STEM, STEM**2 * depth)
    n_levels = (len(layers) + 1) // 4
    passed: list[Planes] = []
    for level in range(n_levels):
        if level:
            x = x.reshape(x.shape[0] // 2, 2, x.shape[1] // 2, 2, x.shape[2]).max(axis=(1, 3))
        x = _convolved(_convolved(x, *layers[2 * level]), *layers[2 * level + 1])
        passed.append(x)
    for step in range(n_levels - 1):
        beside = passed[n_levels - 2 - step]
        x = np.concatenate([x.repeat(2, axis=0).repeat(2, axis=1), beside], axis=2)
        place = 2 * (n_levels + step)
        x = _convolved(_convolved(x, *layers[place]), *layers[place + 1])
    weights, bias = layers[-1]
    out = x @ weights[0, 0] + bias
    shuffled = out.reshape(*out.shape[:2], STEM, STEM, -1).swapaxes(1, 2)
    return np.asarray(shuffled.reshape(rows, columns, -1))


def _convolved(x: Planes, weights: Planes, bias: Planes) -> Planes:
    """Return the convolution of 3 x 3 pixels with zeros around, cut off at 0; band by band."""
    rows, columns, depth = x.shape
    padded = np.pad(x, ((1, 1), (1, 1), (0, 0)))
    flat = weights.reshape(-1, weights.shape[3])
    out = np.empty((rows, columns, weights.shape[3]), dtype=np.float32)
    step = max(1, BAND_NUMBERS // (columns * 9 * depth))
    for top in range(0, rows, step):
        bottom = min(top + step, rows)
        patches = sliding_window_view(padded[top : bottom + 2], (3, 3), axis=(0, 1))
        patches = patches.transpose(0, 1, 3, 4, 2).reshape(-1, 9 * depth)
        np.matmul(patches, flat, out=out[top:bottom].reshape(-1, flat.shape[1]))
    out += bias
    return np.maximum(out, np.float32(0), out=out)
