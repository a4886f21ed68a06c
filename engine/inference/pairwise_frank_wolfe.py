"""Marginals of pairwise models by Frank-Wolfe: only a MAP oracle is needed."""

import numpy as np

from engine.core.arguments import FloatArray, read_only
from engine.core.progress import StopCallback, never_stop
from engine.core.status import Status
from engine.graphs.pairwise import PairwiseModel
from engine.graphs.spanning_trees import tree_probabilities
from engine.inference.marginals import Marginals
from engine.inference.tree_reweighted import TreeReweighted
from engine.objectives.pairwise_free_energy import PairwiseFreeEnergy


def interior_start(model: PairwiseModel) -> FloatArray:
    """Return a point of the local polytope that is positive wherever possible, flat.

    Without zeros the uniform point; otherwise the tree-reweighted point of the model in which
    all possible entries have the same score.

    Raises
    ------
    InfeasibleError
        If every configuration has probability zero.
    """
    if not model.has_zeros:
        return model.graph.uniform()
    level = PairwiseModel(model.graph, np.where(np.isfinite(model.scores), 0.0, -np.inf))
    rho = tree_probabilities(model.graph)
    return TreeReweighted(model.graph, rho, from_trees=True).solve(level, tolerance=1e-10).tables


def frank_wolfe_marginals(
    energy: PairwiseFreeEnergy,
    start: FloatArray,
    *,
    max_iterations: int = 500,
    tolerance: float = 1e-3,
    should_stop: StopCallback = never_stop,
) -> Marginals:
    """Maximise <tau, theta> + H_rho(tau) over the local polytope, with line search.

    Parameters
    ----------
    start : ndarray, flat; a point in the interior of the polytope, such as the uniform one.
    tolerance : float, nats; converged once upper bound - value is at most this.

    Returns
    -------
    Marginals
        ``upper_bound`` is the smallest value + duality gap met on the way: at least log Z_rho,
        and so at least log Z where rho are edge probabilities of spanning trees.

    References
    ----------
    Frank and Wolfe 1956; Jaggi 2013; Tang 2015, section 3.
    """
    tables = np.array(start, dtype=np.float64)
    value = energy.value(tables)
    bound = np.inf
    status = Status.ITERATION_LIMIT
    change = np.inf
    iteration = 0
    while iteration < max_iterations:
        iteration += 1
        point, gap = energy.ascent_point(tables)
        bound = min(bound, value + gap)
        if bound - value <= tolerance:
            status = Status.CONVERGED
            break
        if should_stop():
            status = Status.CANCELLED
            break
        direction = point.vertex - tables
        step = energy.line_search(tables, direction)
        tables += step * direction
        change = step * float(np.abs(direction).max())
        value = energy.value(tables)
    return Marginals(
        tables=read_only(tables),
        log_partition=value,
        lower_bound=None,
        upper_bound=float(bound),
        iterations=iteration,
        status=status,
        change=change,
    )
