"""Certified Bethe marginals of bipartite matchings, by messages and by Newton's method."""

from dataclasses import replace

import numpy as np

from engine.core.arguments import FloatArray, as_finite_array, read_only
from engine.core.options import check_callables, check_number
from engine.core.progress import StopCallback, never_stop
from engine.core.status import Status
from engine.core.tolerances import TOLERANCES
from engine.inference.matching.bipartite_newton import (
    BipartiteSolution,
    compute_bipartite_pseudomarginals,
)
from engine.inference.matching.bipartite_points import (
    bracket_value,
    round_to_doubly_stochastic,
)
from engine.inference.matching.bipartite_propagation import (
    BipartiteBeliefs,
    Messages,
    propagate_bipartite,
)
from engine.kernels.simplex_entropy import sum_of_maxima

SWEEPS_PER_CHECK = 20
"""Sweeps between two evaluations of the bounds; an evaluation costs about five sweeps."""

MAX_SWEEPS = 100
"""Maximum number of sweeps of messages; beyond, Newton's method is faster."""


def compute_bethe_marginals(
    scores: FloatArray,
    *,
    tolerance: float = 1e-9,
    start: Messages | None = None,
    should_stop: StopCallback = never_stop,
) -> tuple[BipartiteSolution, BipartiteBeliefs]:
    """Maximise <W, tau> + H_1(tau) over doubly stochastic tau, by messages and then by Newton.

    Messages suit sharp scores: they find an optimum at a vertex in a few sweeps. Newton's method
    takes over if the messages have not closed the gap.

    Parameters
    ----------
    scores : ndarray, shape (n, n), float64, nats, finite
    tolerance : float, nats, target certified gap
    start : pair of ndarray (n, n), optional
        ``from_rows`` and ``from_columns`` of a call with nearby scores.
    should_stop : callable
        Called before every step of Newton's method; True raises StoppedError.

    Returns
    -------
    BipartiteSolution, BipartiteBeliefs

    Raises
    ------
    InvalidProblemError
        If the scores are not square and finite.

    Examples
    --------
    >>> solution, _ = compute_bethe_marginals(np.array([[1.0, 0.0], [0.0, 1.0]]))
    >>> round(solution.value, 6), solution.status.is_converged
    (2.0, True)
    """
    check_number("tolerance", tolerance, at_least=0.0)
    check_callables(should_stop=should_stop)
    scores = as_finite_array("scores", scores, shape=(None, None))
    beliefs = _sweep(scores, start)
    best, sweeps = certify_beliefs(scores, beliefs, tolerance), beliefs.sweeps
    while best.gap > tolerance and sweeps < MAX_SWEEPS:
        beliefs = _sweep(scores, beliefs.messages)
        best = _better(best, certify_beliefs(scores, beliefs, tolerance))
        sweeps += beliefs.sweeps
    if best.gap > tolerance:
        newton = compute_bipartite_pseudomarginals(
            scores, tolerance=tolerance, start=best.marginals, should_stop=should_stop
        )
        best, sweeps = _better(best, newton), sweeps + newton.iterations
    status = Status.CONVERGED if best.gap <= tolerance else Status.STALLED
    return replace(best, iterations=sweeps, status=status), beliefs


def _sweep(scores: FloatArray, start: Messages | None) -> BipartiteBeliefs:
    return propagate_bipartite(scores, tolerance=0.0, max_sweeps=SWEEPS_PER_CHECK, start=start)


def certify_beliefs(
    scores: FloatArray, beliefs: BipartiteBeliefs, tolerance: float = 1e-9
) -> BipartiteSolution:
    """Bound the Bethe problem from both sides by any messages.

    From below: the marginals, made doubly stochastic. From above: H_1 is half a sum over rows plus
    half a sum over columns of S(x) = sum (1-x) log(1-x) - x log x, each concave on its simplex; for
    any split W = A + B, log Z_Bethe <= sum_i max <A_i, x> + S/2 + sum_j max <B_j, x> + S/2.
    Messages choose A = (W + log mu_{j->i} - log mu_{i->j}) / 2, which is tight at a fixed point.
    """
    tau = round_to_doubly_stochastic(beliefs.marginals)
    value, _ = bracket_value(scores, np.ones(scores.shape), tau)
    rows = (scores + beliefs.from_columns.T - beliefs.from_rows) / 2
    columns = np.ascontiguousarray((scores - rows).T)
    size = np.abs(rows).max(axis=1).sum() + np.abs(columns).max(axis=1).sum() + 2.0 * len(rows)
    upper_bound = sum_of_maxima(rows) + sum_of_maxima(columns) + TOLERANCES.rounding * float(size)
    status = Status.CONVERGED if upper_bound - value <= tolerance else Status.ITERATION_LIMIT
    return BipartiteSolution(read_only(tau), value, upper_bound, beliefs.sweeps, status)


def _better(first: BipartiteSolution, second: BipartiteSolution) -> BipartiteSolution:
    """Combine the better lower and the better upper bound."""
    inner = first if first.value >= second.value else second
    return replace(inner, upper_bound=min(first.upper_bound, second.upper_bound))
