"""Sums of decision trees at every pixel."""

import numpy as np
from numba import njit

BLOCK = 256
"""Pixels that one tree is asked about before the next tree is: its nodes stay in the cache."""


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
        for k in range(planes.shape[0]):
            for p in range(count):
                sample[p, k] = planes[k, first + p]
        for tree in range(len(starts)):
            places[:count] = starts[tree]
            for _ in range(depths[tree]):
                for p in range(count):
                    node = places[p]
                    is_right = sample[p, features[node]] > thresholds[node]
                    places[p] = children[node] + is_right
            for p in range(count):
                out[first + p] += values[places[p]]
