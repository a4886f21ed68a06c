"""Maximum-weight matchings of general sparse graphs: perfect, any, and b-matchings."""

import math
import operator
import time
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from engine.core.arguments import FloatArray, IntArray, as_finite_array, check_shape, read_only
from engine.core.errors import InfeasibleError, InvalidProblemError
from engine.graphs.edge_list import read_graph
from engine.kernels.blossom import solve_perfect_matching
from engine.kernels.matching_edges import compressed_rows
from engine.oracles.matching import LARGEST_WEIGHT, Matching
from engine.oracles.matching_certificate import (
    IntegerDuals,
    check_edges,
    check_partners,
    check_values,
    round_costs,
    scale_exponent,
    weight_bound,
)
from engine.oracles.matching_gadgets import Gadget, b_matching_gadget, doubled_graph
from engine.oracles.protocol import ExtremePoint, make_indicator

MatchingKind = Literal["perfect", "any", "b"]


@dataclass(frozen=True, slots=True)
class GraphMatchingOracle:
    """Exact oracle for matchings of one graph; a point has one entry an edge.

    Parameters
    ----------
    n_nodes : int
    edges : ndarray, shape (e, 2)
    kind : "perfect" or "any"

    Examples
    --------
    >>> oracle = GraphMatchingOracle(3, np.array([[0, 1], [1, 2]]), "any")
    >>> oracle.compute_extreme_point(np.array([1.0, 2.0])).vertex.places.tolist()
    [1]
    """

    n_nodes: int
    edges: IntArray
    kind: MatchingKind = "perfect"

    def compute_extreme_point(self, scores: FloatArray) -> ExtremePoint:
        """Return the best matching under ``scores``, shape (e,), finite; see its function."""
        matching = max_weight_matching(self.n_nodes, self.edges, scores, self.kind)
        vertex = make_indicator(matching.edge_indices)
        return ExtremePoint(vertex, matching.weight, matching.upper_bound)


def max_weight_matching(
    n_nodes: Any,
    edges: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    kind: MatchingKind = "perfect",
    degrees: ArrayLike | None = None,
    *,
    exact_degrees: bool = False,
) -> Matching:
    """Return a maximum-weight matching of a sparse graph, proved optimal by its duals.

    Parameters
    ----------
    n_nodes : int
        Number of nodes. Or, in place of this and the next two, a graph that
        `engine.graphs.edge_list.read_graph` reads: of NetworkX, a sparse matrix, a pandas table.
    edges : array_like, shape (m, 2), int
        Node indices from 0. Of parallel edges the heaviest counts for perfect and any matchings;
        b-matchings may use each of them once. Loops are in no matching and play no part; in a
        b-matching, where they could count once or twice, they are refused.
    weights : array_like, shape (m,), float
        Any finite numbers, negative ones included.
    kind : "perfect", "any" or "b"
        Every node matched; any set of disjoint edges; at most ``degrees[i]`` edges at node i.
    degrees : array_like, shape (n_nodes,), int, optional
        Degree bounds of a b-matching, from 0.
    exact_degrees : bool
        Ask a b-matching for exactly ``degrees[i]`` edges at every node.

    Returns
    -------
    Matching
        ``edge_indices`` are the chosen edges; ``upper_bound - weight`` is at rounding level, and 0
        for integer weights of ordinary size.

    Raises
    ------
    InvalidProblemError
        If the graph is malformed.
    InfeasibleError
        If a perfect matching, or exact degrees, are asked for and do not exist. For perfect
        matchings ``deficient_set`` holds nodes whose removal leaves more odd components than it
        has members.

    Notes
    -----
    O(n m log n) in the worst case. Any matching is solved on two joined copies of the graph; a
    b-matching on the gadget of Shiloach (1981) with O(sum over edges of b_i + b_j) edges.

    References
    ----------
    Edmonds (1965); Berge (1958) and Tutte (1947) for the deficient set.

    Examples
    --------
    >>> max_weight_matching(4, [(0, 1), (1, 2), (2, 3)], [2.0, 5.0, 2.0], kind="any").weight
    5.0
    """
    started = time.perf_counter()
    if edges is None or weights is None:
        found = read_graph(n_nodes)
        n_nodes, edges, weights = found.n_nodes, found.edges, found.weights
    try:
        n_nodes = operator.index(n_nodes)
    except TypeError as error:
        raise InvalidProblemError(f"n_nodes: expected an integer, received {n_nodes}.") from error
    graph = _checked_graph(n_nodes, edges, weights, kind)
    if kind == "b":
        if degrees is None:
            raise InvalidProblemError("degrees: a b-matching needs a degree bound for every node.")
        bounds = _checked_degrees(n_nodes, degrees)
        chosen, bound = _solve_b(graph, bounds, exact=exact_degrees)
    elif kind == "any":
        chosen, bound = _solve_any(graph)
    else:
        chosen, bound = _solve_perfect(graph)
    partner = np.full(n_nodes, -1, dtype=np.int64)
    heads, tails = graph.edges[chosen[::-1]].T
    partner[heads], partner[tails] = tails, heads
    weight = math.fsum(graph.weights[chosen])
    return Matching(
        partner=read_only(partner),
        weight=weight,
        upper_bound=max(weight, bound),
        seconds=time.perf_counter() - started,
        n_matched=len(chosen),
        edge_indices=read_only(chosen),
    )


@dataclass(frozen=True, slots=True)
class _Graph:
    """A checked graph: edges (m, 2) without loops, finite weights (m,)."""

    n_nodes: int
    edges: IntArray
    weights: FloatArray


@dataclass(frozen=True, slots=True)
class _Solution:
    """A perfect matching of a graph: indices of chosen edges and an upper bound on the weight."""

    chosen: IntArray
    bound: float


def _checked_graph(n_nodes: int, edges: ArrayLike, weights: ArrayLike, kind: str) -> _Graph:
    if kind not in get_args(MatchingKind):
        raise InvalidProblemError(f"kind: expected perfect, any or b, received {kind!r}.")
    if n_nodes < 0:
        raise InvalidProblemError(f"n_nodes: expected 0 or more, received {n_nodes}.")
    try:
        pairs = np.asarray(edges)
    except ValueError as error:
        raise InvalidProblemError("edges: expected pairs of nodes, all of two.") from error
    if pairs.size == 0:
        pairs = np.empty((0, 2), dtype=np.int64)
    check_shape("edges", pairs, (None, 2))
    if not np.issubdtype(pairs.dtype, np.integer):
        raise InvalidProblemError(f"edges: expected integers, received {pairs.dtype}.")
    pairs = pairs.astype(np.int64)
    values = as_finite_array("weights", weights, shape=(len(pairs),))
    outside = (pairs < 0) | (pairs >= n_nodes)
    if outside.any():
        k = int(np.flatnonzero(outside.any(axis=1))[0])
        raise InvalidProblemError(
            f"edges: edge {k} is {tuple(pairs[k].tolist())}, expected nodes 0..{n_nodes - 1}."
        )
    loops = np.flatnonzero(pairs[:, 0] == pairs[:, 1])
    if len(loops) and kind == "b":
        k = int(loops[0])
        raise InvalidProblemError(f"edges: edge {k} joins node {pairs[k, 0]} to itself.")
    if np.abs(values).max(initial=0.0) > LARGEST_WEIGHT:
        raise InvalidProblemError(f"weights: expected magnitudes up to {LARGEST_WEIGHT:.0e}.")
    return _Graph(n_nodes, pairs, values)


def _checked_degrees(n_nodes: int, degrees: ArrayLike) -> IntArray:
    bounds = np.asarray(degrees)
    check_shape("degrees", bounds, (n_nodes,))
    if bounds.size and not np.issubdtype(bounds.dtype, np.integer):
        raise InvalidProblemError(f"degrees: expected integers, received {bounds.dtype}.")
    if bounds.size and bounds.min() < 0:
        node = int(bounds.argmin())
        raise InvalidProblemError(f"degrees: node {node} has {bounds[node]}, expected 0 or more.")
    return bounds.astype(np.int64)


def _solve_perfect(graph: _Graph) -> tuple[IntArray, float]:
    solution = _solve(graph)
    return np.sort(solution.chosen), solution.bound


def _solve_any(graph: _Graph) -> tuple[IntArray, float]:
    """Edges without gain never help; on two joined copies every matching becomes perfect."""
    useful = np.flatnonzero(graph.weights > 0)
    gadget = doubled_graph(graph.n_nodes, graph.edges[useful], graph.weights[useful])
    return _solve_gadget(gadget, useful)


def _solve_b(graph: _Graph, degrees: IntArray, *, exact: bool) -> tuple[IntArray, float]:
    useful = np.arange(len(graph.weights)) if exact else np.flatnonzero(graph.weights > 0)
    if exact:
        _check_enough_edges(graph, degrees)
    gadget = b_matching_gadget(
        graph.n_nodes, graph.edges[useful], graph.weights[useful], degrees, exact=exact
    )
    try:
        return _solve_gadget(gadget, useful)
    except InfeasibleError as error:  # which speaks of the gadget's nodes
        raise InfeasibleError("the degrees cannot be met by these edges.") from error


def _check_enough_edges(graph: _Graph, degrees: IntArray) -> None:
    """Refuse what is plainly impossible before a gadget of that size is made."""
    present = np.bincount(graph.edges.ravel(), minlength=graph.n_nodes)
    short = np.flatnonzero(degrees > present)
    if len(short):
        k = int(short[0])
        raise InfeasibleError(
            f"the degrees cannot be met: {degrees[k]} edges are asked for at a node that has "
            f"{present[k]}."
        )


def _solve_gadget(gadget: Gadget, useful: IntArray) -> tuple[IntArray, float]:
    solution = _solve(_Graph(gadget.n_nodes, gadget.edges, gadget.weights))
    origin = gadget.edge_origin[solution.chosen]
    chosen = np.sort(useful[origin[origin >= 0]])
    return chosen, solution.bound / gadget.copies


def _solve(graph: _Graph) -> _Solution:
    """Solve a perfect matching and check its certificate."""
    n = graph.n_nodes
    if n % 2:
        raise InfeasibleError(f"{n} nodes is an odd number: no perfect matching exists.")
    unit = math.frexp(float(np.abs(graph.weights).max(initial=0.0)))[1]
    weights = np.ldexp(graph.weights, -unit)
    best = _heaviest_parallel(graph)
    heads, tails = graph.edges[best].T
    exponent = scale_exponent(n, 1.0)
    cost = round_costs(weights[best], exponent)
    start, neighbour, edge = compressed_rows(n, heads, tails)
    dual = np.zeros(n, dtype=np.int64)
    mate = np.full(n, -1, dtype=np.int64)
    found, blossom_dual, parent, outermost, label = solve_perfect_matching(
        start, neighbour, cost[edge], dual, mate
    )
    if not found:
        _raise_infeasible(label, outermost)
    check_partners(mate)
    chosen = np.flatnonzero(mate[heads] == tails)
    duals = IntegerDuals(dual, blossom_dual, parent)
    check_edges(duals, heads, tails, cost)
    check_values(duals, sum(cost[chosen].tolist()))
    is_exact = bool((np.ldexp(-cost.astype(np.float64), -exponent) == weights[best]).all())
    bound = math.ldexp(weight_bound(duals, exponent, roundings=0 if is_exact else 1), unit)
    return _Solution(best[chosen], bound)


def _heaviest_parallel(graph: _Graph) -> IntArray:
    """Indices of the edges that are the heaviest (then the first) between two different nodes."""
    low, high = graph.edges.min(axis=1), graph.edges.max(axis=1)
    order = np.lexsort((np.arange(len(low)), -graph.weights, high, low))
    low, high = low[order], high[order]
    new = low < high  # no loops
    new[1:] &= (low[1:] != low[:-1]) | (high[1:] != high[:-1])
    return np.sort(order[new])


def _raise_infeasible(label: IntArray, outermost: IntArray) -> None:
    inner = tuple(np.flatnonzero(label == 2).tolist())
    n_outer = len(np.unique(outermost[label == 1]))
    if not inner:
        raise InfeasibleError(
            f"no perfect matching exists: {_groups(n_outer)} joined to nobody else."
        )
    nodes = "1 of the nodes" if len(inner) == 1 else f"{len(inner)} of the nodes"
    raise InfeasibleError(
        f"no perfect matching exists: without {nodes} there would be at least "
        f"{_groups(n_outer)} joined to nobody else.",
        inner,
    )


def _groups(count: int) -> str:
    if count == 1:
        return "one group of odd size that is"
    return f"{count} groups of odd size that are"
