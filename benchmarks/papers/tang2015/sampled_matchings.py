"""Exact independent samples of the perfect matchings of a small complete bipartite graph."""

import numpy as np
from numba import njit

from engine.core.arguments import FloatArray, IntArray
from engine.core.errors import InfeasibleError
from engine.kernels.permanent import complete_rows


def sample_bipartite_matchings(
    scores: FloatArray, size: int, *, rng: np.random.Generator
) -> IntArray:
    """Draw independent perfect matchings of a complete bipartite graph from p(Y) ~ exp(W . Y).

    Exact: row by row from the conditionals of the subset programme.

    Parameters
    ----------
    scores : ndarray, shape (n, n), float64, nats; -inf forbids an edge, n <= 22
    size : int, number of samples

    Returns
    -------
    ndarray, shape (size, n), int64: the column of every row
    """
    table = complete_rows(scores)
    if table[0] == -np.inf:
        raise InfeasibleError("The graph has no perfect matching.")
    partners = np.empty((size, scores.shape[0]), dtype=np.int64)
    uniforms = rng.random((size, scores.shape[0]))
    sample_permutations(scores, table, uniforms, partners)
    return partners


@njit(cache=True, nogil=True)
def sample_permutations(
    scores: FloatArray, table: FloatArray, uniforms: FloatArray, partners: IntArray
) -> None:
    """Write exact independent samples to ``partners`` (size, n); ``uniforms`` (size, n) in [0, 1).

    Row by row from the conditional distribution given the columns used so far.
    """
    size, n = partners.shape
    for k in range(size):
        s = 0
        for i in range(n):
            left = uniforms[k, i]
            chosen = -1
            for j in range(n):
                t = s | (1 << j)
                if t == s or scores[i, j] == -np.inf or table[t] == -np.inf:
                    continue
                chosen = j  # rounding may leave a little mass: the last possible column takes it
                left -= np.exp(scores[i, j] + table[t] - table[s])
                if left < 0.0:
                    break
            partners[k, i] = chosen
            s |= 1 << chosen
