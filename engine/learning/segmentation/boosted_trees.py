"""Fitting of scikit-learn's boosted trees, converted to flat arrays for files."""

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.core.arguments import read_only
from engine.core.progress import StopCallback, never_stop
from engine.crf.forest import Forest
from engine.kernels.threads import one_openmp_thread
from engine.learning.segmentation.tree_options import TreeOptions


def fit_forest(
    samples: NDArray[np.float32],
    labels: NDArray[np.bool_],
    options: TreeOptions,
    *,
    seed: int,
    should_stop: StopCallback = never_stop,
) -> Forest:
    """Fit a forest of boosted trees that predicts the log-odds of labels.

    Parameters
    ----------
    samples : ndarray, shape (n, K), float32
    labels : ndarray, shape (n,), bool
    options : TreeOptions
    seed : int, of the random choice of features
    should_stop : called after every tree; if it returns True, the trees so far are returned.

    Returns
    -------
    Forest
        Without trees if all labels are equal.

    Notes
    -----
    Runs in the calling thread only: OpenMP threads do not survive a fork, and wait for each other
    on a busy machine. Callers fit several forests in parallel instead.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier  # slow to import

    n_features = samples.shape[1]
    if labels.all() or not labels.any():
        return _constant(labels, n_features)
    booster = HistGradientBoostingClassifier(
        max_iter=options.n_trees,
        max_leaf_nodes=options.n_leaves,
        learning_rate=options.rate,
        max_features=options.share,
        max_depth=options.max_depth,
        max_bins=options.n_bins,
        min_samples_leaf=min(options.min_leaf, max(1, len(labels) // 10)),
        # Early stopping with a score that rises until a stop: should_stop is called each tree.
        early_stopping=True,
        validation_fraction=None,
        n_iter_no_change=1,
        scoring=_Rising(should_stop),
        random_state=seed,
    )
    # In threads other than joblib's, scikit-learn gives this warning once per tree.
    warnings.filterwarnings("ignore", r"`sklearn\.utils\.parallel\.delayed`", UserWarning)
    with one_openmp_thread():
        booster.fit(samples, labels)
    return _flatten(booster, n_features)


class _Rising:
    """Scorer whose score rises with every call until ``should_stop`` returns True."""

    def __init__(self, should_stop: StopCallback) -> None:
        self._should_stop, self._score = should_stop, 0.0

    def __call__(self, *_: object) -> float:
        if not self._should_stop():
            self._score += 1.0
        return self._score


def _constant(labels: NDArray[np.bool_], n_features: int) -> Forest:
    """Return a forest without trees: the log-odds of label counts, plus one of each label."""
    marked = int(labels.sum())
    offsets = np.array([np.log((marked + 1) / (len(labels) - marked + 1))])
    whole, single = np.zeros(0, np.int32), np.zeros(0, np.float32)
    nodes = (np.zeros(0, np.int16), single, whole, single[:, np.newaxis])
    return Forest(n_features, offsets, whole, whole, *nodes)


def _flatten(booster: Any, n_features: int) -> Forest:
    """Return a forest with the nodes of all trees, level by level, siblings side by side.

    scikit-learn has no public interface to its trees; a test compares the sums with its own.
    """
    trees = [_ordered(predictor.nodes) for (predictor,) in booster._predictors]
    starts = np.cumsum([0, *(len(nodes) for nodes, _, _ in trees)])
    nodes = np.concatenate([nodes for nodes, _, _ in trees])
    is_leaf = nodes["is_leaf"].astype(bool)
    children = np.concatenate(
        [start + child for start, (_, child, _) in zip(starts, trees, strict=False)]
    )
    arrays = (
        starts[:-1].astype(np.int32),
        np.array([depth for _, _, depth in trees], np.int32),
        np.where(is_leaf, 0, nodes["feature_idx"]).astype(np.int16),
        np.where(is_leaf, np.float32(np.inf), _rounded_down(nodes["num_threshold"])),
        children.astype(np.int32),
        nodes["value"].astype(np.float32)[:, np.newaxis],
    )
    offsets = np.ravel(booster._baseline_prediction)[:1].astype(np.float64)
    return Forest(n_features, offsets, *(read_only(array) for array in arrays))


def _ordered(nodes: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64], int]:
    """Return a tree's nodes level by level, each one's left child (a leaf: itself), and depth."""
    order, children, depth = [0], np.zeros(len(nodes), np.int64), 0
    for place, node in enumerate(order):  # the list grows during the iteration
        depth = max(depth, int(nodes[node]["depth"]))
        if nodes[node]["is_leaf"]:
            children[place] = place
        else:
            children[place] = len(order)
            order += [int(nodes[node]["left"]), int(nodes[node]["right"])]
    return nodes[order], children, depth


def _rounded_down(thresholds: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return the largest float32 up to each threshold: it splits float32 values identically."""
    narrow = thresholds.astype(np.float32)
    below = np.nextafter(narrow, np.float32(-np.inf))
    return np.where(narrow.astype(np.float64) > thresholds, below, narrow)
