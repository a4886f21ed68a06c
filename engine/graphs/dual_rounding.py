"""Allowance for rounding in a bound that messages of a pairwise model prove."""

import numpy as np

from engine.core.arguments import FloatArray, IntArray
from engine.core.rounding import sum_allowance
from engine.graphs.pairwise import PairwiseGraph, PairwiseModel

ROUNDINGS = 8  # of a number before it enters a bound, plus one per message at its node


def score_magnitude(model: PairwiseModel) -> float:
    """Return the sum over all tables of the largest |score| that is finite (nats)."""
    graph = model.graph
    tables = np.concatenate([graph.node_start[:-1], graph.edge_start[:-1]])
    return float(_peaks(model.scores, tables).sum())


def dual_allowance(
    graph: PairwiseGraph,
    magnitude: float,
    messages: FloatArray,
    weights: float | FloatArray = 1.0,
) -> float:
    """Return a bound on the rounding error of a dual bound of a model on ``graph`` (nats).

    The bound is a compensated sum of one number per node and end of an edge: a maximum of scores
    with messages added. Impossible entries are ignored: no labelling with a finite score has them.

    Parameters
    ----------
    magnitude : magnitude of the model's scores, see `score_magnitude`.
    messages : ndarray, flat, one entry per label at each end of an edge.
    weights : factors of the messages of each edge, shape (n_edges,).
    """
    ends = np.repeat(np.broadcast_to(weights, graph.n_edges), 2)
    magnitude += 3.0 * float(ends @ _peaks(messages, graph.message_start[:-1]))
    return sum_allowance(graph.largest_degree + ROUNDINGS, magnitude)


def _peaks(flat: FloatArray, starts: IntArray) -> FloatArray:
    """Return the largest finite |entry| of each part of a flat vector; no part is empty."""
    if len(starts) == 0:
        return np.zeros(0)
    sizes = np.where(np.isfinite(flat), np.abs(flat), 0.0)
    peaks: FloatArray = np.maximum.reduceat(sizes, starts)
    return peaks
