"""Minimum-weight T-joins: sets of edges with odd degree at exactly the given nodes."""

import math
from dataclasses import dataclass

import numpy as np
import scipy  # submodules load when first used

from engine.core.arguments import BoolArray, FloatArray, IntArray, as_finite_array, read_only
from engine.core.errors import CertificateError, InfeasibleError, InvalidProblemError
from engine.core.options import check_whole
from engine.core.rounding import sum_allowance
from engine.kernels.blossom import solve_perfect_matching
from engine.kernels.matching_edges import compressed_rows
from engine.kernels.t_join import NEVER, spread, toggle_paths, violated_pairs
from engine.oracles.matching_certificate import (
    HEADROOM_BITS,
    IntegerDuals,
    check_edges,
    check_partners,
    check_values,
)

ADDED = 64
"""Maximum number of pairs that a terminal adds before a solve; later solves find the rest."""

MARGIN = 0.5
"""Share of the median dual within which nearly violated pairs are added too, halved each time:
with violated pairs alone, each solve would only reveal the next few."""


@dataclass(frozen=True, slots=True, eq=False)
class TJoin:
    """Join of smallest weight with its certificate.

    Parameters
    ----------
    edge_indices : ndarray of int64
        Indices of the edges.
    weight : float
        Weight of the join.
    lower_bound : float
        Proved lower bound of the smallest weight.

    Examples
    --------
    >>> TJoin(np.array([0, 1]), 3.0, 3.0).weight
    3.0
    """

    edge_indices: IntArray
    weight: float
    lower_bound: float


@dataclass(frozen=True, slots=True)
class _Rows:
    """Graph in compressed rows, both directions, with even integer costs."""

    start: IntArray
    neighbour: IntArray
    edge: IntArray
    cost: IntArray


@dataclass(frozen=True, slots=True)
class _Pairs:
    """Candidate pairs of terminals (p, 2), the first of each below the second, and costs (p,)."""

    ends: IntArray
    cost: IntArray


def minimum_t_join(
    n_nodes: int, edges: IntArray, weights: FloatArray, terminals: IntArray
) -> TJoin:
    """Return edges of smallest weight with odd degree at the terminals only, proved by duals.

    The join is a perfect matching of the terminals by shortest paths. It is solved on few pairs;
    the others are priced by searches that end where no pair can be violated, and violated pairs
    are added until no pair is violated.

    Parameters
    ----------
    n_nodes : int
    edges : ndarray, shape (m, 2); parallel edges are allowed, loops are in no join.
    weights : ndarray, shape (m,), at least 0.
    terminals : ndarray, different nodes, an even number of them in each connected part.

    Returns
    -------
    TJoin
        The join, with the bound that proves it.

    Raises
    ------
    InvalidProblemError
        If a weight is negative or not finite, or a terminal is repeated or is no node.
    InfeasibleError
        If a connected part contains an odd number of terminals.

    References
    ----------
    Edmonds and Johnson 1973; Bieche, Maynard, Rammal and Uhry 1980; Applegate and Cook 1993
    (pricing).

    Examples
    --------
    >>> path = np.array([[0, 1], [1, 2], [2, 3]])
    >>> minimum_t_join(4, path, np.array([1.0, 2.0, 4.0]), np.array([0, 2])).edge_indices.tolist()
    [0, 1]
    """
    check_whole("n_nodes", n_nodes)
    weights = as_finite_array("weights", weights, shape=(len(edges),))
    if (weights < 0.0).any():
        raise InvalidProblemError("weights: a T-join needs weights of at least 0.")
    terminals = np.unique(terminals)
    if len(terminals) and not 0 <= terminals[0] <= terminals[-1] < n_nodes:
        raise InvalidProblemError(f"terminals: expected nodes 0 to {n_nodes - 1}.")
    if len(terminals) == 0:
        return TJoin(read_only(np.zeros(0, dtype=np.int64)), 0.0, 0.0)
    exponent = HEADROOM_BITS - 4 - math.frexp(float(weights.sum()))[1]
    cost = (2 * np.rint(np.ldexp(weights, exponent - 1))).astype(np.int64)
    rows = _rows_of(n_nodes, edges, cost)
    partner, duals = _solve_by_pricing(rows, terminals)
    chosen = np.zeros(len(edges), dtype=bool)
    matched = np.flatnonzero(np.arange(len(terminals)) < partner)
    ends = terminals[np.stack([matched, partner[matched]], axis=1)]
    toggle_paths(rows.start, rows.neighbour, rows.cost, rows.edge, ends, chosen)
    _check_join(edges, cost, terminals, chosen, duals.value)
    moved = float(np.abs(np.ldexp(cost.astype(np.float64), -exponent) - weights).sum())
    bound = math.ldexp(float(duals.value), -exponent) - moved
    allowance = sum_allowance(len(edges) + 4, moved) + sum_allowance(4, abs(bound))
    weight = math.fsum(weights[chosen])
    return TJoin(read_only(np.flatnonzero(chosen)), weight, min(weight, bound - allowance))


def _rows_of(n_nodes: int, edges: IntArray, cost: IntArray) -> _Rows:
    """Return the rows of both directions without loops."""
    real = np.flatnonzero(edges[:, 0] != edges[:, 1])
    heads, tails = np.ascontiguousarray(edges[real].T)
    start, neighbour, edge = compressed_rows(n_nodes, heads, tails)
    return _Rows(start, neighbour, real[edge], cost[real[edge]])


def _solve_by_pricing(rows: _Rows, terminals: IntArray) -> tuple[IntArray, IntegerDuals]:
    """Solve on candidate pairs and add violated pairs until no pair is violated."""
    n = len(terminals)
    number = np.full(len(rows.start) - 1, -1, dtype=np.int64)
    number[terminals] = np.arange(n)
    pairs = _first_pairs(rows, terminals, number)
    dual, partner = np.zeros(n, dtype=np.int64), np.full(n, -1, dtype=np.int64)
    margin = MARGIN
    while True:
        heads, tails = np.ascontiguousarray(pairs.ends.T)
        start, neighbour, place = compressed_rows(n, heads, tails)
        found, blossom_dual, parent, _, _ = solve_perfect_matching(
            start, neighbour, pairs.cost[place], dual, partner
        )
        if not found:
            raise CertificateError("a graph of terminals lost its perfect matching.")
        duals = IntegerDuals(dual, blossom_dual, parent)
        lure = np.full(len(number), NEVER, dtype=np.int64)
        lure[terminals] = -dual
        spread(rows.start, rows.neighbour, rows.cost, lure, np.empty_like(lure))
        more, lengths, violated = violated_pairs(
            rows.start,
            rows.neighbour,
            rows.cost,
            number,
            dual,
            duals.family,
            np.where(lure == NEVER, -NEVER, -lure),
            int(margin * max(float(np.median(dual)), 0.0)),
            ADDED,
        )
        if violated == 0:
            _check_matching(pairs, partner, duals)
            return partner, duals
        margin = 0.5 * margin
        pairs = _cheapest(np.concatenate([pairs.ends, more]), np.append(pairs.cost, lengths))


def _first_pairs(rows: _Rows, terminals: IntArray, number: IntArray) -> _Pairs:
    """Return pairs whose nearest regions touch, and a perfect matching along a tree of them."""
    n = len(terminals)
    distance = np.full(len(number), NEVER, dtype=np.int64)
    distance[terminals] = 0
    origin = np.empty_like(distance)
    spread(rows.start, rows.neighbour, rows.cost, distance, origin)
    owner = np.repeat(np.arange(len(number)), np.diff(rows.start))
    reached = (origin[owner] >= 0) & (origin[rows.neighbour] >= 0)
    owner, neighbour, cost = owner[reached], rows.neighbour[reached], rows.cost[reached]
    ends = np.stack([number[origin[owner]], number[origin[neighbour]]], axis=1)
    different = ends[:, 0] < ends[:, 1]  # each edge is listed in both directions
    length = distance[owner] + cost + distance[neighbour]
    near = _cheapest(ends[different], length[different])
    return _cheapest(*_add_tree_matching(near, n))


def _add_tree_matching(near: _Pairs, n: int) -> tuple[IntArray, IntArray]:
    """Append the first and second, third and fourth, ... terminal of a walk along a tree.

    The cost of such a pair is its path length in the tree, which is at least its distance.
    """
    shape = (n, n)
    lengths = near.cost.astype(np.float64) + 1.0  # zeros would be absent edges
    graph = scipy.sparse.coo_array((lengths, (near.ends[:, 0], near.ends[:, 1])), shape=shape)
    tree = scipy.sparse.csgraph.minimum_spanning_tree(graph.tocsr())
    parts, part = scipy.sparse.csgraph.connected_components(tree, directed=False)
    if (np.bincount(part, minlength=parts) % 2).any():
        raise InfeasibleError("a connected part holds an odd number of terminals.")
    exact = dict(zip(map(tuple, near.ends.tolist()), near.cost.tolist(), strict=True))
    ends, costs = [near.ends], [near.cost]
    for root in np.unique(part, return_index=True)[1]:
        order, before = scipy.sparse.csgraph.depth_first_order(tree, root, directed=False)
        depth = np.zeros(n, dtype=np.int64)
        above = before.tolist()
        for node in order[1:].tolist():
            up = above[node]
            depth[node] = depth[up] + exact[min(up, node), max(up, node)]
        first, second = order[::2], order[1::2]
        up = before[second]
        walk = (depth[first] - depth[up]) + (depth[second] - depth[up])
        ends.append(np.sort(np.stack([first, second], axis=1), axis=1).astype(np.int64))
        costs.append(walk)
    return np.concatenate(ends), np.concatenate(costs)


def _cheapest(ends: IntArray, cost: IntArray) -> _Pairs:
    """Return each pair once, at its least cost."""
    order = np.lexsort((cost, ends[:, 1], ends[:, 0]))
    ends, cost = ends[order], cost[order]
    new = np.ones(len(cost), dtype=bool)
    new[1:] = (ends[1:] != ends[:-1]).any(axis=1)
    return _Pairs(ends[new], cost[new])


def _check_matching(pairs: _Pairs, partner: IntArray, duals: IntegerDuals) -> None:
    """Raise CertificateError unless the matching is optimal among the candidates."""
    check_partners(partner)
    heads, tails = np.ascontiguousarray(pairs.ends.T)
    check_edges(duals, heads, tails, pairs.cost)
    check_values(duals, int(pairs.cost[partner[heads] == tails].sum()))


def _check_join(
    edges: IntArray, cost: IntArray, terminals: IntArray, chosen: BoolArray, value: int
) -> None:
    """Raise CertificateError unless the edges are a T-join whose cost the duals prove."""
    odd = np.bincount(edges[chosen].ravel(), minlength=int(edges.max(initial=0)) + 1) % 2
    if not np.array_equal(np.flatnonzero(odd), terminals):
        raise CertificateError("the answer is not a T-join.")
    if int(cost[chosen].sum()) != value:
        raise CertificateError("the T-join costs more than its duals prove.")
