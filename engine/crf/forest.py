"""Boosted forest: scores of pixels as sums over decision trees, in flat arrays.

A forest of two classes has one output, the log-odds of the second; a forest of L classes has L
outputs, log-probabilities up to a constant.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.core.arguments import read_only
from engine.core.errors import InvalidProblemError
from engine.kernels.forest import sum_trees
from engine.kernels.threads import for_row_ranges

KINDS = {
    "offsets": np.float32,
    "starts": np.int32,
    "depths": np.int32,
    "features": np.int16,
    "thresholds": np.float32,
    "children": np.int32,
    "values": np.float32,
}
"""Arrays of a forest and their types."""

MAX_DEPTH = 64
"""Largest depth accepted from a file; learned trees have about ten levels."""

SHARED_PIXELS = 16_384
"""Number of pixels from which several threads share the trees, if the caller allows it."""

_DO_NOT_FIT = "the arrays of the decision trees do not fit each other."


@dataclass(frozen=True, slots=True, eq=False)
class Forest:
    """Trees of binary comparisons; see `engine.kernels.forest.sum_trees` for the arrays.

    ``offsets``, shape (M,), is the score before any tree; ``values`` has shape (N, M).

    Raises
    ------
    InvalidProblemError
        If an array has another shape, or points outside the nodes or the features.
    """

    n_features: int
    offsets: NDArray[np.floating]
    starts: NDArray[np.int32]
    depths: NDArray[np.int32]
    features: NDArray[np.int16]
    thresholds: NDArray[np.float32]
    children: NDArray[np.int32]
    values: NDArray[np.float32]

    def __post_init__(self) -> None:
        _check_nodes(self)
        if self.offsets.ndim != 1 or self.n_outputs < 1:
            raise InvalidProblemError(_DO_NOT_FIT)
        if self.values.shape != (len(self.features), self.n_outputs):
            raise InvalidProblemError(_DO_NOT_FIT)
        if not (np.isfinite(self.values).all() and np.isfinite(self.offsets).all()):
            raise InvalidProblemError("the decision trees hold values that are not numbers.")

    @property
    def n_outputs(self) -> int:
        """Number of values in a leaf: 1 for two classes, L for L."""
        return len(self.offsets)

    def scores(self, planes: NDArray[Any], *, is_shared: bool = False) -> NDArray[np.float32]:
        """Return the scores of every pixel.

        Parameters
        ----------
        planes : ndarray, shape (n_features, ...), float32, or uint8 if thresholds are bins
        is_shared : bool, whether several threads may share the pixels.

        Returns
        -------
        ndarray, shape (..., M), float32
        """
        flat = np.ascontiguousarray(planes).reshape(len(planes), -1)
        if len(flat) != self.n_features:
            raise InvalidProblemError(
                f"planes: expected {self.n_features} features, received {len(flat)}."
            )
        # A single output is summed in double precision.
        kind = np.float64 if self.n_outputs == 1 else np.float32
        total = np.empty((flat.shape[1], self.n_outputs), dtype=kind)
        total[:] = self.offsets
        trees = (self.starts, self.depths, self.features, self.thresholds, self.children)

        def some(first: int, last: int) -> None:
            sum_trees(flat, *trees, self.values, first, total[first:last])

        for_row_ranges(len(total), some, SHARED_PIXELS if is_shared else len(total) + 1)
        return total.reshape(*planes.shape[1:], self.n_outputs).astype(np.float32, copy=False)

    def joined(self, other: "Forest") -> "Forest":
        """Return the trees of both forests, with equal features and outputs: their scores add."""
        n = np.int32(len(self.features))
        parts: dict[str, Any] = {
            "starts": (self.starts, other.starts + n),
            "depths": (self.depths, other.depths),
            "features": (self.features, other.features),
            "thresholds": (self.thresholds, other.thresholds),
            "children": (self.children, other.children + n),
            "values": (self.values, other.values),
        }
        joined = {name: read_only(np.concatenate(both)) for name, both in parts.items()}
        return Forest(self.n_features, read_only(self.offsets + other.offsets), **joined)

    def scaled(self, factor: float) -> "Forest":
        """Return the forest with its scores multiplied by ``factor``."""
        values, offsets = self.values * np.float32(factor), self.offsets * np.float32(factor)
        return replace(self, offsets=read_only(offsets), values=read_only(values))

    def of_log_odds(self) -> "Forest":
        """Return the forest of the difference of two classes, the second less the first."""
        offsets = (self.offsets[1:] - self.offsets[:1]).astype(np.float64)
        values = np.ascontiguousarray(self.values[:, 1:] - self.values[:, :1])
        return replace(self, offsets=read_only(offsets), values=read_only(values))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays that ``forest_from_arrays`` reads, by name."""
        return {"n_features": np.array(self.n_features)} | {k: getattr(self, k) for k in KINDS}


def forest_from_arrays(arrays: Mapping[str, NDArray[Any]]) -> Forest:
    """Check the arrays of a file and make a forest of them.

    Older files of two classes have one ``offset`` and a single value per leaf.

    Raises
    ------
    InvalidProblemError
        If an array is missing, is not numeric, or does not match the others.
    """
    given = dict(arrays)
    if "offset" in given and "offsets" not in given:
        given["offsets"] = given.pop("offset")[np.newaxis]
        if "values" in given and given["values"].ndim == 1:
            given["values"] = given["values"][:, np.newaxis]
    wanted = {"n_features", *KINDS}
    if missing := wanted - set(given):
        raise InvalidProblemError(f"the decision trees lack {', '.join(sorted(missing))}.")
    for name in wanted:
        if given[name].dtype.kind not in "iuf":
            raise InvalidProblemError(f"the decision trees' {name} are no numbers.")
    if given["n_features"].shape:
        raise InvalidProblemError("the decision trees' n_features is not one number.")
    kinds = KINDS | ({"offsets": np.float64} if given["offsets"].shape == (1,) else {})
    parts: dict[str, Any] = {
        name: read_only(np.ascontiguousarray(given[name].astype(kind)))
        for name, kind in kinds.items()
    }
    return Forest(int(given["n_features"]), **parts)


def _check_nodes(forest: Forest) -> None:
    """Raise InvalidProblemError for trees whose paths leave the nodes or the features."""
    features, thresholds, children = forest.features, forest.thresholds, forest.children
    starts, depths, n_nodes = forest.starts, forest.depths, len(features)
    is_whole = starts.ndim == 1 and starts.shape == depths.shape
    if not is_whole or any(a.shape != (n_nodes,) for a in (features, thresholds, children)):
        raise InvalidProblemError(_DO_NOT_FIT)
    is_leaf = np.isposinf(thresholds)  # never passed to the right, where the next node is
    if (
        _outside(starts, n_nodes - 1)
        or _outside(depths, MAX_DEPTH)
        or _outside(features, forest.n_features - 1)
        or _outside(children[is_leaf], n_nodes - 1)
        or _outside(children[~is_leaf], n_nodes - 2)
        or not is_leaf[children == np.arange(n_nodes)].all()
        or bool(np.isnan(thresholds).any())
    ):
        raise InvalidProblemError(_DO_NOT_FIT)


def _outside(values: NDArray[Any], high: int) -> bool:
    return bool(values.size) and bool(values.min() < 0 or values.max() > high)
