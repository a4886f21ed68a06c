"""Features on blocks of 8 pixels, interpolated linearly between the block centres.

Block (a, b) has its centre at pixel coordinates (8 a, 8 b); pixel (i, j) at (i + 1/2, j + 1/2).
"""

import numpy as np
from numba import njit

CELL = 8


@njit(cache=True, nogil=True)
def add_block_scores(blocks, weights, work, scores):  # type: ignore[no-untyped-def]
    """Add <weights, interpolated features> of every pixel.

    Parameters
    ----------
    blocks : (R, C, n) float32
    weights : (n,) float64
    work : (R, C) float64, overwritten
    scores : (H, W) float64, incremented; 8 (R - 1) >= H - 1/2, and so for columns
    """
    for a in range(blocks.shape[0]):
        for b in range(blocks.shape[1]):
            total = 0.0
            for k in range(blocks.shape[2]):
                total += blocks[a, b, k] * weights[k]
            work[a, b] = total
    height, width = scores.shape
    line = np.empty(blocks.shape[1])
    for i in range(height):
        a = i // CELL
        y = (i - CELL * a + 0.5) / CELL
        for b in range(line.size):
            line[b] = work[a, b] * (1.0 - y) + work[a + 1, b] * y
        for b in range((width + CELL - 1) // CELL):
            left, right = line[b], line[b + 1]
            for j in range(CELL * b, min(CELL * (b + 1), width)):
                x = (j - CELL * b + 0.5) / CELL
                scores[i, j] += left * (1.0 - x) + right * x


@njit(cache=True, nogil=True)
def project_on_blocks(residual, blocks, work, statistics):  # type: ignore[no-untyped-def]
    """Write the sums over pixels of residual times each interpolated feature: the transpose.

    Parameters
    ----------
    residual : (H, W) float64
    blocks : (R, C, n) float32
    work : (R, C) float64, overwritten
    statistics : (n,) float64, output
    """
    work[:] = 0.0
    height, width = residual.shape
    line = np.empty(blocks.shape[1])
    for i in range(height):
        a = i // CELL
        y = (i - CELL * a + 0.5) / CELL
        line[:] = 0.0
        for b in range((width + CELL - 1) // CELL):
            total, right = 0.0, 0.0
            for j in range(CELL * b, min(CELL * (b + 1), width)):
                total += residual[i, j]
                right += residual[i, j] * ((j - CELL * b + 0.5) / CELL)
            line[b] += total - right
            line[b + 1] += right
        for b in range(line.size):
            work[a, b] += line[b] * (1.0 - y)
            work[a + 1, b] += line[b] * y
    statistics[:] = 0.0
    for a in range(blocks.shape[0]):
        for b in range(blocks.shape[1]):
            for k in range(blocks.shape[2]):
                statistics[k] += work[a, b] * blocks[a, b, k]
