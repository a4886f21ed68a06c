"""Linear maximisation over the local polytope of any pairwise graph, by HiGHS."""

from typing import Any

import numpy as np
import scipy  # submodules load when first used: a command that solves no programme starts faster

from engine.core.arguments import FloatArray, read_only
from engine.core.errors import CertificateError, InfeasibleError
from engine.graphs.dual_rounding import dual_allowance, score_magnitude
from engine.graphs.local_polytope import local_polytope_rows
from engine.graphs.pairwise import PairwiseGraph, PairwiseModel
from engine.kernels.star_updates import dual_value
from engine.oracles.protocol import ExtremePoint, Vertex


class LocalPolytopeProgramme:
    """Linear programme for any number of labels, exact to the solver's tolerance of 1e-7.

    ``upper_bound`` is recomputed from the dual solution, independently of the solver. The programme
    is meant for small and medium models; roof duality is far faster for binary ones.

    Parameters
    ----------
    graph : PairwiseGraph
        Any numbers of labels.

    Examples
    --------
    >>> graph = PairwiseGraph(np.array([2, 3]), np.array([[0, 1]]))
    >>> point = LocalPolytopeProgramme(graph).compute_extreme_point(np.arange(graph.size))
    >>> round(point.value, 6), round(point.upper_bound, 6)
    (15.0, 15.0)
    """

    def __init__(self, graph: PairwiseGraph) -> None:
        """Build the equations: normalised nodes, edge tables with the margins of their nodes."""
        self.graph = graph
        self._matrix = local_polytope_rows(graph)
        self._right = np.concatenate([np.ones(graph.n_nodes), np.zeros(graph.n_messages)])

    def compute_extreme_point(self, scores: FloatArray) -> ExtremePoint:
        """Return a maximiser of <vertex, scores>; scores (graph.size,), -inf where impossible.

        Raises
        ------
        InfeasibleError
            If no point of the polytope avoids the impossible entries.
        CertificateError
            If the solver does not return an optimum.
        """
        graph = self.graph
        model = PairwiseModel(graph, scores)
        scores = model.scores
        possible = np.isfinite(scores)
        finite = np.where(possible, scores, 0.0)
        scale = float(np.abs(finite).max(initial=0.0)) or 1.0  # solver tolerances are absolute
        solve: Any = scipy.optimize.linprog  # SciPy's stubs accept dense matrices only
        limits = np.stack([np.zeros(graph.size), np.where(possible, np.inf, 0.0)], axis=1)
        answer = solve(
            -finite / scale, A_eq=self._matrix, b_eq=self._right, bounds=limits, method="highs"
        )
        if answer.status == 2:
            raise InfeasibleError("Every configuration of this model has probability zero.")
        if answer.status != 0:
            raise CertificateError(f"The linear programme was not solved: {answer.message}")
        marginals = np.asarray(answer.eqlin.marginals, dtype=np.float64)
        messages = np.ascontiguousarray(-scale * marginals[graph.n_nodes :])
        bound = float(dual_value(np.inf, graph.layout, scores, messages))
        bound += dual_allowance(graph, score_magnitude(model), messages)
        vertex = np.maximum(answer.x, 0.0)
        value = float(vertex @ finite)
        return ExtremePoint(
            vertex=Vertex(read_only(vertex)), value=value, upper_bound=max(bound, value)
        )
