"""Exact sums over perfect matchings of groups with few enough sets of taken nodes.

Nodes are paired in an order, each with every remaining neighbour; earlier pairs matter only by the
set of later nodes that they took. A complete graph of n nodes has some 1.6^n such sets, far below
2^n; forbidden pairs reduce them, and numbers of nearly separate parts add instead of multiplying.
"""

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components, reverse_cuthill_mckee

from engine.core.arguments import BoolArray, FloatArray, IntArray, read_only
from engine.core.errors import InfeasibleError, StoppedError
from engine.core.progress import StopCallback, never_stop
from engine.inference.matching.exact import ExactMarginals
from engine.kernels.matching_frontier import collect_node, take_node

MOST_SETS = 3_000_000
"""Maximum number of sets kept: 50 MB, the same again for tables, and some three seconds."""

WIDEST = 63
"""Largest distance of two neighbours in the order, since sets are bits of one word."""

CROWDED = 0.4
"""Share of allowed pairs above which nearly every set can occur."""

COMPLETE_UP_TO = 30
"""Maximum number of students of such groups that have fewer than ``MOST_SETS`` sets."""


def sum_perfect_matchings(
    scores: FloatArray,
    *,
    most_sets: int = MOST_SETS,
    should_stop: StopCallback = never_stop,
) -> ExactMarginals | None:
    """Sum over all perfect matchings of a connected graph; return None if too many sets occur.

    Parameters
    ----------
    scores : ndarray, shape (n, n), symmetric, nats; -inf marks a missing pair, the diagonal is not
        read.
    most_sets : int, most sets of taken nodes kept; each takes 16 bytes, its table 16 more.
    should_stop : called at every node.

    Returns
    -------
    ExactMarginals or None

    Raises
    ------
    InfeasibleError
        If there is no perfect matching.
    StoppedError
        If ``should_stop`` returned True.

    Examples
    --------
    >>> found = sum_perfect_matchings(np.zeros((4, 4)))
    >>> round(float(np.exp(found.log_partition)), 9), round(float(found.marginals[0, 1]), 9)
    (3.0, 0.333333333)
    """
    n = len(scores)
    allowed = scores > -np.inf
    np.fill_diagonal(allowed, val=False)
    if n > COMPLETE_UP_TO and allowed.sum() > CROWDED * n * (n - 1):
        return None
    order = _order(allowed)
    placed = allowed[np.ix_(order, order)]
    first, second = np.nonzero(np.triu(placed))
    if len(first) and int((second - first).max()) > WIDEST:
        return None
    neighbours = [np.flatnonzero(placed[f, f + 1 :]) + 1 for f in range(n)]
    values = [scores[order[f], order[f + offsets]] for f, offsets in enumerate(neighbours)]
    layers = _go_forward(neighbours, values, most_sets, should_stop)
    if layers is None:
        return None
    total = float(layers[-1][1][0])
    marginals = np.zeros((n, n))
    after = np.zeros(1)
    for f in range(n - 1, -1, -1):
        if should_stop():
            raise StoppedError("Cancelled.")
        (keys, before), next_keys = layers[f], layers[f + 1][0]
        own, here = np.empty(len(keys)), np.empty(len(neighbours[f]))
        slots = _table(len(next_keys))
        collect_node(
            keys, before, neighbours[f], values[f], slots, next_keys, after, total, own, here
        )
        marginals[order[f], order[f + neighbours[f]]] = here
        after = own
        layers.pop()
    return ExactMarginals(total, read_only(marginals + marginals.T))


def connected_parts(allowed: BoolArray) -> list[IntArray]:
    """Return the nodes of every connected component of a graph (n, n), each ascending."""
    count, labels = connected_components(csr_array(allowed.astype(np.int8)), directed=False)
    return [np.flatnonzero(labels == label) for label in range(count)]


def _order(allowed: BoolArray) -> IntArray:
    """Return an order of nodes (n,) that keeps neighbours close."""
    graph = csr_array(allowed.astype(np.int8))
    return np.asarray(reverse_cuthill_mckee(graph, symmetric_mode=True), dtype=np.int64)


def _go_forward(
    neighbours: list[IntArray],
    values: list[FloatArray],
    most_sets: int,
    should_stop: StopCallback,
) -> list[tuple[IntArray, FloatArray]] | None:
    """Return keys and log weights of every layer, including the one after the last node."""
    layers = [(np.zeros(1, dtype=np.int64), np.zeros(1))]
    left = most_sets
    for offsets, scores in zip(neighbours, values, strict=True):
        if should_stop():
            raise StoppedError("Cancelled.")
        keys, before = layers[-1]
        room = min(len(keys) * max(len(offsets), 1), left)
        next_keys, next_before = np.empty(room, dtype=np.int64), np.empty(room)
        count = take_node(keys, before, offsets, scores, _table(room), next_keys, next_before)
        if count == 0:
            raise InfeasibleError("The edges that are allowed contain no perfect matching.")
        left -= count
        if count < 0 or left <= 0:
            return None
        layers.append((next_keys[:count].copy(), next_before[:count].copy()))
    return layers


def _table(n_keys: int) -> IntArray:
    """Return an empty open-address table that will be at most half full."""
    return np.empty(1 << (2 * n_keys).bit_length(), dtype=np.int32)
