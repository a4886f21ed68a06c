"""Sums over rows with few nonzero entries."""

from numba import njit

from engine.core.arguments import FloatArray, IntArray


@njit(cache=True, nogil=True)
def add_outer_products(
    places: IntArray, values: FloatArray, weights: FloatArray, total: FloatArray
) -> None:
    """Add sum_r w_r f_r f_r^T to ``total``, shape (K, K).

    Row r of f has the entries ``values[r]`` (E,) at the columns ``places[r]`` (E,); ``weights``
    (R,). O(R E^2).
    """
    for r in range(len(weights)):
        for a in range(places.shape[1]):
            left = weights[r] * values[r, a]
            for b in range(places.shape[1]):
                total[places[r, a], places[r, b]] += left * values[r, b]
