"""Sums over long vectors in one thread, so that images on two threads do not compete for BLAS.

Sums are reordered for speed ("reassoc"); infinities and NaN keep their meaning. Only the sums of
proven bounds keep their order, and the rounding error of each addition.
"""

import math

from numba import njit

from engine.core.arguments import FloatArray
from engine.kernels.compiling import inner


@inner
def add_exactly(total: float, lost: float, term: float) -> tuple[float, float]:
    """Return total + term, and ``lost`` plus the rounding error of that addition.

    ``total + lost`` at the end is off by two roundings of the sum, however many terms there are.

    References: Neumaier 1974.
    """
    new = total + term
    if not math.isfinite(new):
        return new, 0.0
    rest = (total - new) + term if abs(total) >= abs(term) else (term - new) + total
    return new, lost + rest


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def inner_product(first: FloatArray, second: FloatArray) -> float:
    """Return sum_k first_k second_k."""
    total = 0.0
    for k in range(first.shape[0]):
        total += first[k] * second[k]
    return total


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def triple_product(first: FloatArray, second: FloatArray, third: FloatArray) -> float:
    """Return sum_k first_k second_k third_k."""
    total = 0.0
    for k in range(first.shape[0]):
        total += first[k] * second[k] * third[k]
    return total


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def entropy_derivatives(
    coefficients: FloatArray, point: FloatArray, log_point: FloatArray, direction: FloatArray
) -> tuple[float, float, float]:
    """Return -sum c p log p and its two derivatives along ``direction``."""
    value = 0.0
    slope = 0.0
    curvature = 0.0
    for k in range(point.shape[0]):
        weighted = coefficients[k] * direction[k]
        value += coefficients[k] * point[k] * log_point[k]
        slope += weighted * (1.0 + log_point[k])
        curvature += weighted * direction[k] / point[k]
    return -value, -slope, -curvature
