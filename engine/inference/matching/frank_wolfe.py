"""Frank-Wolfe pseudomarginals of matchings, which need only a MAP oracle."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from engine.core.arguments import FloatArray, as_float_array, check_shape, read_only
from engine.core.errors import InvalidProblemError
from engine.core.options import check_callables, check_choice, check_flag, check_number, check_whole
from engine.core.progress import StopCallback, never_stop
from engine.core.status import Status
from engine.entropies.matching import (
    MatchingEntropy,
    bipartite_layout,
    complete_layout,
    make_matching_entropy,
)
from engine.objectives.objective import FixedScores
from engine.oracles.protocol import LinearMinimizationOracle
from engine.solvers.control import Callbacks, Limits
from engine.solvers.frank_wolfe import FrankWolfe
from engine.solvers.step_rules import LineSearch, OpenLoop, StepRule

StepSizes = Literal["line-search", "open-loop"]


@dataclass(frozen=True, slots=True)
class FrankWolfeMarginals:
    """Pseudomarginals by Frank-Wolfe with their certificate.

    Parameters
    ----------
    marginals : ndarray, shape (n, m), read-only
    value : float
        <W, tau> + H_rho(tau), nats.
    upper_bound : float
        Upper bound of log Z_rho, certified by the oracle's own bounds, nats.
    oracle_calls : int
    status : Status

    Examples
    --------
    >>> from engine.oracles.assignment import AssignmentOracle
    >>> found = compute_frank_wolfe_marginals(np.eye(3), AssignmentOracle())
    >>> found.upper_bound - found.value <= 1e-4
    True
    """

    marginals: FloatArray
    value: float
    upper_bound: float
    oracle_calls: int
    status: Status


def compute_frank_wolfe_marginals(
    scores: Any,
    oracle: LinearMinimizationOracle,
    *,
    rho: float | FloatArray = 1.0,
    is_bipartite: bool = True,
    is_perfect: bool = True,
    steps: StepSizes = "line-search",
    tolerance: float = 1e-4,
    max_iterations: int = 1000,
    start: FloatArray | None = None,
    note: Callable[[FloatArray, int], None] = lambda tau, calls: None,
    should_stop: StopCallback = never_stop,
) -> FrankWolfeMarginals:
    """Maximise <W, tau> + H_rho(tau) over the oracle's polytope.

    tau <- (1 - g) tau + g argmax_s <s, W + grad H(tau)>. With the exact oracle of a general graph
    the odd-set inequalities hold by construction, since every iterate is a mean of matchings.

    Parameters
    ----------
    scores : ndarray, shape (n, m), nats; symmetric unless ``is_bipartite``; -inf excludes an edge
    oracle : LinearMinimizationOracle
        An oracle whose points have shape (n, m).
    rho : float or ndarray, in [0, 1]
    is_bipartite, is_perfect : bool
    steps : "line-search", never beyond 2 / (t + 2), or "open-loop" for g = 2 / (t + 2)
    tolerance : float, nats, target certified gap
    max_iterations : int, oracle calls
    start : ndarray, shape (n, m), optional
        A point with every usable edge above 0, needed if edges are excluded; by default the
        uniform point.
    note : callable, receives every new tau (must not keep it) and the oracle calls so far
    should_stop : callable

    Returns
    -------
    FrankWolfeMarginals

    Raises
    ------
    InvalidProblemError
        If the scores are not a two-dimensional array, contain NaN or +inf, or need a start.

    Notes
    -----
    The gap falls as O(1 / t): a few per cent are cheap, many digits are slow.

    References
    ----------
    Sontag and Jaakkola (2007), New outer bounds on the marginal polytope; Tang et al. (2015), 3.2.

    Examples
    --------
    >>> from engine.oracles.assignment import AssignmentOracle
    >>> found = compute_frank_wolfe_marginals(np.zeros((3, 3)), AssignmentOracle())
    >>> found.marginals.round(3)[0].tolist(), found.status.value
    ([0.333, 0.333, 0.333], 'converged')
    """
    check_number("rho", rho, at_least=0.0, at_most=1.0, or_array=True)
    check_flag("is_bipartite", is_bipartite)
    check_flag("is_perfect", is_perfect)
    check_choice("steps", steps, get_args(StepSizes))
    check_number("tolerance", tolerance, at_least=0.0)
    check_whole("max_iterations", max_iterations)
    check_callables(note=note, should_stop=should_stop)
    scores = _check_scores(scores, is_bipartite)
    n, m = scores.shape
    layout = bipartite_layout(n, m) if is_bipartite else complete_layout(n)
    entropy = make_matching_entropy(layout, rho, is_perfect=is_perfect)
    begin = _start(scores, entropy) if start is None else np.array(start, dtype=np.float64)
    check_shape("start", begin, scores.shape)
    structure = FixedScores(scores, oracle, entropy, begin, layout.share)
    rule: StepRule = OpenLoop() if steps == "open-loop" else LineSearch(is_capped=True)
    solver = FrankWolfe(
        [structure],
        structure.free_energy,
        step_rule=rule,
        limits=Limits(0.0, max_iterations, gap=tolerance),
        callbacks=Callbacks(should_stop=should_stop),
        on_step=lambda iterate, _: note(iterate.points[0], iterate.oracle_calls),
    )
    result = solver.solve()
    return FrankWolfeMarginals(
        read_only(solver.iterate.points[0]),
        -solver.iterate.value,
        -result.lower_bound,
        result.oracle_calls,
        result.status,
    )


def _check_scores(scores: Any, is_bipartite: bool) -> FloatArray:
    array = as_float_array("scores", scores).copy()
    check_shape("scores", array, (None, None))
    if not is_bipartite:
        check_shape("scores", array, (len(array), len(array)))
    if np.isnan(array).any() or np.isposinf(array).any():
        raise InvalidProblemError("scores: expected finite numbers or -inf, received others.")
    return array


def _start(scores: FloatArray, entropy: MatchingEntropy) -> FloatArray:
    """Return the uniform interior point of a complete graph."""
    n, m = scores.shape
    excluded = np.isneginf(scores)
    is_bipartite = not entropy.layout.is_symmetric
    if not is_bipartite:
        excluded = excluded & ~np.eye(n, dtype=np.bool_)
    if excluded.any() or (entropy.is_perfect and is_bipartite and n != m):
        raise InvalidProblemError("start: a graph with excluded edges needs an interior start.")
    partners = max(n, m) if is_bipartite else n - 1
    tau = np.full((n, m), 1.0 / (partners + (not entropy.is_perfect)))
    if not is_bipartite:
        np.fill_diagonal(tau, 0.0)
    return tau
