"""Sums of sinusoids of colour and position over a picture, without a feature matrix.

For five numbers s = (red, green, blue, x, y) in [0, 1] and every binary vector c, the features
cos(c.s) and sin(c.s) are the real and imaginary part of prod_k exp(i c_k s_k). A weighted sum of
all 64 is the real part of a polynomial that is linear in each exp(i s_k): it is evaluated by
contracting one factor at a time, on whole rows, from three bytes per pixel. Bit k of the index of
c represents s_k in the order red, green, blue, x, y.

The loops over columns have no table and no branch, so that the compiler runs them on several
pixels at once: the phases of a row's colours are looked up before, and the four products of green
and blue are computed one after the other.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from engine.core.arguments import FloatArray, IntArray
from engine.kernels.compiling import inner

N_SINUSOIDS = 32
"""Number of binary vectors of length 5; each gives a cosine and a sine."""


@njit(cache=True, nogil=True, fastmath={"contract"})
def sum_sinusoids(colours, weights, scores):  # type: ignore[no-untyped-def]
    """Write sum_c w_c cos(c.s) + w_{32+c} sin(c.s) of every pixel.

    Parameters
    ----------
    colours : (H, W, 3) uint8
    weights : (64,) float64, cosines before sines
    scores : (H, W) float64, output
    """
    height, width = colours.shape[0], colours.shape[1]
    cosine, sine = colour_phases()
    x_cosine, x_sine = position_phases(width)
    y_cosine, y_sine = position_phases(height)
    real, imaginary = np.empty(16), np.empty(16)
    red, pairs = np.empty((2, width)), np.empty((4, 2, width))
    for row in range(height):
        # w_c cos + w_{32+c} sin = Re((w_c - i w_{32+c}) exp(i c.s)); first contract y.
        for k in range(16):
            a, b = weights[16 + k], -weights[48 + k]
            real[k] = weights[k] + a * y_cosine[row] - b * y_sine[row]
            imaginary[k] = -weights[32 + k] + a * y_sine[row] + b * y_cosine[row]
        _look_up_phases(colours[row], cosine, sine, red, pairs)
        total = scores[row]
        total[:] = 0.0
        for pair in range(4):
            # Contract x and red inside, then the product of the green and blue factors.
            k = 2 * pair
            a0c, a0s, a1c, a1s = real[k], imaginary[k], real[k + 1], imaginary[k + 1]
            b0c, b0s, b1c, b1s = real[8 + k], imaginary[8 + k], real[9 + k], imaginary[9 + k]
            for column in range(width):
                xc, xs = x_cosine[column], x_sine[column]
                c0, s0 = a0c + b0c * xc - b0s * xs, a0s + b0c * xs + b0s * xc
                c1, s1 = a1c + b1c * xc - b1s * xs, a1s + b1c * xs + b1s * xc
                rc, rs = red[0, column], red[1, column]
                c, s = c0 + c1 * rc - s1 * rs, s0 + c1 * rs + s1 * rc
                total[column] += c * pairs[pair, 0, column] - s * pairs[pair, 1, column]


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc"})
def project_on_sinusoids(colours, residual, statistics):  # type: ignore[no-untyped-def]
    """Write the sums over pixels of residual times each feature: the transpose of `sum_sinusoids`.

    Parameters
    ----------
    colours : (H, W, 3) uint8
    residual : (H, W) float64
    statistics : (64,) float64, output; cosines before sines
    """
    height, width = colours.shape[0], colours.shape[1]
    cosine, sine = colour_phases()
    x_cosine, x_sine = position_phases(width)
    y_cosine, y_sine = position_phases(height)
    real, imaginary = np.empty(16), np.empty(16)
    red, pairs = np.empty((2, width)), np.empty((4, 2, width))
    statistics[:] = 0.0
    for row in range(height):
        _look_up_phases(colours[row], cosine, sine, red, pairs)
        for pair in range(4):
            a0c, a0s, a1c, a1s = 0.0, 0.0, 0.0, 0.0
            b0c, b0s, b1c, b1s = 0.0, 0.0, 0.0, 0.0
            for column in range(width):
                t = residual[row, column]
                c0, s0 = t * pairs[pair, 0, column], t * pairs[pair, 1, column]
                rc, rs = red[0, column], red[1, column]
                c1, s1 = c0 * rc - s0 * rs, c0 * rs + s0 * rc
                xc, xs = x_cosine[column], x_sine[column]
                a0c += c0
                a0s += s0
                a1c += c1
                a1s += s1
                b0c += c0 * xc - s0 * xs
                b0s += c0 * xs + s0 * xc
                b1c += c1 * xc - s1 * xs
                b1s += c1 * xs + s1 * xc
            k = 2 * pair
            real[k], imaginary[k], real[k + 1], imaginary[k + 1] = a0c, a0s, a1c, a1s
            real[8 + k], imaginary[8 + k], real[9 + k], imaginary[9 + k] = b0c, b0s, b1c, b1s
        yc, ys = y_cosine[row], y_sine[row]
        for k in range(16):
            statistics[k] += real[k]
            statistics[32 + k] += imaginary[k]
            statistics[16 + k] += real[k] * yc - imaginary[k] * ys
            statistics[48 + k] += real[k] * ys + imaginary[k] * yc


@inner
def _look_up_phases(
    colours: NDArray[np.uint8],
    cosine: FloatArray,
    sine: FloatArray,
    red: FloatArray,
    pairs: FloatArray,
) -> None:
    """Write cosines and sines of one row, (W, 3): red, (2, W), and 1, g, b, g b, (4, 2, W)."""
    for column in range(colours.shape[0]):
        r, g, b = colours[column, 0], colours[column, 1], colours[column, 2]
        red[0, column], red[1, column] = cosine[r], sine[r]
        pairs[1, 0, column], pairs[1, 1, column] = cosine[g], sine[g]
        pairs[2, 0, column], pairs[2, 1, column] = cosine[b], sine[b]
    for column in range(colours.shape[0]):
        gc, gs = pairs[1, 0, column], pairs[1, 1, column]
        bc, bs = pairs[2, 0, column], pairs[2, 1, column]
        pairs[0, 0, column], pairs[0, 1, column] = 1.0, 0.0
        pairs[3, 0, column] = gc * bc - gs * bs
        pairs[3, 1, column] = gc * bs + gs * bc


@njit(cache=True, nogil=True)
def colour_phases():  # type: ignore[no-untyped-def]
    """Return cosine and sine of the 256 intensities scaled to [0, 1]; two arrays (256,)."""
    steps = np.arange(256) / 255.0
    return np.cos(steps), np.sin(steps)


@njit(cache=True, nogil=True)
def position_phases(length):  # type: ignore[no-untyped-def]
    """Return cosine and sine of pixel centres along a side scaled to [0, 1]; shape (length,)."""
    centres = (np.arange(length) + 0.5) / length
    return np.cos(centres), np.sin(centres)


def sinusoid_rows(colours: NDArray[np.uint8], pixels: IntArray) -> FloatArray:
    """Return the features of the pixels with the given flat indices, shape (n, 64)."""
    height, width = colours.shape[:2]
    rows, columns = np.divmod(pixels, width)
    base = np.column_stack(
        [colours[rows, columns] / 255.0, (columns + 0.5) / width, (rows + 0.5) / height]
    )
    vectors = (np.arange(N_SINUSOIDS)[:, None] >> np.arange(5)) & 1
    phases = base @ vectors.T
    return np.concatenate([np.cos(phases), np.sin(phases)], axis=1)
