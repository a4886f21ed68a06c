"""Rows of sums of table entries: scores of survey answers without a product."""

from numba import njit

from engine.core.arguments import FloatArray, IntArray


@njit(cache=True, nogil=True)
def sum_lookups(table: FloatArray, places: IntArray, rows: FloatArray) -> None:
    """Write rows[r, j] = sum_g table[r, places[j, g]].

    Shapes (R, V), (n, G) and (R, n). O(R n G): a table row stays in the fastest cache.
    """
    for r in range(rows.shape[0]):
        entries = table[r]
        row = rows[r]
        for j in range(len(row)):
            total = 0.0
            for g in range(places.shape[1]):
                total += entries[places[j, g]]
            row[j] = total
