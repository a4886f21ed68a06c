"""Protocol of an oracle, whose one method maximises a linear function over a polytope."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from engine.core.arguments import BoolArray, FloatArray, IntArray
from engine.kernels.long_sums import inner_product as long_inner_product


@dataclass(frozen=True, slots=True, eq=False)
class Vertex:
    """Vertex of a polytope whose points are arrays of any shape, addressed in flat order.

    Parameters
    ----------
    values : ndarray, float64
        One number for each of ``places``, or for every entry of a point, flat, if that is None.
    places : ndarray of int64, optional
        Flat indices into a point, all different; the vertex is 0 at all others.
    share : float
        Weight of an entry in inner products: 1/2 if points are symmetric matrices, which contain
        every edge twice.

    Examples
    --------
    >>> point = np.full(4, 0.5)
    >>> make_indicator(np.array([1])).move(point, 0.5)
    >>> point.tolist()
    [0.25, 0.75, 0.25, 0.25]
    """

    values: FloatArray
    places: IntArray | None = None
    share: float = 1.0

    def inner(self, scores: FloatArray) -> float:
        """Return <vertex, scores>."""
        flat = scores.ravel()
        if self.places is None:
            return self.share * inner_product(self.values, flat)
        return self.share * float((flat[self.places] * self.values).sum())

    def overlap(self, other: "Vertex") -> float:
        """Return <vertex, other> with every entry counted once, whatever the share."""
        if self.places is None or other.places is None:
            size = len(self.values if self.places is None else other.values)
            return inner_product(self.dense(size), other.dense(size))
        _, mine, its = np.intersect1d(self.places, other.places, True, return_indices=True)
        return float(self.values[mine] @ other.values[its])

    def move(self, point: FloatArray, step: float) -> None:
        """Replace the point by (1 - step) point + step vertex, in place; it must be contiguous."""
        flat = point.reshape(-1)
        if self.places is None:
            flat += step * (self.values - flat)
            np.maximum(flat, 0.0, out=flat)  # rounding must not leave the polytope
        else:
            flat *= 1.0 - step
            flat[self.places] += step * self.values

    def add_to(self, total: FloatArray, weight: float = 1.0) -> None:
        """Add weight times the vertex to an array of the shape of a point, in place."""
        flat = total.reshape(-1)
        if self.places is None:
            flat += weight * self.values
        else:
            flat[self.places] += weight * self.values

    def equals(self, other: "Vertex") -> bool:
        """Return True if both are the same vertex in the same form."""
        if (self.places is None) != (other.places is None):
            return False
        same_values = np.array_equal(self.values, other.values)
        return same_values and np.array_equal(self.support, other.support)

    @property
    def support(self) -> IntArray:
        """Flat indices at which the vertex is not 0."""
        return np.flatnonzero(self.values) if self.places is None else self.places

    def dense(self, size: int) -> FloatArray:
        """Return all entries, flat, shape (size,); callers must not change them."""
        if self.places is None:
            return self.values
        out = np.zeros(size)
        out[self.places] = self.values
        return out


def make_indicator(places: IntArray, share: float = 1.0) -> Vertex:
    """Return the vertex that is 1 at given flat indices: a matching, cut, tree or path.

    Parameters
    ----------
    places : ndarray of int64
        Flat indices into a point, all different.
    share : float
        Weight of an entry in inner products; see `Vertex`.

    Returns
    -------
    Vertex
        The vertex, whose values are ones.

    Examples
    --------
    >>> make_indicator(np.array([1, 2])).dense(4).tolist()
    [0.0, 1.0, 1.0, 0.0]
    """
    return Vertex(np.broadcast_to(np.float64(1.0), len(places)), places, share)


def inner_product(point: FloatArray, scores: FloatArray) -> float:
    """Return <point, scores>; impossible entries (-inf) of weight 0 contribute 0.

    It runs on one thread, whatever the length: pictures on two threads must not compete for BLAS.

    Parameters
    ----------
    point : ndarray, float64
    scores : ndarray, float64
        In the shape of the point, nats.

    Returns
    -------
    float
        In nats.

    Examples
    --------
    >>> inner_product(np.array([0.5, 0.0]), np.array([3.0, -np.inf]))
    1.5
    """
    first, second = point.reshape(-1), scores.reshape(-1)
    product = float(long_inner_product(first, second))
    if np.isnan(product):
        impossible: BoolArray = np.isneginf(second) & (first == 0.0)
        product = float(long_inner_product(first, np.where(impossible, 0.0, second)))
    return product


@dataclass(frozen=True, slots=True)
class ExtremePoint:
    """Vertex of a polytope that maximises a linear function, with a certified bound.

    The suboptimality is at most ``upper_bound - value``.

    Parameters
    ----------
    vertex : Vertex
    value : float
        <vertex, scores>, in the unit of the scores (nats).
    upper_bound : float
        Certified upper bound of the maximum.

    Examples
    --------
    >>> ExtremePoint(make_indicator(np.array([0, 2])), 4.0, 4.5).gap
    0.5
    """

    vertex: Vertex
    value: float
    upper_bound: float

    @property
    def gap(self) -> float:
        """Certified bound on how far ``value`` lies below the maximum, never negative."""
        return max(0.0, self.upper_bound - self.value)


class LinearMinimizationOracle(Protocol):
    """Oracle that returns ``argmax_v <v, scores>`` over its polytope.

    The name is the field's: solvers minimise, and with scores = -gradient the maximiser of the
    scores is the minimiser of the linear model. Only objectives change the sign.

    Examples
    --------
    >>> from engine.oracles.assignment import AssignmentOracle
    >>> oracle: LinearMinimizationOracle = AssignmentOracle()
    >>> oracle.compute_extreme_point(np.eye(3)).upper_bound
    3.0
    """

    def compute_extreme_point(self, scores: Any) -> ExtremePoint:
        """Return a vertex with the largest inner product with ``scores``."""
