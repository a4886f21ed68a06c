"""Labelled grids small enough to enumerate, with random features."""

import itertools

import numpy as np

from engine.crf.grid_features import DenseNodeFeatures, EdgeFeatures, GridExample, GridFeatures


def tiny_example(
    rng: np.random.Generator, rows: int = 3, columns: int = 4, n_node: int = 3, n_edge: int = 2
) -> GridExample:
    """A grid with random features; four edge codes a direction."""
    edges = EdgeFeatures(
        rng.integers(0, 4, (rows, columns - 1)).astype(np.uint8),
        rng.integers(0, 4, (rows - 1, columns)).astype(np.uint8),
        rng.normal(size=(4, n_edge)),
        rng.normal(size=(4, n_edge)),
    )
    nodes = DenseNodeFeatures(rng.normal(size=(rows, columns, n_node)))
    return GridExample(GridFeatures(nodes, edges), rng.random((rows, columns)) > 0.5)


def all_statistics(features: GridFeatures) -> np.ndarray:
    """phi(Y) of every labelling, shape (2^n, K)."""
    rows, columns = features.shape
    return np.array(
        [
            features.observed_statistics(np.array(bits, dtype=bool).reshape(rows, columns))
            for bits in itertools.product((False, True), repeat=rows * columns)
        ]
    )
