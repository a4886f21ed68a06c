"""Exact sums over a junction tree: log Z, marginals, and the covariance of statistics."""

import numpy as np

from engine.core.arguments import FloatArray, check_shape
from engine.core.errors import InfeasibleError
from engine.graphs.junction_tree import JunctionTree
from engine.kernels.junction_tree import collect, distribute, expect_below
from engine.oracles.junction_tree import spread_tables


def calibrate(tree: JunctionTree, tables: FloatArray) -> tuple[float, FloatArray]:
    """Return log Z (nats) and the exact marginals as a point, shape (tree.size,).

    Parameters
    ----------
    tables : ndarray, shape (tree.n_table_entries,), log potentials, -inf where impossible.

    Raises
    ------
    InfeasibleError
        If every labelling is impossible.

    References
    ----------
    Shafer and Shenoy 1990.
    """
    check_shape("tables", tables, (tree.n_table_entries,))
    beliefs = spread_tables(tree, tables)
    messages = np.empty(tree.n_separator_entries)
    collect(*tree.layout, True, beliefs, messages)
    roots = np.flatnonzero(tree.parent < 0)
    log_partition = float(messages[tree.up[tree.start[roots]]].sum())
    if log_partition == -np.inf:
        raise InfeasibleError("Every labelling of this model is impossible.")
    point = np.empty(tree.size)
    cliques, separators, margins = tree.split(point)
    distribute(*tree.layout, beliefs, messages, cliques, separators)
    margins[:] = tree.entries_of_tables.T @ cliques
    return log_partition, point


def statistics_covariance(
    tree: JunctionTree, features: FloatArray, point: FloatArray
) -> FloatArray:
    """Return the exact covariance of sum features at a model's marginals, shape (K, K).

    Given its separator a clique varies by itself, and the subtree below it through its mean. By the
    law of total variance the result is sum_c E[V_c V_c^T] - sum_s E[U_s U_s^T], where V_c are a
    clique's features with the means U_s of the subtrees below.
    """
    cliques, separators, _ = tree.split(point)
    values = np.ascontiguousarray(tree.entries_of_tables @ features)
    expected = np.empty((tree.n_separator_entries, features.shape[1]))
    expect_below(*tree.layout, cliques, separators, values, expected)
    within = values.T @ (cliques[:, None] * values)
    return np.asarray(within - expected.T @ (separators[:, None] * expected))
