"""Binary MAP by roof duality, with undecided nodes filled in and a guarantee."""

import numpy as np

from engine.core.arguments import read_only
from engine.core.errors import InvalidProblemError
from engine.core.status import Status
from engine.graphs.pairwise import PairwiseGraph, PairwiseModel
from engine.inference.map_estimate import IMPOSSIBLE, MapEstimate
from engine.inference.pairwise.fusion import move_scores
from engine.inference.pairwise.map_linear_programme import with_finite_penalty
from engine.kernels.local_polytope import improve_labels
from engine.oracles.roof_duality import RoofDuality


def map_by_roof_duality(model: PairwiseModel) -> MapEstimate:
    """Return a labelling from the roof dual, with its bound.

    It is exact if no node is undecided, which always holds for attractive models. Decided labels
    are part of some best labelling (persistency); the others are set to 1 and improved one by one.

    Parameters
    ----------
    model : PairwiseModel, two labels a node.

    Returns
    -------
    MapEstimate
        ``value`` and ``upper_bound`` in nats.

    Raises
    ------
    InvalidProblemError
        If a node has more than two labels.

    References
    ----------
    Hammer, Hansen and Simeone 1984; Kolmogorov and Rother 2007.

    Examples
    --------
    >>> from engine.graphs.pairwise import PairwiseGraph
    >>> graph = PairwiseGraph(np.array([2, 2]), np.array([[0, 1]]))
    >>> model = PairwiseModel(graph, np.array([0.0, 1.0, 0.0, 0.0, 2.0, 0.0, 0.0, 2.0]))
    >>> map_by_roof_duality(model).labels.tolist()
    [1, 1]
    """
    graph = model.graph
    n, highest = graph.n_nodes, graph.cardinalities - 1
    if highest.max() > 1:
        raise InvalidProblemError("Roof duality needs one or two labels at every node.")
    scores = with_finite_penalty(model)
    oracle = RoofDuality(PairwiseGraph(np.full(n, 2), graph.edges))
    point = oracle.compute_extreme_point(move_scores(graph, scores, 0 * highest, highest))
    high = point.vertex.values[1 : 2 * n : 2]
    labels = np.where(high >= 0.5, highest, 0)
    improve_labels(graph.layout, scores, labels, 1000)
    value = graph.score(model.scores, labels)
    undecided = int(((high == 0.5) & (highest == 1)).sum())
    return MapEstimate(
        labels=read_only(labels),
        value=value,
        upper_bound=max(value, point.upper_bound),
        status=Status.CONVERGED,
        iterations=1,
        guarantee=_guarantee(n, undecided) if value > -np.inf else IMPOSSIBLE,
    )


def _guarantee(n_nodes: int, undecided: int) -> str:
    if undecided == 0:
        return "Optimal: the minimum cut decides every node."
    decided = n_nodes - undecided
    return f"{decided} of {n_nodes} labels are those of a best labelling; the rest is a guess."
