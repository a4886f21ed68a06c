"""Bounds of the maximum over the matching polytope from a point and its multipliers."""

from dataclasses import replace

import numpy as np

from engine.core.arguments import FloatArray
from engine.core.tolerances import TOLERANCES
from engine.inference.matching.newton import NewtonPoint
from engine.kernels.matching_potentials import SURE, bound_rows
from engine.kernels.threads import for_row_ranges


def bound_value(
    scores: FloatArray, rho: FloatArray, tau: FloatArray, residual: float, point: NewtonPoint
) -> tuple[float, float]:
    """Return <W, tau> + H(tau) and a certified bound of its maximum over the matching polytope.

    ``tau`` (n, n) has row sums within ``residual`` of 1; any potentials and multipliers give a
    bound. The value is reduced by its possible rounding error, and by twice the errors of row sums
    and active sets times their multipliers: it is at most the maximum if the odd sets of tau are
    proved and the multipliers are nearly optimal.
    """
    kept = np.maximum(point.multipliers, 0.0)
    reduced = replace(point, scores=scores, multipliers=kept).reduced_scores()
    nu = point.potentials - rho
    rows = np.empty((len(tau), 4))
    spare = np.where(tau > SURE, 0.0, tau).sum(axis=1)

    def work(first: int, last: int) -> None:
        bound_rows(reduced, tau, nu, rho, spare, TOLERANCES.smallest_entry, first, last, rows)

    for_row_ranges(len(tau), work)
    value, top, mean, size = rows.sum(axis=0) / 2.0
    inside = np.array([tau[np.ix_(nodes, nodes)].sum() / 2.0 for nodes in point.sets])
    most = np.array([(len(nodes) - 1) / 2.0 for nodes in point.sets])
    room = most - inside
    value += float(kept @ inside)
    slack = len(tau) * residual * (1.0 + float(np.abs(nu).max(initial=0.0)))
    slack += TOLERANCES.rounding * (size + 4.0 * float(kept @ most))
    upper_bound = value + max(top - mean, 0.0) + float(kept @ np.maximum(room, 0.0)) + slack
    return value - slack - 2.0 * float(kept @ np.maximum(-room, 0.0)), upper_bound
