"""Tree-reweighted entropy of a grid with one rho: gradient, and value along a segment.

Tables are those of `engine.graphs.grid` for two labels. H_rho = -sum_k w_k tau_k log tau_k with
weights w = 1 - rho (number of neighbours) on node entries and rho on edge entries.
"""

from math import log

from numba import njit


@njit(cache=True, nogil=True)
def fill_gradient(shape, rho, point, gradient):  # type: ignore[no-untyped-def]
    """Write dH/dtau at an interior point; both flat, shape (grid.size,)."""
    height, width = shape
    k = 0
    for i in range(height):
        for j in range(width):
            weight = 1.0 - rho * ((i > 0) + (i + 1 < height) + (j > 0) + (j + 1 < width))
            gradient[k] = -weight * (1.0 + log(point[k]))
            gradient[k + 1] = -weight * (1.0 + log(point[k + 1]))
            k += 2
    for e in range(k, point.shape[0]):
        gradient[e] = -rho * (1.0 + log(point[e]))


@njit(cache=True, nogil=True)
def entropy_along(shape, rho, point, vertex, step):  # type: ignore[no-untyped-def]
    """Return H and its first two derivatives in the step g at tau + g (vertex - tau), flat.

    Entries that stay zero along the segment contribute nothing; an entry that reaches zero at
    this step makes the derivatives infinite, so that a line search steps back.
    """
    height, width = shape
    n_nodes = 2 * height * width
    value, slope, curvature = 0.0, 0.0, 0.0
    for k in range(point.shape[0]):
        if k < n_nodes:
            i, j = (k // 2) // width, (k // 2) % width
            degree = (i > 0) + (i + 1 < height) + (j > 0) + (j + 1 < width)
            weight = 1.0 - rho * degree
        else:
            weight = rho
        direction = vertex[k] - point[k]
        x = point[k] + step * direction
        if x > 0.0:
            logarithm = log(x)
            value -= weight * x * logarithm
            slope -= weight * direction * (1.0 + logarithm)
            curvature -= weight * direction * direction / x
        elif direction != 0.0:
            slope = -1e300
            curvature = -1e300
    return value, slope, curvature
