"""Marginals of the joint matching within one group of students."""

import numpy as np

from engine.core.arguments import FloatArray, IntArray
from engine.inference.matching_messages import solve_messages
from engine.inference.matching_potentials import DenseScores, solve_potentials

TOLERANCE = 1e-9  # largest error of a row sum, far below what is ever printed


def compute_group_marginals(scores: FloatArray, rho: float, forbidden: IntArray) -> FloatArray:
    """Return tau, shape (m, m), of perfect matchings that avoid the forbidden pairs.

    Parameters
    ----------
    scores : ndarray, shape (m, m), symmetric, nats; the diagonal is ignored.
    rho : float, reweighting.
    forbidden : ndarray, shape (f, 2), positions.

    Notes
    -----
    By potentials, in a few sweeps; by messages where a pair is likelier than all others together.
    """
    m = len(scores)
    if m == 0:
        return np.zeros((0, 0))
    if m == 2:
        return np.array([[0.0, 1.0], [1.0, 0.0]])
    values = np.array(scores, dtype=np.float64)
    values[forbidden[:, 0], forbidden[:, 1]] = -np.inf
    values[forbidden[:, 1], forbidden[:, 0]] = -np.inf
    solution = solve_potentials(DenseScores(values), np.full(m, rho), None, TOLERANCE)
    if solution.is_on_branch:
        return solution.marginals()
    return solve_messages(values, np.full(m, rho), None, TOLERANCE).tau
