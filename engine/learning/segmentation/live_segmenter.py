"""Learning while somebody paints: strokes in, labels of the visible part out, within a second.

    live = LiveSegmenter(["cell", "gap", "dirt"])
    live.add_image("a", image)               # once a picture: filters, kept in bytes
    live.learn({"a": strokes})               # after each stroke: trees
    answer = live.predict("a", window)       # labels, probabilities, doubt, where to paint next

What is kept between strokes are the filters of each picture, cut into 64 bins of a byte each, and
the codes of its edges: about 80 bytes a pixel. Trees are fitted anew after every stroke, so the
answer depends on the strokes alone and not on their order: a process that was killed is replaced
by adding the pictures and learning the strokes once more.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.core.arguments import read_only
from engine.core.errors import InvalidProblemError
from engine.crf.class_features import ClassFeatures, ClassLabels, ClassLayout, centred
from engine.crf.filter_bank import FilterBank, blur_into
from engine.crf.forest import Forest
from engine.crf.grid_features import EdgeFeatures
from engine.crf.image_features import code_edges
from engine.kernels.threads import for_row_ranges
from engine.learning.segmentation.class_model import check_classes
from engine.learning.segmentation.class_pictures import check_label_map
from engine.learning.segmentation.class_prediction import enlarge_classes, entropy_of
from engine.learning.segmentation.class_trees import Bins, fit_binned_forest, quantile_bins
from engine.learning.segmentation.mask_prediction import check_image
from engine.learning.segmentation.tree_options import TreeOptions
from engine.objectives.class_messages import ClassMessages

TREES = TreeOptions(n_trees=24, n_leaves=12, rate=0.3, min_leaf=5, max_depth=6)

SAMPLES_A_CLASS = 2_000
"""Painted pixels of a class that trees learn from: more of the same strokes say little."""

ANSWERED = 1_050_000
"""Pixels of a window that are answered one by one; of a larger one, every second or third."""

SWEEPS = 2
"""Sweeps of messages behind an answer: what is farther than the strokes' surroundings waits."""

MARGIN = 16
"""Pixels around the window that messages see."""

PAINTED = 8.0
"""Nats by which a painted pixel is held to be what it was painted."""

NEXT_SCALE = 8.0
"""Scale, pixels, over which doubt is averaged to find where a stroke would tell most."""

MOST_PIXELS = 40_000_000
"""Pixels of all pictures together that are kept: 3.2 GB."""


@dataclass(frozen=True, slots=True, eq=False)
class LiveAnswer:
    """What the strokes so far say of a window; arrays have its shape and are read-only.

    Parameters
    ----------
    labels : ndarray, shape (h, w), uint8
    probabilities : ndarray, shape (h, w, L), float32
    doubt : ndarray, shape (h, w), float32: entropy over its largest value log L, 0 to 1.
    next_place : (row, column) in the whole picture where a stroke would tell most
    stride : int, every so many-th pixel was answered and the rest interpolated
    """

    labels: ClassLabels
    probabilities: NDArray[np.float32]
    doubt: NDArray[np.float32]
    next_place: tuple[int, int]
    stride: int


@dataclass(frozen=True, slots=True, eq=False)
class _Kept:
    """A picture's filters in bins, (K, H, W) uint8, and its edges."""

    bins: NDArray[np.uint8]
    edges: EdgeFeatures

    @property
    def shape(self) -> tuple[int, int]:
        return int(self.bins.shape[1]), int(self.bins.shape[2])


class LiveSegmenter:
    """Segments pictures while they are painted; not to be used from two threads at once.

    Parameters
    ----------
    classes : sequence of str, names of the L classes, 2 to 32; label 0 is the first.
    position : bool, whether the place within the picture may speak.
    most_pixels : int, of all pictures together.

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
        """Begin without pictures and strokes.

        Raises
        ------
        InvalidProblemError
            If there are fewer than 2 or more than 32 classes, or two of one name.
        """
        self.classes = tuple(classes)
        check_classes(self.classes)
        self._bank = FilterBank(position)
        self._most_pixels = most_pixels
        self._cuts: Bins | None = None
        self._pictures: dict[str, _Kept] = {}
        self._strokes: dict[str, ClassLabels] = {}
        self._forest: Forest | None = None
        self._theta = ClassLayout(len(self.classes)).smooth()

    @property
    def keys(self) -> tuple[str, ...]:
        """The pictures, in the order in which they came."""
        return tuple(self._pictures)

    def add_image(self, key: str, image: NDArray[np.uint8]) -> None:
        """Compute and keep the filters of a picture, (H, W, 3) uint8; one of that key is replaced.

        Raises
        ------
        InvalidProblemError
            If it is no such picture, or all together have more pixels than may be kept.

        Notes
        -----
        About 2 s of processor time and, for a moment, 400 MB a megapixel.
        """
        check_image(key, image)
        others = sum(kept.bins[0].size for name, kept in self._pictures.items() if name != key)
        if others + image.shape[0] * image.shape[1] > self._most_pixels:
            raise InvalidProblemError(
                f"{key}: too large to be painted beside the others; at most "
                f"{self._most_pixels / 1e6:.3g} megapixels are kept at once."
            )
        planes = self._bank.compute(image)
        if self._cuts is None:  # one way of cutting for all pictures
            self._cuts = quantile_bins(planes.reshape(len(planes), -1))
        self._pictures[key] = _Kept(self._cuts.cut(planes), code_edges(image / 255.0))
        self._strokes.pop(key, None)

    def remove_image(self, key: str) -> None:
        """Forget a picture and its strokes; none of that key is no error."""
        self._pictures.pop(key, None)
        self._strokes.pop(key, None)

    def learn(self, strokes: Mapping[str, ClassLabels]) -> tuple[int, ...]:
        """Fit the trees to all strokes of all pictures.

        Parameters
        ----------
        strokes : for the key of each painted picture, (H, W) uint8: labels 0 to L - 1 where it was
            painted, `UNKNOWN` (255) elsewhere. What is not named keeps the strokes it had.

        Returns
        -------
        tuple of int
            Painted pixels of each class.

        Raises
        ------
        InvalidProblemError
            If a key is unknown, a map has another size or a strange label, or nothing is painted.
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
        # Long strokes of one class say how much was painted, not how much of it there is.
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
        """Answer for a window of a picture, (rows, columns); the whole by default.

        Raises
        ------
        InvalidProblemError
            If the key is unknown, the window is empty, or nothing was learned yet.
        """
        if self._forest is None:
            raise InvalidProblemError("Nothing is painted yet.")
        kept = self._picture(key)
        place = _within(window, kept.shape)
        height, width = place[0].stop - place[0].start, place[1].stop - place[1].start
        stride = max(1, int(np.ceil(np.sqrt(height * width / ANSWERED))))
        seen, inner = _with_margin(place, kept.shape, stride)
        marginals = self._marginals(self._forest, key, seen)[inner]
        probabilities = enlarge_classes(np.ascontiguousarray(marginals), (height, width))
        doubt = entropy_of(probabilities) / np.float32(np.log(len(self.classes)))
        painted = self._strokes.get(key)
        own = None if painted is None else painted[place] < len(self.classes)
        row, column = _most_doubtful(doubt, own)
        return LiveAnswer(
            read_only(probabilities.argmax(axis=2).astype(np.uint8)),
            read_only(probabilities),
            read_only(doubt),
            (place[0].start + row, place[1].start + column),
            stride,
        )

    def _marginals(
        self, forest: Forest, key: str, seen: tuple[slice, slice]
    ) -> NDArray[np.float32]:
        """Marginals of the pixels that are looked at, shape (rows, columns, L)."""
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
    """The window cut to the picture, with whole numbers for its ends."""
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
    """Which pixels are looked at for a window, and where those of the window are among them."""
    seen, inner = [], []
    for part, size in zip(place, shape, strict=True):
        before = min(part.start // stride, MARGIN)
        first = part.start - before * stride
        last = min(part.stop + MARGIN * stride, size)
        seen.append(slice(first, last, stride))
        inner.append(slice(before, before + -(-(part.stop - part.start) // stride)))
    return (seen[0], seen[1]), (inner[0], inner[1])


def _window_of(edges: EdgeFeatures, seen: tuple[slice, slice]) -> EdgeFeatures:
    """Edges between the pixels that are looked at; of a stride, those that leave each pixel."""
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


def _most_doubtful(
    doubt: NDArray[np.float32], painted: NDArray[np.bool_] | None
) -> tuple[int, int]:
    """Where doubt is largest over a neighbourhood, away from what was painted."""
    step = max(1, round(np.sqrt(doubt.size / 250_000)))
    small = np.ascontiguousarray(doubt[::step, ::step])
    if painted is not None:
        small = np.where(painted[::step, ::step], np.float32(0.0), small)
    smooth = np.empty_like(small)
    blur_into(small, NEXT_SCALE / step, smooth)
    row, column = np.unravel_index(int(smooth.argmax()), smooth.shape)
    return int(row) * step, int(column) * step
