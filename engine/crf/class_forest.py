"""A boosted forest over several classes: scores of a pixel as sums over decision trees."""

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
from engine.kernels.forest import sum_class_trees

KINDS = {"offsets": np.float32} | NODE_KINDS
"""The arrays of a forest and their types."""


@dataclass(frozen=True, slots=True, eq=False)
class ClassForest:
    """Trees of binary comparisons; see `engine.kernels.boosting.sum_class_trees` for the arrays.

    ``offsets``, shape (L,), is what is said before any tree.

    Raises
    ------
    InvalidProblemError
        If an array has another shape, or points outside the nodes or the features.
    """

    n_features: int
    offsets: NDArray[np.float32]
    starts: NDArray[np.int32]
    depths: NDArray[np.int32]
    features: NDArray[np.int16]
    thresholds: NDArray[np.float32]
    children: NDArray[np.int32]
    values: NDArray[np.float32]

    def __post_init__(self) -> None:
        trees = (self.starts, self.depths, self.features, self.thresholds, self.children)
        check_nodes(self.n_features, *trees)
        shape = (len(self.features), len(self.offsets))
        if self.offsets.ndim != 1 or shape[1] < 2 or self.values.shape != shape:
            raise InvalidProblemError("the arrays of the decision trees do not fit each other.")
        check_finite(self.values, self.offsets)

    @property
    def n_classes(self) -> int:
        """Numbers that a leaf holds."""
        return len(self.offsets)

    def scores(self, planes: NDArray[Any]) -> NDArray[np.float32]:
        """Return the score of every class at every pixel: log-probabilities up to a constant.

        Parameters
        ----------
        planes : ndarray, shape (n_features, ...), float32, or uint8 where thresholds are bins

        Returns
        -------
        ndarray, shape (..., L), float32
        """
        flat = flat_planes(planes, self.n_features)
        total = np.empty((flat.shape[1], self.n_classes), dtype=np.float32)
        total[:] = self.offsets
        trees = (self.starts, self.depths, self.features, self.thresholds, self.children)
        sum_class_trees(flat, *trees, self.values, total)
        return total.reshape(*planes.shape[1:], self.n_classes)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what ``class_forest_from_arrays`` reads, by name."""
        return {"n_features": np.array(self.n_features)} | {k: getattr(self, k) for k in KINDS}


def class_forest_from_arrays(arrays: Mapping[str, NDArray[Any]]) -> ClassForest:
    """Check the arrays of a file and make a forest of them.

    Raises
    ------
    InvalidProblemError
        If one is missing or they do not fit each other.
    """
    parts = read_tree_arrays(arrays, KINDS, ("n_features",))
    return ClassForest(int(parts.pop("n_features")), **parts)
