"""Sums of decision trees at every pixel."""

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from engine.kernels.compiling import inner

Array = NDArray[Any]

BLOCK = 256
"""Number of pixels evaluated by one tree before the next: the tree's nodes stay in the cache."""


@inner
def _read_block(planes: Array, first: int, count: int, sample: Array) -> None:
    """Write the features of ``count`` pixels from ``first``, pixel by pixel."""
    width = planes.shape[0]
    for k in range(width):
        for p in range(count):
            sample[np.uintp(p * width + k)] = planes[k, first + p]


@inner
def _find_leaves(
    root: int,
    depth: int,
    features: Array,
    thresholds: Array,
    children: Array,
    sample: Array,
    width: int,
    count: int,
    places: Array,
) -> None:
    """Write the leaf of one tree for each pixel of a block.

    Indices are unsigned: without the test for counting from the end, it is half again as fast.
    """
    for p in range(count):
        places[np.uintp(p)] = np.uint32(root)
    for _ in range(depth):
        for p in range(count):
            node = np.uintp(places[np.uintp(p)])
            feature = np.uintp(np.uint16(features[node]))
            is_right = sample[np.uintp(p) * np.uintp(width) + feature] > thresholds[node]
            places[np.uintp(p)] = np.uint32(children[node]) + np.uint32(is_right)


@njit(cache=True, nogil=True)
def sum_trees(planes, starts, depths, features, thresholds, children, values, begin, out):  # type: ignore[no-untyped-def]
    """Add to each pixel of a range the leaf values of all trees, M numbers each.

    A leaf is its own left child and has the threshold infinity, so that every pixel takes as many
    steps as the tree is deep: without branches to predict, the steps of several pixels overlap.

    Parameters
    ----------
    planes : (K, n) float32, or uint8 if thresholds are bins
    starts, depths : (T,) int32, root of every tree among the nodes, and its steps to a leaf
    features : (N,) int16, the feature that a node compares
    thresholds : (N,) float32, of a node; values up to it, included, go left
    children : (N,) int32, the left child; the right one comes next
    values : (N, M) float32, of a leaf
    begin : int, the first pixel of the range
    out : (pixels of the range, M) float32 or float64, incremented
    """
    total, width = out.shape
    sample = np.empty(BLOCK * planes.shape[0], dtype=planes.dtype)
    places = np.empty(BLOCK, dtype=np.uint32)
    for first in range(0, total, BLOCK):
        count = min(BLOCK, total - first)
        _read_block(planes, begin + first, count, sample)
        for tree in range(len(starts)):
            _find_leaves(
                starts[tree],
                depths[tree],
                features,
                thresholds,
                children,
                sample,
                planes.shape[0],
                count,
                places,
            )
            for p in range(count):
                leaf = values[np.uintp(places[np.uintp(p)])]
                for m in range(width):
                    out[first + p, m] += leaf[m]
