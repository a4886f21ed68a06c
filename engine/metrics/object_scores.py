"""Comparison of numbered objects with known ones: matches at an overlap."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.core.errors import InvalidProblemError
from engine.core.options import check_number


@dataclass(frozen=True, slots=True)
class ObjectMatches:
    """Numbers of predicted, known and matched objects; `f1` is the harmonic mean of their shares.

    Parameters
    ----------
    n_predicted, n_known, n_matched : int

    Examples
    --------
    >>> ObjectMatches(8, 10, 6).f1
    0.6666666666666666
    """

    n_predicted: int
    n_known: int
    n_matched: int

    @property
    def f1(self) -> float:
        """Twice the matches over all objects of both; 1 if there are none at all."""
        total = self.n_predicted + self.n_known
        return 2.0 * self.n_matched / total if total else 1.0

    def __add__(self, other: "ObjectMatches") -> "ObjectMatches":
        """Return the sums over two pictures."""
        return ObjectMatches(
            self.n_predicted + other.n_predicted,
            self.n_known + other.n_known,
            self.n_matched + other.n_matched,
        )


def match_objects(
    predicted: NDArray[np.integer[Any]], known: NDArray[np.integer[Any]], *, overlap: float = 0.5
) -> ObjectMatches:
    """Count objects that overlap a known one by more than ``overlap`` (intersection over union).

    From 0.5 on, an object matches at most one other, so no assignment is needed.

    Parameters
    ----------
    predicted, known : ndarray, shape (height, width): numbers of objects; 0 is background.
    overlap : float, 0.5 to 1.

    Returns
    -------
    ObjectMatches

    Raises
    ------
    InvalidProblemError
        If the shapes differ, a number is negative or the overlap is out of range.

    Examples
    --------
    >>> match_objects(np.array([[1, 1, 0, 2]]), np.array([[7, 7, 0, 0]]))
    ObjectMatches(n_predicted=2, n_known=1, n_matched=1)
    """
    check_number("overlap", overlap, at_least=0.5, at_most=1.0)
    if predicted.shape != known.shape:
        raise InvalidProblemError(
            f"known: expected the shape of predicted, {predicted.shape}, received {known.shape}."
        )
    if min(predicted.min(initial=0), known.min(initial=0)) < 0:
        raise InvalidProblemError("Numbers of objects: expected at least 0, received less.")
    _, first = np.unique(np.append(predicted.ravel(), 0), return_inverse=True)
    _, second = np.unique(np.append(known.ravel(), 0), return_inverse=True)
    first, second = first[:-1].astype(np.int64), second[:-1].astype(np.int64)
    n = int(second.max(initial=0)) + 1
    pairs, shared = np.unique(first * n + second, return_counts=True)
    one, two = pairs // n, pairs % n
    areas, known_areas = np.bincount(first), np.bincount(second)
    union = areas[one] + known_areas[two] - shared
    is_match = (one > 0) & (two > 0) & (shared > overlap * union)
    return ObjectMatches(int(first.max(initial=0)), n - 1, int(is_match.sum()))
