"""Filters of a picture at several scales: blurs, and the eigenvalues of symmetric 2 x 2 matrices.

float32 throughout; a blur of 30,000 pixels with a reach of 30 takes about a millisecond. Borders
are mirrored, the outermost pixel twice (d c b a | a b c d | d c b a).
"""

import numpy as np
from numba import njit

from engine.kernels.compiling import inner


@inner
def mirrored(place: int, size: int) -> int:
    """Return the index within 0..size - 1 of a place beyond the border, mirrored repeatedly."""
    period = 2 * size
    place %= period
    return place if place < size else period - 1 - place


@njit(cache=True, nogil=True, fastmath={"contract"})
def blur(source, weights, work, out):  # type: ignore[no-untyped-def]
    """Convolve rows and columns with a symmetric kernel.

    Parameters
    ----------
    source : (H, W) float32
    weights : (r + 1,) float32, from the middle outwards
    work : (W + 2 r,) float32, overwritten
    out : (H, W) float32, output; not ``source``
    """
    height, width = source.shape
    reach = len(weights) - 1
    for i in range(height):  # down the columns: whole rows at a time
        row = out[i]
        for j in range(width):
            row[j] = weights[0] * source[i, j]
        for k in range(1, reach + 1):
            above = source[mirrored(i - k, height)]
            below = source[mirrored(i + k, height)]
            weight = weights[k]
            for j in range(width):
                row[j] += weight * (above[j] + below[j])
    for i in range(height):  # along the rows: from a copy with its mirrored ends
        row = out[i]
        for j in range(width):
            work[reach + j] = row[j]
        for k in range(1, reach + 1):
            work[reach - k] = row[mirrored(-k, width)]
            work[reach + width - 1 + k] = row[mirrored(width - 1 + k, width)]
        for j in range(width):
            row[j] = weights[0] * work[reach + j]
        for k in range(1, reach + 1):
            weight = weights[k]
            for j in range(width):
                row[j] += weight * (work[reach + j - k] + work[reach + j + k])


@njit(cache=True, nogil=True)
def fill_derivatives(smooth, factor, size, products, hessian, laplacian):  # type: ignore[no-untyped-def]
    """Write gradient size, gradient products, Hessian eigenvalues and Laplacian of a picture.

    Parameters
    ----------
    smooth : (H, W) float32
    factor : float32, the scale: derivatives are multiplied by it once per order
    size : (H, W) float32, output: length of the gradient
    products : (3, H, W) float32, output: g_y g_y, g_y g_x, g_x g_x
    hessian : (2, H, W) float32, output: larger and smaller eigenvalue
    laplacian : (H, W) float32, output
    """
    height, width = smooth.shape
    half = np.float32(0.5)
    for i in range(height):
        above, here, below = smooth[max(i - 1, 0)], smooth[i], smooth[min(i + 1, height - 1)]
        for j in range(width):
            left, right = max(j - 1, 0), min(j + 1, width - 1)
            g_y = half * factor * (below[j] - above[j])
            g_x = half * factor * (here[right] - here[left])
            size[i, j] = np.sqrt(g_y * g_y + g_x * g_x)
            products[0, i, j] = g_y * g_y
            products[1, i, j] = g_y * g_x
            products[2, i, j] = g_x * g_x
            twice = here[j] + here[j]
            yy = factor * factor * (above[j] + below[j] - twice)
            xx = factor * factor * (here[left] + here[right] - twice)
            cross = below[right] - below[left] - above[right] + above[left]
            xy = half * half * factor * factor * cross
            middle, off = half * (yy + xx), half * (yy - xx)
            spread = np.sqrt(off * off + xy * xy)
            hessian[0, i, j] = middle + spread
            hessian[1, i, j] = middle - spread
            laplacian[i, j] = yy + xx


@njit(cache=True, nogil=True)
def fill_eigenvalues(products, out):  # type: ignore[no-untyped-def]
    """Write square roots of the eigenvalues of averaged products, the larger first.

    Parameters
    ----------
    products : (3, H, W) float32, entries yy, xy, xx of symmetric matrices
    out : (2, H, W) float32, output
    """
    height, width = products.shape[1:]
    half = np.float32(0.5)
    for i in range(height):
        for j in range(width):
            yy, xy, xx = products[0, i, j], products[1, i, j], products[2, i, j]
            middle, off = half * (yy + xx), half * (yy - xx)
            spread = np.sqrt(off * off + xy * xy)
            out[0, i, j] = np.sqrt(middle + spread)
            out[1, i, j] = np.sqrt(max(middle - spread, np.float32(0.0)))
