"""Features that live on blocks of 8 pixels and are interpolated linearly between their centres.

Block (a, b) has its centre at pixel coordinates (8 a, 8 b); pixel (i, j) at (i + 1/2, j + 1/2).
"""

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
    scores : (H, W) float64, added to; 8 (R - 1) >= H - 1/2, and so for columns
    """
    for a in range(blocks.shape[0]):
        for b in range(blocks.shape[1]):
            total = 0.0
            for k in range(blocks.shape[2]):
                total += blocks[a, b, k] * weights[k]
            work[a, b] = total
    for i in range(scores.shape[0]):
        y = (i + 0.5) / CELL
        a = int(y)
        y -= a
        for j in range(scores.shape[1]):
            x = (j + 0.5) / CELL
            b = int(x)
            x -= b
            above = work[a, b] * (1.0 - x) + work[a, b + 1] * x
            below = work[a + 1, b] * (1.0 - x) + work[a + 1, b + 1] * x
            scores[i, j] += above * (1.0 - y) + below * y


@njit(cache=True, nogil=True)
def project_on_blocks(residual, blocks, work, statistics):  # type: ignore[no-untyped-def]
    """Write the sums over pixels of residual times each interpolated feature: the transpose.

    Parameters
    ----------
    residual : (H, W) float64
    blocks : (R, C, n) float32
    work : (R, C) float64, overwritten
    statistics : (n,) float64, written
    """
    work[:] = 0.0
    for i in range(residual.shape[0]):
        y = (i + 0.5) / CELL
        a = int(y)
        y -= a
        for j in range(residual.shape[1]):
            x = (j + 0.5) / CELL
            b = int(x)
            x -= b
            above, below = residual[i, j] * (1.0 - y), residual[i, j] * y
            work[a, b] += above * (1.0 - x)
            work[a, b + 1] += above * x
            work[a + 1, b] += below * (1.0 - x)
            work[a + 1, b + 1] += below * x
    statistics[:] = 0.0
    for a in range(blocks.shape[0]):
        for b in range(blocks.shape[1]):
            for k in range(blocks.shape[2]):
                statistics[k] += work[a, b] * blocks[a, b, k]
