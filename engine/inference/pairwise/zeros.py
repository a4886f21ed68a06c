"""Possible labels and a bound of a pairwise model from zeros and single tables alone."""

import numpy as np

from engine.core.errors import InfeasibleError
from engine.core.rounding import sum_allowance
from engine.graphs.dual_rounding import score_magnitude
from engine.graphs.pairwise import PairwiseModel
from engine.kernels.arc_consistency import rule_out


def possible_scores(model: PairwiseModel) -> PairwiseModel:
    """Return the same distribution with -inf at every label that arc consistency rules out.

    Every remaining label has a partner at each neighbour. A model without zeros is returned itself.

    Raises
    ------
    InfeasibleError
        If a node has no label left: every configuration has probability zero.
    """
    if not model.has_zeros:
        return model
    scores = model.scores.copy()
    if not rule_out(model.graph.layout, scores):
        raise InfeasibleError("Every configuration of this model has probability zero.")
    return PairwiseModel(model.graph, scores)


def independent_bound(model: PairwiseModel) -> float:
    """Return the upper bound sum_i log sum exp theta_i + sum_e max theta_e of log Z (nats).

    It includes an allowance for rounding.
    """
    graph, scores = model.graph, model.scores
    nodes = scores[: graph.node_start[-1]]
    bound = float(np.logaddexp.reduceat(nodes, graph.node_start[:-1]).sum())
    if graph.n_edges:
        bound += float(np.maximum.reduceat(scores, graph.edge_start[:-1]).sum())
    most = int(graph.cardinalities.max())
    terms = graph.n_nodes + graph.n_edges + most
    return bound + sum_allowance(terms, score_magnitude(model) + graph.n_nodes * most)
