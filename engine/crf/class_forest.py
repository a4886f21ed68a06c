"""A boosted forest over several classes: scores of a pixel as sums over decision trees."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.core.arguments import read_only
from engine.core.errors import InvalidProblemError
from engine.kernels.boosting import sum_class_trees

KINDS = {
    "offsets": np.float32,
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
        n_nodes, n_classes = len(self.features), len(self.offsets)
        shapes_fit = (
            all(array.ndim == 1 for array in (self.offsets, self.starts, self.features))
            and n_classes >= 2
            and self.depths.shape == self.starts.shape
            and self.thresholds.shape == self.children.shape == (n_nodes,)
            and self.values.shape == (n_nodes, n_classes)
        )
        if not shapes_fit or _outside(self.features, 0, self.n_features - 1):
            raise InvalidProblemError(_MISFIT)
        if _outside(self.starts, 0, n_nodes - 1) or _outside(self.depths, 0, MAX_DEPTH):
            raise InvalidProblemError(_MISFIT)
        # The right child comes next; of a leaf, its own left child, there is none.
        is_leaf = self.children == np.arange(n_nodes)
        if _outside(self.children, 0, n_nodes - 1) or _outside(
            self.children[~is_leaf], 0, n_nodes - 2
        ):
            raise InvalidProblemError(_MISFIT)
        if not np.isinf(self.thresholds[is_leaf]).all():
            raise InvalidProblemError(_MISFIT)
        if not np.isfinite(self.values).all() or not np.isfinite(self.offsets).all():
            raise InvalidProblemError("the decision trees hold values that are not numbers.")

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
        flat = np.ascontiguousarray(planes).reshape(len(planes), -1)
        if len(flat) != self.n_features:
            raise InvalidProblemError(
                f"planes: expected {self.n_features} features, received {len(flat)}."
            )
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
    wanted = {"n_features", *KINDS}
    if missing := wanted - set(arrays):
        raise InvalidProblemError(f"the decision trees lack {', '.join(sorted(missing))}.")
    for name in wanted:
        if arrays[name].dtype.kind not in "iuf":
            raise InvalidProblemError(f"the decision trees' {name} are no numbers.")
    if arrays["n_features"].shape:
        raise InvalidProblemError("the decision trees' number of features is not one number.")
    typed = {
        name: read_only(np.ascontiguousarray(arrays[name].astype(kind)))
        for name, kind in KINDS.items()
    }
    return ClassForest(int(arrays["n_features"]), **typed)


def _outside(values: NDArray[Any], low: int, high: int) -> bool:
    return bool(values.size) and bool(values.min() < low or values.max() > high)
