"""Bipartite b-matching as a flow, a linear programme with integral vertices."""

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linprog
from scipy.sparse import coo_array, csr_array, eye_array, hstack

from engine.core.arguments import FloatArray, IntArray, as_finite_array, read_only
from engine.core.errors import CertificateError, InfeasibleError, InvalidProblemError
from engine.core.options import check_flag
from engine.kernels.work_time import wall_seconds
from engine.oracles.matching import Matching, as_bipartite_scores

SOLVES = 6  # maximum number of solves; the second is nearly always the last
FAR = 1e6  # times the remaining gain: pairs with larger reduced costs are certainly in or out
ROUNDING = 8 * float(np.finfo(np.float64).eps)


def bipartite_b_matching(
    scores: FloatArray,
    row_degrees: ArrayLike,
    column_degrees: ArrayLike,
    *,
    exact: bool = False,
) -> Matching:
    """Return a maximum-weight b-matching of rows and columns, each pair used at most once.

    Parameters
    ----------
    scores : ndarray, shape (n_rows, n_columns), float64
        -inf forbids a pair.
    row_degrees, column_degrees : array_like, shape (n_rows,), (n_columns,), int
        Most partners of each row and column, from 0.
    exact : bool
        Require exactly these degrees.

    Returns
    -------
    Matching
        Nodes are the rows, then the columns; ``edge_indices`` are row * n_columns + column.

    Raises
    ------
    InvalidProblemError
        If scores contain NaN or +inf, or a degree is not a whole number from 0.
    InfeasibleError
        If exact degrees cannot be met.
    CertificateError
        If the dual solution does not prove the result.

    Notes
    -----
    The constraint matrix is totally unimodular, so that the simplex method ends at whole numbers.
    Its duals are refined until their bound, which holds whatever their rounding, equals the weight
    at rounding level.

    References
    ----------
    Huangfu and Hall (2018), the dual simplex method of HiGHS, through SciPy; Gleixner, Steffy and
    Wolter (2016), iterative refinement for linear programming.

    Examples
    --------
    >>> found = bipartite_b_matching(np.array([[3.0, 1.0, 2.0]]), [2], [1, 1, 1])
    >>> found.edge_indices.tolist(), found.weight
    ([0, 2], 5.0)
    """
    check_flag("exact", exact)
    started = wall_seconds()
    scores = as_bipartite_scores(scores)
    limits = np.concatenate(
        (
            _degrees("row_degrees", row_degrees, scores.shape[0]),
            _degrees("column_degrees", column_degrees, scores.shape[1]),
        )
    )
    rows, columns = np.nonzero(scores > -np.inf)
    weights = scores[rows, columns]
    columns = columns + scores.shape[0]
    chosen, weight, bound = _solve(rows, columns, weights, limits, exact=exact)
    used = np.bincount(np.append(rows[chosen], columns[chosen]), minlength=len(limits))
    if (used > limits).any() or (exact and (used < limits).any()):
        raise CertificateError("the flow solver's answer is not a b-matching.")
    partner = np.full(len(limits), -1, dtype=np.int64)
    partner[rows[chosen]], partner[columns[chosen]] = columns[chosen], rows[chosen]
    edge = rows[chosen] * scores.shape[1] + columns[chosen] - scores.shape[0]
    return Matching(
        partner=read_only(partner),
        weight=weight,
        upper_bound=max(weight, bound),
        seconds=wall_seconds() - started,
        n_matched=len(chosen),
        edge_indices=read_only(np.sort(edge)),
    )


def _degrees(name: str, degrees: ArrayLike, length: int) -> IntArray:
    values = as_finite_array(name, degrees, shape=(length,))
    if (values < 0).any() or (values != np.floor(values)).any():
        raise InvalidProblemError(f"{name}: expected whole numbers from 0, received {degrees!r}.")
    return values.astype(np.int64)


def _solve(
    rows: IntArray, columns: IntArray, weights: FloatArray, limits: IntArray, *, exact: bool
) -> tuple[IntArray, float, float]:
    """Return indices of the chosen pairs, their weight, and a bound that proves it to rounding.

    The solver stops at violations of 1e-7, which could hide a better solution. It therefore solves
    again for the remaining reduced costs, magnified to ordinary size: the new duals correct the old
    ones (iterative refinement). Unless degrees are exact, a node's unused degree is a variable too,
    whose reduced cost keeps the node's price at 0 or above.
    """
    m, n = len(weights), len(limits)
    if m == 0:
        if exact and limits.any():
            raise InfeasibleError("the degrees cannot be met: no pair is allowed.")
        return np.empty(0, dtype=np.int64), 0.0, 0.0
    ends = np.concatenate((rows, columns))
    pairs = coo_array((np.ones(2 * m), (ends, np.tile(np.arange(m), 2))), shape=(n, m))
    incidence, upper, gains = csr_array(pairs), np.ones(m), weights
    if not exact:
        incidence = csr_array(hstack((pairs, eye_array(n))))
        upper, gains = np.append(upper, np.full(n, np.inf)), np.append(gains, np.zeros(n))
    size = float(np.abs(weights).max())
    unit, price = size or 1.0, np.zeros(n)
    for _ in range(SOLVES):
        reduced = (gains - incidence.T @ price) / unit
        x, correction = _flow(np.clip(reduced, -FAR, FAR), incidence, limits, upper)
        price = price + unit * correction
        chosen = np.flatnonzero(x[:m] > 0.5)
        weight = math.fsum(weights[chosen])
        bound = _bound(rows, columns, weights, limits, price if exact else np.maximum(price, 0.0))
        rounding = ROUNDING * size * (n + len(chosen))
        if bound - weight <= rounding:
            return chosen, weight, bound
        unit = bound - weight
    raise CertificateError(f"the b-matching weighs {weight} but its dual proves {bound}.")


def _flow(
    gains: FloatArray, incidence: csr_array, limits: IntArray, upper: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Solve max gains^T x, incidence x = limits, 0 <= x <= upper; return x and the duals."""
    answer = linprog(  # type: ignore[call-overload]  # the stubs lack arrays of bounds
        -gains,
        A_eq=incidence,
        b_eq=limits,
        bounds=np.column_stack((np.zeros(len(upper)), upper)),
        method="highs-ds",
    )
    if answer.status == 2:
        raise InfeasibleError("the degrees cannot be met by the allowed pairs.")
    if answer.status != 0:
        raise CertificateError(f"the flow solver stopped: {answer.message}")
    return answer.x, -np.asarray(answer.eqlin.marginals)


def _bound(
    rows: IntArray, columns: IntArray, weights: FloatArray, limits: IntArray, price: FloatArray
) -> float:
    """Return the dual objective: prices of all degrees, and the gains of pairs beyond prices."""
    gains = np.maximum(weights - price[rows] - price[columns], 0.0)
    return math.fsum(gains) + math.fsum(price * limits)
