"""Flat arrays of decision trees, checked before anything walks through them."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.core.arguments import read_only
from engine.core.errors import InvalidProblemError

NODE_KINDS = {
    "starts": np.int32,
    "depths": np.int32,
    "features": np.int16,
    "thresholds": np.float32,
    "children": np.int32,
    "values": np.float32,
}
"""The arrays of trees and their types; see `engine.kernels.forest.sum_trees`."""

MAX_DEPTH = 64
"""Steps to a leaf that a file may claim: ours take some ten."""


def check_nodes(
    n_features: int,
    starts: NDArray[np.int32],
    depths: NDArray[np.int32],
    features: NDArray[np.int16],
    thresholds: NDArray[np.float32],
    children: NDArray[np.int32],
) -> None:
    """Refuse trees on which a walk would leave the nodes or the features.

    Raises
    ------
    InvalidProblemError
        If an array has another shape, or points outside.
    """
    n_nodes = len(features)
    per_node = (features, thresholds, children)
    is_whole = starts.ndim == 1 and starts.shape == depths.shape
    if not is_whole or any(array.shape != (n_nodes,) for array in per_node):
        raise InvalidProblemError("the arrays of the decision trees do not fit each other.")
    is_leaf = np.isposinf(thresholds)  # never left to the right, where the next node is
    if (
        _outside(starts, 0, n_nodes - 1)
        or _outside(depths, 0, MAX_DEPTH)
        or _outside(features, 0, n_features - 1)
        or _outside(children[is_leaf], 0, n_nodes - 1)
        or _outside(children[~is_leaf], 0, n_nodes - 2)
        or not is_leaf[children == np.arange(n_nodes)].all()
        or bool(np.isnan(thresholds).any())
    ):
        raise InvalidProblemError("the arrays of the decision trees do not fit each other.")


def check_finite(*numbers: NDArray[Any] | float) -> None:
    """Raise InvalidProblemError unless all that leaves say is finite."""
    if not all(np.isfinite(each).all() for each in numbers):
        raise InvalidProblemError("the decision trees hold values that are not numbers.")


def read_tree_arrays(
    arrays: Mapping[str, NDArray[Any]], kinds: Mapping[str, type], numbers: tuple[str, ...]
) -> dict[str, Any]:
    """Return the arrays of a file in their types, read-only, and the single ``numbers`` as such.

    Raises
    ------
    InvalidProblemError
        If one is missing, is not of numbers, or is an array where a number is wanted.
    """
    wanted = {*kinds, *numbers}
    if missing := wanted - set(arrays):
        raise InvalidProblemError(f"the decision trees lack {', '.join(sorted(missing))}.")
    for name in wanted:
        if arrays[name].dtype.kind not in "iuf":
            raise InvalidProblemError(f"the decision trees' {name} are no numbers.")
    for name in numbers:
        if arrays[name].shape:
            raise InvalidProblemError(f"the decision trees' {name} is not one number.")
    typed = {
        name: read_only(np.ascontiguousarray(arrays[name].astype(kind)))
        for name, kind in kinds.items()
    }
    return typed | {name: arrays[name].item() for name in numbers}


def flat_planes(planes: NDArray[Any], n_features: int) -> NDArray[Any]:
    """Return features (K, ...) as (K, n), contiguous; raise InvalidProblemError on another K."""
    flat = np.ascontiguousarray(planes).reshape(len(planes), -1)
    if len(flat) != n_features:
        raise InvalidProblemError(f"planes: expected {n_features} features, received {len(flat)}.")
    return flat


def _outside(values: NDArray[Any], low: int, high: int) -> bool:
    return bool(values.size) and bool(values.min() < low or values.max() > high)
