"""Frank-Wolfe on grid tables: gradient of the learning dual, and entropy along a segment.

Tables are those of `engine.graphs.grid` for two labels. H_rho = -sum_k w_k tau_k log tau_k with
weights w = 1 - rho (number of neighbours) on node entries and rho on edge entries.
"""

from math import log

from numba import njit


@njit(cache=True, nogil=True)
def fill_gradient(  # type: ignore[no-untyped-def]
    node_scores, h_codes, v_codes, h_tables, v_tables, rho, point, gradient
):
    """Write A theta + dH/dtau at an interior point.

    Parameters
    ----------
    node_scores : (H, W) float64, theta_i(1) - theta_i(0); theta_i(0) is left out
    h_codes, v_codes : (H, W-1), (H-1, W) uint8
    h_tables, v_tables : (n_codes, 4) float64, theta_ij of each code
    point, gradient : tuples of nodes (H, W, 2), horizontal (H, W-1, 4), vertical (H-1, W, 4)
    """
    nodes, horizontal, vertical = point
    g_nodes, g_horizontal, g_vertical = gradient
    height, width = node_scores.shape
    for i in range(height):
        for j in range(width):
            degree = (i > 0) + (i + 1 < height) + (j > 0) + (j + 1 < width)
            weight = 1.0 - rho * degree
            g_nodes[i, j, 0] = -weight * (1.0 + log(nodes[i, j, 0]))
            g_nodes[i, j, 1] = node_scores[i, j] - weight * (1.0 + log(nodes[i, j, 1]))
            if j + 1 < width:
                code = h_codes[i, j]
                for k in range(4):
                    slope = rho * (1.0 + log(horizontal[i, j, k]))
                    g_horizontal[i, j, k] = h_tables[code, k] - slope
            if i + 1 < height:
                code = v_codes[i, j]
                for k in range(4):
                    slope = rho * (1.0 + log(vertical[i, j, k]))
                    g_vertical[i, j, k] = v_tables[code, k] - slope


@njit(cache=True, nogil=True)
def entropy_along(shape, rho, point, vertex, away, step):  # type: ignore[no-untyped-def]
    """Return H and its first two derivatives in the step g at tau + g (vertex - away), flat.

    Entries that stay zero along the segment contribute nothing; an entry that reaches zero at
    this step makes the derivatives infinite, which tells a line search to step back.
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
        direction = vertex[k] - away[k]
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


@njit(cache=True, nogil=True)
def move_towards(point, vertex, away, step):  # type: ignore[no-untyped-def]
    """Add step (vertex - away) to the point in place; entries never fall below zero."""
    for k in range(point.shape[0]):
        point[k] = max(point[k] + step * (vertex[k] - away[k]), 0.0)
