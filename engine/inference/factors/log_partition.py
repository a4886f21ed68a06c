"""Log Z and marginals of factor graphs by any of the methods, with proved bounds."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from engine.core.arguments import FloatArray, read_only
from engine.core.errors import InfeasibleError
from engine.core.options import check_callables, check_choice, check_flag, check_number, check_whole
from engine.core.progress import ProgressCallback, StopCallback, ignore_progress, never_stop
from engine.graphs.factor_graph import FactorGraph, PairwiseForm, to_pairwise
from engine.graphs.spanning_trees import constant_tree_probability, tree_probabilities
from engine.inference.factors import methods
from engine.inference.factors.elimination import Elimination
from engine.inference.factors.feasible_start import find_feasible
from engine.inference.factors.mean_field import mean_field
from engine.inference.factors.wide_variables import NarrowModel, take_out_wide
from engine.inference.map_estimate import MAX_ITERATIONS
from engine.inference.marginals import Marginals
from engine.inference.pairwise.dual_oracle import DualOracle
from engine.inference.pairwise.frank_wolfe import frank_wolfe_marginals, interior_start
from engine.inference.pairwise.tree_reweighted import TreeReweighted
from engine.inference.pairwise.tree_weights import optimise_tree_weights
from engine.inference.pairwise.zeros import independent_bound, possible_scores
from engine.objectives.pairwise_free_energy import PairwiseFreeEnergy
from engine.oracles.local_polytope import LocalPolytopeProgramme
from engine.oracles.protocol import LinearMinimizationOracle
from engine.oracles.roof_duality import RoofDuality

MarginalMethod = Literal["trw", "bp", "mean-field", "frank-wolfe", "exact"]
EdgeProbabilities = Literal["uniform", "constant", "optimised"]
DEFAULT_METHOD: MarginalMethod = "trw"
EDGE_PROBABILITIES: tuple[str, ...] = get_args(EdgeProbabilities)
FRANK_WOLFE_GAP = 1e-3  # nats
MESSAGE_TOLERANCE = 1e-8
BP_DAMPING = 0.3
# With strong couplings messages drift towards minus infinity although the bound has converged:
# trw also counts as converged once bound and value differ by at most this, nats a variable.
GAP_PER_VARIABLE = 1e-5
TREE_ITERATIONS = 100  # warm-started iterations between two steps of the edge probabilities
# Table entries up to which Frank-Wolfe calls a generic solver; beyond, an inexact oracle.
LARGEST_PROGRAMME = 5_000
# Messages and Frank-Wolfe also converge if no configuration is possible. On models of at most
# this number of table entries, a search of at most this number of conflicts detects that first.
LARGEST_SEARCH, SEARCH_CONFLICTS = 50_000, 10_000


@dataclass(frozen=True, slots=True, eq=False)
class PartitionEstimate:
    """Estimate of log Z (nats) with its bounds and marginals, by one method.

    Parameters
    ----------
    method : str, the method that computed it.
    value : float, the method's log Z in nats; for trw its bound.
    lower_bound, upper_bound : float or None
        Proved bounds of log Z in nats, None if the method has no such bound. They hold whether or
        not the method converged.
    is_exact : bool, whether value is log Z up to rounding.
    is_converged : bool
    iterations : int
    marginals : tuple of ndarray
        One vector a variable; empty if only log Z was requested.

    Examples
    --------
    >>> estimate = PartitionEstimate("exact", 2.0, 2.0, 2.0, True, True, 1, ())
    >>> estimate.lower_bound == estimate.upper_bound
    True
    """

    method: str
    value: float
    lower_bound: float | None
    upper_bound: float | None
    is_exact: bool
    is_converged: bool
    iterations: int
    marginals: tuple[FloatArray, ...]


@dataclass(frozen=True, slots=True)
class _Options:
    """Options common to all methods."""

    rho: EdgeProbabilities
    damping: float | None
    max_iterations: int
    on_progress: ProgressCallback
    should_stop: StopCallback


@dataclass(frozen=True, slots=True)
class _Task:
    """Model with its pairwise form and the options."""

    graph: FactorGraph
    form: PairwiseForm
    options: _Options


def log_partition(
    graph: FactorGraph,
    *,
    method: MarginalMethod = DEFAULT_METHOD,
    rho: EdgeProbabilities = "uniform",
    damping: float | None = None,
    max_iterations: int = MAX_ITERATIONS,
    with_marginals: bool = False,
    on_progress: ProgressCallback = ignore_progress,
    should_stop: StopCallback = never_stop,
) -> PartitionEstimate:
    """Estimate log Z, and bound it if the method can.

    Parameters
    ----------
    graph : FactorGraph
    method : "trw", "mean-field", "frank-wolfe", "bp" or "exact"
        "trw" bounds from above, "mean-field" from below, "frank-wolfe" from above like trw but by
        MAP calls, "bp" only if the model is a forest, "exact" from both sides by elimination.
    rho : "uniform", "constant" or "optimised"
        Edge probabilities of trw and frank-wolfe: uniform over spanning trees (balanced trees
        beyond 2,000 nodes), one for all edges, or optimised for the smallest bound.
    damping : float in [0, 1), optional
        Share of old messages kept by trw (at first) and bp; 0 and 0.3 if None.
    max_iterations : int
    with_marginals : bool
        Whether "exact" computes marginals, at three times the time; the others always do.
    on_progress : callable taking a Progress, optional
    should_stop : callable returning bool, optional

    Returns
    -------
    PartitionEstimate
        ``value`` and its bounds in nats, and the marginals.

    Raises
    ------
    InfeasibleError
        If every configuration has probability zero, or the method found no possible one.
    InvalidProblemError
        If the model is too wide for "exact", or an option is unknown or out of range.
    StoppedError
        If ``should_stop`` ended "exact".

    References
    ----------
    Wainwright, Jaakkola and Willsky 2005 (trw); Tang et al. 2015 (frank-wolfe).

    Examples
    --------
    >>> from engine.graphs.factor_graph import Factor
    >>> pair = Factor((0, 1), np.log([[1.0, 2.0], [3.0, 4.0]]))
    >>> answer = log_partition(FactorGraph(np.array([2, 2]), (pair,)))
    >>> answer.is_exact, float(round(np.exp(answer.value), 6))
    (True, 10.0)
    """
    check_choice("method", method, methods.MARGINALS)
    check_choice("rho", rho, EDGE_PROBABILITIES)
    check_number("damping", damping, at_least=0.0, below=1.0, optional=True)
    check_whole("max_iterations", max_iterations)
    check_flag("with_marginals", with_marginals)
    check_callables(on_progress=on_progress, should_stop=should_stop)
    methods.MARGINALS[method].check(graph)
    options = _Options(rho, damping, max_iterations, on_progress, should_stop)
    narrow = take_out_wide(graph, is_sum=True, beside_others=method != "mean-field")
    if not narrow.taken:
        return _estimate(graph, method, options, with_marginals=with_marginals)
    if len(narrow.kept):
        answer = _estimate(narrow.graph, method, options, with_marginals=with_marginals)
    else:
        value = float(sum(factor.table for factor in narrow.graph.factors))
        if value == -np.inf:
            raise InfeasibleError("Every configuration of this model has probability zero.")
        answer = PartitionEstimate(method, value, value, value, True, True, 1, ())
    return _with_wide(answer, narrow)


def _with_wide(answer: PartitionEstimate, narrow: NarrowModel) -> PartitionEstimate:
    """Return the estimate for the whole model, whose log Z is the same up to rounding."""
    lower, upper = answer.lower_bound, answer.upper_bound
    whole = len(answer.marginals) == len(narrow.kept)
    return replace(
        answer,
        lower_bound=None if lower is None else lower - narrow.rounding,
        upper_bound=None if upper is None else upper + narrow.rounding,
        marginals=narrow.marginals_of(answer.marginals) if whole else (),
    )


def _estimate(
    graph: FactorGraph, method: MarginalMethod, options: _Options, *, with_marginals: bool
) -> PartitionEstimate:
    """Estimate log Z of a model whose variables have few states."""
    if method == "exact":
        return _exact(graph, with_marginals=with_marginals, should_stop=options.should_stop)
    form = to_pairwise(graph)
    task = _Task(graph, form, options)
    if method == "mean-field":
        return _mean_field(task)
    if form.model.has_zeros and form.model.graph.size <= LARGEST_SEARCH:
        find_feasible(graph, form, most_conflicts=SEARCH_CONFLICTS, should_stop=options.should_stop)
    answer = _APPROXIMATIONS[method](task)
    if answer.log_partition == -np.inf:
        raise InfeasibleError(
            f"The method {method} found no configuration of probability above zero."
        )
    upper = answer.upper_bound
    if upper is not None:
        upper = min(upper + form.constant, simple_bound(graph))
    lower = None if answer.lower_bound is None else answer.lower_bound + form.constant
    settled = GAP_PER_VARIABLE * graph.n_variables
    # A proved bound is worth more than a free energy between it and the relaxation's optimum.
    trusted = method == "trw" and upper is not None
    return PartitionEstimate(
        method=method,
        value=upper if trusted and upper is not None else answer.log_partition + form.constant,
        lower_bound=lower,
        upper_bound=upper,
        is_exact=lower is not None and upper is not None,  # a forest
        is_converged=answer.is_converged or (method == "trw" and answer.dual_gap <= settled),
        iterations=answer.iterations,
        marginals=tuple(
            read_only(form.model.graph.node_table(answer.tables, i).copy())
            for i in range(graph.n_variables)
        ),
    )


def marginals(
    graph: FactorGraph,
    *,
    method: MarginalMethod = DEFAULT_METHOD,
    rho: EdgeProbabilities = "uniform",
    damping: float | None = None,
    max_iterations: int = MAX_ITERATIONS,
    on_progress: ProgressCallback = ignore_progress,
    should_stop: StopCallback = never_stop,
) -> PartitionEstimate:
    """Estimate the marginals of all variables, with the options of `log_partition`.

    Parameters
    ----------
    graph : FactorGraph
    method : str, as for `log_partition`.
    rho : str, as for `log_partition`.
    damping : float in [0, 1), optional, as for `log_partition`.
    max_iterations : int
    on_progress : callable taking a Progress, optional
    should_stop : callable returning bool, optional

    Returns
    -------
    PartitionEstimate
        ``marginals`` has one vector a variable, whose entries sum to 1.

    Raises
    ------
    InfeasibleError, InvalidProblemError, StoppedError
        As `log_partition`.

    Examples
    --------
    >>> from engine.graphs.factor_graph import Factor
    >>> alone = Factor((0,), np.log([1.0, 3.0]))
    >>> answer = marginals(FactorGraph(np.array([2]), (alone,)), method="exact")
    >>> answer.marginals[0].round(6).tolist()
    [0.25, 0.75]
    """
    return log_partition(
        graph,
        method=method,
        rho=rho,
        damping=damping,
        max_iterations=max_iterations,
        with_marginals=True,
        on_progress=on_progress,
        should_stop=should_stop,
    )


def simple_bound(graph: FactorGraph) -> float:
    """Return the sum of log sum exp theta_i and of other factors' largest entries (nats).

    This is an upper bound of log Z, with an allowance for rounding.
    """
    singles = FactorGraph(
        graph.cardinalities, tuple(f for f in graph.factors if len(f.variables) == 1)
    )
    others = [float(f.table.max()) for f in graph.factors if len(f.variables) != 1]
    bound = independent_bound(to_pairwise(singles).model) + sum(others)
    return bound + 4.0 * len(others) * float(np.spacing(np.abs(others).sum() + abs(bound)))


def _exact(
    graph: FactorGraph, *, with_marginals: bool, should_stop: StopCallback
) -> PartitionEstimate:
    solver = Elimination(graph)
    found: list[FloatArray] = []
    if with_marginals:
        value, found = solver.marginals(should_stop=should_stop)
    else:
        value = solver.log_partition(should_stop=should_stop)
        if value == -np.inf:
            raise InfeasibleError("Every configuration of this model has probability zero.")
    return PartitionEstimate("exact", value, value, value, True, True, 1, tuple(found))


def _mean_field(task: _Task) -> PartitionEstimate:
    """Run mean field from a uniform point and, with zeros, from a possible configuration."""
    start = None
    if task.form.model.has_zeros:
        start = find_feasible(task.graph, task.form, should_stop=task.options.should_stop)
    answer = mean_field(
        task.graph,
        start=start,
        max_iterations=task.options.max_iterations,
        should_stop=task.options.should_stop,
    )
    if answer.lower_bound == -np.inf:
        raise InfeasibleError(
            "The method mean-field found no configuration of probability above zero."
        )
    return PartitionEstimate(
        method="mean-field",
        value=answer.lower_bound,
        lower_bound=answer.lower_bound,
        upper_bound=None,
        is_exact=False,
        is_converged=answer.status.is_converged,
        iterations=answer.iterations,
        marginals=answer.marginals,
    )


def _weighted_solver(task: _Task) -> tuple[TreeReweighted, float]:
    """Return a solver with the requested edge probabilities, and a bound that they proved.

    If further iterations do not converge, they may lose the bound of optimised probabilities.
    """
    graph = task.form.model.graph
    if task.options.rho == "optimised":
        weights = optimise_tree_weights(
            task.form.model,
            max_iterations=min(task.options.max_iterations, TREE_ITERATIONS),
            should_stop=task.options.should_stop,
        )
        return weights.solver, weights.upper_bound
    constant = task.options.rho == "constant"
    rho = constant_tree_probability(graph) if constant else tree_probabilities(graph)
    return TreeReweighted(graph, rho, from_trees=True), np.inf


def _run_trw(task: _Task) -> Marginals:
    solver, proven = _weighted_solver(task)
    answer = solver.solve(
        task.form.model,
        warm=True,
        max_iterations=task.options.max_iterations,
        damping=0.0 if task.options.damping is None else task.options.damping,
        tolerance=MESSAGE_TOLERANCE,
        on_progress=task.options.on_progress,
        should_stop=task.options.should_stop,
    )
    bound = proven if answer.upper_bound is None else min(proven, answer.upper_bound)
    return replace(answer, upper_bound=bound)


def _run_bp(task: _Task) -> Marginals:
    return TreeReweighted(task.form.model.graph, 1.0).solve(
        task.form.model,
        max_iterations=task.options.max_iterations,
        damping=BP_DAMPING if task.options.damping is None else task.options.damping,
        tolerance=MESSAGE_TOLERANCE,
        on_progress=task.options.on_progress,
        should_stop=task.options.should_stop,
    )


def _run_frank_wolfe(task: _Task) -> Marginals:
    model = possible_scores(task.form.model)
    oracle: LinearMinimizationOracle
    if model.graph.is_binary and not model.has_zeros:
        oracle = RoofDuality(model.graph, reuse_vertex=True)
    elif model.graph.size <= LARGEST_PROGRAMME:
        oracle = LocalPolytopeProgramme(model.graph)
    else:
        oracle = DualOracle(model.graph)
    weights = _weighted_solver(task)[0]
    start = interior_start(model, should_stop=task.options.should_stop)
    return frank_wolfe_marginals(
        PairwiseFreeEnergy(model.scores, weights.entropy, oracle),
        start.tables,
        inconsistency=start.inconsistency,
        weights=weights,
        max_iterations=task.options.max_iterations,
        tolerance=FRANK_WOLFE_GAP,
        should_stop=task.options.should_stop,
    )


_APPROXIMATIONS: dict[str, Callable[[_Task], Marginals]] = {
    "trw": _run_trw,
    "bp": _run_bp,
    "frank-wolfe": _run_frank_wolfe,
}
