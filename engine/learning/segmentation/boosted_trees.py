"""Fitting of boosted trees whose leaves hold a number for every class."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.core.arguments import read_only
from engine.core.progress import StopCallback, never_stop
from engine.crf.forest import Forest
from engine.kernels.boosting import bin_plane, fill_gradients, grow_tree, step_leaves
from engine.learning.segmentation.tree_options import TreeOptions

BINS = 64
"""Number of bins of a feature for splits, cut at quantiles of the samples."""

EDGE_SAMPLES = 20_000
"""Number of samples for the quantiles."""

PROJECTIONS = 4
"""Number of random projections of the gradients if there are more than 1 + this many classes."""

LARGEST_STEP = 4.0
"""Largest change of a class score by a leaf, nats before the rate: pure leaves have no optimum."""


@dataclass(frozen=True, slots=True, eq=False)
class Bins:
    """Bin edges of features: ``edges``, shape (K, B - 1) float32, ascending for each feature."""

    edges: NDArray[np.float32]

    def cut(self, planes: NDArray[np.float32]) -> NDArray[np.uint8]:
        """Return the bin of every value, (K, ...) uint8: the number of edges below it."""
        flat = np.ascontiguousarray(planes, dtype=np.float32).reshape(len(planes), -1)
        bins = np.empty(flat.shape, dtype=np.uint8)
        for values, edges, out in zip(flat, self.edges, bins, strict=True):
            bin_plane(values, edges, out)
        return bins.reshape(planes.shape)


def quantile_bins(planes: NDArray[np.float32], n_bins: int = BINS) -> Bins:
    """Return bins of features (K, n) with about equally many samples each."""
    stride = max(1, planes.shape[1] // EDGE_SAMPLES)
    ordered = np.sort(planes[:, ::stride], axis=1)
    places = np.linspace(0, ordered.shape[1] - 1, n_bins + 1)[1:-1]
    return Bins(read_only(np.ascontiguousarray(ordered[:, np.rint(places).astype(np.int64)])))


def fit_forest(
    planes: NDArray[np.float32],
    labels: NDArray[np.uint8],
    n_classes: int,
    options: TreeOptions,
    *,
    rng: np.random.Generator,
    weights: NDArray[np.float32] | None = None,
    start: NDArray[np.float32] | None = None,
    should_stop: StopCallback = never_stop,
) -> Forest:
    """Fit a forest of boosted trees that predicts the log-probabilities of labels.

    Parameters
    ----------
    planes : ndarray, shape (K, n), float32: features of the samples, one row per feature.
    labels : ndarray, shape (n,), uint8, below ``n_classes``
    n_classes : int, at least 2
    options : TreeOptions
    rng : numpy.random.Generator, draws features and projections.
    weights : ndarray, shape (n,), float32, optional
    start : ndarray, shape (n, L), float32, optional
        Scores that the trees add to (messages as offsets); the forest does not include them.
    should_stop : called before every tree; if it returns True, the trees so far are returned.

    Returns
    -------
    Forest
        Without trees if all labels are equal.
    """
    bins = quantile_bins(planes)
    cut = np.ascontiguousarray(bins.cut(planes).T)
    return fit_binned_forest(
        cut,
        labels,
        n_classes,
        options,
        rng=rng,
        weights=weights,
        start=start,
        threshold_of=lambda feature, edge: bins.edges[feature, edge],
        should_stop=should_stop,
    )


def fit_binned_forest(
    bins: NDArray[np.uint8],
    labels: NDArray[np.uint8],
    n_classes: int,
    options: TreeOptions,
    *,
    rng: np.random.Generator,
    weights: NDArray[np.float32] | None = None,
    start: NDArray[np.float32] | None = None,
    threshold_of: Callable[[NDArray[np.int32], NDArray[np.int32]], NDArray[np.float32]]
    | None = None,
    should_stop: StopCallback = never_stop,
) -> Forest:
    """Fit a forest to binned features, (n, K) uint8 below `BINS`; see `fit_forest`.

    ``threshold_of`` returns thresholds for features and bins; without it the forest takes bins.
    """
    n, n_features = bins.shape
    own = np.ones(n, dtype=np.float32) if weights is None else weights
    counts = np.bincount(labels, weights=own, minlength=n_classes) + 1.0
    offsets = np.log(counts / counts.sum()).astype(np.float32)
    if start is not None:
        offsets = np.zeros(n_classes, dtype=np.float32)
    scores = np.tile(offsets, (n, 1)) if start is None else start.astype(np.float32)
    booster = _Booster(bins, labels, own, scores, options)
    if len(np.unique(labels)) > 1:
        for _ in range(options.n_trees):
            if should_stop() or not booster.add_tree(rng):
                break
    return booster.forest(n_features, offsets, threshold_of)


class _Booster:
    """Boosting state: the samples, their scores so far, and the trees grown."""

    def __init__(
        self,
        bins: NDArray[np.uint8],
        labels: NDArray[np.uint8],
        weights: NDArray[np.float32],
        scores: NDArray[np.float32],
        options: TreeOptions,
    ) -> None:
        n, classes = scores.shape
        self._bins, self._labels, self._weights = bins, labels, weights
        self._scores, self._options = scores, options
        self._probabilities = np.empty((n, classes), dtype=np.float32)
        self._rows = np.empty(n, dtype=np.int32)
        self._nodes = np.empty((2 * options.n_leaves, 3), dtype=np.int32)
        self._places = np.empty((2 * options.n_leaves, 2), dtype=np.int32)
        self._fewest = min(options.min_leaf, max(1, n // 10))
        self._trees: list[tuple[NDArray[np.int32], NDArray[np.float32], int]] = []

    def add_tree(self, rng: np.random.Generator) -> bool:
        """Grow a tree on the current gradients; return False if no split gains anything."""
        options, classes = self._options, self._scores.shape[1]
        projection = _projection(classes, rng)
        seen = np.empty((len(self._labels), projection.shape[1] + 1), dtype=np.float32)
        fill_gradients(
            self._scores, self._labels, self._weights, projection, self._probabilities, seen
        )
        n_features = self._bins.shape[1]
        n_chosen = max(1, min(round(options.share * n_features), options.most_features))
        order = np.argsort(rng.random((2 * options.n_leaves, n_features)), axis=1)
        draws = np.ascontiguousarray(np.sort(order[:, :n_chosen], axis=1))
        count, depth = grow_tree(
            self._bins,
            draws,
            seen,
            BINS,
            options.n_leaves,
            options.max_depth,
            options.ridge,
            self._fewest,
            self._rows,
            self._nodes,
            self._places,
        )
        if count == 1:
            return bool(n_chosen < n_features)  # another draw of features may do better
        values = np.empty((count, classes), dtype=np.float32)
        step_leaves(
            self._labels,
            self._weights,
            self._probabilities,
            options.rate,
            options.ridge,
            LARGEST_STEP,
            self._rows,
            self._nodes,
            self._places,
            count,
            values,
            self._scores,
        )
        self._trees.append((self._nodes[:count].copy(), values, int(depth)))
        return True

    def forest(
        self,
        n_features: int,
        offsets: NDArray[np.float32],
        threshold_of: Callable[[NDArray[np.int32], NDArray[np.int32]], NDArray[np.float32]] | None,
    ) -> Forest:
        """Return a forest with the nodes of all trees."""
        sizes = [len(nodes) for nodes, _, _ in self._trees]
        starts = np.cumsum([0, *sizes])[:-1]
        none = np.zeros((0, 3), np.int32)
        nodes = np.concatenate([none, *(nodes for nodes, _, _ in self._trees)])
        children = nodes[:, 2] + np.repeat(starts, sizes)
        values = np.concatenate(
            [np.zeros((0, len(offsets)), np.float32), *(values for _, values, _ in self._trees)]
        )
        is_leaf = nodes[:, 0] < 0
        features, edges = np.where(is_leaf, 0, nodes[:, 0]), np.where(is_leaf, 0, nodes[:, 1])
        thresholds = edges + 0.5 if threshold_of is None else threshold_of(features, edges)
        arrays = (
            offsets,
            starts.astype(np.int32),
            np.array([depth for _, _, depth in self._trees], np.int32),
            features.astype(np.int16),
            np.where(is_leaf, np.float32(np.inf), thresholds).astype(np.float32),
            children.astype(np.int32),
            values,
        )
        return Forest(n_features, *(read_only(np.ascontiguousarray(a)) for a in arrays))


def _projection(classes: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """Return directions to project gradients on: a full basis (they sum to 0), or random ones."""
    if classes - 1 <= PROJECTIONS:
        centred = np.eye(classes) - 1.0 / classes
        basis = np.linalg.svd(centred)[0][:, : classes - 1]
    else:
        basis = rng.normal(size=(classes, PROJECTIONS)) / np.sqrt(PROJECTIONS)
    return np.ascontiguousarray(basis, dtype=np.float32)
