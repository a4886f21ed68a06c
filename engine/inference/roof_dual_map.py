"""Binary MAP by roof duality, with undecided nodes filled in, and what that guarantees."""

import numpy as np

from engine.core.arguments import read_only
from engine.core.status import Status
from engine.graphs.pairwise import PairwiseModel
from engine.inference.map_estimate import MapEstimate
from engine.inference.map_linear_programme import SmoothedDual, with_finite_penalty
from engine.kernels.local_polytope import improve_labels
from engine.oracles.roof_duality import RoofDuality


def map_by_roof_duality(model: PairwiseModel) -> MapEstimate:
    """Return a labelling from the roof dual, with its bound.

    Exact where no node is left undecided, always so for attractive models. Decided labels are
    part of some best labelling (persistency); the others are set to 1 and improved one by one.

    Raises
    ------
    InvalidProblemError
        If a node has not exactly two labels.
    """
    oracle = RoofDuality(model.graph)
    point = oracle.compute_extreme_point(with_finite_penalty(model))
    n = model.graph.n_nodes
    labels = (point.vertex[1 : 2 * n : 2] >= 0.5).astype(np.int64)
    dual = SmoothedDual(model, np.inf)
    improve_labels(dual.layout, dual.scores, labels, 1000)
    value = model.graph.score(model.scores, labels)
    undecided = oracle.n_undecided
    return MapEstimate(
        labels=read_only(labels),
        value=value,
        upper_bound=max(value, point.upper_bound),
        status=Status.CONVERGED,
        iterations=1,
        guarantee="Optimal: the minimum cut decides every node."
        if undecided == 0
        else f"{n - undecided} of {n} labels are those of a best labelling; the rest is a guess.",
    )
