"""Gradients of functions of converged pseudomarginals, by perturbing the scores along a slope.

Domke 2013, section 6.
"""

from collections.abc import Callable

import numpy as np

from engine.core.arguments import FloatArray
from engine.core.errors import InvalidProblemError
from engine.core.options import check_positive

Solver = Callable[[FloatArray], FloatArray]
"""Function from scores to flat converged marginals, possibly summed over shared parameters."""

SIDES = {"one-sided": 1, "two-sided": 2, "four-sided": 4}

PERTURBATIONS = {
    1: ((1.0, 1.0), (0.0, -1.0)),
    2: ((1.0, 0.5), (-1.0, -0.5)),
    4: ((-2.0, 1 / 12), (-1.0, -8 / 12), (1.0, 8 / 12), (2.0, -1 / 12)),
}
"""Steps, in units of r, and weights of one, two and four sides."""


def perturbed_gradient(
    solve: Solver,
    scores: FloatArray,
    slope: FloatArray,
    sides: int = 2,
    *,
    multiplier: float = 1.0,
) -> FloatArray:
    """Return dQ/dtheta, shaped as the marginals, from marginals at scores moved along the slope.

    With tau(theta) the maximum of <theta, tau> + H(tau) its Jacobian is symmetric, so that this is
    the change of tau along the slope dQ/dtau, over steps of r = m eps^(1/3) (1 + |theta|_inf) /
    |slope|_inf, m the multiplier. With one side the marginals at the unmoved scores are solved
    again, as accurately as the others.

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
