"""Sums of sinusoids of colour and position over a picture, without a feature matrix.

For five numbers s = (red, green, blue, x, y) in [0, 1] and every binary vector c, the features
cos(c.s) and sin(c.s) are the real and imaginary part of prod_k exp(i c_k s_k). A weighted sum of
all 64 is the real part of a polynomial that is linear in each exp(i s_k): it is evaluated by
contracting one factor at a time, on whole rows, from three bytes a pixel. Bit k of the index of
c stands for s_k in the order red, green, blue, x, y.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from engine.core.arguments import FloatArray, IntArray

N_SINUSOIDS = 32
"""Binary vectors of length 5; each gives a cosine and a sine."""


@njit(cache=True, nogil=True)
def sum_sinusoids(colours, weights, scores):  # type: ignore[no-untyped-def]
    """Write sum_c w_c cos(c.s) + w_{32+c} sin(c.s) of every pixel.

    Parameters
    ----------
    colours : (H, W, 3) uint8
    weights : (64,) float64, cosines before sines
    scores : (H, W) float64, written
    """
    height, width = colours.shape[0], colours.shape[1]
    cosine, sine = colour_phases()
    x_cosine, x_sine = position_phases(width)
    y_cosine, y_sine = position_phases(height)
    real = np.empty(16)
    imaginary = np.empty(16)
    for row in range(height):
        # w_c cos + w_{32+c} sin = Re((w_c - i w_{32+c}) exp(i c.s)); first contract y.
        for k in range(16):
            a, b = weights[16 + k], -weights[48 + k]
            real[k] = weights[k] + a * y_cosine[row] - b * y_sine[row]
            imaginary[k] = -weights[32 + k] + a * y_sine[row] + b * y_cosine[row]
        for column in range(width):
            xc, xs = x_cosine[column], x_sine[column]
            r = colours[row, column, 0]
            g = colours[row, column, 1]
            b8 = colours[row, column, 2]
            rc, rs = cosine[r], sine[r]
            gc, gs = cosine[g], sine[g]
            bc, bs = cosine[b8], sine[b8]
            total = 0.0
            # Products of the blue and green factors, then red and x inside.
            for pair in range(4):
                if pair == 0:
                    pc, ps = 1.0, 0.0
                elif pair == 1:
                    pc, ps = gc, gs
                elif pair == 2:
                    pc, ps = bc, bs
                else:
                    pc, ps = gc * bc - gs * bs, gc * bs + gs * bc
                k = 2 * pair
                ac = real[k] + real[8 + k] * xc - imaginary[8 + k] * xs
                as_ = imaginary[k] + real[8 + k] * xs + imaginary[8 + k] * xc
                dc = real[k + 1] + real[9 + k] * xc - imaginary[9 + k] * xs
                ds = imaginary[k + 1] + real[9 + k] * xs + imaginary[9 + k] * xc
                hc = ac + dc * rc - ds * rs
                hs = as_ + dc * rs + ds * rc
                total += hc * pc - hs * ps
            scores[row, column] = total


@njit(cache=True, nogil=True)
def project_on_sinusoids(colours, residual, statistics):  # type: ignore[no-untyped-def]
    """Write the sums over pixels of residual times each feature: the transpose of the above.

    Parameters
    ----------
    colours : (H, W, 3) uint8
    residual : (H, W) float64
    statistics : (64,) float64, written; cosines before sines
    """
    height, width = colours.shape[0], colours.shape[1]
    cosine, sine = colour_phases()
    x_cosine, x_sine = position_phases(width)
    y_cosine, y_sine = position_phases(height)
    real = np.empty(16)
    imaginary = np.empty(16)
    products_c = np.empty(8)
    products_s = np.empty(8)
    statistics[:] = 0.0
    for row in range(height):
        real[:] = 0.0
        imaginary[:] = 0.0
        for column in range(width):
            t = residual[row, column]
            r = colours[row, column, 0]
            g = colours[row, column, 1]
            b8 = colours[row, column, 2]
            products_c[0] = t
            products_s[0] = 0.0
            products_c[1] = t * cosine[r]
            products_s[1] = t * sine[r]
            for k in range(2):
                c, s = products_c[k], products_s[k]
                products_c[2 + k] = c * cosine[g] - s * sine[g]
                products_s[2 + k] = c * sine[g] + s * cosine[g]
            for k in range(4):
                c, s = products_c[k], products_s[k]
                products_c[4 + k] = c * cosine[b8] - s * sine[b8]
                products_s[4 + k] = c * sine[b8] + s * cosine[b8]
            xc, xs = x_cosine[column], x_sine[column]
            for k in range(8):
                c, s = products_c[k], products_s[k]
                real[k] += c
                imaginary[k] += s
                real[8 + k] += c * xc - s * xs
                imaginary[8 + k] += c * xs + s * xc
        yc, ys = y_cosine[row], y_sine[row]
        for k in range(16):
            statistics[k] += real[k]
            statistics[32 + k] += imaginary[k]
            statistics[16 + k] += real[k] * yc - imaginary[k] * ys
            statistics[48 + k] += real[k] * ys + imaginary[k] * yc


@njit(cache=True, nogil=True)
def colour_phases():  # type: ignore[no-untyped-def]
    """Cosine and sine of the 256 intensities scaled to [0, 1]; two arrays of shape (256,)."""
    steps = np.arange(256) / 255.0
    return np.cos(steps), np.sin(steps)


@njit(cache=True, nogil=True)
def position_phases(length):  # type: ignore[no-untyped-def]
    """Cosine and sine of the pixel centres along a side scaled to [0, 1]; shape (length,)."""
    centres = (np.arange(length) + 0.5) / length
    return np.cos(centres), np.sin(centres)


def sinusoid_rows(colours: NDArray[np.uint8], pixels: IntArray) -> FloatArray:
    """The features of the pixels with the given flat indices, shape (n, 64)."""
    height, width = colours.shape[:2]
    rows, columns = np.divmod(pixels, width)
    base = np.column_stack(
        [colours[rows, columns] / 255.0, (columns + 0.5) / width, (rows + 0.5) / height]
    )
    vectors = (np.arange(N_SINUSOIDS)[:, None] >> np.arange(5)) & 1
    phases = base @ vectors.T
    return np.concatenate([np.cos(phases), np.sin(phases)], axis=1)
