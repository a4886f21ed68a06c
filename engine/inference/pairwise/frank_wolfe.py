"""Frank-Wolfe marginals of pairwise models, which need only a MAP oracle."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from engine.core.arguments import FloatArray, read_only
from engine.core.options import check_callables, check_number, check_whole
from engine.core.progress import StopCallback, never_stop
from engine.graphs.pairwise import PairwiseModel
from engine.graphs.spanning_trees import tree_probabilities
from engine.inference.marginals import CONSISTENT, Marginals
from engine.inference.pairwise.tree_reweighted import TreeReweighted
from engine.objectives.objective import FixedScores
from engine.objectives.pairwise_free_energy import PairwiseFreeEnergy
from engine.oracles.protocol import ExtremePoint
from engine.solvers.control import Callbacks, Limits
from engine.solvers.frank_wolfe import FrankWolfe
from engine.solvers.iterate import Direction, Iterate


@dataclass(frozen=True, slots=True, eq=False)
class InteriorPoint:
    """Flat tables, with the largest remaining difference between their margins."""

    tables: FloatArray
    inconsistency: float


def interior_start(
    model: PairwiseModel, *, should_stop: StopCallback = never_stop
) -> InteriorPoint:
    """Return a point of the local polytope that is positive wherever possible.

    Without zeros it is the uniform point; otherwise the tree-reweighted point of the model in
    which all possible entries have the same score, as far as it converged before ``should_stop``
    or within 1,000 iterations.

    Parameters
    ----------
    model : PairwiseModel
    should_stop : callable
        Called at every iteration.

    Returns
    -------
    InteriorPoint
        Flat tables, and the largest difference between their margins.

    Raises
    ------
    InfeasibleError
        If every configuration has probability zero.

    Examples
    --------
    >>> from engine.graphs.pairwise import PairwiseGraph
    >>> graph = PairwiseGraph(np.array([2, 2]), np.array([[0, 1]]))
    >>> interior_start(PairwiseModel(graph, np.zeros(8))).tables.tolist()
    [0.5, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.25]
    """
    check_callables(should_stop=should_stop)
    if not model.has_zeros:
        return InteriorPoint(model.graph.uniform(), 0.0)
    level = PairwiseModel(model.graph, np.where(np.isfinite(model.scores), 0.0, -np.inf))
    rho = tree_probabilities(model.graph)
    solver = TreeReweighted(model.graph, rho, from_trees=True)
    answer = solver.solve(level, tolerance=1e-10, should_stop=should_stop)
    return InteriorPoint(answer.tables, answer.inconsistency)


def frank_wolfe_marginals(
    energy: PairwiseFreeEnergy,
    start: FloatArray,
    *,
    inconsistency: float = 0.0,
    weights: TreeReweighted | None = None,
    max_iterations: int = 500,
    tolerance: float = 1e-3,
    should_stop: StopCallback = never_stop,
) -> Marginals:
    """Maximise <tau, theta> + H_rho(tau) over the local polytope, with line search.

    Parameters
    ----------
    energy : PairwiseFreeEnergy
    start : ndarray, flat
        A point in the interior of the polytope, such as the uniform one.
    inconsistency : float
        Largest difference between margins of ``start``. Every step towards a vertex reduces it;
        above 1e-9 a gap proves nothing.
    weights : TreeReweighted, optional
        The solver whose ``rho`` and graph the entropy has; with it bounds hold for any tables,
        consistent or not, with an allowance for rounding.
    max_iterations : int
        Oracle calls.
    tolerance : float
        Nats; converged once upper bound - value is at most this.
    should_stop : callable
        Called at every step.

    Returns
    -------
    Marginals
        ``upper_bound`` is the smallest value + duality gap of all steps: at least log Z_rho,
        and so at least log Z if rho are edge probabilities of spanning trees. None if no
        point was consistent. STALLED if an inexact oracle found no possible point.

    References
    ----------
    Frank and Wolfe 1956; Jaggi 2013; Tang 2015, section 3.

    Examples
    --------
    >>> from engine.entropies.pairwise import graph_entropy
    >>> from engine.graphs.pairwise import PairwiseGraph
    >>> from engine.oracles.roof_duality import RoofDuality
    >>> graph = PairwiseGraph(np.array([2, 2]), np.array([[0, 1]]))
    >>> energy = PairwiseFreeEnergy(np.zeros(8), graph_entropy(graph, 1.0), RoofDuality(graph))
    >>> round(frank_wolfe_marginals(energy, graph.uniform()).log_partition, 6)
    1.386294
    """
    check_number("inconsistency", inconsistency, at_least=0.0)
    check_whole("max_iterations", max_iterations)
    check_number("tolerance", tolerance, at_least=0.0)
    check_callables(should_stop=should_stop)
    progress = _Consistency(energy, np.asarray(start), inconsistency, weights)
    structure = FixedScores(energy.scores, progress, energy.entropy, np.asarray(start))
    solver = FrankWolfe(
        [structure],
        structure.free_energy,
        limits=Limits(0.0, max_iterations, gap=tolerance),
        callbacks=Callbacks(should_stop=should_stop),
        on_step=progress.follow,
    )
    result = solver.solve()
    bound = -result.lower_bound if weights is None else progress.bound
    return Marginals(
        tables=read_only(solver.iterate.points[0]),
        log_partition=-solver.iterate.value,
        lower_bound=None,
        upper_bound=bound if bound < np.inf else None,
        iterations=result.iterations,
        status=result.status,
        change=progress.change,
        inconsistency=progress.inconsistency,
    )


@dataclass(slots=True)
class _Consistency:
    """Oracle whose bound proves nothing while margins differ, with their difference.

    With ``weights`` it keeps a bound that holds nevertheless: the smallest of the tangents'.
    """

    energy: PairwiseFreeEnergy
    tables: FloatArray
    inconsistency: float
    weights: TreeReweighted | None
    change: float = np.inf
    bound: float = np.inf

    def compute_extreme_point(self, scores: FloatArray) -> ExtremePoint:
        """Return the oracle's point and record the tangent bound."""
        answer = self.energy.oracle.compute_extreme_point(scores)
        if self.weights is not None:
            tangent = self.weights.tangent_bound(
                self.energy.scores, self.tables, answer.upper_bound
            )
            self.bound = min(self.bound, tangent)
        proves = self.inconsistency <= CONSISTENT
        return answer if proves else replace(answer, upper_bound=np.inf)

    def follow(self, iterate: Iterate, directions: Sequence[Direction]) -> None:
        """Reduce the difference of margins by a step towards a consistent vertex."""
        left = np.abs(iterate.points[0] - directions[0].vertex.values).max()
        self.change = iterate.step * float(left) / (1.0 - iterate.step)
        self.inconsistency *= 1.0 - iterate.step
        self.tables = np.array(iterate.points[0])
