"""Exact partition functions and edge marginals of small matching distributions."""

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching

from engine.core.arguments import FloatArray, as_float_array, check_shape, read_only
from engine.core.errors import InfeasibleError, InvalidProblemError
from engine.core.options import check_choice
from engine.kernels.hafnian import match_subsets, matching_marginals
from engine.kernels.permanent import (
    bipartite_marginals,
    complete_rows,
    ryser_derivatives,
    ryser_permanent,
)

BipartiteMethod = Literal["subsets", "ryser"]
MatchingKind = Literal["perfect", "any"]

MAX_EXACT_NODES = 22
"""Maximum number of nodes: tables have 2^n entries, 34 MB and about a second at 22."""

SCALED = 1e-3
"""Error of row sums at which scaling ends; any scaling is exact, better ones lose fewer digits."""

SCALING_SWEEPS = 10_000
"""Maximum number of scaling sweeps; sharp scores take thousands, a third of a second."""

DIGITS_KEPT = 1e4
"""Least ratio of a permanent to the rounding error of Ryser's terms, four digits."""


@dataclass(frozen=True, slots=True)
class ExactMarginals:
    """Exact log Z and marginals of a distribution over matchings.

    ``log_partition`` in nats; ``marginals`` has the shape of the scores and is read-only.
    """

    log_partition: float
    marginals: FloatArray


def compute_bipartite_marginals(
    scores: Any, *, method: BipartiteMethod = "subsets"
) -> ExactMarginals:
    """Sum over all perfect matchings of a complete bipartite graph.

    log perm exp(W) and tau_ij = exp(W_ij) perm(minor ij) / perm. Exact.

    Parameters
    ----------
    scores : ndarray, shape (n, n), float64, nats
        W; row i to column j. -inf forbids an edge. 1 <= n <= 22.
    method : {"subsets", "ryser"}
        The subset programme adds only positive numbers: correct to rounding at any scale.
        Ryser's formula needs no memory but cancels: about six digits at n = 20.

    Returns
    -------
    ExactMarginals

    Raises
    ------
    InvalidProblemError
        If the scores are not a square array of at most 22 rows without NaN or +inf, or Ryser's
        formula would lose too many digits.
    InfeasibleError
        If the allowed edges contain no perfect matching.

    Notes
    -----
    O(2^n n) time and O(2^n) memory; Ryser O(2^n n^2) time and O(n^2) memory.

    References
    ----------
    Ryser (1963), Combinatorial Mathematics, chapter 2; Tang et al. (2015), section 4.1.1.

    Examples
    --------
    >>> result = compute_bipartite_marginals([[0.0, 0.0], [0.0, 0.0]])
    >>> float(np.exp(result.log_partition)), result.marginals.tolist()
    (2.0, [[0.5, 0.5], [0.5, 0.5]])
    """
    check_choice("method", method, get_args(BipartiteMethod))
    scores = _check_scores(scores)
    if method == "ryser":
        return _sum_by_ryser(scores)
    table = complete_rows(scores)
    _check_feasible(table[0])
    return ExactMarginals(float(table[0]), read_only(bipartite_marginals(scores, table)))


def compute_matching_marginals(scores: Any, *, kind: MatchingKind = "perfect") -> ExactMarginals:
    """Sum over all matchings of a general graph.

    Z = sum over matchings M of exp(sum of W_ij over ij in M); exact. With ``kind="perfect"``
    it is the hafnian of exp(W); with "any" every node may stay single, at score 0.

    Parameters
    ----------
    scores : ndarray, shape (n, n), float64, symmetric, nats
        -inf marks a missing edge; the diagonal is not read. 1 <= n <= 22.
    kind : {"perfect", "any"}

    Returns
    -------
    ExactMarginals
        ``marginals`` symmetric with zero diagonal; a row falls short of 1 by the probability
        that its node stays single.

    Raises
    ------
    InvalidProblemError
        If the scores are not a symmetric square array of at most 22 rows without NaN or +inf.
    InfeasibleError
        If a perfect matching is requested and there is none.

    Notes
    -----
    O(2^n n) time, O(2^n) memory.

    Examples
    --------
    >>> result = compute_matching_marginals(np.zeros((4, 4)))
    >>> round(float(np.exp(result.log_partition)), 9), round(float(result.marginals[0, 1]), 9)
    (3.0, 0.333333333)
    """
    check_choice("kind", kind, get_args(MatchingKind))
    scores = _check_scores(scores)
    off_diagonal = ~np.eye(scores.shape[0], dtype=np.bool_)
    if not np.array_equal(scores[off_diagonal], scores.T[off_diagonal]):
        raise InvalidProblemError("scores: expected a symmetric array, received another.")
    single_score = -np.inf if kind == "perfect" else 0.0
    table = match_subsets(scores, np.full(scores.shape[0], single_score))
    _check_feasible(table[-1])
    return ExactMarginals(float(table[-1]), read_only(matching_marginals(scores, table)))


def _check_scores(scores: Any) -> FloatArray:
    """Return ``scores`` as a float64 square array of at most 22 rows; -inf entries are allowed."""
    array = as_float_array("scores", scores)
    check_shape("scores", array, (None, None))
    n = array.shape[0]
    if array.shape[1] != n or not 1 <= n <= MAX_EXACT_NODES:
        raise InvalidProblemError(
            f"scores: exact sums need a square array of 1 to {MAX_EXACT_NODES} rows, "
            f"received shape {array.shape}."
        )
    if np.isnan(array).any() or np.isposinf(array).any():
        raise InvalidProblemError("scores: expected finite numbers or -inf, received others.")
    return array


def _check_feasible(log_partition: float) -> None:
    if log_partition == -np.inf:
        raise InfeasibleError("The edges that are allowed contain no perfect matching.")


def _sum_by_ryser(scores: FloatArray) -> ExactMarginals:
    """Apply Ryser's formula to exp(scores) after scaling rows and columns towards sums of one."""
    if maximum_bipartite_matching(csr_array(scores > -np.inf)).min() < 0:
        _check_feasible(-np.inf)
    scaled, offset = _scale(scores)
    matrix = np.exp(scaled)
    permanent, magnitude = ryser_permanent(matrix)
    if not permanent > DIGITS_KEPT * np.finfo(np.float64).eps * magnitude:
        raise InvalidProblemError(
            "method: Ryser's formula cancels too many digits at these scores; "
            'expected method="subsets", which loses none.'
        )
    marginals = matrix * ryser_derivatives(matrix) / permanent
    return ExactMarginals(float(np.log(permanent) + offset), read_only(marginals))


def _scale(scores: FloatArray) -> tuple[FloatArray, float]:
    """Return log a_i b_j exp(W_ij), rows and columns summing nearly to 1, and -log prod a b."""
    scaled, offset = scores.copy(), 0.0
    for _ in range(SCALING_SWEEPS):
        rows = np.logaddexp.reduce(scaled, axis=1, keepdims=True)
        scaled -= rows
        columns = np.logaddexp.reduce(scaled, axis=0, keepdims=True)
        scaled -= columns
        offset += float(rows.sum() + columns.sum())
        if np.abs(columns).max() <= SCALED:  # row errors are now at most these
            break
    return scaled, offset
