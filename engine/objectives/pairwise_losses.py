"""Losses of pseudomarginals of any pairwise model, with slopes and missing labels.

A loss is a function of flat tables of `engine.graphs.pairwise.PairwiseGraph`; its slope is dQ/dtau.
Values are sums over nodes or edges, smaller is better.

References
----------
Domke 2013, section 7 (table of losses).
"""

import numpy as np

from engine.core.arguments import BoolArray, FloatArray, IntArray
from engine.core.errors import InvalidProblemError
from engine.core.options import check_positive
from engine.graphs.pairwise import PairwiseGraph

PAIRWISE_LOSSES = (
    "univariate-logistic",
    "univariate-quadratic",
    "smoothed-classification",
    "clique-logistic",
)
HIDDEN = -1
"""Label of a node whose label is unknown."""

FLOOR = 1e-300  # smallest probability whose logarithm is taken


def marginal_loss(
    graph: PairwiseGraph,
    tables: FloatArray,
    labels: IntArray,
    loss: str,
    sharpness: float = 15.0,
) -> tuple[float, FloatArray]:
    """Return a loss of pseudomarginals and its slope in them, shape (graph.size,).

    Parameters
    ----------
    labels : ndarray, shape (n_nodes,), HIDDEN where unknown: such nodes, and edges at them, do not
        count themselves, but the marginals of known nodes depend on their scores.
    loss : one of `PAIRWISE_LOSSES`
    sharpness : alpha of the smoothed classification loss.

    Raises
    ------
    InvalidProblemError
        For an unknown loss, a label out of range or a sharpness that is not above 0.
    """
    if loss not in PAIRWISE_LOSSES:
        names = ", ".join(PAIRWISE_LOSSES)
        raise InvalidProblemError(f"loss: expected one of {names}, received {loss!r}.")
    check_positive("sharpness", sharpness)
    labels = np.asarray(labels, dtype=np.int64)
    known = labels != HIDDEN
    places = graph.places(np.where(known, labels, 0))
    slope = np.zeros(graph.size)
    if loss == "clique-logistic":
        both = known[graph.edges].all(axis=1)
        seen = places[graph.n_nodes :][both]
        chances = np.maximum(tables[seen], FLOOR)
        slope[seen] = -1.0 / chances
        return -float(np.log(chances).sum()), slope
    own = places[: graph.n_nodes][known]
    if loss == "univariate-logistic":
        chances = np.maximum(tables[own], FLOOR)
        slope[own] = -1.0 / chances
        return -float(np.log(chances).sum()), slope
    if loss == "univariate-quadratic":
        n = int(graph.node_start[-1])
        error = np.where(np.repeat(known, graph.cardinalities), tables[:n], 0.0)
        error[own] -= 1.0
        slope[:n] = error
        return 0.5 * float(error @ error), slope
    return _smoothed_classification(graph, tables, known, own, sharpness, slope)


def _smoothed_classification(
    graph: PairwiseGraph,
    tables: FloatArray,
    known: BoolArray,
    own: IntArray,
    sharpness: float,
    slope: FloatArray,
) -> tuple[float, FloatArray]:
    """Return the sum over known nodes of sigmoids of the best wrong label's lead, and the slope."""
    others = tables.copy()
    others[own] = -np.inf
    nodes = np.flatnonzero(known & (graph.cardinalities > 1))
    rivals = [
        int(graph.node_start[i] + graph.node_table(others, i).argmax()) for i in nodes.tolist()
    ]
    rival = np.array(rivals, dtype=np.int64)
    right = own[np.searchsorted(np.flatnonzero(known), nodes)]
    value = 1.0 / (1.0 + np.exp(np.clip(sharpness * (tables[right] - tables[rival]), -700, 700)))
    change = sharpness * value * (1.0 - value)
    slope[rival] += change
    slope[right] -= change
    return float(value.sum()), slope
