"""Local search for a best configuration of a factor graph, without proof of optimality.

All work is counted in table entries that elimination visits in the same time (10 ns each), never
in seconds: a run depends on the model and the random numbers alone.
"""

import numpy as np

from engine.core.arguments import IntArray
from engine.core.errors import InfeasibleError, InvalidProblemError
from engine.core.progress import StopCallback, WorkCallback, ignore_work
from engine.graphs.factor_graph import Factor, FactorGraph
from engine.graphs.factor_layout import lay_out_factors
from engine.inference.factors.elimination import FACTOR_WORK, Elimination
from engine.kernels.factor_search import improve_forest, iterate_search

STATES = 4  # number of configurations that are improved in turn and crossed with each other
FOREST_SWEEPS = 30  # sweeps over all variables from a new start
IDLE_TURNS = 3  # without gain, after which a state that is not the best is drawn again
TURN_WORK = 4e7  # of perturbations of a state, and again of blocks, before the next state's turn
SLICE_WORK = 2.5e6  # of a run of perturbations
# Work on a variable of a region: per factor, and per label or pair of labels in a factor's table.
VISIT_WORK, LABEL_WORK = 3.0, 0.15
MOST_ROUNDS = 2_000  # of a run of perturbations
RANDOM_NUMBERS = 256  # drawn in a round; larger regions use them repeatedly
REGION = (10, 120)  # variables improved around a perturbation, and most of them it changes
DISTURBED = (1, 50)
BLOCK_TABLE = 1 << 14  # maximum number of entries of a table in the solution of a block
BLOCK_START, BLOCK_GROWTH = 40, 1.25  # variables of a block, which grows to the largest table
LARGEST_BLOCK_WORK = 1e8


class LocalSearch:
    """Local search that improves a few configurations of one model for any length of time.

    Impossible entries count as a finite penalty that no gain outweighs, so that a search may start
    at any configuration. ``best()`` never gets worse.

    Notes
    -----
    Rounds (in compiled code) give new labels to some variables near a random one, then optimally
    relabel two random forests of the surroundings, and are undone if the score fell. Blocks
    relabel all variables near a random one optimally by elimination. Crossings compare two
    configurations, which differ in connected parts, and take the better labels of each part.

    References
    ----------
    Hamze and de Freitas 2004; Lourenco, Martin and Stutzle 2003; Zhu, Ochoa and Katzgraber 2015
    (cluster crossings of spin glasses).
    """

    def __init__(self, graph: FactorGraph, rng: np.random.Generator) -> None:
        """Lay out the model; the first configurations are drawn at random."""
        self._graph = graph
        self._rng = rng
        self._layout = lay_out_factors(graph)
        self._scores = self._layout.with_finite_penalty()
        n, most = graph.n_variables, int(graph.cardinalities.max())
        one, two, three, four, five, six = np.zeros((6, n), dtype=np.int64)
        gains = np.zeros(int(self._layout.label_start[-1]))
        self._work = (one, two, three, four, five, six, gains, np.zeros((most, most)))
        self._answer = np.zeros((n, most), dtype=np.int64)
        self._variable_work = _mean_work(graph)
        mean_region = min(n, sum(REGION) / 2)
        round_work = 2 * mean_region * self._variable_work
        self._rounds = int(np.clip(SLICE_WORK / round_work, 1, MOST_ROUNDS))
        self._block = float(BLOCK_START)
        self._states = [rng.integers(0, graph.cardinalities) for _ in range(STATES)]
        self._values = np.array([self._value(labels) for labels in self._states])
        self._idle = np.zeros(STATES, dtype=np.int64)
        self._turn = 0
        self._is_fresh = True

    def best(self) -> tuple[IntArray, float]:
        """Return the best configuration and its score (nats); -inf if it is impossible."""
        labels = self._states[int(np.argmax(self._values))]
        return labels.copy(), self._graph.score(labels)

    def take(self, labels: IntArray) -> None:
        """Add a configuration found elsewhere if it is better than all states."""
        value = self._value(labels)
        if value > self._values.max():
            self._put(int(np.argmin(self._values)), labels.copy(), value)

    def compile(self) -> None:
        """Call each kernel once so that it is compiled."""
        self._rounds = 1
        self._sweep_forests(0, ignore_work)
        self._disturb(0)

    def advance(self, should_stop: StopCallback, on_work: WorkCallback = ignore_work) -> None:
        """Improve the state whose turn it is for about a second, and cross it with the best.

        ``on_work`` takes the table entries of each part of the work, after the part.
        """
        if self._is_fresh:
            self._is_fresh = False
            for k in range(STATES):
                self._sweep_forests(k, on_work)
        k = self._turn = (self._turn + 1) % STATES
        before = self._values[k]
        for improve in (self._disturb, self._solve_block):
            spent = 0.0
            while spent < TURN_WORK:
                if should_stop():
                    return
                work = improve(k)
                spent += work
                on_work(work)
                if not work:
                    break
        self._idle[k] = 0 if self._values[k] > before else self._idle[k] + 1
        best = int(np.argmax(self._values))
        if best != k:
            self._cross(k, best)
            if self._idle[k] >= IDLE_TURNS:
                self._restart(k, on_work)

    def _value(self, labels: IntArray) -> float:
        return float(self._scores[self._layout.places(labels)].sum())

    def _put(self, k: int, labels: IntArray, value: float | None = None) -> None:
        self._states[k] = labels
        self._values[k] = self._value(labels) if value is None else value

    def _sweep_forests(self, k: int, on_work: WorkCallback) -> None:
        labels, n = self._states[k], self._graph.n_variables
        places = self._layout.places(labels)
        for _ in range(FOREST_SWEEPS):
            improve_forest(
                self._rng.permutation(n),
                self._rng.integers(0, 1 << 40, RANDOM_NUMBERS),
                self._layout.arrays,
                self._scores,
                labels,
                places,
                self._work,
                self._answer,
            )
            on_work(n * self._variable_work)
        self._put(k, labels)

    def _disturb(self, k: int) -> float:
        """Run some rounds; return their work."""
        rng, rounds, labels = self._rng, self._rounds, self._states[k].copy()
        drawn = rng.integers(0, 1 << 40, (rounds, RANDOM_NUMBERS))
        sizes = rng.integers(*REGION, rounds)
        iterate_search(
            drawn,
            sizes,
            rng.integers(*DISTURBED, rounds),
            self._layout.arrays,
            self._scores,
            labels,
            self._layout.places(labels),
            self._work,
            self._answer,
        )
        value = self._value(labels)
        if value >= self._values[k]:
            self._put(k, labels, value)
        return float(2 * np.minimum(sizes, len(labels)).sum() * self._variable_work)

    def _solve_block(self, k: int) -> float:
        """Relabel a block optimally; return the work, or 0 if blocks are not worth their work."""
        labels = self._states[k]
        region = self._surroundings(int(self._block))
        block = self._given_others(labels, region)
        work = float(FACTOR_WORK * len(block.factors))
        try:
            solver = Elimination(block, memory_limit=8 * BLOCK_TABLE)
            chosen = solver.best()[0]
        except InvalidProblemError:  # too wide
            self._block /= BLOCK_GROWTH
            return work if self._block >= 4 else 0.0
        except InfeasibleError:
            return 0.0
        work += solver.work
        if work > LARGEST_BLOCK_WORK:
            self._block /= BLOCK_GROWTH
        elif self._block < self._graph.n_variables:
            self._block *= BLOCK_GROWTH
        better = labels.copy()
        better[region] = chosen
        value = self._value(better)
        if value >= self._values[k]:
            self._put(k, better, value)
        return work

    def _surroundings(self, size: int) -> IntArray:
        """Return the variables nearest to a random one, ascending."""
        _, scope_start, scope_variable, _, _, start, factors, _, _ = self._layout.arrays
        centre = int(self._rng.integers(self._graph.n_variables))
        seen, order = {centre}, [centre]
        for v in order:
            if len(order) >= size:
                break
            for factor in factors[start[v] : start[v + 1]]:
                scope = scope_variable[scope_start[factor] : scope_start[factor + 1]]
                for u in scope.tolist():
                    if u not in seen and len(order) < size:
                        seen.add(u)
                        order.append(u)
        return np.array(sorted(order), dtype=np.int64)

    def _given_others(self, labels: IntArray, region: IntArray) -> FactorGraph:
        """Return the model of some variables given the labels of the others."""
        cards, scope_start, scope_variable, _, tables, start, factors, _, _ = self._layout.arrays
        number = {int(v): k for k, v in enumerate(region)}
        touched = np.unique(np.concatenate([factors[start[v] : start[v + 1]] for v in region]))
        parts = []
        for factor in touched.tolist():
            low, high = int(scope_start[factor]), int(scope_start[factor + 1])
            scope = scope_variable[low:high].tolist()
            table = self._scores[tables[factor] : tables[factor + 1]].reshape(cards[scope])
            given = tuple(slice(None) if v in number else labels[v] for v in scope)
            parts.append(Factor(tuple(number[v] for v in scope if v in number), table[given]))
        return FactorGraph(cards[region], tuple(parts))

    def _cross(self, k: int, best: int) -> None:
        """Cross another state into the best one, part by part in which they differ."""
        labels, donor = self._states[best].copy(), self._states[k]
        for part in self._parts(np.flatnonzero(labels != donor)):
            before, kept = self._value_around(labels, part), labels[part].copy()
            labels[part] = donor[part]
            if self._value_around(labels, part) <= before:
                labels[part] = kept
        self._put(best, labels)

    def _restart(self, k: int, on_work: WorkCallback) -> None:
        """Redraw a stalled state, either all of it or a share of the best state."""
        share = self._rng.choice((0.2, 0.5, 1.0))
        labels = self._states[int(np.argmax(self._values))]
        drawn = self._rng.integers(0, self._graph.cardinalities)
        is_new = self._rng.random(len(labels)) < share
        self._put(k, np.where(is_new, drawn, labels))
        self._sweep_forests(k, on_work)
        self._idle[k] = 0

    def _parts(self, variables: IntArray) -> list[IntArray]:
        """Return the connected parts of a set of variables."""
        _, scope_start, scope_variable, _, _, start, factors, _, _ = self._layout.arrays
        left, parts = set(variables.tolist()), []
        while left:
            order = [left.pop()]
            for v in order:
                for factor in factors[start[v] : start[v + 1]]:
                    scope = scope_variable[scope_start[factor] : scope_start[factor + 1]]
                    for u in scope.tolist():
                        if u in left:
                            left.remove(u)
                            order.append(u)
            parts.append(np.array(order, dtype=np.int64))
        return parts

    def _value_around(self, labels: IntArray, part: IntArray) -> float:
        """Return the score of the factors of some variables."""
        _, scope_start, scope_variable, stride, tables, start, factors, _, _ = self._layout.arrays
        touched = np.unique(np.concatenate([factors[start[v] : start[v + 1]] for v in part]))
        total = 0.0
        for factor in touched.tolist():
            low, high = scope_start[factor], scope_start[factor + 1]
            place = tables[factor] + stride[low:high] @ labels[scope_variable[low:high]]
            total += float(self._scores[place])
        return total


def _mean_work(graph: FactorGraph) -> float:
    """Return the mean work on a variable of a region (see VISIT_WORK and LABEL_WORK)."""
    cards = graph.cardinalities.astype(np.float64)
    work = LABEL_WORK * cards**2
    for factor in graph.factors:
        for v in factor.variables:
            work[v] += VISIT_WORK + LABEL_WORK * cards[v]
    return float(work.mean())
