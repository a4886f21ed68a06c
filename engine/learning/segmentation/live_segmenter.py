"""Live segmentation during painting: learns from strokes and labels a window within a second.

    live = LiveSegmenter(["cell", "gap", "dirt"])
    live.add_image("a", image)               # once per picture: computes filters, stored as bytes
    live.learn({"a": strokes})               # after each stroke: fits trees
    answer = live.predict("a", window)       # labels, probabilities, doubt, where to paint next

The filters of each picture, in 64 bins of a byte each, and the codes of its edges are stored
between strokes: about 80 bytes a pixel. Trees are fitted again after every stroke, so the answer
depends only on the strokes and not on their order: to replace a killed process, add the pictures
and learn the strokes again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.core.arguments import read_only
from engine.core.errors import InvalidProblemError
from engine.core.options import check_flag, check_text, check_whole
from engine.crf.class_features import ClassFeatures, ClassLabels, ClassLayout, centred
from engine.crf.filter_bank import FilterBank, blur_into
from engine.crf.forest import Forest
from engine.crf.grid_features import EdgeFeatures
from engine.crf.image_features import code_edges
from engine.datasets.label_maps import check_names
from engine.kernels.threads import for_row_ranges
from engine.learning.segmentation.boosted_trees import Bins, fit_binned_forest, quantile_bins
from engine.learning.segmentation.class_pictures import check_label_map
from engine.learning.segmentation.given_maps import check_image
from engine.learning.segmentation.prediction import enlarge_marginals, entropy_of, labels_of
from engine.learning.segmentation.tree_options import TreeOptions
from engine.objectives.class_messages import ClassMessages

TREES = TreeOptions(n_trees=24, n_leaves=12, rate=0.3, min_leaf=5, max_depth=6)

SAMPLES_A_CLASS = 2_000
"""Largest number of painted pixels of a class that trees learn from: more add little."""

ANSWERED = 1_050_000
"""Largest number of pixels predicted one by one; in larger windows every second or third is."""

SWEEPS = 2
"""Number of message sweeps for an answer: messages do not travel far from the strokes."""

MARGIN = 16
"""Width in pixels of the margin around the window that messages include."""

PAINTED = 8.0
"""Score added to the painted class of a painted pixel, nats."""

NEXT_SCALE = 8.0
"""Scale in pixels over which doubt is averaged to find the most informative place to paint."""

MOST_PIXELS = 40_000_000
"""Largest number of pixels of all pictures together: 3.2 GB."""


@dataclass(frozen=True, slots=True, eq=False)
class LiveAnswer:
    """Prediction for a window from the strokes so far; arrays have its shape and are read-only.

    Parameters
    ----------
    labels : ndarray, shape (h, w), uint8
    probabilities : ndarray, shape (h, w, L), float32
    doubt : ndarray, shape (h, w), float32: entropy divided by its maximum log L, 0 to 1.
    next_place : (row, column) in the whole picture where a stroke would be most informative
    stride : int, step between predicted pixels; the others are interpolated
    """

    labels: ClassLabels
    probabilities: NDArray[np.float32]
    doubt: NDArray[np.float32]
    next_place: tuple[int, int]
    stride: int


@dataclass(frozen=True, slots=True, eq=False)
class _Kept:
    """Stored filters of a picture in bins, (K, H, W) uint8, and its edges."""

    bins: NDArray[np.uint8]
    edges: EdgeFeatures

    @property
    def shape(self) -> tuple[int, int]:
        return int(self.bins.shape[1]), int(self.bins.shape[2])


class LiveSegmenter:
    """Segmenter of pictures during painting; not safe to use from several threads.

    Parameters
    ----------
    classes : sequence of str, names of the L classes, 2 to 32; label 0 is the first.
    position : bool, True to use the position within the picture as a feature.
    most_pixels : int, largest number of pixels of all pictures together.

    Raises
    ------
    InvalidProblemError
        If there are fewer than 2 or more than 32 classes, or two of one name.

    Examples
    --------
    >>> LiveSegmenter(["leaf", "ground"]).classes
    ('leaf', 'ground')
    """

    def __init__(
        self, classes: Sequence[str], *, position: bool = False, most_pixels: int = MOST_PIXELS
    ) -> None:
        """Create a segmenter without pictures and strokes.

        Raises
        ------
        InvalidProblemError
            If there are fewer than 2 or more than 32 classes, or two of one name.
        """
        check_flag("position", position)
        check_whole("most_pixels", most_pixels, at_least=1)
        self.classes = tuple(classes)
        check_names(self.classes)
        self._bank = FilterBank(position)
        self._most_pixels = most_pixels
        self._cuts: Bins | None = None
        self._pictures: dict[str, _Kept] = {}
        self._strokes: dict[str, ClassLabels] = {}
        self._forest: Forest | None = None
        self._theta = ClassLayout(len(self.classes)).smooth()

    @property
    def keys(self) -> tuple[str, ...]:
        """Keys of the pictures, in the order in which they were added."""
        return tuple(self._pictures)

    def add_image(self, key: str, image: NDArray[np.uint8]) -> None:
        """Add or replace a picture, (H, W, 3) uint8: compute and store its filters.

        Raises
        ------
        InvalidProblemError
            If the image has another shape or type, or all have more than ``most_pixels`` pixels.

        Notes
        -----
        About 2 s of processor time and, for a moment, 400 MB a megapixel.
        """
        check_text("key", key)
        check_image(key, image)
        others = sum(kept.bins[0].size for name, kept in self._pictures.items() if name != key)
        if others + image.shape[0] * image.shape[1] > self._most_pixels:
            raise InvalidProblemError(
                f"{key}: too large to be painted beside the others; at most "
                f"{self._most_pixels / 1e6:.3g} megapixels are kept at once."
            )
        planes = self._bank.compute(image)
        if self._cuts is None:  # all pictures use the bins of the first
            self._cuts = quantile_bins(planes.reshape(len(planes), -1))
        self._pictures[key] = _Kept(self._cuts.cut(planes), code_edges(image / 255.0))
        self._strokes.pop(key, None)

    def remove_image(self, key: str) -> None:
        """Remove a picture and its strokes; an unknown key is ignored."""
        check_text("key", key)
        self._pictures.pop(key, None)
        self._strokes.pop(key, None)

    def learn(self, strokes: Mapping[str, ClassLabels]) -> tuple[int, ...]:
        """Fit the trees to all strokes of all pictures.

        Parameters
        ----------
        strokes : by key of each painted picture, (H, W) uint8: labels 0 to L - 1 of painted pixels,
            `UNKNOWN` (255) elsewhere. Pictures that are not given keep their earlier strokes.

        Returns
        -------
        tuple of int
            Number of painted pixels of each class.

        Raises
        ------
        InvalidProblemError
            If a key is unknown, a map has another size or an invalid label, or nothing is painted.
        """
        for key, labels in strokes.items():
            shape = self._picture(key).shape
            check_label_map(key, labels, shape, len(self.classes))
        self._strokes |= {key: labels.copy() for key, labels in strokes.items()}
        rng = np.random.default_rng(0)
        samples, answers = [], []
        counts = np.zeros(len(self.classes), dtype=np.int64)
        for key, labels in self._strokes.items():
            flat, bins = labels.ravel(), self._picture(key).bins.reshape(self._bank.n_features, -1)
            for label in range(len(self.classes)):
                places = np.flatnonzero(flat == label)
                counts[label] += len(places)
                each = max(1, SAMPLES_A_CLASS // len(self._strokes))
                if len(places) > each:
                    places = np.sort(rng.choice(places, each, replace=False))
                samples.append(bins[:, places].T)
                answers.append(np.full(len(places), label, dtype=np.uint8))
        if not counts.any():
            raise InvalidProblemError("Nothing is painted yet.")
        truth = np.concatenate(answers)
        often = np.bincount(truth, minlength=len(self.classes)).astype(np.float64)
        # The number of painted pixels of a class is not an estimate of its frequency.
        weights = (often.sum() / np.maximum(often, 1) / np.count_nonzero(often)) ** 0.5
        self._forest = fit_binned_forest(
            np.ascontiguousarray(np.concatenate(samples)),
            truth,
            len(self.classes),
            TREES,
            rng=rng,
            weights=weights[truth].astype(np.float32),
        )
        return tuple(int(count) for count in counts)

    def predict(self, key: str, window: tuple[slice, slice] | None = None) -> LiveAnswer:
        """Return the prediction for a window of a picture, (rows, columns); the whole by default.

        Raises
        ------
        InvalidProblemError
            If the key is unknown, the window is empty, or nothing was learned yet.
        """
        check_text("key", key)
        if self._forest is None:
            raise InvalidProblemError("Nothing is painted yet.")
        kept = self._picture(key)
        place = _within(window, kept.shape)
        height, width = place[0].stop - place[0].start, place[1].stop - place[1].start
        stride = max(1, int(np.ceil(np.sqrt(height * width / ANSWERED))))
        seen, inner = _with_margin(place, kept.shape, stride)
        marginals = self._marginals(self._forest, key, seen)[inner]
        probabilities = enlarge_marginals(np.ascontiguousarray(marginals), (height, width))
        doubt = entropy_of(probabilities) / np.float32(np.log(len(self.classes)))
        painted = self._strokes.get(key)
        own = None if painted is None else painted[place] < len(self.classes)
        row, column = _most_uncertain_pixel(doubt, own)
        return LiveAnswer(
            read_only(labels_of(probabilities)),
            read_only(probabilities),
            read_only(doubt),
            (place[0].start + row, place[1].start + column),
            stride,
        )

    def _marginals(
        self, forest: Forest, key: str, seen: tuple[slice, slice]
    ) -> NDArray[np.float32]:
        """Return the marginals of the selected pixels, shape (rows, columns, L)."""
        bins = self._pictures[key].bins[:, seen[0], seen[1]]
        scores = np.empty((*bins.shape[1:], len(self.classes)), dtype=np.float32)

        def some(first: int, last: int) -> None:
            scores[first:last] = forest.scores(bins[:, first:last])

        for_row_ranges(len(scores), some)
        scores = centred(scores).copy()
        if (strokes := self._strokes.get(key)) is not None:
            own = strokes[seen]
            for label in range(len(self.classes)):
                scores[own == label, label] += np.float32(PAINTED)
        features = ClassFeatures(
            scores,
            np.zeros((*scores.shape[:2], 0), np.float32),
            _window_of(self._pictures[key].edges, seen),
        )
        chains = ClassMessages(features, self._theta, is_shared=True)
        chains.sweep(SWEEPS)
        return chains.marginals()

    def _picture(self, key: str) -> _Kept:
        if key not in self._pictures:
            raise InvalidProblemError(f"{key}: no such picture was added.")
        return self._pictures[key]


def _within(window: tuple[slice, slice] | None, shape: tuple[int, int]) -> tuple[slice, slice]:
    """Return the window cropped to the picture, with integer ends."""
    given = window or (slice(None), slice(None))
    rows, columns = (
        slice(*part.indices(size)[:2]) for part, size in zip(given, shape, strict=True)
    )
    if rows.stop <= rows.start or columns.stop <= columns.start:
        raise InvalidProblemError("The window lies outside the picture.")
    return rows, columns


def _with_margin(
    place: tuple[slice, slice], shape: tuple[int, int], stride: int
) -> tuple[tuple[slice, slice], tuple[slice, slice]]:
    """Return slices of the pixels to compute for a window, and of the window within them."""
    seen, inner = [], []
    for part, size in zip(place, shape, strict=True):
        before = min(part.start // stride, MARGIN)
        first = part.start - before * stride
        last = min(part.stop + MARGIN * stride, size)
        seen.append(slice(first, last, stride))
        inner.append(slice(before, before + -(-(part.stop - part.start) // stride)))
    return (seen[0], seen[1]), (inner[0], inner[1])


def _window_of(edges: EdgeFeatures, seen: tuple[slice, slice]) -> EdgeFeatures:
    """Return the edges between selected pixels; with a stride, the edges that leave each pixel."""
    rows, columns = seen
    n_rows, n_columns = (len(range(part.start, part.stop, part.step)) for part in seen)
    right = edges.horizontal[rows, columns][:, : n_columns - 1]
    down = edges.vertical[rows, columns][: n_rows - 1]
    return EdgeFeatures(
        np.ascontiguousarray(right),
        np.ascontiguousarray(down),
        edges.horizontal_basis,
        edges.vertical_basis,
    )


def _most_uncertain_pixel(
    doubt: NDArray[np.float32], painted: NDArray[np.bool_] | None
) -> tuple[int, int]:
    """Return the place where mean doubt over a neighbourhood is largest, painted pixels as 0."""
    step = max(1, round(np.sqrt(doubt.size / 250_000)))
    small = np.ascontiguousarray(doubt[::step, ::step])
    if painted is not None:
        small = np.where(painted[::step, ::step], np.float32(0.0), small)
    smooth = np.empty_like(small)
    blur_into(small, NEXT_SCALE / step, smooth)
    row, column = np.unravel_index(int(smooth.argmax()), smooth.shape)
    return int(row) * step, int(column) * step
