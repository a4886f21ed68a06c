"""Concave quadratic maximisation over a product of simplices, by pairwise steps."""

import numpy as np
from numba import njit

from engine.core.arguments import FloatArray, IntArray


@njit(cache=True, nogil=True)
def ascend_pairwise(
    gram: FloatArray,
    linear: FloatArray,
    block: IntArray,
    n_blocks: int,
    weights: FloatArray,
    tolerance: float,
    max_steps: int,
) -> float:
    """Maximise <linear, w> - w^T gram w / 2 in place, each block's weights on its own simplex.

    ``gram`` (c, c) positive semidefinite, ``linear`` (c,), ``block`` (c,) in 0 .. n_blocks - 1,
    ``weights`` (c,) feasible on entry and on return. Every sweep moves, in each block in turn,
    weight from the active corner with the smallest slope to the corner with the largest, by the
    exact line search: linear convergence, and weights become exactly zero. Stops when the gap
    sum_blocks (largest slope - mean slope), a bound on what is missing, is at most ``tolerance``.
    Returns that gap. O(c) time a step.
    """
    n_corners = len(linear)
    slopes = linear - gram @ weights
    gap = np.inf
    steps = 0
    while steps < max_steps:
        gap = 0.0
        for b in range(n_blocks):
            best, worst = -1, -1
            mean = 0.0
            for c in range(n_corners):
                if block[c] != b:
                    continue
                mean += weights[c] * slopes[c]
                if best < 0 or slopes[c] > slopes[best]:
                    best = c
                if weights[c] > 0.0 and (worst < 0 or slopes[c] < slopes[worst]):
                    worst = c
            gap += max(slopes[best] - mean, 0.0)
            rise = slopes[best] - slopes[worst]
            if rise <= 0.0:
                continue
            curvature = gram[best, best] - 2.0 * gram[best, worst] + gram[worst, worst]
            step = weights[worst]
            if curvature * step > rise:
                step = rise / curvature
                weights[worst] -= step
            else:
                weights[worst] = 0.0
            weights[best] += step
            for c in range(n_corners):
                slopes[c] -= step * (gram[c, best] - gram[c, worst])
        steps += n_blocks
        if gap <= tolerance:
            break
        if steps % (1000 * n_blocks) == 0:
            slopes = linear - gram @ weights  # rounding accumulates in the running slopes
    return gap
