"""Elimination orders of the variables of a model, and the sizes of their tables."""

import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from engine.core.arguments import IntArray

OrderRule = Callable[[int, list[set[int]], list[int], int], tuple[float, float]]


@dataclass(frozen=True, slots=True)
class EliminationOrder:
    """Plan of exact inference: variables in the order of their elimination.

    A step combines the tables over its variable and leaves a table over the variable's neighbours,
    which goes to the step that eliminates the first of them. These steps form a forest: a pass from
    its leaves sums or maximises, a second one from its roots gives marginals or a configuration.

    Parameters
    ----------
    order : variables, first to last
    scopes : for each variable, the variables of the table left by its elimination, ascending
    sizes : entries of those tables
    largest : entries of the largest table; if ``is_complete`` is false, of the first table above
        the limit, at which the search for this order ended
    width : largest number of variables, with two or more states, in a table
    """

    order: tuple[int, ...]
    scopes: tuple[tuple[int, ...], ...]
    sizes: tuple[int, ...]
    largest: int
    width: int
    is_complete: bool

    @property
    def parents(self) -> list[int]:
        """Step that receives each step's table, -1 where the table is a number."""
        return self.first_steps(self.scopes)

    def first_steps(self, scopes: Sequence[tuple[int, ...]]) -> list[int]:
        """Return the first step that eliminates a variable of each scope, -1 for empty ones.

        A table over that scope belongs to this step, whose other variables contain all of them.
        """
        step = {v: k for k, v in enumerate(self.order)}
        return [min((step[v] for v in scope), default=-1) for scope in scopes]

    @property
    def total(self) -> int:
        """Number of entries of all tables together."""
        return sum(self.sizes)


def choose_order(
    cardinalities: IntArray, scopes: list[tuple[int, ...]], largest_allowed: int
) -> EliminationOrder:
    """Return the cheapest of three orders: least fill, smallest table, and numerical.

    The last is row by row on a grid numbered in raster order. If all of them exceed tables of
    ``largest_allowed`` entries, the order that exceeds the limit least is returned, incomplete.
    """
    rules = (_fill, _table_size, _number)
    orders = [greedy_order(cardinalities, scopes, rule, largest_allowed) for rule in rules]
    complete = [order for order in orders if order.is_complete]
    if complete:
        return min(complete, key=lambda order: order.total)
    return min(orders, key=lambda order: order.largest)


def greedy_order(
    cardinalities: IntArray,
    scopes: list[tuple[int, ...]],
    rule: OrderRule,
    largest_allowed: int,
) -> EliminationOrder:
    """Eliminate the variable of smallest ``rule`` at each step; ties go to the lower number."""
    cards = [int(c) for c in cardinalities]
    neighbours: list[set[int]] = [set() for _ in cards]
    for scope in scopes:
        for v in scope:
            neighbours[v].update(u for u in scope if u != v)
    costs = {v: rule(v, neighbours, cards, largest_allowed) for v in range(len(cards))}
    heap = [(cost, v) for v, cost in costs.items()]  # outdated entries are skipped
    heapq.heapify(heap)
    order: list[int] = []
    left: list[tuple[int, ...]] = []
    sizes: list[int] = []
    widths = [0]
    while heap:
        cost, v = heapq.heappop(heap)
        if costs.get(v) != cost:
            continue
        around = neighbours[v]
        order.append(v)
        left.append(tuple(sorted(around)))
        sizes.append(math.prod(cards[u] for u in around))
        widths.append(sum(cards[u] > 1 for u in around))
        if sizes[-1] > largest_allowed:
            break
        del costs[v]
        for u in _connect(v, neighbours):
            costs[u] = rule(u, neighbours, cards, largest_allowed)
            heapq.heappush(heap, (costs[u], u))
    largest = max(sizes, default=1)
    return EliminationOrder(
        tuple(order), tuple(left), tuple(sizes), largest, max(widths), largest <= largest_allowed
    )


def _connect(v: int, neighbours: list[set[int]]) -> set[int]:
    """Join the neighbours of ``v``, remove it, and return variables whose costs may change."""
    around = neighbours[v]
    touched = set(around)
    for u in around:
        neighbours[u] |= around
        neighbours[u] -= {u, v}
    for u in around:
        touched |= neighbours[u]
    return touched


def _number(
    v: int, _neighbours: list[set[int]], _cards: list[int], _largest: int
) -> tuple[float, float]:
    return float(v), 0.0


def _table_size(
    v: int, neighbours: list[set[int]], cards: list[int], _largest: int
) -> tuple[float, float]:
    return sum(math.log(cards[u]) for u in neighbours[v]), 0.0


def _fill(
    v: int, neighbours: list[set[int]], cards: list[int], largest: int
) -> tuple[float, float]:
    """Return the edges that an elimination adds; inf, not counted, if the table is too large."""
    around = neighbours[v]
    size = _table_size(v, neighbours, cards, largest)[0]
    if size > math.log(largest) + 1e-9:
        return math.inf, size
    missing = sum(len(around) - 1 - len(around & neighbours[u]) for u in around)
    return float(missing), size
