"""Active-set method for concave quadratic maximisation over a product of simplices.

Dense linear algebra on a few hundred corners: there is no loop that compilation would speed up.
"""

import numpy as np

from engine.core.arguments import BoolArray, FloatArray, IntArray

PROXIMITY = 1e-13
"""Number added to the diagonal, relative to its largest entry, so that faces of dependent corners
can be solved; the next step corrects the small shortfall that this causes."""


def ascend_faces(
    gram: FloatArray,
    linear: FloatArray,
    block: IntArray,
    n_blocks: int,
    weights: FloatArray,
    tolerance: float,
    max_solves: int,
) -> float:
    """Maximise <linear, w> - w^T gram w / 2 in place, each block's weights on its own simplex.

    ``gram`` (c, c) positive semidefinite, ``linear`` (c,), ``block`` (c,) in 0 .. n_blocks - 1,
    ``weights`` (c,) feasible on entry and on return. Each solve moves to the maximum over the face
    of the active corners, or until a weight falls to zero and its corner is dropped; at the maximum
    the corner whose slope is furthest above its block's mean joins. Finite but for rounding,
    however badly ``gram`` is conditioned. Stops when sum_blocks (largest slope - mean slope), a
    bound on what is missing, is at most ``tolerance``. Returns that gap. A solve takes
    O(c^2 + a^3) time, a the active corners of blocks that have several.

    References: Wolfe (1976), Finding the nearest point in a polytope, here with a linear term and
    several simplices; Lacoste-Julien and Jaggi (2015), fully corrective Frank-Wolfe.
    """
    active = weights > 0.0
    slopes = linear - gram @ weights
    above = _above_mean(slopes, block, n_blocks, weights)
    entering = -1
    for _ in range(max_solves):
        direction = _towards_face_maximum(gram, slopes, block, n_blocks, active)
        falling = np.flatnonzero(direction < 0.0)
        reaches = -weights[falling] / direction[falling]
        if entering in falling[reaches == 0.0]:
            break  # the slope by which it joined was rounding
        step = float(reaches.min(initial=1.0))
        weights += step * direction
        if step < 1.0:
            dropped = falling[reaches == step]
            weights[dropped] = 0.0
            active[dropped] = False
        np.maximum(weights, 0.0, out=weights)
        weights /= np.bincount(block, weights, n_blocks)[block]  # sums drift by rounding
        slopes = linear - gram @ weights
        above = _above_mean(slopes, block, n_blocks, weights)
        if step == 1.0:
            if _sum_of_largest(above, block, n_blocks) <= tolerance:
                break
            entering = int(np.argmax(above))
            active[entering] = True
    return _sum_of_largest(above, block, n_blocks)


def _towards_face_maximum(
    gram: FloatArray, slopes: FloatArray, block: IntArray, n_blocks: int, active: BoolArray
) -> FloatArray:
    """Solve gram d + multiplier of the block = slopes, sum of d over a block = 0, on the face."""
    has_room = np.bincount(block[active], minlength=n_blocks) > 1
    free = np.flatnonzero(active & has_room[block])
    direction, n = np.zeros(len(slopes)), len(free)
    if n == 0:
        return direction
    own = block[free] == np.flatnonzero(has_room)[:, np.newaxis]
    curvature = gram[np.ix_(free, free)]
    scale = curvature.diagonal().max() or 1.0  # in line with the ones of the sums
    matrix = np.zeros((n + len(own), n + len(own)))
    matrix[:n, :n] = curvature / scale
    np.fill_diagonal(matrix[:n, :n], matrix.diagonal()[:n] + PROXIMITY)
    matrix[n:, :n], matrix[:n, n:] = own, own.T
    right = np.zeros(len(matrix))
    right[:n] = slopes[free] / scale
    direction[free] = np.linalg.solve(matrix, right)[:n]
    return direction


def _above_mean(
    slopes: FloatArray, block: IntArray, n_blocks: int, weights: FloatArray
) -> FloatArray:
    """Return the slope of every corner minus the mean slope of its block."""
    above: FloatArray = slopes - np.bincount(block, weights * slopes, n_blocks)[block]
    return above


def _sum_of_largest(above: FloatArray, block: IntArray, n_blocks: int) -> float:
    largest = np.zeros(n_blocks)
    np.maximum.at(largest, block, above)
    return float(largest.sum())
