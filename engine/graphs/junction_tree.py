"""Junction trees: the cliques of an elimination order, joined so that agreeing margins suffice.

A point holds the tables of all cliques, then those of the separators between a clique and its
parent, then the tables of the features: one per node, and one per factor of several variables.
"""

import math
from dataclasses import dataclass, field

import numpy as np
import scipy  # its parts are loaded on first use

from engine.core.arguments import FloatArray, IntArray, read_only
from engine.core.errors import InvalidProblemError
from engine.graphs.elimination_order import EliminationOrder, choose_order

Scope = tuple[int, ...]

LARGEST_TABLE = 1 << 20
"""Largest entries of a clique: 8 MB, and about five times as much for their indices."""


@dataclass(frozen=True, slots=True, eq=False)
class JunctionTree:
    """Junction tree of a model with given factors, children before parents.

    Parameters
    ----------
    cardinalities : ndarray, shape (n,), numbers of labels.
    scopes : the variables of each factor of several variables, in the order of its table's axes.
    largest_table : int, largest number of entries of a clique.

    Raises
    ------
    InvalidProblemError
        If a scope names a variable twice or one that does not exist, or a clique is too large.

    Notes
    -----
    Local consistency on a junction tree is global: points whose margins agree form the marginal
    polytope, and its entropy is that of the cliques less that of the separators, exactly.

    References
    ----------
    Lauritzen and Spiegelhalter 1988; Jensen and Jensen 1994.

    Examples
    --------
    >>> tree = JunctionTree(np.full(4, 2), ((0, 1), (1, 2), (2, 3)))
    >>> tree.cliques
    ((0, 1), (1, 2), (2, 3))
    """

    cardinalities: IntArray
    scopes: tuple[Scope, ...]
    largest_table: int = LARGEST_TABLE
    cliques: tuple[Scope, ...] = field(init=False)
    parent: IntArray = field(init=False)
    start: IntArray = field(init=False)
    up: IntArray = field(init=False)
    down_start: IntArray = field(init=False)
    down: IntArray = field(init=False)
    n_separator_entries: int = field(init=False)
    table_start: IntArray = field(init=False)
    entries_of_tables: "scipy.sparse.csr_array" = field(init=False)

    def __post_init__(self) -> None:
        cards = np.ascontiguousarray(self.cardinalities, dtype=np.int64)
        if cards.ndim != 1 or len(cards) == 0 or cards.min() < 1:
            raise InvalidProblemError("A model needs nodes, each with at least one label.")
        scopes = tuple(tuple(int(v) for v in scope) for scope in self.scopes)
        _check_scopes(scopes, len(cards))
        plan = _plan(cards, scopes, self.largest_table)
        cliques, parent, clique_of_step = _join_cliques(plan)
        for name, value in (("cardinalities", read_only(cards)), ("scopes", scopes)):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "cliques", cliques)
        object.__setattr__(self, "parent", read_only(parent))
        self._lay_out_separators()
        steps = plan.first_steps(self._tables)
        self._lay_out_tables([clique_of_step[k] for k in steps])

    @property
    def _tables(self) -> list[Scope]:
        """Variables of every table: nodes, then factors."""
        return [(v,) for v in range(len(self.cardinalities))] + list(self.scopes)

    @property
    def layout(self) -> tuple[IntArray, IntArray, IntArray, IntArray, IntArray]:
        """Arrays that locate cliques and separators, in the order in which kernels take them."""
        return self.start, self.parent, self.up, self.down_start, self.down

    @property
    def n_clique_entries(self) -> int:
        """Number of entries of all cliques."""
        return int(self.start[-1])

    @property
    def n_table_entries(self) -> int:
        """Number of entries of the tables of nodes and factors: rows of features."""
        return int(self.table_start[-1])

    @property
    def size(self) -> int:
        """Number of entries of a point."""
        return self.n_clique_entries + self.n_separator_entries + self.n_table_entries

    @property
    def width(self) -> int:
        """Largest number of variables in a clique, less one: 1 for chains and trees."""
        return max(len(clique) for clique in self.cliques) - 1

    def split(self, point: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return views of the parts of a point: cliques, separators and tables."""
        first, second = self.n_clique_entries, self.n_clique_entries + self.n_separator_entries
        return point[:first], point[first:second], point[second:]

    def table_places(self, labels: IntArray) -> IntArray:
        """Return the index of each node's and factor's table entry for a labelling.

        Raises
        ------
        InvalidProblemError
            If there is not exactly one label within range for each node.
        """
        labels = np.asarray(labels, dtype=np.int64)
        wrong = labels.shape != self.cardinalities.shape
        if wrong or ((labels < 0) | (labels >= self.cardinalities)).any():
            raise InvalidProblemError("labels: expected one label of its own range a node.")
        places = [int(labels[v]) for v in range(len(labels))]
        places += [_place(self.cardinalities, s, labels) for s in self.scopes]
        return self.table_start[:-1] + np.array(places, dtype=np.int64)

    def labels_of(self, chosen: IntArray) -> IntArray:
        """Return the labels of the cliques' chosen entries, shape (n,)."""
        labels = np.zeros(len(self.cardinalities), dtype=np.int64)
        for clique, entry in zip(self.cliques, (chosen - self.start[:-1]).tolist(), strict=True):
            shape = [int(self.cardinalities[v]) for v in clique]
            labels[list(clique)] = np.unravel_index(entry, shape)
        return labels

    def _lay_out_separators(self) -> None:
        cards = self.cardinalities
        sizes = [math.prod(int(cards[v]) for v in clique) for clique in self.cliques]
        start = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        up, down, down_start, at = [], [], [0], 0
        for clique, above in zip(self.cliques, self.parent.tolist(), strict=True):
            around = self.cliques[above] if above >= 0 else ()
            shared = tuple(v for v in clique if v in around)
            up.append(at + _positions(cards, clique, shared))
            if above >= 0:
                down.append(at + _positions(cards, around, shared))
            down_start.append(down_start[-1] + (sizes[above] if above >= 0 else 0))
            at += math.prod(int(cards[v]) for v in shared)
        object.__setattr__(self, "start", read_only(start))
        object.__setattr__(self, "up", read_only(np.concatenate(up)))
        object.__setattr__(self, "down", read_only(np.concatenate([*down, np.zeros(0, np.int64)])))
        object.__setattr__(self, "down_start", read_only(np.array(down_start, dtype=np.int64)))
        object.__setattr__(self, "n_separator_entries", at)

    def _lay_out_tables(self, homes: list[int]) -> None:
        """Spread each table over its clique: a 0/1 matrix (clique entries, tables')."""
        cards, tables = self.cardinalities, self._tables
        sizes = [math.prod(int(cards[v]) for v in scope) for scope in tables]
        start = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        rows, columns = [], []
        for scope, first, home in zip(tables, start[:-1].tolist(), homes, strict=True):
            columns.append(first + _positions(cards, self.cliques[home], scope))
            rows.append(np.arange(self.start[home], self.start[home + 1]))
        row, column = np.concatenate(rows), np.concatenate(columns)
        shape = (int(self.start[-1]), int(start[-1]))
        matrix = scipy.sparse.csr_array((np.ones(len(row)), (row, column)), shape=shape)
        object.__setattr__(self, "table_start", read_only(start))
        object.__setattr__(self, "entries_of_tables", matrix)


def _check_scopes(scopes: tuple[Scope, ...], n_nodes: int) -> None:
    for number, scope in enumerate(scopes):
        if not scope or len(set(scope)) != len(scope):
            raise InvalidProblemError(f"scopes: factor {number} is empty or names a node twice.")
        if min(scope) < 0 or max(scope) >= n_nodes:
            raise InvalidProblemError(f"scopes: factor {number} names a node that does not exist.")


def _cliques_of(plan: EliminationOrder) -> list[Scope]:
    """Return the variables that each step combines."""
    return [tuple(sorted((v, *scope))) for v, scope in zip(plan.order, plan.scopes, strict=True)]


def _plan(cards: IntArray, scopes: tuple[Scope, ...], largest: int) -> EliminationOrder:
    """Return the cheapest order; refuse a model that is too wide."""
    plan = choose_order(cards, list(scopes), largest)
    sizes = [math.prod(int(cards[v]) for v in clique) for clique in _cliques_of(plan)]
    if not plan.is_complete or max(sizes) > largest:
        raise InvalidProblemError(
            f"This model is too wide for a junction tree: a clique would have {max(sizes):,} "
            f"entries; at most {largest:,} are allowed."
        )
    return plan


def _join_cliques(plan: EliminationOrder) -> tuple[tuple[Scope, ...], IntArray, list[int]]:
    """Return the maximal cliques, children first, their parents, and the clique of each step."""
    cliques, parent = _cliques_of(plan), plan.parents
    into = list(range(len(cliques)))  # the clique that represents each
    for k, above in enumerate(parent):
        if above >= 0 and into[above] == above and set(cliques[above]) <= set(cliques[k]):
            into[above] = into[k]  # the first of the cliques below that contain it
    return _order_children_first(cliques, parent, into)


def _order_children_first(
    cliques: list[Scope], parent: list[int], into: list[int]
) -> tuple[tuple[Scope, ...], IntArray, list[int]]:
    """Drop cliques that others represent, and renumber the rest."""
    above = {}
    for k, up in enumerate(parent):
        if up < 0 or into[up] != into[k]:
            # The separator above the group of k: the parent of its topmost clique.
            above[into[k]] = -1 if up < 0 else into[up]
    kept = [k for k in range(len(cliques)) if into[k] == k]
    children: dict[int, list[int]] = {k: [] for k in [-1, *kept]}
    for k in kept:
        children[above[k]].append(k)
    order, waiting = [], list(children[-1])
    while waiting:
        k = waiting.pop()
        order.append(k)
        waiting += children[k]
    order.reverse()
    number = {k: place for place, k in enumerate(order)} | {-1: -1}
    parents = np.array([number[above[k]] for k in order], dtype=np.int64)
    return tuple(cliques[k] for k in order), parents, [number[k] for k in into]


def _positions(cards: IntArray, clique: Scope, scope: Scope) -> IntArray:
    """Return the index in the table of ``scope`` for each entry of a clique's table."""
    shape = [int(cards[v]) for v in clique]
    digits = np.indices(shape).reshape(len(shape), -1) if shape else np.zeros((0, 1), np.int64)
    total = np.zeros(digits.shape[1], dtype=np.int64)
    for v in scope:
        total = total * int(cards[v]) + digits[clique.index(v)]
    return total


def _place(cards: IntArray, scope: Scope, labels: IntArray) -> int:
    place = 0
    for v in scope:
        place = place * int(cards[v]) + int(labels[v])
    return place
