"""A bound of the value of a perfect-matching entropy, by least squares: slow, for any marginals.

Let tau' be the answer scaled to exact row sums and R = W + grad H(tau') - u_i - u_j with any u. By
concavity every feasible tau has value(tau) <= value(tau') + <tau - tau', R>, and <tau, R> <=
sum_i max_j R_ij / 2.
"""

import numpy as np

from engine.core.arguments import FloatArray
from engine.entropies.matching import complete_layout, make_matching_entropy
from engine.inference.matching.messages import MessageSolution

TINY = 1e-250  # marginals below this are zero for the certificate's logarithms


def bound_value(
    scores: FloatArray, rho: FloatArray, solution: MessageSolution
) -> tuple[float, float]:
    """Return <W, tau> + H(tau) and a certified bound of its maximum over the degree constraints.

    O(n^3): a linear system of n unknowns.
    """
    tau, n = solution.tau, len(solution.tau)
    entropy = make_matching_entropy(complete_layout(n), rho)
    inside = (tau > TINY) & (tau < 1.0)
    allowed = (scores > -np.inf) & ~np.eye(n, dtype=np.bool_)
    finite = np.where(allowed, scores, 0.0)
    value = float((tau * finite).sum()) / 2 + entropy.value(tau)
    gradient = finite + entropy.gradient(np.where(inside, tau, np.minimum(tau, 1.0 - 1e-16)))
    weight = np.where(inside, tau * (1.0 - tau), 0.0) + 1e-12 * inside
    u = _fit_potentials(gradient, weight)
    excess = np.where(inside, gradient - u[:, None] - u[None, :], -np.inf)
    excess = np.where(tau >= 1.0, 0.0, excess)
    mean = float((tau * np.where(np.isfinite(excess), excess, 0.0)).sum()) / 2
    top = float(excess.max(axis=1).sum()) / 2
    slack = n * solution.residual * (1.0 + float(np.abs(u).max()))
    return value, value + max(top - mean, 0.0) + slack


def _fit_potentials(gradient: FloatArray, weight: FloatArray) -> FloatArray:
    """Return u minimising sum w_ij (gradient_ij - u_i - u_j)^2: one linear system."""
    matrix = weight + np.diag(weight.sum(axis=1) + 1e-30)
    right = (weight * gradient).sum(axis=1)
    solution: FloatArray = np.linalg.lstsq(matrix, right, rcond=None)[0]
    return solution
