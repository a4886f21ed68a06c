"""Pseudomarginals of matchings by Frank-Wolfe, from nothing but a MAP oracle."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from engine.core.arguments import FloatArray, IntArray, check_shape, read_only
from engine.core.errors import InvalidProblemError
from engine.core.progress import StopCallback, never_stop
from engine.core.status import Status
from engine.entropies.matching import (
    MatchingEntropy,
    bipartite_layout,
    complete_layout,
    make_matching_entropy,
)
from engine.oracles.protocol import LinearMinimizationOracle

LINE_SEARCH_STEPS = 30
STEP_TOLERANCE = 1e-10


@dataclass(frozen=True, slots=True)
class FrankWolfeMarginals:
    """Pseudomarginals with their certificate.

    ``marginals`` (n, m), read-only; ``value`` <W, tau> + H_rho(tau), nats; ``upper_bound`` of
    log Z_rho, certified by the oracle's own bounds; ``oracle_calls``; ``status``.
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
    rho: Any = 1.0,
    is_bipartite: bool = True,
    is_perfect: bool = True,
    steps: Literal["line-search", "open-loop"] = "line-search",
    tolerance: float = 1e-4,
    max_iterations: int = 1000,
    start: FloatArray | None = None,
    on_iterate: Callable[[FloatArray, int], None] | None = None,
    should_stop: StopCallback = never_stop,
) -> FrankWolfeMarginals:
    """Maximise <W, tau> + H_rho(tau) over the oracle's polytope.

    tau <- (1 - g) tau + g argmax_s <s, W + grad H(tau)>. With the exact oracle of a general graph
    the odd-set inequalities hold by construction, since every iterate is a mean of matchings.

    Parameters
    ----------
    scores : ndarray, shape (n, m), nats; symmetric unless ``is_bipartite``; -inf excludes an edge
    oracle : LinearMinimizationOracle
        Its vertex is the partner of every row, shape (n,), -1 for none.
    rho : float or ndarray, in [0, 1]
    is_bipartite, is_perfect : bool
    steps : "line-search", or "open-loop" for g = 2 / (t + 2)
        The search never goes beyond the open loop's step: the Bethe entropy has no barrier at a
        vertex, and iterates that jump next to one do not come back in reasonable time.
    tolerance : float, nats, wanted certified gap
    max_iterations : int, oracle calls
    start : ndarray, shape (n, m), optional
        A point with every usable edge above 0; needed where edges are excluded. Otherwise the
        uniform point.
    on_iterate : callable, given every new tau (not to be kept) and the oracle calls so far
    should_stop : callable

    Returns
    -------
    FrankWolfeMarginals

    Raises
    ------
    InvalidProblemError
        If the scores are not a two-dimensional array, hold NaN or +inf, or need a start.

    Notes
    -----
    O(1 / t): cheap to a few per cent, slow to many digits.

    References
    ----------
    Sontag and Jaakkola (2007), New outer bounds on the marginal polytope; Tang et al. (2015), 3.2.
    """
    scores = _check_scores(scores, is_bipartite)
    n, m = scores.shape
    layout = bipartite_layout(n, m) if is_bipartite else complete_layout(n)
    entropy = make_matching_entropy(layout, rho, is_perfect=is_perfect)
    problem = _FreeEnergy(np.where(np.isneginf(scores), 0.0, scores), scores, entropy, oracle)
    tau = _start(scores, entropy) if start is None else np.array(start, dtype=np.float64)
    check_shape("start", tau, scores.shape)
    upper_bound, calls, status = np.inf, 0, Status.ITERATION_LIMIT
    while calls < max_iterations:
        partner, gap = problem.best_vertex(tau)
        calls += 1
        upper_bound = min(upper_bound, problem.value(tau) + gap)
        if gap <= tolerance or should_stop():
            status = Status.CONVERGED if gap <= tolerance else Status.CANCELLED
            break
        step = 2.0 / (calls + 2.0)
        places = problem.places(partner)
        if steps == "line-search":
            step = problem.line_search(tau, places, step)
        tau *= 1.0 - step
        tau.ravel()[places] += step
        if on_iterate is not None:
            on_iterate(tau, calls)
    return FrankWolfeMarginals(read_only(tau), problem.value(tau), upper_bound, calls, status)


@dataclass(frozen=True, slots=True)
class _FreeEnergy:
    """``finite`` are the scores with excluded edges at 0, where tau is 0 anyway."""

    finite: FloatArray
    scores: FloatArray
    entropy: MatchingEntropy
    oracle: LinearMinimizationOracle

    def value(self, tau: FloatArray) -> float:
        """Return <W, tau> + H(tau), nats."""
        energy = self.entropy.layout.share * float(np.vdot(self.finite, tau))
        return energy + self.entropy.value(tau)

    def best_vertex(self, tau: FloatArray) -> tuple[IntArray, float]:
        """Return the partners of the oracle's vertex, and the certified gap."""
        slopes = self.entropy.gradient(tau)
        point = self.oracle.compute_extreme_point(self.scores + slopes)
        inner = self.entropy.layout.share * float(np.vdot(self.finite + slopes, tau))
        return point.vertex, max(point.upper_bound - inner, 0.0)

    def places(self, partner: IntArray) -> IntArray:
        """Return where in the flat array the vertex is 1."""
        matched = np.flatnonzero(partner >= 0)
        return np.asarray(matched * self.scores.shape[1] + partner[matched])

    def line_search(self, tau: FloatArray, places: IntArray, longest: float) -> float:
        """Return the best step up to ``longest``: safeguarded Newton on a concave function."""
        at_vertex = float(self.finite.ravel()[places].sum())
        linear = self.entropy.layout.share * (at_vertex - float(np.vdot(self.finite, tau)))
        low, high, step = 0.0, longest, longest
        for _ in range(LINE_SEARCH_STEPS):
            _, slope, curvature = self.entropy.along_vertex(tau, places, step)
            slope += linear
            if slope >= 0.0 and step == longest:
                return longest
            low, high = (step, high) if slope > 0.0 else (low, step)
            newton = step - slope / curvature if curvature < 0.0 else np.inf
            if abs(newton - step) <= STEP_TOLERANCE * step or high - low <= STEP_TOLERANCE * high:
                break
            step = newton if low < newton < high else 0.5 * (low + high)
        return step


def _check_scores(scores: Any, is_bipartite: bool) -> FloatArray:
    array = np.array(scores, dtype=np.float64)
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
