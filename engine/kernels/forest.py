"""Sums of decision trees at every pixel."""

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from engine.kernels.compiling import inner

Array = NDArray[Any]

BLOCK = 256
"""Pixels that one tree is asked about before the next tree is: its nodes stay in the cache."""


@inner
def _read_block(planes: Array, first: int, count: int, sample: Array) -> None:
    """Write the features of ``count`` pixels from ``first``, a row of ``sample`` each."""
    for k in range(planes.shape[0]):
        for p in range(count):
            sample[p, k] = planes[k, first + p]


@inner
def _find_leaves(
    root: int,
    depth: int,
    features: Array,
    thresholds: Array,
    children: Array,
    sample: Array,
    count: int,
    places: Array,
) -> None:
    """Write at which leaf of one tree each pixel of a block arrives."""
    places[:count] = root
    for _ in range(depth):
        for p in range(count):
            node = places[p]
            is_right = sample[p, features[node]] > thresholds[node]
            places[p] = children[node] + is_right


@njit(cache=True, nogil=True)
def sum_trees(planes, starts, depths, features, thresholds, children, values, out):  # type: ignore[no-untyped-def]
    """Add to each pixel the leaf values of all trees.

    A leaf is its own left child and has the threshold infinity, so that every pixel takes as many
    steps as the tree is deep: without a branch to guess, the steps of several pixels overlap.

    Parameters
    ----------
    planes : (K, n) float32
    starts, depths : (T,) int32, root of every tree among the nodes, and its steps to a leaf
    features : (N,) int16, what a node compares
    thresholds : (N,) float32, of a node; up to it and equal is left
    children : (N,) int32, the left child; the right one comes next
    values : (N,) float32, of a leaf
    out : (n,) float64, added to
    """
    total = planes.shape[1]
    sample = np.empty((BLOCK, planes.shape[0]), dtype=np.float32)
    places = np.empty(BLOCK, dtype=np.int32)
    for first in range(0, total, BLOCK):
        count = min(BLOCK, total - first)
        _read_block(planes, first, count, sample)
        for tree in range(len(starts)):
            _find_leaves(
                starts[tree], depths[tree], features, thresholds, children, sample, count, places
            )
            for p in range(count):
                out[first + p] += values[places[p]]


@njit(cache=True, nogil=True)
def sum_class_trees(planes, starts, depths, features, thresholds, children, values, out):  # type: ignore[no-untyped-def]
    """Add to each pixel the leaf values of all trees, a number for every class; see `sum_trees`.

    Parameters
    ----------
    planes : (K, n) float32 or uint8
    starts, depths, features, thresholds, children : as in `sum_trees`
    values : (N, L) float32
    out : (n, L) float32, added to
    """
    total, classes = out.shape
    sample = np.empty((BLOCK, planes.shape[0]), dtype=planes.dtype)
    places = np.empty(BLOCK, dtype=np.int32)
    for first in range(0, total, BLOCK):
        count = min(BLOCK, total - first)
        _read_block(planes, first, count, sample)
        for tree in range(len(starts)):
            _find_leaves(
                starts[tree], depths[tree], features, thresholds, children, sample, count, places
            )
            for p in range(count):
                leaf = values[places[p]]
                for c in range(classes):
                    out[first + p, c] += leaf[c]
