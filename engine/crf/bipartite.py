"""Two sets of items to be matched one to one, described by features of every edge."""

from dataclasses import dataclass

import numpy as np

from engine.core.arguments import FloatArray, IntArray, as_finite_array, read_only
from engine.core.errors import InvalidProblemError


@dataclass(frozen=True, slots=True)
class BipartiteItems:
    """Items to match, n on each side; W_ij = <theta, F_ij> scores the edge from row i to column j.

    Parameters
    ----------
    features : ndarray, shape (n, n, K), finite; kept as a read-only float64 copy

    Raises
    ------
    InvalidProblemError
        If the array is not finite or its first two lengths differ.
    """

    features: FloatArray

    def __post_init__(self) -> None:
        features = as_finite_array("features", self.features, shape=(None, None, None)).copy()
        if features.shape[0] != features.shape[1] or not features.size:
            raise InvalidProblemError(
                f"features: expected as many rows as columns, received shape {features.shape}."
            )
        object.__setattr__(self, "features", read_only(features))

    @property
    def n_items(self) -> int:
        """Number of items on each side, n."""
        return int(self.features.shape[0])

    @property
    def n_features(self) -> int:
        """Number of features K."""
        return int(self.features.shape[2])

    def scores(self, theta: FloatArray) -> FloatArray:
        """Return W, shape (n, n), nats."""
        return np.asarray(self.features @ theta)

    def statistics(self, tau: FloatArray) -> FloatArray:
        """Return phi(tau) = sum_ij tau_ij F_ij, shape (K,), of edge marginals (n, n)."""
        return np.asarray(np.tensordot(tau, self.features, axes=2))

    def assignment_statistics(self, columns: IntArray) -> FloatArray:
        """Return phi of the assignment of row i to ``columns[i]``, shape (K,)."""
        return np.asarray(self.features[np.arange(self.n_items), columns].sum(axis=0))


def check_assignment(columns: IntArray, n_items: int) -> IntArray:
    """Return ``columns`` as int64 after checking that it is a permutation of 0 .. n - 1.

    Raises
    ------
    InvalidProblemError
        If it is not a permutation.
    """
    array = np.asarray(columns, dtype=np.int64)
    if not np.array_equal(np.sort(array), np.arange(n_items)):
        raise InvalidProblemError(f"columns: expected a permutation of 0 to {n_items - 1}.")
    return array
