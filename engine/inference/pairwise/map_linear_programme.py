"""Multi-label MAP by the smoothed dual of the linear programme, with feasible points."""

from dataclasses import dataclass

import numpy as np

from engine.core.arguments import FloatArray, IntArray, read_only
from engine.core.options import (
    check_callables,
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
from engine.graphs.dual_rounding import dual_allowance, score_magnitude
from engine.graphs.pairwise import PairwiseModel
from engine.inference.map_estimate import EXACT_TOLERANCE, MapEstimate, meets_bound
from engine.kernels.local_polytope import decode_in_order, improve_labels, project_tables
from engine.kernels.star_updates import (
    dual_marginals,
    dual_value,
    refresh,
    update_in_order,
)
from engine.kernels.work_time import wall_seconds

FIRST_BETA = 1.0  # inverse temperature of the first, smoothest problem (1 / nat)
BETA_FACTOR = 2.0
LAST_BETA = 2.0**14  # unsmoothed updates follow
PERIOD = 5  # sweeps between two evaluations of both sides
QUIET_ROUNDS = 5  # evaluations without gain at which the unsmoothed dual counts as stalled
STALL = 1e-4  # share of the gap that a round must gain before beta grows
# Work of `PERIOD` sweeps and one evaluation, per entry and per edge of the model: as many entries
# of elimination (10 ns) take the same time. Measured on grids and graphs of 2 to 60 labels.
ENTRY_WORK, EDGE_WORK = 7.0, 160.0


@dataclass(frozen=True, slots=True)
class DualPoint:
    """Both sides of the linear programme at one set of dual variables (nats).

    ``upper_bound`` holds for every labelling; ``primal_value`` is <tau, theta> at ``tables``, a
    point of the local polytope, and ``smoothed`` the smoothed dual that was minimised.
    """

    messages: FloatArray
    tables: FloatArray
    smoothed: float
    upper_bound: float
    primal_value: float


class SmoothedDual:
    """Dual coordinate minimisation of one pairwise model by star updates.

    ``messages`` and ``sent`` are those of `engine.kernels.star_updates`. Impossible entries (-inf)
    count as a finite penalty larger than any gain, so that bounds hold and every number is finite.

    References
    ----------
    Meshi, Jaakkola and Globerson 2012.
    """

    def __init__(self, model: PairwiseModel, beta: float) -> None:
        self.model = model
        graph = model.graph
        self.scores = with_finite_penalty(model)
        self._magnitude = score_magnitude(model)
        self.layout = graph.layout
        self.messages = np.zeros(graph.n_messages)
        self.sent = np.zeros(graph.n_messages)
        self.beta = beta
        self.set_beta(beta)

    def set_beta(self, beta: float) -> None:
        """Change the inverse temperature; np.inf removes the smoothing."""
        self.beta = beta
        refresh(beta, self.layout, self.scores, self.messages, self.sent)

    def run(self, updates: int) -> None:
        """Run ``updates`` star updates, at the nodes in turn."""
        order = np.arange(updates, dtype=np.int64) % self.model.graph.n_nodes
        update_in_order(order, self.beta, self.layout, self.scores, self.messages, self.sent)

    def upper_bound(self) -> float:
        """Return the unsmoothed dual value: an upper bound of every labelling's score.

        Messages are as large as 1 / beta even where scores are tiny, so their rounding counts.
        """
        value = dual_value(np.inf, self.layout, self.scores, self.messages)
        return float(value) + dual_allowance(self.model.graph, self._magnitude, self.messages)

    def smoothed_value(self) -> float:
        """Return F(delta), the objective of the star updates at the present beta."""
        return float(dual_value(self.beta, self.layout, self.scores, self.messages))

    def point(self) -> DualPoint:
        """Return both sides at the present dual variables, with a feasible primal point."""
        tables = np.zeros(self.model.graph.size)
        beta = self.beta if np.isfinite(self.beta) else LAST_BETA
        dual_marginals(beta, self.layout, self.scores, self.messages, tables)
        project_tables(self.layout, tables)
        return DualPoint(
            messages=self.messages.copy(),
            tables=read_only(tables),
            smoothed=self.smoothed_value(),
            upper_bound=self.upper_bound(),
            primal_value=float(tables @ self.scores),
        )

    def reduced_costs(self) -> FloatArray:
        """Return each label's least reduction of the bound, flat over nodes.

        A labelling with that label scores at most ``upper_bound()`` less this number (nats): its
        node and the edges at its node fall short of their maxima by that much.
        """
        graph = self.model.graph
        beta = self.beta
        self.set_beta(np.inf)
        cards = graph.cardinalities
        ends = graph.edges.ravel()
        starts = graph.message_start
        first = graph.node_start[ends] - starts[:-1]  # from indices of messages to those of nodes
        place = np.arange(int(starts[-1])) + np.repeat(first, cards[ends])
        belief = self.scores[: graph.node_start[-1]].copy()
        np.add.at(belief, place, self.messages)
        costs = np.repeat(np.maximum.reduceat(belief, graph.node_start[:-1]), cards) - belief
        if graph.n_edges:
            seen = self.sent - self.messages
            highest = np.maximum.reduceat(seen, starts[:-1])
            np.add.at(costs, place, np.repeat(highest, cards[ends]) - seen)
        self.set_beta(beta)
        return costs

    def decode(self) -> tuple[IntArray, float]:
        """Return labels decoded from the dual and improved one by one, with their score."""
        labels = np.zeros(self.model.graph.n_nodes, dtype=np.int64)
        decode_in_order(self.layout, self.scores, self.messages, labels)
        improve_labels(self.layout, self.scores, labels, 100)
        return labels, self.model.graph.score(self.model.scores, labels)


def with_finite_penalty(model: PairwiseModel) -> FloatArray:
    """Return scores with -inf replaced by a penalty that no other entries can outweigh."""
    possible = np.isfinite(model.scores)
    if possible.all():
        return model.scores
    starts = np.concatenate([model.graph.node_start[:-1], model.graph.edge_start[:-1]])
    filled = np.where(possible, model.scores, -np.inf)
    highest = np.maximum.reduceat(filled, starts)
    lowest = np.minimum.reduceat(np.where(possible, model.scores, np.inf), starts)
    some = np.isfinite(highest)
    ranges = float((highest[some] - lowest[some]).sum())
    floor = float(lowest[some].min()) if some.any() else 0.0
    return np.where(possible, model.scores, floor - ranges - 1.0)


def map_by_linear_programme(
    model: PairwiseModel,
    *,
    dual: SmoothedDual | None = None,
    max_iterations: int = 2000,
    tolerance: float = EXACT_TOLERANCE,
    max_seconds: float | None = None,
    on_progress: ProgressCallback = ignore_progress,
    should_stop: StopCallback = never_stop,
) -> MapEstimate:
    r"""Bound the best score by the linear programme over the local polytope, and decode.

    Star updates at growing beta, then without smoothing. An iteration is one update a node. The
    labelling is proved optimal exactly if its score equals the bound (``is_exact``); otherwise
    the linear programme is not tight or the limit was reached.

    Parameters
    ----------
    model : PairwiseModel
    dual : SmoothedDual, optional
        The dual variables to start from, which also receive the last ones; new ones if None.
    max_iterations : int, iterations of one update a node each.
    tolerance : float, stop when bound - value <= tolerance max(1, \|value\|).
    max_seconds : float, optional
    on_progress : callable taking a Progress, optional
    should_stop : callable returning bool, optional

    Returns
    -------
    MapEstimate
        ``is_exact`` if its ``value`` equals its ``upper_bound`` (nats).

    References
    ----------
    Meshi, Jaakkola and Globerson 2012; Globerson and Jaakkola 2008.

    Examples
    --------
    >>> from engine.graphs.pairwise import PairwiseGraph
    >>> graph = PairwiseGraph(np.array([2, 2]), np.array([[0, 1]]))
    >>> model = PairwiseModel(graph, np.array([0.0, 1.0, 0.0, 0.0, 2.0, 0.0, 0.0, 2.0]))
    >>> map_by_linear_programme(model).labels.tolist()
    [1, 1]
    """
    check_whole("max_iterations", max_iterations)
    check_number("tolerance", tolerance, at_least=0.0)
    check_seconds("max_seconds", max_seconds)
    check_callables(on_progress=on_progress, should_stop=should_stop)
    started = wall_seconds()
    search = DualSearch(SmoothedDual(model, FIRST_BETA) if dual is None else dual)
    status = Status.ITERATION_LIMIT
    iteration = 0
    while iteration < max_iterations:
        search.advance()
        iteration += PERIOD
        seconds = wall_seconds() - started
        on_progress(search.report(iteration, seconds))
        if meets_bound(search.value, search.bound, tolerance):
            status = Status.CONVERGED
        elif should_stop():
            status = Status.CANCELLED
        elif max_seconds is not None and seconds > max_seconds:
            status = Status.TIME_LIMIT
        elif search.cool() >= QUIET_ROUNDS:
            status = Status.STALLED
        if status is not Status.ITERATION_LIMIT:
            break
    return MapEstimate(
        labels=read_only(search.labels),
        value=search.value,
        upper_bound=max(search.bound, search.value),
        status=status,
        iterations=iteration,
        guarantee="The bound holds for every labelling (linear programme over the local polytope); "
        "the labelling is optimal if its value meets it.",
    )


class DualSearch:
    """Search state: best labelling, best bound, and the stage of the annealing."""

    def __init__(self, dual: SmoothedDual) -> None:
        """Decode the present dual variables."""
        self.dual = dual
        self.labels, self.value = self.dual.decode()
        self.bound = self.dual.upper_bound()
        self._gained = 0.0
        self._quiet = 0
        graph = dual.model.graph
        self.work = ENTRY_WORK * graph.size + EDGE_WORK * graph.n_edges  # of one `advance`

    def advance(self) -> None:
        """Run some sweeps and evaluate both sides."""
        self.dual.run(PERIOD * self.dual.model.graph.n_nodes)
        labels, value = self.dual.decode()
        if value > self.value:
            self.labels, self.value = labels, value
        previous = self.bound
        self.bound = min(previous, self.dual.upper_bound())
        self._gained = previous - self.bound

    def cool(self) -> int:
        """Raise beta once a round gains little; return the number of last rounds without gain.

        Rounds without gain count only in the last, unsmoothed stage.
        """
        dual = self.dual
        if np.isfinite(dual.beta):
            if self._gained <= STALL * (self.bound - self.value):
                dual.set_beta(dual.beta * BETA_FACTOR if dual.beta < LAST_BETA else np.inf)
            return 0
        quiet = self._gained <= 1e-12 * max(1.0, abs(self.bound))
        self._quiet = self._quiet + 1 if quiet else 0
        return self._quiet

    def report(self, iteration: int, seconds: float) -> Progress:
        """Return both sides as progress."""
        return Progress(
            sentence=f"Sweep {iteration}: best score {self.value:.6g}, bound {self.bound:.6g}",
            iteration=iteration,
            seconds=seconds,
            objective=self.bound,
            lower_bound=self.value,
            gap=self.bound - self.value,
        )
