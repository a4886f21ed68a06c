"""Oracle for several labels by expansion moves, with a bound by the linear programme."""

import numpy as np

from engine.core.arguments import FloatArray, IntArray, check_shape
from engine.graphs.pairwise import PairwiseGraph, PairwiseModel
from engine.inference.map_estimate import EXACT_TOLERANCE, meets_bound
from engine.inference.pairwise.expansion import Expansion
from engine.inference.pairwise.map_linear_programme import SmoothedDual
from engine.oracles.protocol import ExtremePoint, make_indicator

BETA = 8.0
ROUNDS = 20
"""Sweeps of star updates at each smoothing between two evaluations of the bound."""


class ExpansionOracle:
    """Oracle of labellings by expansion moves, bounded by the dual of the local polytope.

    A result is exact if its bound equals its value, as mostly in associative models; otherwise
    ``gap`` bounds the error, so that learning stays certified. Each call starts from the last
    labelling and the last dual: use one object for each thread.

    Parameters
    ----------
    graph : PairwiseGraph
    max_sweeps : int, most star updates of every node for one bound.

    References
    ----------
    Boykov, Veksler and Zabih 2001; Finley and Joachims 2008 (learning with inexact oracles).

    Examples
    --------
    >>> graph = PairwiseGraph(np.array([3, 3]), np.array([[0, 1]]))
    >>> scores = np.concatenate([[0.0, 1.0, 0.0, 0.0, 0.0, 0.5], np.eye(3).ravel()])
    >>> answer = ExpansionOracle(graph).compute_extreme_point(scores)
    >>> round(answer.value, 6), answer.vertex.places.tolist(), answer.gap < 1e-6
    (2.0, [1, 4, 10], True)
    """

    def __init__(self, graph: PairwiseGraph, max_sweeps: int = 400) -> None:
        self._graph, self._max_sweeps = graph, max_sweeps
        self._labels: IntArray | None = None
        self._messages: FloatArray | None = None

    def compute_extreme_point(self, scores: FloatArray) -> ExtremePoint:
        """Return the indicator of a good labelling; scores (graph.size,), finite or -inf."""
        scores = np.ascontiguousarray(scores, dtype=np.float64)
        check_shape("scores", scores, (self._graph.size,))
        model = PairwiseModel(self._graph, scores)
        starts = [None] if self._labels is None else [None, self._labels]
        labels = max((_expand(model, start) for start in starts), key=lambda x: _score(model, x))
        self._labels = labels
        value = _score(model, labels)
        bound = self._bound(model, value)
        return ExtremePoint(make_indicator(self._graph.places(labels)), value, max(value, bound))

    def _bound(self, model: PairwiseModel, value: float) -> float:
        """Lower the dual until it equals the value, or the sweeps are used up."""
        dual = SmoothedDual(model, BETA)
        if self._messages is not None:
            dual.messages[:] = self._messages
            dual.set_beta(np.inf)
        best, sweeps, beta = dual.upper_bound(), 0, BETA
        while sweeps < self._max_sweeps and not meets_bound(value, best, EXACT_TOLERANCE):
            for smoothing in (beta, np.inf):
                dual.set_beta(smoothing)
                dual.run(ROUNDS * self._graph.n_nodes)
                sweeps += ROUNDS
                best = min(best, dual.upper_bound())
            beta *= 4.0
        self._messages = dual.messages.copy()
        return best


def _expand(model: PairwiseModel, start: IntArray | None) -> IntArray:
    expansion = Expansion(model, start)
    while not expansion.is_done:
        expansion.step()
    return expansion.labels.copy()


def _score(model: PairwiseModel, labels: IntArray) -> float:
    return model.graph.score(model.scores, labels)
