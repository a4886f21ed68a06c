"""Tree-reweighted problem of one pairwise model as a programme for an interior-point solver."""

from collections.abc import Callable

import numpy as np
import scipy  # submodules load when first used: models that converge at once need none

from engine.core.arguments import BoolArray, FloatArray, IntArray
from engine.core.progress import Progress, ProgressCallback, StopCallback
from engine.graphs.local_polytope import local_polytope_rows
from engine.graphs.pairwise import PairwiseGraph, PairwiseModel
from engine.inference.marginals import CONSISTENT
from engine.kernels.messages_pairwise import FARTHEST
from engine.solvers.core_factors import factorise
from engine.solvers.entropy_programme import REGULARISED, EntropyProgrammeSolver, EntropyTerms

LARGEST_TABLES = 2_000_000  # maximum number of possible entries
MOST_WORK = 1e11  # predicted multiplications of a step; 5 to 10 s of two cores
MOST_STEPS = 100
# Target share of the gap that counts as converged, since marginals need to be closer than that. If
# rounding prevents it, the method stops after this number of steps without halving the gap.
FINE, QUIET_STEPS = 1e-3, 5
AGREEING = 1e-1 * CONSISTENT  # largest error of margins of a point to keep


class ReweightedProgramme:
    """Programme that minimises -<tau, scores> - H_rho(tau) over the local polytope.

    H_rho is a sum of entropies of nodes and conditional entropies of edge tables, each term
    w tau_xy log(tau_xy / tau_x): convex for any tau > 0, whether margins agree or not. An entry
    that is the whole of a margin is the same variable as its node's, so that the table between the
    auxiliary node of a factor and a variable has no variable of its own.

    Parameters
    ----------
    model : PairwiseModel
        Labels without a partner ruled out.
    shares : ndarray, shape (n_edges, 2)
        As returned by ``graphs.conditioning_shares``.
    """

    def __init__(self, model: PairwiseModel, shares: FloatArray) -> None:
        """Build variables, terms and equations."""
        graph = self.graph = model.graph
        n = int(graph.node_start[-1])
        first, second = graph.message_places()
        self._place = graph.node_places()
        is_possible = np.isfinite(model.scores)
        is_possible[n:] &= is_possible[self._place[first]] & is_possible[self._place[second]]
        self._shares = shares
        self._possible = np.flatnonzero(is_possible)
        self._is_label = is_possible[self._place]
        self._rows = local_polytope_rows(graph)[:, self._possible]
        self._alone = graph.n_nodes + np.flatnonzero(
            np.diff(self._rows.indptr)[graph.n_nodes :] == 2
        )
        n_tables, alone = len(self._possible), self._rows[self._alone]
        one, other = alone.indices.reshape(-1, 2).T
        links = scipy.sparse.coo_array((np.ones(len(one)), (one, other)), shape=(n_tables,) * 2)
        count, variable = scipy.sparse.csgraph.connected_components(links, directed=False)
        self._variable = variable.astype(np.int64)
        square = alone @ alone.T + REGULARISED * scipy.sparse.eye_array(len(one))
        self._links = factorise(square) if len(one) else None
        self._terms = _entropy_terms(model, shares, is_possible)
        joining = (np.ones(n_tables), (np.arange(n_tables), self._variable))
        rows = scipy.sparse.csr_array(
            self._rows @ scipy.sparse.csr_array(joining, shape=(n_tables, count))
        )
        rows.eliminate_zeros()
        self._used = _independent(graph, np.diff(rows.indptr) > 0)
        start = np.ones(count)
        np.minimum.at(start, self._variable, _level(graph, is_possible)[self._possible])
        right = (self._used < graph.n_nodes).astype(np.float64)
        self.solver = EntropyProgrammeSolver(
            _joined(self._terms, self._variable, count), rows[self._used], right, start, MOST_WORK
        )

    def close_gap(
        self,
        offer: Callable[[FloatArray], float],
        settled: float,
        limit: int,
        on_progress: ProgressCallback,
        should_stop: StopCallback,
    ) -> tuple[FloatArray, int]:
        """Step until the gap is far below ``settled`` (nats) or no longer falls.

        Parameters
        ----------
        offer : callable
            Takes messages and returns the smallest upper bound so far.

        Returns
        -------
        tuple
            The tables of the largest value whose margins agree, or the last ones, and the steps.
        """
        highest, best, quiet, steps, tables = -np.inf, np.inf, 0, 0, None
        while steps < min(limit, MOST_STEPS) and not should_stop() and self.solver.step():
            steps += 1
            bound, value = offer(self.messages()), self.value
            sentence = f"Step {steps}: a gap of {bound - value:.2g} nats"
            on_progress(Progress(sentence, iteration=steps))
            if value > highest and self.solver.infeasibility <= AGREEING:
                highest, tables = value, self.tables()
            gap = bound - highest
            quiet = 0 if gap < 0.5 * best or value > highest + settled else quiet + 1
            best = min(best, gap)
            if gap <= FINE * settled or (gap <= settled and quiet >= QUIET_STEPS):
                break
        return self.tables() if tables is None else tables, steps

    @property
    def value(self) -> float:
        """Free energy <tau, scores> + H_rho at the present point (nats)."""
        return -self.solver.terms.value(self.solver.point)

    def tables(self) -> FloatArray:
        """Return the present point as flat tables; margins agree up to its infeasibility."""
        tables = np.zeros(self.graph.size)
        tables[self._possible] = self.solver.point[self._variable]
        return tables

    def messages(self) -> FloatArray:
        """Return the messages of the margins' multipliers, centred and finite.

        At an optimum log tau_xy = theta / rho + L_i - M_i + L_j - M_j and log tau_i = L_i, each up
        to a constant.
        """
        graph, n = self.graph, self.graph.n_nodes
        point = self.solver.point[self._variable]
        multipliers = np.zeros(n + graph.n_messages)
        multipliers[self._used] = self.solver.multipliers
        # Entries that share a variable have slopes of their own, which their equations equalise.
        if self._links is not None:
            slopes = self._terms.gradient(point) + self._rows.T @ multipliers
            multipliers[self._alone] -= self._links.solve(self._rows[self._alone] @ slopes)
        logs = np.zeros(graph.size)
        logs[self._possible] = np.log(point)
        beliefs = logs[self._place]
        ends = np.repeat(np.arange(2 * graph.n_edges), np.diff(graph.message_start))
        share, weight = self._shares.ravel()[ends], self._shares.sum(axis=1)[ends // 2]
        found = beliefs + (multipliers[n:] - share * beliefs) / weight
        return _centred(graph, np.clip(found, -FARTHEST, FARTHEST), self._is_label)


def interior_programme(model: PairwiseModel, shares: FloatArray) -> ReweightedProgramme | None:
    """Return the programme of a model, or None if its steps would take too long."""
    if np.isfinite(model.scores).sum() > LARGEST_TABLES:
        return None
    try:
        programme = ReweightedProgramme(model, shares)
    except RuntimeError:  # equations of single entries form a cycle whose last pivot is exactly 0
        return None
    return programme if programme.solver.work <= MOST_WORK else None


def _entropy_terms(
    model: PairwiseModel, shares: FloatArray, is_possible: BoolArray
) -> EntropyTerms:
    """Return the negative free energy as a function of all possible entries."""
    graph = model.graph
    n = int(graph.node_start[-1])
    number = np.cumsum(is_possible) - 1
    charged = np.bincount(
        graph.edges.ravel(), weights=shares[:, ::-1].ravel(), minlength=graph.n_nodes
    )
    kept = np.repeat(np.maximum(0.0, 1.0 - charged), graph.cardinalities)[is_possible[:n]]
    nodes, entries = number[:n][is_possible[:n]], number[n:][is_possible[n:]]
    edge = np.repeat(np.arange(graph.n_edges), np.diff(graph.edge_start))[is_possible[n:]]
    weights, first, second = [kept], [nodes], [np.full(len(nodes), number[-1] + 1)]
    for end, labels in enumerate(graph.message_places()):
        weights.append(shares[edge, end])
        first.append(entries)
        second.append(number[graph.node_places()[labels[is_possible[n:]]]])
    used = np.concatenate(weights) > 0.0
    return EntropyTerms(
        -model.scores[is_possible],
        np.concatenate(weights)[used],
        np.concatenate(first)[used],
        np.concatenate(second)[used],
    )


def _joined(terms: EntropyTerms, variable: IntArray, count: int) -> EntropyTerms:
    """Return the same function of the joined variables, without terms x log(x / x)."""
    costs = np.asarray(np.bincount(variable, terms.costs, minlength=count), dtype=np.float64)
    first, second = (np.append(variable, count)[k] for k in (terms.first, terms.second))
    kept = first != second
    return EntropyTerms(costs, terms.weights[kept], first[kept], second[kept])


def _independent(graph: PairwiseGraph, is_used: BoolArray) -> IntArray:
    """Return the used equations without the last one of each edge.

    The last one is redundant, because both margins of an edge table have the same sum.
    """
    edges = np.repeat(np.arange(graph.n_edges), np.diff(graph.message_start[::2]))
    used = np.flatnonzero(is_used[graph.n_nodes :])
    last = np.full(graph.n_edges, -1)
    last[edges[used]] = used
    is_used[graph.n_nodes + last[last >= 0]] = False
    return np.flatnonzero(is_used)


def _level(graph: PairwiseGraph, is_possible: BoolArray) -> FloatArray:
    """Return flat tables that are uniform over possible entries."""
    starts = np.concatenate([graph.node_start[:-1], graph.edge_start[:-1]])
    counts = np.add.reduceat(is_possible.astype(np.float64), starts)
    sizes = np.diff(np.append(starts, graph.size))
    return np.repeat(1.0 / np.maximum(counts, 1.0), sizes)


def _centred(graph: PairwiseGraph, messages: FloatArray, is_label: BoolArray) -> FloatArray:
    """Shift each message so that its extremes over possible labels are centred at 0."""
    starts = graph.message_start[:-1]
    high = np.maximum.reduceat(np.where(is_label, messages, -np.inf), starts)
    low = np.minimum.reduceat(np.where(is_label, messages, np.inf), starts)
    middle = np.repeat(0.5 * high + 0.5 * low, np.diff(graph.message_start))
    return np.where(is_label & np.isfinite(messages), messages - middle, 0.0)
