"""Belief propagation for perfect matchings of bipartite graphs."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.core.arguments import FloatArray, as_float_array, check_shape, read_only
from engine.core.errors import InfeasibleError, InvalidProblemError
from engine.core.options import check_number, check_whole
from engine.core.status import Status
from engine.kernels.bipartite_messages import propagate

LARGEST = 500.0
"""Largest size of a message beyond the scores' share, nats: exp(-500) counts as 0."""

Messages = tuple[FloatArray, FloatArray]  # log messages from rows and from columns, sender first


@dataclass(frozen=True, slots=True)
class BipartiteBeliefs:
    """Final state of belief propagation.

    ``marginals`` (n, n): the Bethe marginals if ``status`` is converged, else those of the last
    messages, whose rows need not sum to one. ``from_rows`` and ``from_columns`` (n, n) are log
    messages indexed by sender first, from which another call can start. ``sweeps`` counts parallel
    updates of all messages; ``residual`` is the largest change of a marginal in the last update.
    """

    marginals: FloatArray
    from_rows: FloatArray
    from_columns: FloatArray
    sweeps: int
    residual: float
    status: Status

    @property
    def messages(self) -> Messages:
        """Log messages from which another call can start."""
        return self.from_rows, self.from_columns


def propagate_bipartite(
    scores: Any,
    *,
    damping: float = 0.5,
    tolerance: float = 1e-9,
    max_sweeps: int = 1000,
    start: Messages | None = None,
) -> BipartiteBeliefs:
    """Pass messages until the marginals converge.

    mu_{i->j} = 1 / sum_{k != j} exp(W_ik) mu_{k->i} and tau_ij = x / (1 + x) with
    x = exp(W_ij) mu_{i->j} mu_{j->i}. A fixed point is the optimum of the Bethe free energy, which
    is convex here; the parallel updates need not reach it.

    Parameters
    ----------
    scores : ndarray, shape (n, n), float64, nats
        -inf forbids an edge.
    damping : float in [0, 1)
        Share of the old log message that is kept. Without damping the parallel updates can
        alternate between two states forever; 1/2 prevents that.
    tolerance : float
        Largest change of a marginal in one sweep that counts as converged, once rows and columns
        sum to 1 within 1e-3 and no marginal near 0 or 1 is moving back.
    max_sweeps : int
    start : pair of ndarray (n, n), optional
        ``from_rows`` and ``from_columns`` of an earlier call; otherwise all log messages are 0.

    Returns
    -------
    BipartiteBeliefs
        ``status`` is ITERATION_LIMIT if the marginals still change or are no fixed point.

    Raises
    ------
    InvalidProblemError
        If the scores are not square or contain NaN or +inf, or damping lies outside [0, 1).
    InfeasibleError
        If a row or a column has no allowed edge.

    Notes
    -----
    O(n^2) time a sweep and O(n^2) memory.

    References
    ----------
    Huang and Jebara (2009), Approximating the permanent with belief propagation.

    Examples
    --------
    >>> propagate_bipartite(np.zeros((2, 2))).marginals.tolist()
    [[0.5, 0.5], [0.5, 0.5]]
    """
    check_number("damping", damping, at_least=0.0, below=1.0)
    check_number("tolerance", tolerance, at_least=0.0)
    check_whole("max_sweeps", max_sweeps)
    scores = _check_scores(scores)
    if not 0.0 <= damping < 1.0:
        raise InvalidProblemError(f"damping: expected a number in [0, 1), received {damping}.")
    if start is None:
        from_rows, from_columns = np.zeros_like(scores), np.zeros_like(scores)
    else:
        check_shape("start", start[0], scores.shape)
        check_shape("start", start[1], scores.shape)
        from_rows, from_columns = start[0].copy(), start[1].copy()
    largest = LARGEST + 2.0 * float(np.abs(scores[scores > -np.inf]).max())
    marginals, sweeps, residual, is_fixed = propagate(
        scores, from_rows, from_columns, damping, tolerance, max_sweeps, largest
    )
    return BipartiteBeliefs(
        marginals=read_only(marginals),
        from_rows=read_only(from_rows),
        from_columns=read_only(from_columns),
        sweeps=sweeps,
        residual=residual,
        status=Status.CONVERGED if is_fixed else Status.ITERATION_LIMIT,
    )


def _check_scores(scores: Any) -> FloatArray:
    array = as_float_array("scores", scores)
    check_shape("scores", array, (None, None))
    if array.shape[0] != array.shape[1] or not array.size:
        raise InvalidProblemError(f"scores: expected a square array, received {array.shape}.")
    if np.isnan(array).any() or np.isposinf(array).any():
        raise InvalidProblemError("scores: expected finite numbers or -inf, received others.")
    for axis, side in ((1, "row"), (0, "column")):
        lonely = np.flatnonzero(np.isneginf(array).all(axis=axis))
        if lonely.size:
            raise InfeasibleError(f"No edge is allowed at {side} {int(lonely[0])}.")
    return array
