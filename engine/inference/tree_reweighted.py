"""Tree-reweighted and loopy belief propagation on general pairwise models, in logarithms."""

from collections import deque
from typing import Literal

import numpy as np

from engine.core.arguments import FloatArray, IntArray, read_only
from engine.core.errors import InfeasibleError, InvalidProblemError
from engine.core.progress import (
    Progress,
    ProgressCallback,
    StopCallback,
    ignore_progress,
    never_stop,
)
from engine.core.rounding import sum_allowance
from engine.core.status import Status
from engine.entropies.pairwise import edge_weights, graph_entropy
from engine.graphs.conditioning_shares import conditioning_shares
from engine.graphs.dual_rounding import dual_allowance, score_magnitude
from engine.graphs.pairwise import PairwiseGraph, PairwiseModel
from engine.inference.marginals import CONSISTENT, Marginals
from engine.kernels.messages_pairwise import (
    make_consistent,
    read_beliefs,
    reweighted_bound,
    sweep_nodes,
)

Schedule = Literal["sequential", "checkerboard"]

SMALLEST_RHO = 1e-6  # tables are divided by rho: an edge in no tree at all cannot be used
GAP_PERIOD = 10  # iterations between two evaluations of the certified gap
FIT_ROUNDS = 200  # proportional fitting of edge tables to node margins
FIT_TOLERANCE = 1e-13


class TreeReweighted:
    """Messages on one graph with one set of edge weights, kept between solves.

    ``rho`` all 1 is loopy belief propagation: no bound, except on forests, where it is exact.
    Otherwise rho must be edge probabilities of spanning trees (see
    ``engine.graphs.spanning_trees``), and every answer has an upper bound on log Z, converged or
    not.

    Notes
    -----
    An iteration updates each message once: "sequential" sweeps the nodes in their order and back
    (monotonic chains), "checkerboard" visits nodes by the colour of a breadth-first two-colouring.
    Cost of an iteration: one exponential an entry of each edge table and direction.

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
        """Check rho and allocate.

        Parameters
        ----------
        bounded : whether rho must be valid for spanning trees (or all 1); without, any rho in
            (0, 1] is served, and those that are not valid get no upper bound.
        from_trees : whether rho is known to be valid for spanning trees: spares the check, which
            on large graphs takes as long as many iterations.

        Raises
        ------
        InvalidProblemError
            If rho is outside (0, 1], or not as ``bounded`` asks.
        """
        self.graph = graph
        self.rho = edge_weights(rho, graph.n_edges)
        if graph.n_edges and self.rho.min() < SMALLEST_RHO:
            raise InvalidProblemError(f"rho: every edge weight must be at least {SMALLEST_RHO}.")
        self.entropy = graph_entropy(graph, self.rho)
        self._shares = self._find_shares(bounded, from_trees)
        self._messages = np.zeros(graph.n_messages)
        self._work = np.zeros((3, int(graph.cardinalities.max())))
        self._layout = graph.layout

    def _find_shares(self, bounded: bool, from_trees: bool) -> FloatArray | None:
        loopy = self.rho.min(initial=1.0) == 1.0  # plain belief propagation, exact on forests
        try:
            return conditioning_shares(self.graph, self.rho, from_trees=from_trees)
        except InvalidProblemError:
            if bounded and not loopy:
                raise
            return None

    def solve(
        self,
        model: PairwiseModel,
        *,
        max_iterations: int = 1000,
        tolerance: float = 1e-9,
        accuracy: float | None = None,
        schedule: Schedule = "sequential",
        damping: float = 0.0,
        warm: bool = False,
        on_progress: ProgressCallback = ignore_progress,
        should_stop: StopCallback = never_stop,
    ) -> Marginals:
        """Iterate until no log message moves by more than ``tolerance`` (nats).

        ``accuracy`` (nats): stop also once upper bound - value is at most that. ``warm``: start
        from the messages of the last solve, of whichever model.

        Raises
        ------
        InfeasibleError
            If the messages prove that every configuration has probability zero.
        """
        if model.graph is not self.graph:
            raise InvalidProblemError("The model lives on another graph than this solver.")
        # Two labels that another model has ruled out would rule each other out for ever.
        kept = np.isfinite(self._messages) & warm
        self._messages[~kept] = 0.0
        passes = self._passes(schedule)
        change = 0.0
        met = False
        iteration = 0
        status = Status.ITERATION_LIMIT
        while iteration < max_iterations:
            change = self._iterate(model.scores, passes, damping)
            iteration += 1
            met = change <= tolerance * (1.0 - damping)
            if met:
                status = Status.CONVERGED
                break
            if should_stop():
                status = Status.CANCELLED
                break
            if iteration % GAP_PERIOD == 0:
                sentence = f"Iteration {iteration}: messages still move by {change:.2g}"
                on_progress(Progress(sentence, iteration=iteration))
            if accuracy is not None and iteration % GAP_PERIOD == 0:
                result = self._result(model, iteration, Status.CONVERGED, change)
                if result.dual_gap <= accuracy:
                    return result
        return self._result(model, iteration, status, change)

    def start_from(self, other: "TreeReweighted") -> None:
        """Take the messages of a solver on the same graph, for a solve with ``warm``."""
        self._messages[:] = other._messages

    def _passes(self, schedule: Schedule) -> list[tuple[IntArray, IntArray, bool]]:
        """Return for each pass the order of nodes, their ranks in it, and if they send to all."""
        forward = np.arange(self.graph.n_nodes, dtype=np.int64)
        if schedule == "checkerboard":
            order = np.argsort(two_colouring(self.graph), kind="stable")
            return [(order, np.argsort(order), True)]
        backward = forward[::-1].copy()  # its own inverse
        return [(forward, forward, False), (backward, backward, False)]

    def _iterate(
        self, scores: FloatArray, passes: list[tuple[IntArray, IntArray, bool]], damping: float
    ) -> float:
        change = 0.0
        for order, rank, to_all in passes:
            moved = sweep_nodes(
                order,
                rank,
                to_all,
                self._layout,
                scores,
                self.rho,
                damping,
                self._messages,
                self._work,
            )
            change = max(change, moved)
        return change

    def _upper_bound(self, model: PairwiseModel) -> float | None:
        """Return the bound that the present messages prove, or None for loopy propagation."""
        if self._shares is None:
            return None
        bound = reweighted_bound(
            self._shares, self._layout, model.scores, self.rho, self._messages, self._work
        )
        # Besides scores and messages, the terms of each sum of exponentials are rounded.
        summed = sum_allowance(int(self.graph.cardinalities.max()), self.graph.n_nodes)
        magnitude = score_magnitude(model)
        allowance = dual_allowance(self.graph, magnitude, self._messages, self.rho)
        return float(bound) + allowance + summed

    def _result(
        self, model: PairwiseModel, iterations: int, status: Status, change: float
    ) -> Marginals:
        bound = self._upper_bound(model)
        tables = np.zeros(self.graph.size)
        if bound == -np.inf:
            raise InfeasibleError("Every configuration of this model has probability zero.")
        read_beliefs(self._layout, model.scores, self.rho, self._messages, tables, self._work)
        if np.isnan(tables).any():
            raise InfeasibleError("Every configuration of this model has probability zero.")
        error = make_consistent(self._layout, model.scores, tables, FIT_ROUNDS, FIT_TOLERANCE)
        used = tables > 0.0
        value = float(tables[used] @ model.scores[used]) + self.entropy.value(tables)
        is_forest = self._shares is not None and self.rho.min(initial=1.0) > 1.0 - 1e-12
        is_exact = is_forest and status.is_converged and error <= CONSISTENT
        return Marginals(
            tables=read_only(tables),
            log_partition=value,
            lower_bound=value if is_exact else None,
            upper_bound=bound,
            iterations=iterations,
            status=status,
            change=change,
            inconsistency=float(error),
        )


def two_colouring(graph: PairwiseGraph) -> IntArray:
    """Return 0 or 1 a node by breadth-first distance: a proper colouring of bipartite graphs."""
    colour = np.full(graph.n_nodes, -1, dtype=np.int64)
    for root in range(graph.n_nodes):
        if colour[root] >= 0:
            continue
        colour[root] = 0
        queue = deque([root])
        while queue:
            node = queue.popleft()
            low, high = graph.incident_start[node], graph.incident_start[node + 1]
            for end in graph.incident_edge[low:high]:
                other = graph.edges[end // 2, 1 - end % 2]
                if colour[other] < 0:
                    colour[other] = 1 - colour[node]
                    queue.append(int(other))
    return colour
