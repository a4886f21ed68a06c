"""Bipartite b-matching as a flow: a linear programme whose vertices are whole numbers."""

import math
import time

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linprog
from scipy.sparse import coo_array

from engine.core.arguments import FloatArray, IntArray, as_finite_array, check_shape, read_only
from engine.core.errors import CertificateError, InfeasibleError, InvalidProblemError
from engine.oracles.matching import Matching

SOLVER_TOLERANCE = 1e-7  # HiGHS's default feasibility, relative to the largest weight


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
        Ask for exactly that many.

    Returns
    -------
    Matching
        Nodes are the rows, then the columns; ``edge_indices`` are row * n_columns + column.

    Raises
    ------
    InvalidProblemError
        If scores hold NaN or +inf, or a degree is not a whole number from 0.
    InfeasibleError
        If exact degrees cannot be met.
    CertificateError
        If the dual solution does not prove the answer.

    Notes
    -----
    The constraint matrix is totally unimodular: the simplex method ends at whole numbers. Its
    duals are turned into a bound that holds whatever their rounding.

    References
    ----------
    Huangfu and Hall (2018), the dual simplex method of HiGHS, through SciPy.
    """
    started = time.perf_counter()
    scores = np.asarray(scores, dtype=np.float64)
    check_shape("scores", scores, (None, None))
    if np.isnan(scores).any() or (scores == np.inf).any():
        raise InvalidProblemError("scores: expected finite numbers or -inf, received NaN or +inf.")
    limits = np.concatenate(
        (
            _degrees("row_degrees", row_degrees, scores.shape[0]),
            _degrees("column_degrees", column_degrees, scores.shape[1]),
        )
    )
    rows, columns = np.nonzero(scores > -np.inf)
    weights = scores[rows, columns]
    columns = columns + scores.shape[0]
    chosen, prices = _solve(rows, columns, weights, limits, exact=exact)
    gains = np.maximum(weights - prices[rows] - prices[columns], 0.0)
    weight = math.fsum(weights[chosen])
    bound = math.fsum(gains) + math.fsum(prices * limits)
    size = float(np.abs(weights).max(initial=0.0)) * (len(chosen) + 1)
    if not bound - weight <= SOLVER_TOLERANCE * size:
        raise CertificateError(f"the b-matching weighs {weight} but its dual proves {bound}.")
    partner = np.full(len(limits), -1, dtype=np.int64)
    partner[rows[chosen]], partner[columns[chosen]] = columns[chosen], rows[chosen]
    edge = rows[chosen] * scores.shape[1] + columns[chosen] - scores.shape[0]
    return Matching(
        partner=read_only(partner),
        weight=weight,
        upper_bound=max(weight, bound),
        seconds=time.perf_counter() - started,
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
) -> tuple[IntArray, FloatArray]:
    """Indices of the chosen pairs and a price for every node."""
    m = len(weights)
    if m == 0:
        if exact and limits.any():
            raise InfeasibleError("the degrees cannot be met: no pair is allowed.")
        return np.empty(0, dtype=np.int64), np.zeros(len(limits))
    unit = float(np.abs(weights).max()) or 1.0
    ends = np.concatenate((rows, columns))
    pairs = np.tile(np.arange(m), 2)
    incidence = coo_array((np.ones(2 * m), (ends, pairs)), shape=(len(limits), m)).tocsr()
    answer = linprog(  # type: ignore[call-overload]  # the stubs want one kind of constraint
        -weights / unit,
        A_eq=incidence if exact else None,
        b_eq=limits if exact else None,
        A_ub=None if exact else incidence,
        b_ub=None if exact else limits,
        bounds=(0, 1),
        method="highs-ds",
    )
    if answer.status == 2:
        raise InfeasibleError("the degrees cannot be met by the allowed pairs.")
    if answer.status != 0:
        raise CertificateError(f"the flow solver stopped: {answer.message}")
    marginals = answer.eqlin.marginals if exact else answer.ineqlin.marginals
    prices = -unit * np.asarray(marginals)
    return np.flatnonzero(answer.x > 0.5), prices if exact else np.maximum(prices, 0.0)
