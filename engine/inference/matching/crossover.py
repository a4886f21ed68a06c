"""From a point inside the matching polytope to a solution that holds odd sets at equality.

A point from inside solves, exactly, the problem of scores of its own: those that its marginals,
potentials and multipliers satisfy the conditions of ``newton`` with. Sets that bind hold there at
what they let leave. From this solution a short path leads to the scores asked for, where one from
far away stood still. What is found is exact, and the next solve starts from it.

References
----------
Megiddo 1991 (from an interior point of a linear programme to a basis).
"""

import numpy as np

from engine.core.arguments import FloatArray, IntArray
from engine.inference.matching.crossing_sets import crosses, side_of
from engine.inference.matching.interior import SURE, InteriorSolution
from engine.inference.matching.newton import hold_as_they_are
from engine.inference.matching.newton_point import NewtonPoint
from engine.inference.matching.newton_steps import LIKELY

BINDS = 1e-2  # nats: sets of smaller multipliers are found again if they are needed
TINY = 1e-300


def solution_near(inside: InteriorSolution, scores: FloatArray, rho: FloatArray) -> NewtonPoint:
    """Return the solution that a point from inside is, at scores near those asked for.

    Parameters
    ----------
    inside : InteriorSolution, at ``scores``.
    scores : ndarray, shape (n, n), symmetric, nats; -inf excludes a pair.
    rho : ndarray, shape (n,)
    """
    tau, potentials = inside.tau, inside.point.potentials
    spare = np.where(tau > SURE, 0.0, tau).sum(axis=1)
    rest = np.where(tau > SURE, np.minimum(spare[:, None], spare), 1.0 - tau)
    logs, logs_of_rest = np.log(np.maximum(tau, TINY)), np.log(np.maximum(rest, TINY))
    counts = rho[:, None] + rho - 1.0
    solved = logs + counts * logs_of_rest + potentials[:, None] + potentials
    solved[scores == -np.inf] = -np.inf
    np.fill_diagonal(solved, np.diag(scores))  # no pair
    first, second = np.nonzero(np.triu(tau, 1) > LIKELY)
    likely = np.stack([first, second], axis=1)
    logits = (logs - logs_of_rest)[first, second]
    sets, multipliers = _binding(inside.point, len(tau))
    point = NewtonPoint(solved, potentials, likely, logits)
    return hold_as_they_are(point, sets, multipliers, rho)


def _binding(point: NewtonPoint, n_nodes: int) -> tuple[tuple[IntArray, ...], FloatArray]:
    """Return sets of large multipliers, none of which crosses a larger one's."""
    kept: list[int] = []
    sides = [side_of(nodes, n_nodes) for nodes in point.sets]
    for k in np.argsort(-point.multipliers, kind="stable").tolist():
        if point.multipliers[k] >= BINDS and not any(crosses(sides[k], sides[j]) for j in kept):
            kept.append(k)
    return tuple(point.sets[k] for k in kept), point.multipliers[kept]
