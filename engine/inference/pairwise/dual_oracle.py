"""Inexact oracle of the local polytope for large multi-label models, with a certified bound."""

import numpy as np

from engine.core.arguments import FloatArray, read_only
from engine.graphs.pairwise import PairwiseGraph, PairwiseModel
from engine.inference.pairwise.map_linear_programme import SmoothedDual
from engine.oracles.protocol import ExtremePoint, Vertex

# Inverse temperatures (1 / nat) of each call in turn, and sweeps at each temperature.
BETAS = (2.0, 8.0, 64.0, 512.0, np.inf)
SWEEPS = 10


class DualOracle:
    """Oracle by star updates of the dual programme: a good point and an upper bound.

    The point is the better of a decoded labelling (a vertex) and a feasible point of the local
    polytope. It may fall short of the maximum; ``upper_bound`` never does, so that gaps computed
    with it stay certificates. Dual variables are kept between calls.

    References
    ----------
    Meshi, Jaakkola and Globerson 2012.
    """

    def __init__(self, graph: PairwiseGraph) -> None:
        self._graph = graph
        self._messages: FloatArray | None = None

    def compute_extreme_point(self, scores: FloatArray) -> ExtremePoint:
        """Return a point with a large <point, scores>; scores (graph.size,), -inf allowed.

        Its value is -inf if no point was found that avoids the impossible entries.
        """
        dual = SmoothedDual(PairwiseModel(self._graph, scores), BETAS[0])
        if self._messages is not None:
            dual.messages[:] = self._messages
        bound = np.inf
        for beta in BETAS:
            dual.set_beta(beta)
            dual.run(SWEEPS * self._graph.n_nodes)
            bound = min(bound, dual.upper_bound())
        self._messages = dual.messages
        labels, value = dual.decode()
        vertex = self._graph.indicator(labels)
        if value == -np.inf or bound > value:
            tables = dual.point().tables
            possible = not np.any((tables > 0.0) & np.isneginf(scores))
            inner = float(tables @ dual.scores) if possible else -np.inf
            if inner > value:
                vertex, value = tables, inner
        return ExtremePoint(Vertex(read_only(vertex)), value, max(bound, value))
