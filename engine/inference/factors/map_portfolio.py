"""Best configuration of a factor graph by search methods and proof methods in parallel.

One thread searches (expansion, forests, blocks, crossings), one proves (roof duality, the linear
programme's dual, elimination of the labels that its bound leaves). They share the best results
after rounds of equal work, so that the whole is never worse than one of its parts in the same time.
Work is counted in table entries, never in seconds: the answer depends on the model, the random
numbers and the limit of work. A limit of seconds ends the search early, wherever it stands.
"""

from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from functools import cache
from math import inf
from typing import Literal

import numpy as np

from engine.core.arguments import IntArray, read_only
from engine.core.errors import InfeasibleError, InvalidProblemError, StoppedError
from engine.core.options import (
    check_callables,
    check_choice,
    check_generator,
    check_number,
    check_seconds,
    check_whole,
)
from engine.core.progress import (
    Progress,
    ProgressCallback,
    StopCallback,
    ignore_progress,
    never_stop,
)
from engine.core.status import Status
from engine.graphs.factor_graph import Factor, FactorGraph, PairwiseForm, to_pairwise
from engine.inference.factors import methods
from engine.inference.factors.dead_ends import labels_without_dead_ends
from engine.inference.factors.elimination import Elimination
from engine.inference.factors.exact_map import map_by_elimination
from engine.inference.factors.feasible_start import find_feasible
from engine.inference.factors.local_search import LocalSearch
from engine.inference.factors.map_incumbent import Incumbent, nothing_found
from engine.inference.factors.wide_variables import NarrowModel, take_out_wide
from engine.inference.factors.work_rounds import MIN_ROUND, Worker, WorkRounds
from engine.inference.map_estimate import MAX_ITERATIONS, MapEstimate
from engine.inference.pairwise.expansion import Expansion, map_by_expansion
from engine.inference.pairwise.map_linear_programme import (
    FIRST_BETA,
    PERIOD,
    QUIET_ROUNDS,
    DualSearch,
    SmoothedDual,
    map_by_linear_programme,
    with_finite_penalty,
)
from engine.inference.pairwise.planar_ising import PlanarIsing, has_no_field
from engine.inference.pairwise.roof_dual_map import map_by_roof_duality
from engine.kernels.local_polytope import improve_labels
from engine.kernels.work_time import wall_seconds

MapMethod = Literal["roof-duality", "lp", "expansion", "exact"]
MAX_WORK = 6e9  # default limit of a call, in table entries: about a minute
QUICK_COST = 20_000_000  # table entries that elimination visits in 0.2 s; it then comes first
ENTRIES_PER_SECOND = 1e8  # of elimination, which does not start if it would exceed the limit
DUAL_SHARE = 0.25  # of the work of "exact", spent on the bound that removes labels
CONFLICT_WORK = 2e7  # of a search for a possible configuration, between two questions for a stop
DEAD_ENDS = "{guarantee} {n_kept} of {n_labels} labels can be part of a best configuration."
LOOK = 0.05  # seconds between two calls of should_stop
REPORT = 0.5  # seconds between two progress reports


@dataclass(frozen=True, slots=True)
class _Options:
    """Limits, randomness and callbacks of a call."""

    max_work: float
    max_seconds: float
    max_iterations: int
    rng: np.random.Generator | None
    on_progress: ProgressCallback
    should_stop: StopCallback


def map_estimate(
    graph: FactorGraph,
    *,
    method: MapMethod | None = None,
    max_work: float | None = None,
    max_seconds: float | None = None,
    max_iterations: int = MAX_ITERATIONS,
    rng: np.random.Generator | None = None,
    on_progress: ProgressCallback = ignore_progress,
    should_stop: StopCallback = never_stop,
) -> MapEstimate:
    """Find a configuration of large score, and bound the best score from above (nats).

    Parameters
    ----------
    graph : FactorGraph
    method : str, optional
        One method alone; None lets all methods share the work until optimality is proved.
    max_work : float, optional
        Largest number of table entries that each of two threads visits, at about 10 ns each. An
        unproved result is then returned with its bound (status ITERATION_LIMIT); it does not
        depend on the machine's speed. ``MAX_WORK``, about a minute, if no limit is given.
    max_seconds : float, optional
        An unproved result is then returned with its bound (status TIME_LIMIT); it depends on the
        machine's speed. The time starts after compilation.
    max_iterations : int, of a single method.
    rng : numpy.random.Generator, optional, for the local search.
    on_progress : callable taking a Progress, optional
    should_stop : callable returning bool, optional

    Returns
    -------
    MapEstimate
        ``labels`` with their ``value`` and ``upper_bound`` in nats.

    Raises
    ------
    InfeasibleError
        If every configuration has probability zero, or no possible one was found in time.
    InvalidProblemError
        If the model lacks what the method needs (`engine.inference.factors.methods`), or an option
        is unknown or out of range.
    StoppedError
        If the time or the work of "exact" ended.

    Examples
    --------
    >>> from engine.graphs.factor_graph import Factor
    >>> unlike = Factor((0, 1), np.array([[0.0, 1.0], [2.0, 0.0]]))
    >>> answer = map_estimate(FactorGraph(np.array([2, 2]), (unlike,)))
    >>> answer.labels.tolist(), answer.value, answer.is_exact
    ([1, 0], 2.0, True)
    """
    check_choice("method", method, methods.MAP, optional=True)
    check_number("max_work", max_work, above=0.0, optional=True, or_infinite=True)
    check_seconds("max_seconds", max_seconds)
    check_whole("max_iterations", max_iterations, at_least=1)
    check_generator("rng", rng)
    check_callables(on_progress=on_progress, should_stop=should_stop)
    if method is not None:
        methods.MAP[method].check(graph)
    if max_work is None:
        max_work = MAX_WORK if max_seconds is None else inf
    if max_seconds is None:
        max_seconds = inf
    options = _Options(max_work, max_seconds, max_iterations, rng, on_progress, should_stop)
    narrow = take_out_wide(graph, is_sum=False)
    if not narrow.taken:
        return _estimate(graph, method, options)
    labels, estimate = np.zeros(0, dtype=np.int64), None
    if len(narrow.kept):
        estimate = _estimate(narrow.graph, method, options)
        labels = estimate.labels
    return _with_wide(graph, narrow, narrow.labels_of(labels), estimate, method)


def _with_wide(
    graph: FactorGraph,
    narrow: NarrowModel,
    labels: IntArray,
    estimate: MapEstimate | None,
    method: MapMethod | None,
) -> MapEstimate:
    """Return the estimate for the whole model, whose best score is the same up to rounding."""
    value = graph.score(labels)
    if value == -inf:
        raise InfeasibleError("Every configuration of this model has probability zero.")
    if estimate is None:
        sentence = "Optimal: each variable has its best label."
        return MapEstimate(
            read_only(labels), value, value, Status.CONVERGED, 1, sentence, method or "exact"
        )
    bound = max(value, estimate.upper_bound + narrow.rounding)
    return replace(estimate, labels=read_only(labels), value=value, upper_bound=bound)


def _estimate(graph: FactorGraph, method: MapMethod | None, options: _Options) -> MapEstimate:
    """Find a configuration of a model whose variables have few states."""
    form = to_pairwise(graph)
    if method is not None:
        task = _Task(graph, form, inf, options, Incumbent(form))
        _compile(method)
        return _single(method, replace(task, deadline=wall_seconds() + options.max_seconds))
    kept = labels_without_dead_ends(form)
    n_kept, n_labels = sum(map(len, kept)), int(graph.cardinalities.sum())
    if n_kept == n_labels:
        return _by_all_methods(graph, form, options)
    small = graph.restrict(kept)
    found = _by_all_methods(small, to_pairwise(small), options)
    labels = np.array([left[x] for left, x in zip(kept, found.labels, strict=True)], dtype=np.int64)
    value = graph.score(labels)
    return replace(
        found,
        labels=read_only(labels),
        value=value,
        upper_bound=value if found.is_exact else max(value, found.upper_bound),
        guarantee=DEAD_ENDS.format(n_kept=n_kept, n_labels=n_labels, guarantee=found.guarantee),
    )


def _by_all_methods(graph: FactorGraph, form: PairwiseForm, options: _Options) -> MapEstimate:
    """Let the methods share the work until one proves its configuration."""
    task = _Task(graph, form, inf, options, Incumbent(form))
    first = _one_by_one(graph)
    task.incumbent.offer("search", first, graph.score(first))
    if form.model.graph.cardinalities.max() <= 2:
        task.incumbent.offer_estimate("roof-duality", map_by_roof_duality(form.model))
    if not task.incumbent.is_proven:
        _eliminate_quickly(task)
    if not task.incumbent.is_proven and has_no_field(form.model):
        _match(task)
    status = Status.CANCELLED if options.should_stop() else Status.TIME_LIMIT
    if not task.incumbent.is_proven and options.max_seconds > 0.0:
        _compile(None)
        task = replace(task, deadline=wall_seconds() + options.max_seconds)
        status = _run_together(task)
    return task.incumbent.estimate(graph, status)


@dataclass(frozen=True, slots=True)
class _Task:
    """Model with its limits and the best results so far."""

    graph: FactorGraph
    form: PairwiseForm
    deadline: float
    options: _Options
    incumbent: Incumbent

    @property
    def affordable(self) -> float:
        """Largest number of entries within the limits, at the usual speed of elimination."""
        return min(self.options.max_work, self.options.max_seconds * ENTRIES_PER_SECOND)

    @property
    def seconds_left(self) -> float:
        """Seconds until the deadline."""
        return self.deadline - wall_seconds()

    def is_late(self) -> bool:
        """Return True if time is up or the caller requests a stop."""
        return self.seconds_left <= 0.0 or self.options.should_stop()


@cache
def _compile(method: MapMethod | None) -> None:
    """Compile a method's kernels by running it on a very small model."""
    tie = Factor((0, 1), np.array([[0.0, -1.0, 1.0], [-np.inf, 0.5, 0.0]]))
    triple = Factor((0, 1, 2), np.arange(12.0).reshape(2, 3, 2) % 5)
    graph = FactorGraph(np.array([2, 3, 2]), (tie, triple))
    if method == "roof-duality":
        graph = FactorGraph(np.array([2, 2]), (Factor((0, 1), np.array([[1.0, 0.0], [0.0, 2.0]])),))
    form = to_pairwise(graph)
    rng = np.random.default_rng(0)
    options = _Options(MAX_WORK, inf, 10, rng, ignore_progress, never_stop)
    task = _Task(graph, form, inf, options, Incumbent(form))
    for part in ("lp", "expansion", "exact") if method is None else (method,):
        _single(part, task)
    if method is None:
        LocalSearch(graph, rng).compile()


def _one_by_one(graph: FactorGraph) -> IntArray:
    """Return each variable's best label by itself, a result that takes no time."""
    scores = [np.zeros(int(card)) for card in graph.cardinalities]
    for factor in graph.factors:
        if len(factor.variables) == 1:
            scores[factor.variables[0]] += factor.table
    return np.array([int(own.argmax()) for own in scores], dtype=np.int64)


def _eliminate_quickly(task: _Task) -> None:
    """Eliminate all variables without removing labels, if that is quick."""
    try:
        solver = Elimination(task.graph, memory_limit=8 * QUICK_COST)
        if solver.cost > QUICK_COST:
            return
        labels, value = solver.best(should_stop=task.is_late)
    except (InvalidProblemError, StoppedError):
        return
    task.incumbent.offer(
        "exact", labels, value, "Optimal: the best of all configurations, found by elimination."
    )
    task.incumbent.tighten(value)


def _match(task: _Task) -> None:
    """Solve a binary model without field by a perfect matching, if it is planar."""
    model = task.form.model
    try:
        estimate = PlanarIsing(model.graph).best(model.scores)
    except InvalidProblemError:  # not planar
        return
    task.incumbent.offer_estimate("planar", estimate)


def _run_together(task: _Task) -> Status:
    """Search and prove in parallel until optimality is proved or a limit is reached."""
    options, dual = task.options, DualSearch(SmoothedDual(task.form.model, FIRST_BETA))
    expansion = Expansion(task.form.model) if task.graph.cardinalities.max() > 2 else None
    longest = max(dual.work, 0.0 if expansion is None else expansion.work)
    rounds = WorkRounds(
        task.incumbent, 2, length=max(MIN_ROUND, 2.0 * longest), max_work=options.max_work
    )
    prover, finder = rounds.workers
    started = reported = wall_seconds()
    is_cancelled, pause = False, min(LOOK, max(0.0, task.seconds_left))
    with ThreadPoolExecutor(2) as pool:
        threads: list[Future[None]] = [
            pool.submit(_prove, task, dual, rounds, prover),
            pool.submit(_find, task, expansion, rounds, finder),
        ]
        try:
            while wait(threads, pause, return_when=FIRST_EXCEPTION).not_done:
                if any(w.done() and w.exception() for w in threads):
                    break
                is_cancelled = is_cancelled or options.should_stop()
                if is_cancelled or task.seconds_left <= 0.0:
                    rounds.stop()
                pause = LOOK if rounds.is_over else min(LOOK, max(0.0, task.seconds_left))
                if wall_seconds() - reported > REPORT:
                    reported = wall_seconds()
                    options.on_progress(_report(rounds.incumbent, reported - started))
        finally:
            rounds.stop()
    for thread in threads:
        thread.result()
    rounds.collect()
    if rounds.is_out_of_work:
        return Status.ITERATION_LIMIT
    return Status.CANCELLED if is_cancelled else Status.TIME_LIMIT


def _report(incumbent: Incumbent, seconds: float) -> Progress:
    value, bound = incumbent.value, incumbent.bound
    return Progress(
        sentence=f"Best score {value:.6g}, bound {bound:.6g}",
        seconds=seconds,
        objective=bound if bound < inf else None,
        lower_bound=value if value > -inf else None,
        gap=bound - value if value > -inf and bound < inf else None,
    )


def _prove(task: _Task, search: DualSearch, rounds: WorkRounds, worker: Worker) -> None:
    """Lower the bound by the dual programme, then eliminate the remaining labels if affordable."""
    try:
        _lower_bound(task, search, worker)
        if worker.incumbent.is_proven:
            rounds.prove(worker.incumbent)
    finally:
        rounds.leave()


def _lower_bound(task: _Task, search: DualSearch, worker: Worker) -> None:
    form, dual = task.form, search.dual
    tried = inf  # work of the last elimination that was too long
    while not (worker.is_over() or worker.incumbent.is_proven):
        search.advance()
        labels = search.labels[: form.n_variables]
        worker.incumbent.offer("lp", labels, search.value + form.constant)
        worker.incumbent.tighten(search.bound + form.constant)
        worker.spend(search.work)
        if search.cool() < QUIET_ROUNDS and np.isfinite(dual.beta):
            continue
        if worker.incumbent.value > -inf and not worker.incumbent.is_proven:
            tried = _eliminate(task, dual, tried, worker)
        if search.cool() >= QUIET_ROUNDS:
            return


def _eliminate(task: _Task, dual: SmoothedDual, tried: float, worker: Worker) -> float:
    """Eliminate the remaining labels; return the work if it was too much, inf if unknown."""
    incumbent = worker.incumbent
    assert incumbent.labels is not None  # noqa: S101  the caller has seen a value
    labels = task.form.extend(incumbent.labels)
    value = incumbent.value - task.form.constant
    estimate = MapEstimate(labels, value, value, Status.TIME_LIMIT, 0, "")
    most = min(task.affordable - worker.work, tried)
    try:
        best = map_by_elimination(
            task.graph,
            task.form,
            estimate,
            dual,
            max_work=most,
            should_stop=worker.is_over,
            on_work=worker.spend,
        )
    except (InvalidProblemError, StoppedError):  # the model is too wide, or it would take too long
        return tried
    incumbent.offer("exact", best.labels, best.value, best.guarantee)
    incumbent.tighten(best.value)
    return tried


def _find(task: _Task, expansion: Expansion | None, rounds: WorkRounds, worker: Worker) -> None:
    """Search from the best results of all methods by expansion and local search in turn."""
    try:
        _search(task, expansion, worker)
    finally:
        rounds.leave()


def _search(task: _Task, expansion: Expansion | None, worker: Worker) -> None:
    incumbent, form, rng = worker.incumbent, task.form, task.options.rng
    search = LocalSearch(task.graph, np.random.default_rng(0) if rng is None else rng)
    while not (worker.is_over() or incumbent.is_proven):
        if incumbent.labels is not None:
            search.take(incumbent.labels)
        before = worker.work
        search.advance(worker.is_over, worker.spend)
        labels, value = search.best()
        if value == -inf and incumbent.value == -inf:
            labels, value = _possible(task, search, worker)
        incumbent.offer("search", labels, value)
        end = 2.0 * worker.work - before  # as much work again
        while expansion is not None and worker.work < end and not worker.is_over():
            expansion.step()
            if expansion.is_done:
                labels = expansion.labels[: form.n_variables]
                incumbent.offer("expansion", labels, task.graph.score(labels))
            worker.spend(expansion.work)
            if expansion.is_done:
                expansion = None


def _possible(task: _Task, search: LocalSearch, worker: Worker) -> tuple[IntArray, float]:
    """Return a possible configuration; use other methods if the search found none."""

    def is_over() -> bool:
        worker.spend(CONFLICT_WORK)
        return worker.is_over()

    labels = find_feasible(task.graph, task.form, should_stop=is_over)
    if labels is None:
        return search.best()
    search.take(labels)
    return labels, task.graph.score(labels)


def _single(method: MapMethod, task: _Task) -> MapEstimate:
    """Run one method alone, and repair its configuration if it is impossible."""
    if method == "exact":
        return _exact(task)
    form = task.form
    estimate = replace(_SINGLE[method](task), method=method)
    labels = estimate.labels[: form.n_variables]
    value = task.graph.score(labels)
    if value == -inf:
        labels = _repaired(task)
        value = task.graph.score(labels)
        estimate = replace(
            estimate, guarantee="None: a possible configuration, improved one by one."
        )
    bound = max(value, estimate.upper_bound + form.constant)
    return replace(estimate, labels=read_only(labels), value=value, upper_bound=bound)


def _repaired(task: _Task) -> IntArray:
    """Return a possible configuration improved label by label."""
    labels = find_feasible(task.graph, task.form, should_stop=task.is_late)
    if labels is None:
        raise nothing_found()
    model = task.form.model
    extended = task.form.extend(labels)
    improve_labels(model.graph.layout, with_finite_penalty(model), extended, 100)
    improved: IntArray = extended[: task.form.n_variables]
    return improved


def _programme(task: _Task, share: float = 1.0) -> tuple[MapEstimate, DualSearch]:
    """Run the linear programme within a share of the limits."""
    search = DualSearch(SmoothedDual(task.form.model, FIRST_BETA))
    n_advances = max(1.0, share * task.options.max_work / search.work)
    estimate = map_by_linear_programme(
        task.form.model,
        dual=search.dual,
        max_iterations=int(min(task.options.max_iterations, PERIOD * n_advances)),
        max_seconds=share * max(0.0, task.seconds_left),
        on_progress=task.options.on_progress,
        should_stop=task.options.should_stop,
    )
    return estimate, search


def _exact(task: _Task) -> MapEstimate:
    # The bound is worth a share of the limits, of seconds too where they alone are given.
    estimate, search = _programme(task, DUAL_SHARE)
    meter = _Meter(task.options.max_work * (1.0 - DUAL_SHARE))
    return map_by_elimination(
        task.graph,
        task.form,
        estimate,
        search.dual,
        should_stop=lambda: meter.is_spent or task.is_late(),
        on_work=meter.spend,
    )


def _expand(task: _Task) -> MapEstimate:
    expansion = Expansion(task.form.model)
    n_moves = task.options.max_work / expansion.work
    return map_by_expansion(
        task.form.model,
        max_rounds=int(min(task.options.max_iterations, max(1.0, n_moves / expansion.n_labels))),
        should_stop=task.is_late,
    )


@dataclass(slots=True)
class _Meter:
    """Work of a single method."""

    limit: float
    spent: float = 0.0

    @property
    def is_spent(self) -> bool:
        """True if the work reached its limit."""
        return self.spent > self.limit

    def spend(self, entries: float) -> None:
        """Count work."""
        self.spent += entries


_SINGLE: dict[str, Callable[[_Task], MapEstimate]] = {
    "roof-duality": lambda task: map_by_roof_duality(task.form.model),
    "lp": lambda task: _programme(task)[0],
    "expansion": _expand,
}
