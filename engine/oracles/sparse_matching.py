"""Maximum-weight matchings of general sparse graphs: perfect, any, and b-matchings."""

import math
import operator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from engine.core.arguments import FloatArray, IntArray, as_finite_array, check_shape, read_only
from engine.core.errors import InfeasibleError, InvalidProblemError
from engine.core.exact_numbers import (
    ExactNumbers,
    WholeArray,
    as_exact_numbers,
    as_number_array,
    largest_of,
    shifted,
)
from engine.core.options import check_choice, check_flag, check_whole
from engine.graphs.edge_list import read_exact_graph
from engine.kernels.work_time import wall_seconds
from engine.oracles.exact_matching import best_perfect_matching
from engine.oracles.matching import LARGEST_WEIGHT, Matching
from engine.oracles.matching_certificate import round_costs, scale_exponent
from engine.oracles.matching_gadgets import Gadget, b_matching_gadget, doubled_graph
from engine.oracles.protocol import ExtremePoint, make_indicator

MatchingKind = Literal["perfect", "any", "b"]
GraphKind = Literal["perfect", "any"]


@dataclass(frozen=True, slots=True)
class GraphMatchingOracle:
    """Exact oracle for matchings of one graph, whose points have one entry an edge.

    Parameters
    ----------
    n_nodes : int
    edges : ndarray, shape (e, 2)
    kind : "perfect" or "any"

    Notes
    -----
    A call is one solve: scores are rounded to 64 bits, and the bound allows for that.

    Examples
    --------
    >>> oracle = GraphMatchingOracle(3, np.array([[0, 1], [1, 2]]), "any")
    >>> oracle.compute_extreme_point(np.array([1.0, 2.0])).vertex.places.tolist()
    [1]
    """

    n_nodes: int
    edges: IntArray
    kind: GraphKind = "perfect"

    def __post_init__(self) -> None:
        """Raise InvalidProblemError for an option out of range."""
        check_whole("n_nodes", self.n_nodes)
        check_choice("kind", self.kind, get_args(GraphKind))

    def compute_extreme_point(self, scores: FloatArray) -> ExtremePoint:
        """Return the best matching under ``scores``, shape (e,), finite."""
        scores = as_finite_array("weights", scores, shape=(len(self.edges),))
        extent = float(np.abs(scores).max(initial=0.0))
        _check_magnitude(extent)
        scale = math.frexp(extent)[1]
        exponent = scale_exponent(2 * self.n_nodes, 1.0)  # kind "any" joins two copies of the graph
        counts = round_costs(np.ldexp(scores, -scale), exponent) // -2
        graph = _Graph(self.n_nodes, self.edges, counts)
        chosen = _solve_any(graph) if self.kind == "any" else _solve_perfect(graph)
        weight = math.fsum(scores[chosen])
        bound = weight
        if (np.ldexp(counts.astype(np.float64), scale + 1 - exponent) != scores).any():
            # A score was moved by half a unit at most, and a matching has at most n / 2 of them.
            halves = 2 * sum(counts[chosen].tolist()) + self.n_nodes // 2
            bound = float(np.nextafter(math.ldexp(halves, scale - exponent), np.inf))
        return ExtremePoint(make_indicator(chosen), weight, max(weight, bound))


def max_weight_matching(
    n_nodes: Any,
    edges: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    kind: MatchingKind = "perfect",
    degrees: ArrayLike | None = None,
    *,
    exact_degrees: bool = False,
) -> Matching:
    """Return a maximum-weight matching of a graph, optimal in the exact given weights.

    Parameters
    ----------
    n_nodes : int
        Number of nodes. Alternatively, instead of this and the next two arguments, a graph that
        `engine.graphs.edge_list.read_graph` reads: a NetworkX graph, a SciPy or NumPy matrix, or
        a pandas table.
    edges : array_like, shape (m, 2), int
        Node indices from 0. The heaviest parallel edge counts for perfect and any matchings;
        b-matchings may use each parallel edge once. Loops are in no matching and are ignored; in
        a b-matching, where they could count once or twice, they are rejected.
    weights : array_like, shape (m,)
        Floats, integers of any size, fractions or decimals, negative ones included; -inf forbids an
        edge.
    kind : "perfect", "any" or "b"
        Every node matched; any set of disjoint edges; at most ``degrees[i]`` edges at node i.
    degrees : array_like, shape (n_nodes,), int, optional
        Degree bounds of a b-matching, from 0.
    exact_degrees : bool
        Require exactly ``degrees[i]`` edges of a b-matching at every node.

    Returns
    -------
    Matching
        ``edge_indices`` are the chosen edges. No weight was rounded, so no matching has more:
        ``upper_bound`` equals ``weight``, which is the exact sum as the nearest float64.

    Raises
    ------
    InvalidProblemError
        If the graph is malformed, a weight is no real number, or its size is above 1e300.
    InfeasibleError
        If the requested perfect matching or exact degrees do not exist. For perfect matchings
        ``deficient_set`` lists nodes whose removal leaves more odd components than it has
        members.

    Notes
    -----
    O(n m log n) in the worst case, once for weights of up to 58 - log2(n) bits, and again on the
    few edges that remain for every 20 bits or more beyond. Any matching is solved on two joined
    copies of the graph; a b-matching on the gadget of Shiloach (1981) with O(sum over edges of
    b_i + b_j) edges.

    References
    ----------
    Edmonds (1965); Berge (1958) and Tutte (1947) for the deficient set; Gleixner, Steffy and Wolter
    (2016), iterative refinement for linear programming.

    Examples
    --------
    >>> max_weight_matching(4, [(0, 1), (1, 2), (2, 3)], [2.0, 5.0, 2.0], kind="any").weight
    5.0
    """
    check_choice("kind", kind, get_args(MatchingKind))
    check_flag("exact_degrees", exact_degrees)
    started = wall_seconds()
    if kind not in get_args(MatchingKind):
        raise InvalidProblemError(f"kind: expected perfect, any or b, received {kind!r}.")
    if edges is None or weights is None:
        found = read_exact_graph(n_nodes)
        n_nodes, pairs, numbers = len(found.nodes), found.edges, found.numbers
        allowed = np.arange(len(pairs))
    else:
        n_nodes = _as_count(n_nodes)
        allowed, numbers = _checked_weights(weights)
        pairs = _checked_edges(n_nodes, edges, len(np.atleast_1d(weights)))[allowed]
    _check_magnitude(largest_of(numbers.counts) * numbers.unit)
    if kind == "b":
        _check_loops(pairs, allowed)
    graph = _Graph(n_nodes, pairs, numbers.counts)
    if kind == "b":
        if degrees is None:
            raise InvalidProblemError("degrees: a b-matching needs a degree bound for every node.")
        chosen = _solve_b(graph, _checked_degrees(n_nodes, degrees), exact=exact_degrees)
    elif kind == "any":
        chosen = _solve_any(graph)
    else:
        chosen = _solve_perfect(graph)
    partner = np.full(n_nodes, -1, dtype=np.int64)
    heads, tails = graph.edges[chosen[::-1]].T
    partner[heads], partner[tails] = tails, heads
    weight = float(numbers.sum_of(chosen))
    return Matching(
        partner=read_only(partner),
        weight=weight,
        upper_bound=weight,
        seconds=wall_seconds() - started,
        n_matched=len(chosen),
        edge_indices=read_only(allowed[chosen]),
    )


def match_any(n_nodes: int, edges: IntArray, counts: WholeArray) -> IntArray:
    """Return the edge indices of a matching with the largest sum of ``counts``."""
    return _solve_any(_Graph(n_nodes, edges, counts))


def with_bonus(n_nodes: int, counts: WholeArray) -> WholeArray:
    """Return weights whose best matching is the best matching with the most edges.

    The bonus of an edge outweighs any loss that it can cause among the other edges.
    """
    return shifted(counts, (n_nodes + 1) * largest_of(counts) + 1)


@dataclass(frozen=True, slots=True)
class _Graph:
    """Checked graph: edges (m, 2) and their weights (m,), whole numbers."""

    n_nodes: int
    edges: IntArray
    counts: WholeArray


def _checked_weights(weights: ArrayLike) -> tuple[IntArray, ExactNumbers]:
    """Return the indices of all weights but -inf, and those weights without rounding."""
    values = as_number_array("weights", weights)
    allowed = np.flatnonzero(values != -np.inf)
    return allowed, as_exact_numbers("weights", values[allowed])


def _as_count(n_nodes: Any) -> int:
    try:
        count = operator.index(n_nodes)
    except TypeError as error:
        raise InvalidProblemError(f"n_nodes: expected an integer, received {n_nodes}.") from error
    if count < 0:
        raise InvalidProblemError(f"n_nodes: expected 0 or more, received {count}.")
    return count


def _check_magnitude(extent: float | Fraction) -> None:
    if extent > LARGEST_WEIGHT:
        raise InvalidProblemError(f"weights: expected magnitudes up to {LARGEST_WEIGHT:.0e}.")


def _checked_edges(n_nodes: int, edges: ArrayLike, n_edges: int) -> IntArray:
    """Return the edges, shape (n_edges, 2), int64."""
    try:
        pairs = np.asarray(edges)
    except ValueError as error:
        raise InvalidProblemError("edges: expected pairs of nodes, all of two.") from error
    if pairs.size == 0:
        pairs = np.empty((0, 2), dtype=np.int64)
    check_shape("edges", pairs, (None, 2))
    if len(pairs) != n_edges:
        raise InvalidProblemError(
            f"weights: expected shape ({len(pairs)},), one weight an edge, received {n_edges}."
        )
    if not np.issubdtype(pairs.dtype, np.integer):
        raise InvalidProblemError(f"edges: expected integers, received {pairs.dtype}.")
    outside = (pairs < 0) | (pairs >= n_nodes)
    if outside.any():
        k = int(np.flatnonzero(outside.any(axis=1))[0])
        raise InvalidProblemError(
            f"edges: edge {k} is {tuple(pairs[k].tolist())}, expected nodes 0..{n_nodes - 1}."
        )
    return pairs.astype(np.int64)


def _check_loops(pairs: IntArray, places: IntArray) -> None:
    """Reject loops; ``places`` are the edges' indices in the caller's list."""
    loops = np.flatnonzero(pairs[:, 0] == pairs[:, 1])
    if len(loops):
        k = int(loops[0])
        raise InvalidProblemError(f"edges: edge {places[k]} joins node {pairs[k, 0]} to itself.")


def _checked_degrees(n_nodes: int, degrees: ArrayLike) -> IntArray:
    bounds = np.asarray(degrees)
    check_shape("degrees", bounds, (n_nodes,))
    if bounds.size and not np.issubdtype(bounds.dtype, np.integer):
        raise InvalidProblemError(f"degrees: expected integers, received {bounds.dtype}.")
    if bounds.size and bounds.min() < 0:
        node = int(bounds.argmin())
        raise InvalidProblemError(f"degrees: node {node} has {bounds[node]}, expected 0 or more.")
    return bounds.astype(np.int64)


def _solve_perfect(graph: _Graph) -> IntArray:
    return best_perfect_matching(graph.n_nodes, graph.edges, graph.counts)


def _solve_any(graph: _Graph) -> IntArray:
    """Return a best matching of edges that gain, as a perfect one of two joined copies."""
    useful = np.flatnonzero(graph.counts > 0)
    gadget = doubled_graph(graph.n_nodes, graph.edges[useful], graph.counts[useful])
    return _solve_gadget(gadget, useful)


def _solve_b(graph: _Graph, degrees: IntArray, *, exact: bool) -> IntArray:
    useful = np.arange(len(graph.counts)) if exact else np.flatnonzero(graph.counts > 0)
    if exact:
        _check_enough_edges(graph, degrees)
    gadget = b_matching_gadget(
        graph.n_nodes, graph.edges[useful], graph.counts[useful], degrees, exact=exact
    )
    try:
        return _solve_gadget(gadget, useful)
    except InfeasibleError as error:  # it names the gadget's nodes
        raise InfeasibleError("the degrees cannot be met by these edges.") from error


def _check_enough_edges(graph: _Graph, degrees: IntArray) -> None:
    """Reject degrees that exceed the nodes' edges before building a large gadget."""
    present = np.bincount(graph.edges.ravel(), minlength=graph.n_nodes)
    short = np.flatnonzero(degrees > present)
    if len(short):
        k = int(short[0])
        raise InfeasibleError(
            f"the degrees cannot be met: {degrees[k]} edges are asked for at a node that has "
            f"{present[k]}."
        )


def _solve_gadget(gadget: Gadget, useful: IntArray) -> IntArray:
    origin = gadget.edge_origin[best_perfect_matching(gadget.n_nodes, gadget.edges, gadget.weights)]
    return np.sort(useful[origin[origin >= 0]])
