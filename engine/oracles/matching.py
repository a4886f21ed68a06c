"""Result of every matching oracle."""

from dataclasses import dataclass, field

import numpy as np

from engine.core.arguments import FloatArray, IntArray, as_float_array, check_shape, read_only
from engine.core.errors import InvalidProblemError

LARGEST_WEIGHT = 1e300  # sums of larger weights would overflow float64


def as_bipartite_scores(scores: FloatArray) -> FloatArray:
    """Return scores, shape (n_rows, n_columns), contiguous in float64; -inf forbids a pair.

    Raises
    ------
    InvalidProblemError
        If scores have another shape, contain NaN or +inf, or their sums would overflow float64.
    """
    scores = as_float_array("scores", scores)
    check_shape("scores", scores, (None, None))
    if np.isnan(scores).any() or (scores == np.inf).any():
        raise InvalidProblemError("scores: expected finite numbers or -inf, received NaN or +inf.")
    is_allowed = scores > -np.inf
    largest = np.max(scores, where=is_allowed, initial=0.0)
    if max(largest, -np.min(scores, where=is_allowed, initial=0.0)) > LARGEST_WEIGHT:
        raise InvalidProblemError(f"scores: expected magnitudes up to {LARGEST_WEIGHT:.0e}.")
    return scores


def _no_edges() -> IntArray:
    return read_only(np.empty(0, dtype=np.int64))


@dataclass(frozen=True, slots=True)
class Matching:
    """Maximum-weight matching with its certificate.

    Parameters
    ----------
    partner : ndarray, shape (n,), int64
        The partner of each node, -1 where unmatched. For b-matchings with degrees above one the
        first partner only; ``edge_indices`` then contains the whole result.
    weight : float
        Sum of the weights of the chosen edges, in the unit of the weights.
    upper_bound : float
        Dual bound on the maximum, rounding included: ``upper_bound - weight`` is at rounding level.
    seconds : float
        Wall-clock time of the call.
    n_matched : int
        Number of chosen edges.
    edge_indices : ndarray, shape (n_matched,), int64
        Indices into the caller's list of edges; empty for complete graphs.

    Examples
    --------
    >>> from engine.oracles.sparse_matching import max_weight_matching
    >>> found = max_weight_matching(4, [(0, 1), (2, 3), (1, 2)], [1.0, 1.0, 1.5])
    >>> found.partner.tolist(), found.weight, found.gap
    ([1, 0, 3, 2], 2.0, 0.0)
    """

    partner: IntArray
    weight: float
    upper_bound: float
    seconds: float
    n_matched: int
    edge_indices: IntArray = field(default_factory=_no_edges)

    @property
    def gap(self) -> float:
        """Certified bound on the suboptimality, never negative."""
        return max(0.0, self.upper_bound - self.weight)

    @property
    def pairs(self) -> IntArray:
        """Matched pairs, shape (p, 2), the smaller index first, sorted."""
        first = np.flatnonzero(self.partner > np.arange(len(self.partner)))
        return np.column_stack((first, self.partner[first])).astype(np.int64)
