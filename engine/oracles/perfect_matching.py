"""Maximum-weight perfect matching on complete graphs."""

import math
from threading import get_ident

import numpy as np

from engine.core.arguments import FloatArray, IntArray, read_only
from engine.core.errors import CertificateError, InfeasibleError
from engine.kernels.blossom import solve_perfect_matching
from engine.kernels.matching_edges import cap_additions, symmetric_rows
from engine.kernels.matching_rows import price_rows, reach_rows, select_rows, sweep_rows
from engine.kernels.work_time import wall_seconds
from engine.oracles.matching import Matching
from engine.oracles.matching_certificate import (
    IntegerDuals,
    check_partners,
    check_values,
    weight_bound,
)
from engine.oracles.one_hot_scores import OneHotScores
from engine.oracles.protocol import ExtremePoint, make_indicator
from engine.oracles.score_rows import DenseRows, OneHotRows, for_all_rows, rows_of

COLD_SWEEPS = 5
CANDIDATES = 8  # first edges per node: those of smallest reduced cost after the sweeps
ADDED_PER_NODE = 4  # violated edges added per node and round: the first few repair most others
FAR = 8.0  # optimal prices are rarely larger than the largest score
EXACT_BELOW = 2.0**51  # sums of two such integers, halves included, are exact in float64
ROUNDING_SLACK = 8 * float(np.finfo(np.float64).eps)


class CompleteGraphMatcher:
    """Exact oracle for perfect matchings on complete graphs, fast on slowly changing scores.

    Sweeps bring the duals near their optimum, the pairs with the smallest reduced costs form a
    sparse graph, a blossom algorithm solves it exactly in integers, and every pair is priced
    against its duals; violated pairs join the graph until no pair is violated. The final duals
    start the next call.

    Notes
    -----
    Each pass over the pairs costs O(n^2); a call makes about eight of them when cold and three when
    warm. The sparse solves are O(n k log n) in practice. Among optimal matchings any may be
    returned, always the same for the same sequence of calls. Not safe for concurrent calls.

    Examples
    --------
    >>> import numpy as np
    >>> scores = np.array([[0, 1, 5, 2], [1, 0, 3, 4], [5, 3, 0, 1], [2, 4, 1, 0.0]])
    >>> CompleteGraphMatcher().solve(scores).weight
    9.0
    """

    def __init__(self) -> None:
        self._price: FloatArray | None = None
        self._room: FloatArray | None = None

    def solve(self, scores: FloatArray | OneHotScores) -> Matching:
        """Return a maximum-weight perfect matching with its certificate.

        Parameters
        ----------
        scores : ndarray, shape (n, n), float64, symmetric, or OneHotScores
            The diagonal is ignored; -inf forbids a pair.

        Returns
        -------
        Matching
            ``upper_bound - weight`` is at rounding level.

        Raises
        ------
        InvalidProblemError
            If scores are NaN, +inf or not symmetric.
        InfeasibleError
            If n is odd or the allowed pairs contain no perfect matching; ``deficient_set`` then
            lists nodes whose removal leaves more odd components than it has members.
        CertificateError
            If the result fails its own proof of optimality: a bug.

        References
        ----------
        Edmonds (1965); Kolmogorov (2009), Blossom V; Applegate and Cook (1993), pricing.
        """
        started = wall_seconds()
        rows = rows_of(scores, self._room)
        if isinstance(rows, OneHotRows):
            self._room = rows.dense  # overwritten in the next call, instead of new memory
        if rows.n_nodes == 0:
            return Matching(read_only(np.empty(0, dtype=np.int64)), 0.0, 0.0, 0.0, 0)
        partner, duals = self.solve_rounded(rows)
        nodes = np.arange(rows.n_nodes)
        weight = math.fsum(rows.scores_of(nodes, partner)) / 2
        bound = weight_bound(duals, rows.exponent, roundings=rows.roundings)
        bound = max(weight, math.ldexp(bound, rows.unit))
        seconds = wall_seconds() - started
        return Matching(read_only(partner), weight, bound, seconds, rows.n_nodes // 2)

    def solve_rounded(self, rows: DenseRows | OneHotRows) -> tuple[IntArray, IntegerDuals]:
        """Return partners and checked duals that are optimal for the costs of ``rows``."""
        n = rows.n_nodes
        if n % 2:
            raise InfeasibleError(f"an odd number of nodes ({n}): no perfect matching exists.")
        partner = np.full(n, -1, dtype=np.int64)
        duals = self._solve_by_pricing(rows, partner)
        check_partners(partner)
        cost = sum(rows.costs_of(np.arange(n), partner).tolist()) // 2
        check_values(duals, cost)
        self._price = -(duals.dual / 2.0**rows.exponent)
        return partner, duals

    def compute_extreme_point(self, scores: FloatArray | OneHotScores) -> ExtremePoint:
        """Return the matching as an extreme point; points are symmetric, (n, n)."""
        matching = self.solve(scores)
        n = len(matching.partner)
        places = np.arange(n, dtype=np.int64) * n + matching.partner
        return ExtremePoint(make_indicator(places, 0.5), matching.weight, matching.upper_bound)

    def _solve_by_pricing(self, rows: DenseRows | OneHotRows, partner: IntArray) -> IntegerDuals:
        """Solve on candidate edges and add violated edges until no edge is violated."""
        n = rows.n_nodes
        price = self._starting_price(rows)
        chosen = np.empty((n, min(CANDIDATES, max(n - 1, 1))), dtype=np.int64)
        gains = np.empty(chosen.shape)
        for_all_rows(rows, lambda block, first: select_rows(block, first, price, chosen, gains))
        heads, tails = _with_fallback(rows, *_edges_of(chosen))
        dual = np.floor(np.ldexp(-price, rows.exponent)).astype(np.int64)
        while True:
            start, owner, neighbour = symmetric_rows(n, heads, tails)
            cost = rows.costs_of(owner, neighbour)
            found, blossom_dual, parent, outermost, label = solve_perfect_matching(
                start, neighbour, cost, dual, partner
            )
            if found:
                duals = IntegerDuals(dual, blossom_dual, parent)
                more = _violated_edges(rows, duals)
            else:
                more = _growing_edges(rows, dual, label, outermost)
            if more is None:
                return duals
            size = len(neighbour)
            heads, tails = np.append(heads, more[0]), np.append(tails, more[1])
            if len(symmetric_rows(n, heads, tails)[2]) == size:
                raise CertificateError("edges that are in the sparse graph violate its duals.")

    def _starting_price(self, rows: DenseRows | OneHotRows) -> FloatArray:
        """Return prices near their optimum: those of the last call, or a few sweeps from zero."""
        price = self._price
        if price is None or len(price) != rows.n_nodes or _is_far(price, rows.extent):
            price = np.zeros(rows.n_nodes)
            for _ in range(COLD_SWEEPS):
                price = _sweep(rows, price)
        return price


def _is_far(price: FloatArray, extent: float) -> bool:
    """Return True if prices fit scores of another size, and would overflow as integers."""
    return bool(np.abs(price).max(initial=0.0) > FAR * extent)


def _sweep(rows: DenseRows | OneHotRows, price: FloatArray) -> FloatArray:
    """Halve each price's distance to max_j (score_ij - price_j); return the feasible new prices."""
    reaches: dict[int, FloatArray] = {}  # by thread: one for each block would be n^2 / 16 numbers

    def sweep(block: FloatArray, first: int) -> None:
        if (reach := reaches.get(get_ident())) is None:
            reach = reaches[get_ident()] = np.full(rows.n_nodes, -np.inf)
        sweep_rows(block, first, price, reach)

    for_all_rows(rows, sweep)
    reach = np.max(list(reaches.values()), axis=0)
    return np.where(reach > -np.inf, (price + reach) / 2, price)


def _edges_of(chosen: IntArray) -> tuple[IntArray, IntArray]:
    heads, slots = np.nonzero(chosen >= 0)
    return heads.astype(np.int64), chosen[heads, slots]


def _with_fallback(
    rows: DenseRows | OneHotRows, heads: IntArray, tails: IntArray
) -> tuple[IntArray, IntArray]:
    """Add any perfect matching of allowed pairs, so that the first solve succeeds.

    If many nodes are identical, their best partners are the same few nodes, and the candidates
    alone would have no perfect matching.
    """
    half = rows.n_nodes // 2
    near = np.arange(half)
    allowed = near[rows.scores_of(near, near + half) > -np.inf]
    return np.append(heads, allowed), np.append(tails, allowed + half)


def _violated_edges(
    rows: DenseRows | OneHotRows, duals: IntegerDuals
) -> tuple[IntArray, IntArray] | None:
    """Return the worst violated pairs, few per node, or None if the duals are feasible."""
    n = rows.n_nodes
    chosen = np.empty((n, ADDED_PER_NODE), dtype=np.int64)
    slacks = np.empty((n, ADDED_PER_NODE), dtype=np.int64)
    scale = 2.0**rows.exponent
    largest = scale * rows.extent + np.abs(duals.dual).max(initial=0)
    tolerance = 0.0 if largest < EXACT_BELOW else ROUNDING_SLACK * largest
    violated: list[int] = []

    def price(block: FloatArray, first: int) -> None:
        violated.append(
            price_rows(block, first, scale, tolerance, duals.dual, duals.family, chosen, slacks)
        )

    for_all_rows(rows, price)
    if not any(violated):
        return None
    heads, tails = _edges_of(chosen)
    order = np.argsort(slacks[chosen >= 0], kind="stable")
    taken = cap_additions(n, order, heads, tails, ADDED_PER_NODE)
    return heads[taken], tails[taken]


def _growing_edges(
    rows: DenseRows | OneHotRows, dual: IntArray, label: IntArray, outermost: IntArray
) -> tuple[IntArray, IntArray]:
    """Return edges by which a stuck tree could grow; without any no perfect matching exists."""
    n = rows.n_nodes
    price = -np.ldexp(dual.astype(np.float64), -rows.exponent)
    chosen = np.empty((n, ADDED_PER_NODE), dtype=np.int64)
    gains = np.empty((n, ADDED_PER_NODE))
    for_all_rows(
        rows,
        lambda block, first: reach_rows(block, first, price, label, outermost, chosen, gains),
    )
    heads, tails = _edges_of(chosen)
    if len(heads) == 0:
        inner = tuple(np.flatnonzero(label == 2).tolist())
        n_outer = len(np.unique(outermost[label == 1]))
        raise InfeasibleError(
            f"no perfect matching exists: without {_count(len(inner), 'node')} the allowed pairs "
            f"leave {n_outer} groups of odd size that are joined to nobody else.",
            inner,
        )
    return heads, tails


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
