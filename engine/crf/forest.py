"""A boosted forest: the log-odds of a pixel as a sum over decision trees, in flat arrays."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.core.errors import InvalidProblemError
from engine.crf.tree_arrays import (
    NODE_KINDS,
    check_finite,
    check_nodes,
    flat_planes,
    read_tree_arrays,
)
from engine.kernels.forest import sum_trees

KINDS = NODE_KINDS
"""The arrays of a forest and their types."""


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
        trees = (self.starts, self.depths, self.features, self.thresholds, self.children)
        check_nodes(self.n_features, *trees)
        if self.values.shape != self.features.shape:
            raise InvalidProblemError("the arrays of the decision trees do not fit each other.")
        check_finite(self.values, self.offset)

    def log_odds(self, planes: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the log-odds of every pixel.

        Parameters
        ----------
        planes : ndarray, shape (n_features, ...), float32

        Returns
        -------
        ndarray, shape (...), float32
        """
        flat = flat_planes(planes, self.n_features)
        total = np.full(flat.shape[1], self.offset)
        trees = (self.starts, self.depths, self.features, self.thresholds, self.children)
        sum_trees(flat, *trees, self.values, total)
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
    parts = read_tree_arrays(arrays, KINDS, ("n_features", "offset"))
    n_features, offset = int(parts.pop("n_features")), float(parts.pop("offset"))
    return Forest(n_features, offset, **parts)
