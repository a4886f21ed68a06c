"""Newton's method on potentials for pseudomarginals of perfect matchings on dense graphs.

The maximum of <W, tau> + H_rho(tau) over the degree constraints and chosen odd sets U satisfies

    log tau_ij + c log(1 - tau_ij) = W_ij - u_i - u_j - sum_{U contains i, j} m_U
    sum_j tau_ij = 1,   tau(E(U)) = (|U| - 1) / 2, that is cut(U) = 1,   c = rho_i + rho_j - 1

Newton's method (``newton_steps``) converges from nearby. From further away, continuation changes
the scores in steps along a line (predictor and corrector), and likewise the logarithm of a newly
added set's cut.

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

ON_THE_WAY = 0.05  # residual at which an intermediate point allows the next continuation step
SHORTEST = 1e-4  # share of the continuation below which a step counts as stalled
MAX_POINTS = 400  # of one continuation


def follow_path(
    start: NewtonPoint,
    scores: FloatArray,
    rho: FloatArray,
    tolerance: float,
    *,
    new_sets: tuple[IntArray, ...] = (),
    should_stop: StopCallback = never_stop,
) -> NewtonPoint:
    """Continue a solution to other scores, with further odd sets active (held at equality).

    Parameters
    ----------
    start : NewtonPoint, a solution.
    scores : ndarray, shape (n, n), symmetric, excluding the pairs that the start's exclude.
    rho : ndarray, shape (n,)
    tolerance : float, target residual at the end, nats.
    new_sets : tuple of ndarray, odd sets to be made active besides the start's.
    should_stop : called before every step.

    Returns
    -------
    NewtonPoint
        At the requested scores if the residual is small enough, else where continuation stalled.

    Raises
    ------
    StoppedError
        If ``should_stop`` returned True.

    Notes
    -----
    O(n^3) a step, three arrays (n, n). Multipliers may become negative: see ``drop_slack_sets``.
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
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # divergent steps
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
