"""Tree-reweighted and loopy belief propagation on general pairwise models, in logarithms."""

from dataclasses import replace
from math import log

import numpy as np

from engine.core.arguments import FloatArray, read_only
from engine.core.errors import InvalidProblemError
from engine.core.options import check_callables, check_flag, check_number, check_whole
from engine.core.progress import (
    Progress,
    ProgressCallback,
    StopCallback,
    ignore_progress,
    never_stop,
)
from engine.core.rounding import sum_allowance
from engine.core.status import Status
from engine.entropies.pairwise import (
    SMALLEST_PROBABILITY,
    edge_weights,
    graph_entropy,
    tangent_excess,
)
from engine.graphs.conditioning_shares import FLOW_TOLERANCE, conditioning_shares
from engine.graphs.dual_rounding import dual_allowance, score_magnitude
from engine.graphs.pairwise import PairwiseGraph, PairwiseModel
from engine.inference.marginals import CONSISTENT, Marginals
from engine.inference.pairwise.message_passes import message_passes
from engine.inference.pairwise.reweighted_programme import interior_programme
from engine.inference.pairwise.zeros import independent_bound, possible_scores
from engine.kernels.messages_pairwise import read_beliefs, reweighted_bound, sweep_nodes
from engine.kernels.table_margins import fit_determined, make_consistent

FOREST_RHO = 1.0 - 1e-12  # edges that are in every spanning tree, up to rounding
SMALLEST_RHO = 1e-6  # tables are divided by rho, so that an edge in no tree is unusable
GAP_PERIOD = 10  # iterations between two evaluations of the certified gap
# Messages that raise the bound over a period are undone, and half of the undamped share is damped
# as well, until this share of the old messages is kept.
MOST_DAMPING = 0.99
QUIET_PERIODS = 20  # without such a rise, after which damping is halved
# Largest certified gap at which converged messages count as a solution, nats a node.
GAP_PER_NODE = 1e-5
RISE = 1e-9  # relative rise of a bound that counts as divergence, above rounding
SMALLEST_MOVE = 1e-13  # of a log message, nats: rounding error of messages of moderate size
TANGENT_ROUNDINGS = 16  # of a number in a bound by a tangent, besides one an edge at its node
# Messages that have not converged by then, as with strong couplings, hardly ever do so within
# thousands of sweeps. An interior-point solver closes the gap of most models in 10 to 20 steps.
SWEEPS_FIRST = 200
STILL_TO_COME = 100.0  # largest predicted distance of messages to their limit, in tolerances
FIT_ROUNDS = 1000  # maximum number of rounds of proportional fitting of edge tables to node margins
FIT_ENTRIES = 500_000_000  # maximum number of table entries that fitting may visit: a few seconds
LEAST_FIT_ROUNDS = 10
FIT_TOLERANCE = 1e-13


class TreeReweighted:
    """Message-passing solver on one graph with one set of edge weights, warm between solves.

    ``rho`` all 1 is loopy belief propagation: no bound, except on forests, where it is exact.
    Otherwise rho must be edge probabilities of spanning trees (see
    ``engine.graphs.spanning_trees``), and every result has an upper bound on log Z, converged or
    not.

    Parameters
    ----------
    graph : PairwiseGraph
    rho : float, or ndarray of shape (n_edges,)
        Edge probabilities; 1 is loopy belief propagation.
    bounded : bool
        Whether bounds of log Z are required: finding forests whose mixture is rho costs time.
    from_trees : bool
        Whether rho is known to come from spanning trees.

    Notes
    -----
    An iteration updates each message once: it sweeps the nodes in their order and back (monotonic
    chains). It costs one exponential an entry of each edge table and direction.

    The bound is a dual value: it holds for any finite messages. Undamped sweeps diverge on some
    models (factors of three and more variables), so damping is adapted to the bound during sweeps.

    References
    ----------
    Wainwright, Jaakkola and Willsky 2005; Globerson and Jaakkola 2007.

    Examples
    --------
    >>> graph = PairwiseGraph(np.array([2, 2]), np.array([[0, 1]]))
    >>> model = PairwiseModel(graph, np.log([1.0, 1, 1, 1, 3, 1, 1, 3]))
    >>> float(round(np.exp(TreeReweighted(graph, 1.0).solve(model).upper_bound), 6))
    8.0
    """

    def __init__(
        self,
        graph: PairwiseGraph,
        rho: float | FloatArray,
        *,
        bounded: bool = True,
        from_trees: bool = False,
    ) -> None:
        """Check rho and allocate messages.

        Parameters
        ----------
        bounded : whether rho must be valid for spanning trees (or all 1); if not, any rho in
            (0, 1] is accepted, and invalid ones get no upper bound.
        from_trees : whether rho is known to be valid for spanning trees: this skips the check,
            which on large graphs takes as long as many iterations.

        Raises
        ------
        InvalidProblemError
            If rho is outside (0, 1], or not as ``bounded`` requires.
        """
        check_number("rho", rho, above=0.0, at_most=1.0, or_array=True)
        check_flag("bounded", bounded)
        check_flag("from_trees", from_trees)
        self.graph = graph
        self.rho = edge_weights(rho, graph.n_edges)
        if graph.n_edges and self.rho.min() < SMALLEST_RHO:
            raise InvalidProblemError(f"rho: every edge weight must be at least {SMALLEST_RHO}.")
        self.entropy = graph_entropy(graph, self.rho)
        self._shares = self._find_shares(bounded, from_trees)
        self.is_forest = self._shares is not None and self.rho.min(initial=1.0) > FOREST_RHO
        if self.is_forest and self.rho.min(initial=1.0) < 1.0:
            self.rho = np.ones(graph.n_edges)  # up to rounding of the sums of tree probabilities
            self.entropy = graph_entropy(graph, self.rho)
            self._shares = self._find_shares(bounded, from_trees)
        # The bound requires that messages use exactly the sum of the two shares.
        self._weights = self.rho if self._shares is None else self._shares.sum(axis=1)
        self._messages = np.zeros(graph.n_messages)
        self._work = np.zeros((3, int(graph.cardinalities.max())))
        self._layout = graph.layout

    def _find_shares(self, bounded: bool, from_trees: bool) -> FloatArray | None:
        loopy = self.rho.min(initial=1.0) == 1.0  # plain belief propagation, exact on forests
        try:
            shares = conditioning_shares(self.graph, self.rho, from_trees=from_trees)
        except InvalidProblemError:
            if bounded and not loopy:
                raise
            return None
        charged = np.bincount(
            self.graph.edges.ravel(), shares[:, ::-1].ravel(), minlength=self.graph.n_nodes
        )
        return np.ascontiguousarray(shares / max(1.0, float(charged.max(initial=0.0))))

    def solve(
        self,
        model: PairwiseModel,
        *,
        max_iterations: int = 1000,
        tolerance: float = 1e-9,
        accuracy: float | None = None,
        damping: float = 0.0,
        warm: bool = False,
        on_progress: ProgressCallback = ignore_progress,
        should_stop: StopCallback = never_stop,
    ) -> Marginals:
        """Iterate until no log message moves by more than ``tolerance`` (nats).

        If there is a bound, messages count as converged only if it is within 1e-5 nats a node of
        the value. If it is not, or messages have not converged after 200 sweeps, an interior-point
        solver finds them, one Newton step an iteration, and that gap alone decides convergence. On
        models too large for it messages continue towards ``SMALLEST_MOVE``.

        On forests messages need no damping: they go from the leaves to the roots and back, and a
        second iteration changes nothing. That is exact.

        Parameters
        ----------
        accuracy : stop also once upper bound - value is at most that (nats).
        damping : share of the old messages kept at first; more where the bound would rise.
        warm : start from the messages of the last solve, of any model.

        Raises
        ------
        InfeasibleError
            If the zeros leave some node without a label (arc consistency).
        """
        check_whole("max_iterations", max_iterations)
        check_number("tolerance", tolerance, at_least=0.0)
        check_number("accuracy", accuracy, at_least=0.0, optional=True)
        check_number("damping", damping, at_least=0.0, below=1.0)
        check_flag("warm", warm)
        check_callables(on_progress=on_progress, should_stop=should_stop)
        if model.graph is not self.graph:
            raise InvalidProblemError("The model lives on another graph than this solver.")
        if not warm:
            self._messages[:] = 0.0
        if self.is_forest:
            damping = 0.0
        run = _Run(self, possible_scores(model), damping)
        change, iteration = 0.0, 0
        settled = max(accuracy or 0.0, GAP_PER_NODE * self.graph.n_nodes)
        status, patience = Status.ITERATION_LIMIT, SWEEPS_FIRST
        while iteration < max_iterations:
            if iteration == patience:
                inside = self._go_inside(
                    run, iteration, max_iterations, settled, on_progress, should_stop
                )
                if inside is not None and inside.dual_gap <= settled:
                    return inside
                iteration = iteration if inside is None else inside.iterations
                if iteration >= max_iterations:
                    break
            before, change = change, run.iterate()
            iteration += 1
            if run.has_converged(before, change, tolerance):
                run.watch_bound()
                result = self._result(run, iteration, Status.CONVERGED, change)
                if result.upper_bound is None or result.dual_gap <= settled:
                    return result
                if iteration <= patience:
                    patience = iteration
                elif tolerance <= SMALLEST_MOVE:
                    return replace(result, status=Status.STALLED, lower_bound=None)
                tolerance = max(SMALLEST_MOVE, 0.1 * tolerance)
            if should_stop():
                status = Status.CANCELLED
                break
            if iteration % GAP_PERIOD == 0:
                run.watch_bound()
                sentence = f"Iteration {iteration}: messages still move by {change:.2g}"
                on_progress(Progress(sentence, iteration=iteration))
                if accuracy is not None:
                    result = self._result(run, iteration, Status.CONVERGED, change)
                    if result.dual_gap <= accuracy:
                        return result
        run.watch_bound()
        return self._result(run, iteration, status, change)

    def _go_inside(
        self,
        run: "_Run",
        iteration: int,
        limit: int,
        settled: float,
        on_progress: ProgressCallback,
        should_stop: StopCallback,
    ) -> Marginals | None:
        """Close the gap by an interior-point solver, and keep the messages of the best bound.

        Return None if there is no bound or a step would take too long.
        """
        if self._shares is None:
            return None
        programme = interior_programme(run.model, self._shares)
        if programme is None:
            return None
        tables, steps = programme.close_gap(
            run.offer, settled, limit - iteration, on_progress, should_stop
        )
        run.take_back()
        return self._result(run, iteration + steps, Status.CONVERGED, np.inf, tables)

    def tangent_bound(self, scores: FloatArray, tables: FloatArray, largest: float) -> float:
        """Return an upper bound of log Z from the tangent of H_rho at any ``tables`` (nats).

        ``largest`` bounds <s, scores + dH_rho> over the local polytope, where dH_rho is that of
        `PairwiseEntropy` with this ``rho``. Infinite if rho has no bound.
        """
        if self._shares is None:
            return np.inf
        graph = self.graph
        excess = tangent_excess(graph, self._shares, scores, tables)
        logs = np.log(np.maximum(tables, SMALLEST_PROBABILITY))
        model = PairwiseModel(graph, np.where(np.isfinite(scores), np.abs(scores) - logs + 1, 0))
        allowance = sum_allowance(graph.largest_degree + TANGENT_ROUNDINGS, score_magnitude(model))
        constant = graph.n_nodes - float(self.rho.sum())
        # The entropy uses rho, the excess uses the shares' sums.
        moved = float(np.abs(self._weights - self.rho).sum()) * (1.0 - log(SMALLEST_PROBABILITY))
        return largest + constant + excess + allowance + moved + self._lost_weight()

    def start_from(self, other: "TreeReweighted") -> None:
        """Copy the messages of a solver on the same graph, for a solve with ``warm``."""
        self._messages[:] = other._messages

    def _upper_bound(self, model: PairwiseModel) -> float | None:
        """Return the bound that the present messages prove, or None for loopy propagation."""
        if self._shares is None:
            return None
        bound = reweighted_bound(
            self._shares, self._layout, model.scores, self._weights, self._messages, self._work
        )
        # The terms of each sum of exponentials are rounded, besides scores and messages.
        summed = sum_allowance(int(self.graph.cardinalities.max()) + 1, self.graph.n_nodes)
        magnitude = score_magnitude(model)
        allowance = dual_allowance(self.graph, magnitude, self._messages, self._weights)
        return float(bound) + allowance + summed + self._lost_weight()

    def _lost_weight(self) -> float:
        """Return an allowance for weights that rounding puts outside the forest polytope (nats)."""
        if self.rho.min(initial=1.0) == 1.0:
            return 0.0
        return FLOW_TOLERANCE * float(self.rho.sum()) * log(int(self.graph.cardinalities.max()))

    def _lost_value(self, model: PairwiseModel, tables: FloatArray, error: float) -> float:
        """Return a bound on the rise of a value by rounding and by margins' ``error``."""
        used = tables > 0.0
        sizes = np.abs(model.scores[used]) + 1.0 - np.log(tables[used])
        rounded = sum_allowance(self.graph.size, float(tables[used] @ sizes))
        return rounded + (error + 10.0 * FIT_TOLERANCE) * float(sizes.sum())

    @property
    def _fit_rounds(self) -> int:
        """Number of fitting rounds that are worth their time; the remaining error is moved."""
        return min(FIT_ROUNDS, max(FIT_ENTRIES // max(self.graph.size, 1), LEAST_FIT_ROUNDS))

    def _read_beliefs(self, model: PairwiseModel) -> FloatArray:
        tables = np.zeros(self.graph.size)
        read_beliefs(self._layout, model.scores, self._weights, self._messages, tables, self._work)
        if model.has_zeros:
            fit_determined(self._layout, model.scores, tables, self._fit_rounds, FIT_TOLERANCE)
        return tables

    def _result(
        self,
        run: "_Run",
        iterations: int,
        status: Status,
        change: float,
        tables: FloatArray | None = None,
    ) -> Marginals:
        """Make ``tables``, by default those of the messages, consistent, and evaluate them."""
        model = run.model
        tables = self._read_beliefs(model) if tables is None else tables
        # Scores of millions cost the beliefs digits, and errors of sums times such scores matter.
        nodes = tables[: self.graph.node_start[-1]]
        sums = np.add.reduceat(nodes, self.graph.node_start[:-1])
        is_whole = sums > 0.0  # nodes that zeros determine may have no label left
        nodes /= np.repeat(np.where(is_whole, sums, 1.0), self.graph.cardinalities)
        rounds = self._fit_rounds
        error = make_consistent(self._layout, model.scores, tables, rounds, FIT_TOLERANCE)
        used = tables > 0.0
        value = float(tables[used] @ model.scores[used]) + self.entropy.value(tables)
        # Interior-point results end with a small gap instead, and ``change`` is infinite.
        is_exact = self.is_forest and status.is_converged and np.isfinite(change)
        is_exact = is_exact and error <= CONSISTENT and bool(is_whole.all())
        return Marginals(
            tables=read_only(tables),
            log_partition=value,
            lower_bound=value - self._lost_value(model, tables, error) if is_exact else None,
            upper_bound=run.bound,
            iterations=iterations,
            status=status,
            change=change,
            inconsistency=float(error),
        )


class _Run:
    """One solve: the model with propagated zeros, the best bound so far, and the damping."""

    def __init__(self, solver: TreeReweighted, model: PairwiseModel, damping: float) -> None:
        self.model = model
        self.damping = self._least_damping = damping
        self._solver = solver
        self._passes = message_passes(solver.graph, is_forest=solver.is_forest)
        self.bound = self._lowest = solver._upper_bound(model)
        self._last = np.inf  # the bound one period ago; any bound may follow a start
        self._kept = solver._messages.copy()
        self._quiet, self._patience = 0, QUIET_PERIODS
        if self.bound is not None:
            self.bound = min(self.bound, independent_bound(model))

    def iterate(self) -> float:
        """Update each message once; return the largest change."""
        solver = self._solver
        change = 0.0
        for order, rank in self._passes:
            moved = sweep_nodes(
                order,
                rank,
                solver._layout,
                self.model.scores,
                solver._weights,
                self.damping,
                solver._messages,
                solver._work,
            )
            change = max(change, moved)
        return change

    def has_converged(self, before: float, change: float, tolerance: float) -> bool:
        """Return True if past and predicted changes of messages are small.

        Parameters
        ----------
        before, change : largest changes of the last two iterations.
        tolerance : of a change. Without a bound, the sum of all future changes, if they continue
            to shrink as they did, may be ``STILL_TO_COME`` times that.
        """
        if change > tolerance * (1.0 - self.damping):
            return False
        if self.bound is not None or change <= SMALLEST_MOVE:
            return True
        return change * change <= STILL_TO_COME * tolerance * (before - change)

    def offer(self, messages: FloatArray) -> float:
        """Set other messages and record their bound; return the smallest bound so far."""
        self._solver._messages[:] = messages
        self._note_bound()
        return np.inf if self.bound is None else self.bound

    def take_back(self) -> None:
        """Return to the messages of the smallest bound."""
        self._solver._messages[:] = self._kept
        self._last = np.inf

    def _note_bound(self) -> float | None:
        """Record the messages and their bound if it is the smallest; return the bound."""
        now = self._solver._upper_bound(self.model)
        if now is None or self.bound is None or self._lowest is None:
            return None
        self.bound = min(self.bound, now)
        if now < self._lowest:
            self._lowest = now
            self._kept[:] = self._solver._messages
        return now

    def watch_bound(self) -> None:
        """Record the smallest bound; if bounds rise, return to its messages and damp the next."""
        now = self._note_bound()
        if now is None:
            return
        if now <= self._last + RISE * max(1.0, abs(self._last)):
            self._last = now
            self._quiet += 1
            if self._quiet >= self._patience:
                self._quiet = 0
                self.damping = max(self._least_damping, 2.0 * self.damping - 1.0)
            return
        self.take_back()
        self.damping = min(max(self.damping, MOST_DAMPING), 0.5 + 0.5 * self.damping)
        self._quiet, self._patience = 0, 2 * self._patience
