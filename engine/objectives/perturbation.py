"""Gradients of functions of converged pseudomarginals, by moving the scores along a slope.

References
----------
Domke 2013, section 6.
"""

from collections.abc import Callable

import numpy as np

from engine.core.arguments import FloatArray, check_positive
from engine.core.errors import InvalidProblemError

Solver = Callable[[FloatArray], FloatArray]
"""Scores to converged marginals, flat; they may be summed over scores that share a parameter."""

SIDES = {"one-sided": 1, "two-sided": 2, "four-sided": 4}

PERTURBATIONS = {
    1: ((1.0, 1.0), (0.0, -1.0)),
    2: ((1.0, 0.5), (-1.0, -0.5)),
    4: ((-2.0, 1 / 12), (-1.0, -8 / 12), (1.0, 8 / 12), (2.0, -1 / 12)),
}
"""For one, two and four sides: steps, in units of r, and weights."""


def perturbed_gradient(
    solve: Solver,
    scores: FloatArray,
    slope: FloatArray,
    sides: int = 2,
    *,
    multiplier: float = 1.0,
) -> FloatArray:
    """Return dQ/dtheta from marginals at scores moved along the slope, in the shape of marginals.

    With tau(theta) the maximum of <theta, tau> + H(tau) its Jacobian is symmetric, so that this is
    the change of tau along the slope dQ/dtau, over steps of r = m eps^(1/3) (1 + |theta|_inf) /
    |slope|_inf, m the multiplier. With one side the marginals at the scores themselves are solved
    for again, as accurately as the others.

    Raises
    ------
    InvalidProblemError
        If ``sides`` is not 1, 2 or 4, or the multiplier not above 0.
    """
    check_positive("multiplier", multiplier)
    if sides not in PERTURBATIONS:
        raise InvalidProblemError(f"sides: expected 1, 2 or 4, received {sides}.")
    largest = float(np.abs(slope).max(initial=0.0))
    if largest == 0.0:
        return np.zeros_like(solve(scores))
    finite = scores[np.isfinite(scores)]
    size = 1.0 + float(np.abs(finite).max(initial=0.0))
    step = multiplier * float(np.finfo(np.float64).eps) ** (1.0 / 3.0) * size / largest
    total: FloatArray = np.zeros(1)
    for shift, weight in PERTURBATIONS[sides]:
        total = total + weight * solve(scores + shift * step * slope)
    return np.asarray(total / step)
