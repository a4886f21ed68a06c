"""Pseudomarginals of perfect matchings on dense graphs by Newton's method on potentials.

The maximum of <W, tau> + H_rho(tau) over the degree constraints and chosen odd sets U satisfies

    log tau_ij + c log(1 - tau_ij) = W_ij - u_i - u_j - sum_{U holds i and j} m_U
    sum_j tau_ij = 1,   tau(E(U)) = (|U| - 1) / 2, that is cut(U) = 1,   c = rho_i + rho_j - 1

Newton's method (``newton_steps``) converges from nearby; from further off the scores are changed in
steps along a line (predictor and corrector), and the logarithm of what leaves a newly added set
likewise.

References
----------
Allgower and Georg 1990 (continuation); Edmonds 1965 (odd sets).
"""

from dataclasses import replace

import numpy as np

from engine.core.arguments import FloatArray, IntArray
from engine.core.progress import StopCallback, never_stop
from engine.inference.matching.newton_point import NewtonPoint
from engine.inference.matching.newton_steps import NewtonSteps

ON_THE_WAY = 0.05  # residual at which a point of the path is good enough to go on from
SHORTEST = 1e-4  # share of the path below which it has come to a standstill
MAX_POINTS = 400  # of one path


def follow_path(
    start: NewtonPoint,
    scores: FloatArray,
    rho: FloatArray,
    tolerance: float,
    *,
    new_sets: tuple[IntArray, ...] = (),
    should_stop: StopCallback = never_stop,
) -> NewtonPoint:
    """Go from one solution to that of other scores, with further odd sets held at equality.

    Parameters
    ----------
    start : NewtonPoint, a solution.
    scores : ndarray, shape (n, n), symmetric, excluding the pairs that the start's exclude.
    rho : ndarray, shape (n,)
    tolerance : float, residual wanted at the end, nats.
    new_sets : tuple of ndarray, odd sets to be held at equality besides the start's.
    should_stop : asked before every step.

    Returns
    -------
    NewtonPoint
        Of the scores asked for if its residual says so; else of those where the path stood still.

    Raises
    ------
    StoppedError
        If ``should_stop`` answered True.

    Notes
    -----
    O(n^3) a step, three arrays (n, n). Multipliers may come out negative: see ``drop_slack_sets``.
    """
    work = NewtonSteps(rho, should_stop)
    point = work.add_sets(start, new_sets)
    first, before = point.scores, point.targets
    with np.errstate(invalid="ignore"):
        change = np.where(scores > -np.inf, scores - first, 0.0)
    done, share, steps = 0.0, 1.0, 0
    for _ in range(MAX_POINTS):
        is_last = done + share >= 1.0 - 1e-12
        here = 1.0 if is_last else done + share
        asked = replace(
            point,
            scores=scores if is_last else first + here * change,
            targets=before ** (1.0 - here),
        )
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # steps that lead away
            reached = work.converge(asked, tolerance if is_last else max(tolerance, ON_THE_WAY))
        steps += reached.steps
        if reached.residual <= (tolerance if is_last else ON_THE_WAY):
            point, done = replace(reached, steps=0), here
            if is_last:
                break
            share = min(share * (2.0 if reached.steps <= 3 else 1.3), 1.0 - done)
        else:
            share *= 0.4
            if share < SHORTEST:
                break
    return replace(point, steps=steps)


def read_marginals(point: NewtonPoint, rho: FloatArray) -> FloatArray:
    """Return tau, shape (n, n), of a solution."""
    return NewtonSteps(rho).marginals(point)


def newton_rates(point: NewtonPoint, rho: FloatArray) -> FloatArray:
    """Return tau (1 - tau) / (1 - (1 + c) tau) of a solution, (n, n): minus d tau / d u_i."""
    return NewtonSteps(rho).rates(point)
