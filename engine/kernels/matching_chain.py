"""A Markov chain on perfect matchings: two pairs at a time are re-paired by heat bath."""

import numpy as np
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
        e0, e1, e2 = np.exp(stay - top), np.exp(first - top), np.exp(second - top)
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


@njit(cache=True, nogil=True)
def run_chain(
    scores: FloatArray,
    tau: FloatArray,
    levels: FloatArray,
    partner: IntArray,
    students: IntArray,
    uniforms: FloatArray,
    every: int,
    counts: FloatArray,
) -> int:
    """Move a perfect matching by exchanges that marginals propose; count its pairs now and then.

    Step t draws a partner j of ``students[t]`` from the row of tau; with their partners a and b,
    the pairs ia, jb become ij, ab with the probability of Metropolis and Hastings: either way may
    be proposed from any of the four students, (tau_ij + tau_ab) against (tau_ia + tau_jb). What is
    counted after every ``every`` steps is a matching of P ~ exp(total score), once it has mixed.

    ``scores``, symmetric ``tau`` and ``levels`` (the cumulative rows of tau) (n, n); ``partner``
    (n,), changed in place; ``students`` (t,); ``uniforms`` (t, 2); ``counts`` (n, n), added to.
    Returns the number of matchings counted.
    """
    n = len(partner)
    counted = 0
    for t in range(len(students)):
        i = students[t]
        j = np.searchsorted(levels[i], uniforms[t, 0] * levels[i, n - 1])
        a = partner[i]
        if j < n and j != a and j != i:
            b = partner[j]
            there = tau[i, j] + tau[a, b]
            back = tau[i, a] + tau[j, b]
            gain = scores[i, j] + scores[a, b] - scores[i, a] - scores[j, b]
            if uniforms[t, 1] * there < np.exp(min(gain, 700.0)) * back:
                partner[i], partner[j], partner[a], partner[b] = j, i, b, a
        if (t + 1) % every == 0:
            counted += 1
            for k in range(n):
                counts[k, partner[k]] += 1.0
    return counted
