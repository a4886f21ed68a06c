"""Bipartite matching: linear assignment by SciPy, proved by duals that are computed here."""

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching

from engine.core.arguments import MAX_WHOLE, FloatArray, IntArray, read_only
from engine.core.errors import CertificateError, InfeasibleError
from engine.core.exact_numbers import as_exact_numbers
from engine.kernels.work_time import wall_seconds
from engine.oracles.exact_matching import best_perfect_matching
from engine.oracles.matching import as_bipartite_scores
from engine.oracles.matching_gadgets import doubled_graph
from engine.oracles.protocol import ExtremePoint, make_indicator

ROUNDING = 64 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True, slots=True)
class Assignment:
    """Maximum-weight assignment of rows to columns with its certificate.

    Parameters
    ----------
    columns : ndarray, shape (n_rows,), int64
        The column of each row, -1 for unmatched rows if there are more rows than columns.
    weight, upper_bound : float
        Sum of the chosen scores, and a bound on the maximum: equal if the result is exact.
    seconds : float
    row_price, column_price : ndarray, shape (n_rows,), (n_columns,)
        Duals: row_price_i + column_price_j >= score_ij up to rounding, equal on chosen pairs; the
        longer side's prices are at least 0, and 0 where unmatched.

    Examples
    --------
    >>> found = assign(np.array([[3.0, 1.0], [2.0, 2.5]]))
    >>> found.weight, found.gap
    (5.5, 0.0)
    """

    columns: IntArray
    weight: float
    upper_bound: float
    seconds: float
    row_price: FloatArray
    column_price: FloatArray

    @property
    def gap(self) -> float:
        """Certified bound on the suboptimality, never negative."""
        return max(0.0, self.upper_bound - self.weight)


class AssignmentOracle:
    """Exact oracle for perfect bipartite matchings; points are (n_rows, n_columns).

    Examples
    --------
    >>> point = AssignmentOracle().compute_extreme_point(np.array([[3.0, 1.0], [2.0, 2.5]]))
    >>> point.value, point.vertex.places.tolist()
    (5.5, [0, 3])
    """

    def compute_extreme_point(self, scores: FloatArray) -> ExtremePoint:
        """Return the best assignment under ``scores``, shape (n_rows, n_columns), up to rounding.

        ``upper_bound`` includes the rounding error.
        """
        started = wall_seconds()
        scores = as_bipartite_scores(scores)
        tall = scores.shape[0] > scores.shape[1]
        near = _solve_near(scores.T if tall else scores)
        assignment = _as_assignment(near, tall=tall, started=started)
        rows = np.flatnonzero(assignment.columns >= 0)
        vertex = make_indicator(rows * np.shape(scores)[1] + assignment.columns[rows])
        return ExtremePoint(vertex, assignment.weight, assignment.upper_bound)


def assign(scores: FloatArray) -> Assignment:
    """Return a maximum-weight assignment that matches every node of the shorter side.

    It is optimal in the exact scores: if float64 sums cannot prove that, the pairs that an optimum
    may use are solved without rounding.

    Parameters
    ----------
    scores : ndarray, shape (n_rows, n_columns), float64
        -inf forbids a pair.

    Returns
    -------
    Assignment

    Raises
    ------
    InvalidProblemError
        If scores contain NaN, +inf or magnitudes whose sums would overflow float64.
    InfeasibleError
        If forbidden pairs leave no assignment; ``deficient_set`` then lists nodes of the shorter
        side that together have fewer allowed partners than members (Hall).
    CertificateError
        If the duals do not prove the result.

    Notes
    -----
    O(n^3) worst case for the assignment, O(n^2) a sweep for the duals, a few sweeps in practice.

    References
    ----------
    Crouse (2016), the shortest augmenting paths behind SciPy's linear_sum_assignment.

    Examples
    --------
    >>> assign(np.array([[3.0, 1.0], [2.0, 2.5]])).columns.tolist()
    [0, 1]
    """
    started = wall_seconds()
    scores = as_bipartite_scores(scores)
    tall = scores.shape[0] > scores.shape[1]
    near = _solve_near(scores.T if tall else scores)
    if not near.is_exact:
        near = _without_rounding(near)
    return _as_assignment(near, tall=tall, started=started)


def assignment_prices(scores: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return dual prices of rows and columns that prove a best assignment up to rounding.

    Parameters
    ----------
    scores : ndarray, shape (n, n), float64
        -inf forbids a pair.

    Returns
    -------
    row_price, column_price : ndarray, shape (n,), float64
        row_price_i + column_price_j >= scores_ij, with equality for the assigned pairs.

    Raises
    ------
    InvalidProblemError, InfeasibleError, CertificateError
        As `assign`.
    """
    near = _solve_near(as_bipartite_scores(scores))
    return near.row_price, near.column_price


@dataclass(frozen=True, slots=True)
class _Solution:
    """Assignment of the rows of ``scores``, at most as many as its columns, with its prices."""

    scores: FloatArray
    chosen: IntArray
    row_price: FloatArray
    column_price: FloatArray
    bound: float

    @property
    def weight(self) -> float:
        """Sum of the chosen scores, as the nearest float64."""
        return math.fsum(self.scores[np.arange(len(self.chosen)), self.chosen])

    @property
    def magnitude(self) -> float:
        """Largest size among scores and prices."""
        prices = np.abs(np.concatenate((self.row_price, self.column_price)))
        return max(_magnitude(self.scores), float(prices.max(initial=0.0)))

    @property
    def is_exact(self) -> bool:
        """True if the bound equals the weight, and no sum behind them could be rounded."""
        if self.bound != self.weight:
            return False
        finite = self.scores[self.scores > -np.inf]
        is_whole = bool((finite == np.floor(finite)).all())
        return is_whole and len(self.scores) * self.magnitude < MAX_WHOLE


def _solve_near(scores: FloatArray) -> _Solution:
    """Solve in float64; the prices prove the result up to rounding."""
    chosen = _solve(scores)
    row_price, column_price = _prices(scores, chosen)
    bound = _bound(scores, row_price, column_price)
    found = _Solution(scores, chosen, row_price, column_price, bound)
    if not bound - found.weight <= ROUNDING * _magnitude(scores) * (len(chosen) + 1) ** 2:
        raise CertificateError(f"the assignment weighs {found.weight} but its dual proves {bound}.")
    return found


def _without_rounding(near: _Solution) -> _Solution:
    """Return the best assignment by an exact solution on the pairs that it may use.

    Every pair of an optimum has a reduced cost of at most the gap, and the price of a column that
    an optimum leaves unmatched is at most the gap.
    """
    scores, size = near.scores, ROUNDING * near.magnitude * sum(near.scores.shape)
    gap = max(near.bound - near.weight, 0.0) + size
    rows, columns = np.nonzero(
        scores >= near.row_price[:, np.newaxis] + near.column_price - (gap + size)
    )
    numbers = as_exact_numbers("scores", scores[rows, columns])
    n_rows, n_columns = scores.shape
    edges = np.column_stack((rows, n_rows + columns))
    if n_rows == n_columns:
        found = best_perfect_matching(2 * n_rows, edges, numbers.counts)
    else:
        spare = np.flatnonzero(near.column_price <= gap)
        gadget = doubled_graph(n_rows + n_columns, edges, numbers.counts, n_rows + spare)
        found = best_perfect_matching(gadget.n_nodes, gadget.edges, gadget.weights)
        found = found[found < len(edges)]
    chosen = np.empty(n_rows, dtype=np.int64)
    chosen[rows[found]] = columns[found]
    better = replace(near, chosen=chosen)
    return replace(better, bound=better.weight)


def _as_assignment(found: _Solution, *, tall: bool, started: float) -> Assignment:
    """Return the result in the caller's orientation; ``tall`` if rows are columns here."""
    n_rows, n_columns = found.scores.shape
    row_price, column_price = found.row_price, found.column_price
    columns = found.chosen
    if tall:
        columns = np.full(n_columns, -1, dtype=np.int64)
        columns[found.chosen] = np.arange(n_rows)
        row_price, column_price = column_price, row_price
    weight = found.weight
    return Assignment(
        columns=read_only(columns),
        weight=weight,
        upper_bound=max(weight, found.bound),
        seconds=wall_seconds() - started,
        row_price=read_only(row_price),
        column_price=read_only(column_price),
    )


def _solve(scores: FloatArray) -> IntArray:
    """Return the column of each row; there must be at least as many columns as rows."""
    try:
        rows, columns = linear_sum_assignment(scores, maximize=True)
    except ValueError as error:
        raise InfeasibleError(*_hall_violator(scores)) from error
    chosen = np.empty(scores.shape[0], dtype=np.int64)
    chosen[rows] = columns
    return chosen


def _hall_violator(scores: FloatArray) -> tuple[str, tuple[int, ...]]:
    """Return rows that are more than their allowed columns, found from a maximum matching."""
    allowed = scores > -np.inf
    graph = csr_array(allowed.astype(np.int8))
    column_of = maximum_bipartite_matching(graph, perm_type="column")
    row_of = np.full(scores.shape[1], -1)
    matched = np.flatnonzero(column_of >= 0)
    row_of[column_of[matched]] = matched
    todo = [int(np.flatnonzero(column_of < 0)[0])]
    reached = set(todo)
    seen = np.zeros(scores.shape[1], dtype=bool)
    while todo:
        new = np.flatnonzero(allowed[todo.pop()] & ~seen)
        seen[new] = True
        fresh = {int(row_of[column]) for column in new} - reached
        reached |= fresh
        todo.extend(fresh)
    message = (
        f"no assignment exists: {len(reached)} of the rows or columns are together allowed only "
        f"{int(seen.sum())} partners."
    )
    return message, tuple(sorted(reached))


def _prices(scores: FloatArray, chosen: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return prices that support ``chosen``: longest exchange paths (Bellman and Ford).

    column_price_j is the largest gain of a chain of exchanges that begins by taking column j;
    prices start at 0. Since the assignment is optimal, no cycle gains.
    """
    n_rows = scores.shape[0]
    own = scores[np.arange(n_rows), chosen]
    row_price = own.copy()
    column_price = np.zeros(scores.shape[1])
    tolerance = ROUNDING * _magnitude(scores)
    changed = np.arange(n_rows)
    for _ in range(n_rows + 1):
        # Only rows whose price fell in the last round can raise a column further.
        gains = scores[changed] - row_price[changed, np.newaxis]
        wanted = gains.max(axis=0, initial=0.0)
        raised = wanted > column_price + tolerance
        if not raised.any():
            return row_price, column_price
        column_price[raised] = wanted[raised]
        changed = np.flatnonzero(raised[chosen])
        row_price[changed] = own[changed] - column_price[chosen[changed]]
    raise CertificateError("the assignment can be improved by an exchange.")


def _bound(scores: FloatArray, row_price: FloatArray, column_price: FloatArray) -> float:
    """Return the dual objective after raising row prices by the infeasibility due to rounding."""
    if scores.size == 0:
        return 0.0
    excess = np.maximum((scores - column_price).max(axis=1) - row_price, 0.0)
    return math.fsum(np.concatenate((row_price, excess, column_price)))


def _magnitude(scores: FloatArray) -> float:
    finite = np.abs(scores[scores > -np.inf])
    return float(finite.max(initial=0.0)) or 1.0
