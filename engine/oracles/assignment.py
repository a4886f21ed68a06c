"""Bipartite matching: linear assignment by SciPy, with duals of our own as its proof."""

import time
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching

from engine.core.arguments import FloatArray, IntArray, read_only
from engine.core.errors import CertificateError, InfeasibleError
from engine.oracles.matching import as_bipartite_scores
from engine.oracles.protocol import ExtremePoint, make_indicator

ROUNDING = 64 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True, slots=True)
class Assignment:
    """A maximum-weight assignment of rows to columns with its certificate.

    Parameters
    ----------
    columns : ndarray, shape (n_rows,), int64
        The column of each row, -1 for rows left over where there are more rows than columns.
    weight, upper_bound : float
        Sum of the chosen scores, and a dual bound on the maximum.
    seconds : float
    row_price, column_price : ndarray, shape (n_rows,), (n_columns,)
        Duals: row_price_i + column_price_j >= score_ij up to rounding, equal on chosen pairs; the
        longer side's prices are at least 0 and 0 where left over.

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
        """Certified bound on the suboptimality; never negative."""
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
        """Return the best assignment under ``scores``, shape (n_rows, n_columns)."""
        assignment = assign(scores)
        rows = np.flatnonzero(assignment.columns >= 0)
        vertex = make_indicator(rows * np.shape(scores)[1] + assignment.columns[rows])
        return ExtremePoint(vertex, assignment.weight, assignment.upper_bound)


def assign(scores: FloatArray) -> Assignment:
    """Return a maximum-weight assignment that matches all of the shorter side.

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
        If scores hold NaN, +inf or magnitudes whose sums would leave float64.
    InfeasibleError
        If forbidden pairs leave no assignment; ``deficient_set`` then holds nodes of the shorter
        side that are together allowed fewer partners than they are (Hall).
    CertificateError
        If the duals do not prove the answer.

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
    started = time.perf_counter()
    scores = as_bipartite_scores(scores)
    tall = scores.shape[0] > scores.shape[1]
    short_side = scores.T if tall else scores
    chosen = _solve(short_side)
    row_price, column_price = _prices(short_side, chosen)
    weight = float(short_side[np.arange(len(chosen)), chosen].sum())
    bound = _bound(short_side, row_price, column_price)
    if not bound - weight <= ROUNDING * _magnitude(short_side) * (len(chosen) + 1) ** 2:
        raise CertificateError(f"the assignment weighs {weight} but its dual proves {bound}.")
    columns = np.full(scores.shape[0], -1, dtype=np.int64)
    if tall:
        columns[chosen] = np.arange(len(chosen))
        row_price, column_price = column_price, row_price
    else:
        columns[:] = chosen
    return Assignment(
        columns=read_only(columns),
        weight=weight,
        upper_bound=max(weight, bound),
        seconds=time.perf_counter() - started,
        row_price=read_only(row_price),
        column_price=read_only(column_price),
    )


def _solve(scores: FloatArray) -> IntArray:
    """Column of each row; there are at least as many columns."""
    try:
        rows, columns = linear_sum_assignment(scores, maximize=True)
    except ValueError as error:
        raise InfeasibleError(*_hall_violator(scores)) from error
    chosen = np.empty(scores.shape[0], dtype=np.int64)
    chosen[rows] = columns
    return chosen


def _hall_violator(scores: FloatArray) -> tuple[str, tuple[int, ...]]:
    """Rows that are allowed fewer columns than they are, found from a maximum matching."""
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
    """Prices that support ``chosen``: longest paths in the exchange graph (Bellman and Ford).

    column_price_j = max over chains of exchanges of what column j is worth beyond what it brings
    now; left-over columns start at 0. Since the assignment is optimal no cycle gains.
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
    """Dual objective after raising row prices by whatever rounding left infeasible."""
    if scores.size == 0:
        return 0.0
    excess = np.maximum((scores - column_price).max(axis=1) - row_price, 0.0)
    return float(row_price.sum() + excess.sum() + column_price.sum())


def _magnitude(scores: FloatArray) -> float:
    finite = np.abs(scores[scores > -np.inf])
    return float(finite.max(initial=0.0)) or 1.0
