"""Scores by lookup and statistics by histogram, for edges that share few feature vectors."""

from numba import njit


@njit(cache=True, nogil=True)
def add_to_histogram(codes, tables, histogram):  # type: ignore[no-untyped-def]
    """Add the tables of all edges of one direction to the row of their code.

    Parameters
    ----------
    codes : (R, C) uint8
    tables : (R, C, 4) float64, entries (0,0), (0,1), (1,0), (1,1)
    histogram : (n_codes, 4) float64, incremented
    """
    for row in range(codes.shape[0]):
        for column in range(codes.shape[1]):
            code = codes[row, column]
            for k in range(4):
                histogram[code, k] += tables[row, column, k]


@njit(cache=True, nogil=True)
def count_label_pairs(codes, labels, down, histogram):  # type: ignore[no-untyped-def]
    """Count observed label pairs of one direction by code.

    Parameters
    ----------
    codes : (R, C) uint8
    labels : (H, W) bool
    down : int, 1 for edges to the pixel below, 0 for edges to the right
    histogram : (n_codes, 4) float64, incremented
    """
    for row in range(codes.shape[0]):
        for column in range(codes.shape[1]):
            first = 2 if labels[row, column] else 0
            second = 1 if labels[row + down, column + 1 - down] else 0
            histogram[codes[row, column], first + second] += 1.0
