"""A boosted forest: the log-odds of a pixel as a sum over decision trees, in flat arrays."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.core.arguments import read_only
from engine.core.errors import InvalidProblemError
from engine.kernels.forest import sum_trees

KINDS = {
    "starts": np.int32,
    "depths": np.int32,
    "features": np.int16,
    "thresholds": np.float32,
    "children": np.int32,
    "values": np.float32,
}
"""The arrays of a forest and their types."""

_MISFIT = "the arrays of the decision trees do not fit each other."

MAX_DEPTH = 64
"""Steps to a leaf that a file may claim: ours take some ten."""


@dataclass(frozen=True, slots=True, eq=False)
class Forest:
    """Trees of binary comparisons; see `engine.kernels.forest.sum_trees` for the arrays.

    Raises
    ------
    InvalidProblemError
        If an array has another shape, or points outside the nodes or the features.
    """

    n_features: int
    offset: float
    starts: NDArray[np.int32]
    depths: NDArray[np.int32]
    features: NDArray[np.int16]
    thresholds: NDArray[np.float32]
    children: NDArray[np.int32]
    values: NDArray[np.float32]

    def __post_init__(self) -> None:
        n_nodes = len(self.features)
        per_node = (self.features, self.thresholds, self.children, self.values)
        is_whole = self.starts.ndim == 1 and self.starts.shape == self.depths.shape
        if not (is_whole and all(array.shape == (n_nodes,) for array in per_node)):
            raise InvalidProblemError(_MISFIT)
        is_leaf = np.isposinf(self.thresholds)  # never left to the right
        is_bad = (
            _outside(self.starts, 0, n_nodes - 1)
            or _outside(self.depths, 0, MAX_DEPTH)
            or _outside(self.features, 0, self.n_features - 1)
            or _outside(self.children[is_leaf], 0, n_nodes - 1)
            or _outside(self.children[~is_leaf], 0, n_nodes - 2)
            or not np.isfinite(self.offset)
            or not np.isfinite(self.values).all()
            or bool(np.isnan(self.thresholds).any())
        )
        if is_bad:
            raise InvalidProblemError(_MISFIT)

    def log_odds(self, planes: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the log-odds of every pixel.

        Parameters
        ----------
        planes : ndarray, shape (n_features, ...), float32

        Returns
        -------
        ndarray, shape (...), float32
        """
        flat = np.ascontiguousarray(planes).reshape(len(planes), -1)
        if len(flat) != self.n_features:
            raise InvalidProblemError(
                f"planes: expected {self.n_features} features, received {len(flat)}."
            )
        total = np.full(flat.shape[1], self.offset)
        sum_trees(
            flat,
            self.starts,
            self.depths,
            self.features,
            self.thresholds,
            self.children,
            self.values,
            total,
        )
        return total.reshape(planes.shape[1:]).astype(np.float32)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what ``forest_from_arrays`` reads, by name."""
        numbers = {"n_features": np.array(self.n_features), "offset": np.array(self.offset)}
        return numbers | {name: getattr(self, name) for name in KINDS}


def forest_from_arrays(arrays: Mapping[str, NDArray[Any]]) -> Forest:
    """Check the arrays of a file and make a forest of them.

    Raises
    ------
    InvalidProblemError
        If one is missing or they do not fit each other.
    """
    wanted = {"n_features", "offset", *KINDS}
    if missing := wanted - set(arrays):
        raise InvalidProblemError(f"the decision trees lack {', '.join(sorted(missing))}.")
    for name in wanted:
        if arrays[name].dtype.kind not in "iuf":
            raise InvalidProblemError(f"the decision trees' {name} are no numbers.")
    if arrays["n_features"].shape or arrays["offset"].shape:
        raise InvalidProblemError("the decision trees' offset is not one number.")
    typed = {
        name: read_only(np.ascontiguousarray(arrays[name].astype(kind)))
        for name, kind in KINDS.items()
    }
    return Forest(int(arrays["n_features"]), float(arrays["offset"]), **typed)


def _outside(values: NDArray[Any], low: int, high: int) -> bool:
    return bool(values.size) and bool(values.min() < low or values.max() > high)
