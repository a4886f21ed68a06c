"""Exact inference by variable elimination, limited by the size of its tables."""

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.core.arguments import FloatArray, IntArray
from engine.core.errors import InfeasibleError, InvalidProblemError
from engine.graphs.factor_graph import FactorGraph

# Largest table (entries, 8 bytes each) that elimination may build before it gives up.
LARGEST_TABLE = 1 << 25
# Largest total of table entries kept for marginals.
LARGEST_TOTAL = 1 << 27
# Largest number of best labels kept for reading back a configuration, one byte or two each.
LARGEST_CHOICES = 1 << 30

OrderRule = Callable[[int, list[set[int]], list[int]], tuple[float, float]]
Reduction = Callable[[int, FloatArray], FloatArray]


@dataclass(frozen=True, slots=True)
class EliminationOrder:
    """An order of the variables with the sizes of the tables that it leads to."""

    order: tuple[int, ...]
    scopes: tuple[tuple[int, ...], ...]
    largest_table: int
    total: float


def choose_order(cardinalities: IntArray, scopes: list[tuple[int, ...]]) -> EliminationOrder:
    """Return the cheapest of three orders: least fill, smallest table, and as numbered.

    The last is row by row on a grid numbered in raster order.
    """
    n = len(cardinalities)
    plans = [greedy_order(cardinalities, scopes, rule) for rule in (_fill, _table_size)]
    plans.append(greedy_order(cardinalities, scopes, lambda v, _n, _c: (float(v), 0.0)))
    return min(plans, key=lambda plan: plan.total) if n else plans[0]


def greedy_order(
    cardinalities: IntArray, scopes: list[tuple[int, ...]], rule: OrderRule
) -> EliminationOrder:
    """Eliminate next the variable of smallest ``rule``; ties go to the lower number.

    Gives up, with an infinite total, at the first table that is too large.
    """
    cards = [int(c) for c in cardinalities]
    neighbours: list[set[int]] = [set() for _ in cards]
    for scope in scopes:
        for v in scope:
            neighbours[v].update(u for u in scope if u != v)
    costs = {v: rule(v, neighbours, cards) for v in range(len(cards))}
    heap = [(cost, v) for v, cost in costs.items()]  # entries that are out of date are skipped
    heapq.heapify(heap)
    order, eliminated, largest, total = [], [], 1, 0.0
    while heap:
        cost, v = heapq.heappop(heap)
        if costs.get(v) != cost:
            continue
        around = neighbours[v]
        size = math.prod(cards[u] for u in around) * cards[v]
        largest, total = max(largest, size), total + size
        if largest > LARGEST_TABLE:
            return EliminationOrder((), (), largest, math.inf)
        order.append(v)
        eliminated.append(tuple(sorted(around)))
        del costs[v]
        for u in _connect(v, neighbours):
            costs[u] = rule(u, neighbours, cards)
            heapq.heappush(heap, (costs[u], u))
    return EliminationOrder(tuple(order), tuple(eliminated), largest, total)


def _connect(v: int, neighbours: list[set[int]]) -> set[int]:
    """Join the neighbours of ``v`` to each other, remove it, and return whose cost may change."""
    around = neighbours[v]
    touched = set(around)
    for u in around:
        neighbours[u] |= around
        neighbours[u] -= {u, v}
    for u in around:
        touched |= neighbours[u]
    return touched


def _table_size(v: int, neighbours: list[set[int]], cards: list[int]) -> tuple[float, float]:
    return sum(math.log(cards[u]) for u in neighbours[v]), 0.0


def _fill(v: int, neighbours: list[set[int]], cards: list[int]) -> tuple[float, float]:
    around = neighbours[v]
    missing = sum(len(around) - 1 - len(around & neighbours[u]) for u in around)
    return float(missing), _table_size(v, neighbours, cards)[0]


class Elimination:
    """Sums and maxima of one model over an elimination order.

    Raises
    ------
    InvalidProblemError
        If a table would exceed 2^25 entries: the model is too wide for exact inference.

    References
    ----------
    Dechter 1999 (bucket elimination); the marginals are its reverse pass (Shafer and Shenoy 1990).

    Examples
    --------
    >>> from engine.graphs.factor_graph import Factor
    >>> pair = Factor((0, 1), np.log([[1.0, 2.0], [3.0, 4.0]]))
    >>> solver = Elimination(FactorGraph(np.array([2, 2]), (pair,)))
    >>> float(round(np.exp(solver.log_partition()), 9)), solver.best()[0].tolist()
    (10.0, [1, 1])
    """

    def __init__(self, graph: FactorGraph) -> None:
        self._graph = graph
        self._plan = choose_order(graph.cardinalities, [f.variables for f in graph.factors])
        if self._plan.largest_table > LARGEST_TABLE:
            raise InvalidProblemError(
                f"This model is too wide for exact inference: a table of "
                f"{self._plan.largest_table:.2g} entries would be needed, the limit is "
                f"{LARGEST_TABLE}."
            )

    @property
    def width(self) -> int:
        """The largest number of variables in a message."""
        return max((len(scope) for scope in self._plan.scopes), default=0)

    @property
    def cost(self) -> float:
        """Total number of table entries that one pass visits."""
        return self._plan.total

    def log_partition(self) -> float:
        """Return log Z in nats (-inf if every configuration is impossible)."""
        value, _ = self._forward(lambda _, joint: _log_sum(joint))
        return value

    def best(self) -> tuple[IntArray, float]:
        """Return a configuration of largest score, and its score (nats).

        Raises
        ------
        InfeasibleError
            If every configuration has probability zero.
        InvalidProblemError
            If the choices to be kept would take more than 2^30 bytes.
        """
        kept = self._plan.total // max(1, int(self._graph.cardinalities.min()))
        self._check_total(kept, LARGEST_CHOICES)
        choices: list[NDArray[np.uint16]] = []

        def maximise(_: int, joint: FloatArray) -> FloatArray:
            narrow = np.uint8 if joint.shape[0] <= 256 else np.uint16
            choices.append(joint.argmax(axis=0).astype(narrow))
            largest: FloatArray = joint.max(axis=0)
            return largest

        value, _ = self._forward(maximise)
        if value == -np.inf:
            raise InfeasibleError("Every configuration of this model has probability zero.")
        labels = np.zeros(self._graph.n_variables, dtype=np.int64)
        for k in range(len(self._plan.order) - 1, -1, -1):
            labels[self._plan.order[k]] = choices[k][tuple(labels[list(self._plan.scopes[k])])]
        return labels, self._graph.score(labels)

    def marginals(self) -> tuple[float, list[FloatArray]]:
        """Return log Z and the exact marginal of each variable.

        Raises
        ------
        InfeasibleError
            If every configuration has probability zero.
        InvalidProblemError
            If more than 2^27 message entries would have to be kept.
        """
        self._check_total(self._plan.total, LARGEST_TOTAL)
        value, buckets = self._forward(lambda _, joint: _log_sum(joint))
        if value == -np.inf:
            raise InfeasibleError("Every configuration of this model has probability zero.")
        # Backwards: the derivative of log Z by each message is a marginal of its scope.
        weights: dict[int, FloatArray] = {}
        answer: list[FloatArray] = [np.zeros(0)] * self._graph.n_variables
        plan = self._plan
        for k in range(len(plan.order) - 1, -1, -1):
            v, scope = plan.order[k], plan.scopes[k]
            full = (v, *scope)
            joint = _combine(buckets[k], full, self._graph.cardinalities)
            with np.errstate(invalid="ignore"):
                joint = np.exp(joint - _log_sum(joint))
            joint[np.isnan(joint)] = 0.0
            joint *= weights.pop(k, np.ones(()))
            answer[v] = joint.reshape(joint.shape[0], -1).sum(axis=1)
            for part in buckets[k]:
                if part.source >= 0:
                    drop = tuple(a for a, u in enumerate(full) if u not in part.scope)
                    left = [u for u in full if u in part.scope]
                    axes = [left.index(u) for u in part.scope]
                    weights[part.source] = np.transpose(joint.sum(axis=drop), axes)
        return value, answer

    @staticmethod
    def _check_total(total: float, limit: int) -> None:
        if total > limit:
            raise InvalidProblemError(
                "This model is too wide for exact inference: "
                f"{total:.2g} entries would have to be kept, the limit is {limit:.2g}."
            )

    def _forward(self, reduce: Reduction) -> tuple[float, list[list["_Part"]]]:
        """Eliminate all variables; return the value and what met in each bucket.

        Tables stay alive only as long as the caller keeps the second answer's buckets: those
        already reduced are dropped unless they fit the limit for marginals.
        """
        keep = self._plan.total <= LARGEST_TOTAL
        position = {v: k for k, v in enumerate(self._plan.order)}
        waiting: list[list[_Part]] = [[] for _ in self._plan.order]
        value = 0.0

        def place(scope: tuple[int, ...], table: FloatArray, source: int) -> float:
            if not scope:
                return float(table)
            ordered = tuple(sorted(scope))
            moved = np.transpose(table, [scope.index(v) for v in ordered])
            waiting[min(position[v] for v in scope)].append(_Part(ordered, moved, source))
            return 0.0

        for factor in self._graph.factors:
            value += place(factor.variables, factor.table, -1)
        for k, (v, scope) in enumerate(zip(self._plan.order, self._plan.scopes, strict=True)):
            joint = _combine(waiting[k], (v, *scope), self._graph.cardinalities)
            value += place(scope, reduce(k, joint), k)
            if not keep:
                waiting[k] = []
        return value, waiting


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """A log table in a bucket, its axes in ascending order, and the bucket that sent it or -1."""

    scope: tuple[int, ...]
    table: FloatArray
    source: int


def _log_sum(table: FloatArray) -> FloatArray:
    """Return log sum exp over the first axis, where memory lies far apart but adds are long."""
    largest = table.max(axis=0)
    safe = np.where(np.isneginf(largest), 0.0, largest)
    total = np.exp(table - safe).sum(axis=0)
    with np.errstate(divide="ignore"):
        result: FloatArray = np.log(total) + safe
    return result


def _combine(parts: list[_Part], full: tuple[int, ...], cards: IntArray) -> FloatArray:
    """Add log tables over the scope ``full``: the variable to be eliminated, then the others."""
    total = np.zeros(tuple(int(cards[u]) for u in full))
    for part in parts:
        order = [u for u in full if u in part.scope]
        moved = np.transpose(part.table, [part.scope.index(u) for u in order])
        total += moved.reshape(tuple(int(cards[u]) if u in part.scope else 1 for u in full))
    return total
