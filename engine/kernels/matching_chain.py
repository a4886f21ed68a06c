"""Markov chain on perfect matchings: two pairs at a time are re-paired by heat bath."""

import math

from numba import njit

from engine.core.arguments import FloatArray, IntArray


@njit(cache=True, nogil=True)
def sweep_pairs(
    scores: FloatArray, pairs: IntArray, choices: IntArray, uniforms: FloatArray
) -> float:
    """Re-pair two pairs per step, in place; return the change of the total score.

    Step t takes pairs ``choices[t]`` = (k, l), k != l, with students a b and c d, and draws one of
    {ab, cd}, {ac, bd}, {ad, bc} with probability proportional to exp(score). Detailed balance holds
    for P(matching) ~ exp(total score), since the three share every other pair.

    ``scores`` (n, n), ``pairs`` (p, 2), ``choices`` (t, 2), ``uniforms`` (t,) in [0, 1).
    """
    change = 0.0
    for t in range(len(choices)):
        k, m = choices[t, 0], choices[t, 1]
        a, b = pairs[k, 0], pairs[k, 1]
        c, d = pairs[m, 0], pairs[m, 1]
        stay = scores[a, b] + scores[c, d]
        first = scores[a, c] + scores[b, d]
        second = scores[a, d] + scores[b, c]
        top = max(stay, max(first, second))
        e0, e1, e2 = math.exp(stay - top), math.exp(first - top), math.exp(second - top)
        u = uniforms[t] * (e0 + e1 + e2)
        if u < e0:
            continue
        if u < e0 + e1:
            pairs[k, 1], pairs[m, 0], pairs[m, 1] = c, b, d
            change += first - stay
        else:
            pairs[k, 1], pairs[m, 0], pairs[m, 1] = d, b, c
            change += second - stay
    return change
