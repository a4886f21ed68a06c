"""Marginals of the joint matching within one group of students.

Parts that allowed pairs do not connect are solved separately. Parts with few enough sets of pairs
are summed exactly. The others get the optimum of the Bethe free energy, found over the degree
constraints; it is the optimum over the matching polytope if it satisfies every odd set, which is
checked. Odd sets that bind become active constraints with multipliers. Pairs that are in no perfect
matching are clamped to 0 (Tang 2015, D.3). If all that fails, for up to 400 students Frank-Wolfe
takes over, whose oracle covers the whole polytope.
"""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from engine.core.arguments import BoolArray, FloatArray, IntArray, read_only
from engine.core.errors import StoppedError
from engine.core.progress import StopCallback, never_stop
from engine.inference.matching.frank_wolfe import compute_frank_wolfe_marginals
from engine.inference.matching.frontier_sums import connected_parts, sum_perfect_matchings
from engine.inference.matching.messages import solve_messages
from engine.inference.matching.newton import follow_path
from engine.inference.matching.newton_point import NewtonPoint, uniform_point
from engine.inference.matching.odd_sets import is_in_matching_polytope
from engine.inference.matching.polytope import solve_over_polytope
from engine.inference.matching.potentials import DenseScores, solve_potentials
from engine.objectives.interior_start import find_interior_start
from engine.oracles.perfect_matching import CompleteGraphMatcher

TOLERANCE = 1e-9  # largest error of a row sum, far below printed digits
GUIDE_TOLERANCE = 1e-4  # of marginals that a Markov chain is compared with, and corrects
PENALTY = 40.0  # nats taken off a forbidden pair, whose marginal is then negligible
PATH_END = 1e-8  # residual at the end of that continuation, nats
REPAIRED_UP_TO = 400  # maximum number of students for whom Frank-Wolfe comes near the optimum
CLAMPED_UP_TO = 500  # maximum number of students whose unusable pairs are found in about 5 s
NEGLIGIBLE_GAP = 1e-6  # nats: rounding of the bound
MAX_CALLS = 1_000  # of Frank-Wolfe's oracle: within 0.01 of known optima


@dataclass(frozen=True, slots=True)
class GroupMarginals:
    """Probabilities of the pairs of a group, with their accuracy.

    Parameters
    ----------
    tau : ndarray, shape (m, m), symmetric, rows summing to 1, read-only.
    is_exact : ndarray, shape (m,), bool, read-only
        True for students whose probabilities are summed over all perfect matchings. Those of the
        others are approximate: the optimum of the Bethe free energy over the matching polytope.
    gap : float, nats
        Certified bound on the shortfall of the free energy from that optimum; 0 if the optimum is
        known to the last digits, inf if no bound could be computed.
    """

    tau: FloatArray
    is_exact: BoolArray
    gap: float = 0.0

    @property
    def accuracy(self) -> Literal["exact", "bethe"]:
        """Accuracy of the whole group: "exact" if all probabilities are, else "bethe"."""
        return "exact" if bool(self.is_exact.all()) else "bethe"


def compute_group_marginals(
    scores: FloatArray,
    rho: float,
    forbidden: IntArray,
    *,
    is_guide: bool = False,
    should_stop: StopCallback = never_stop,
) -> GroupMarginals:
    """Return the marginals of perfect matchings that avoid the forbidden pairs.

    Parameters
    ----------
    scores : ndarray, shape (m, m), symmetric up to rounding, nats; the diagonal is ignored.
    rho : float, reweighting; groups that are summed exactly need none.
    forbidden : ndarray, shape (f, 2), indices of the students.
    is_guide : bool
        Whether approximate marginals only guide a Markov chain: they are then accurate to 1e-4
        under the degree constraints, and the gap is inf, since no odd set is examined. Only if
        every student may live with half of the group; else some pairs might have to be clamped.
    should_stop : called before every sweep and every call of an oracle.

    Raises
    ------
    InfeasibleError
        If the forbidden pairs leave no perfect matching and that is detected.
    StoppedError
        If ``should_stop`` returned True.

    Notes
    -----
    Methods: exact sums for up to 30 students who may all live together, and for more if most may
    not; potentials, in a few sweeps; messages if a pair is likelier than all others together;
    Newton's method if an odd set binds. Frank-Wolfe repairs failures, up to 400 students.
    """
    values = exclude_pairs(scores, forbidden)
    tau, is_exact, gap = np.zeros(values.shape), np.zeros(len(values), dtype=np.bool_), 0.0
    for part in connected_parts(_allowed(values)):
        found = _solve_part(values[np.ix_(part, part)], rho, should_stop, is_guide)
        tau[np.ix_(part, part)] = found.tau
        is_exact[part] = found.is_exact
        gap += found.gap
    return GroupMarginals(read_only(tau), read_only(is_exact), gap)


def _solve_part(
    values: FloatArray, rho: float, should_stop: StopCallback, is_guide: bool
) -> GroupMarginals:
    """Return the marginals of students who are connected by allowed pairs."""
    summed = sum_perfect_matchings(values, should_stop=should_stop)
    # fails only if scores are 1e6 nats, where rounding dominates
    if summed is not None and _row_error(summed.marginals) <= TOLERANCE:
        return GroupMarginals(summed.marginals, np.ones(len(values), dtype=np.bool_))
    if is_guide and _is_every_pair_usable(values):
        tau = _solve_bethe(values, rho, should_stop, GUIDE_TOLERANCE)
        if _row_error(tau) <= GUIDE_TOLERANCE:
            return _bethe(tau, np.inf)
    tau = _solve_bethe(values, rho, should_stop)
    if _is_feasible(tau, should_stop):
        return _bethe(tau)
    if not _is_every_pair_usable(values) and len(values) <= CLAMPED_UP_TO:
        start = _interior_point(values, should_stop)
        is_never = (start == 0.0) & _allowed(values)
        if is_never.any():
            clamped = np.argwhere(np.triu(is_never))
            return compute_group_marginals(values, rho, clamped, should_stop=should_stop)
    else:
        start = None
    held = _hold_odd_sets(values, rho, should_stop)
    if held is not None:
        return held
    if len(values) > REPAIRED_UP_TO:
        return _bethe(tau, np.inf)
    return _repair(values, rho, start, should_stop)


def _bethe(tau: FloatArray, gap: float = 0.0) -> GroupMarginals:
    return GroupMarginals(read_only(tau), np.zeros(len(tau), dtype=np.bool_), gap)


def _allowed(values: FloatArray) -> BoolArray:
    """Return a mask of the allowed pairs, (m, m), False on the diagonal."""
    allowed = values > -np.inf
    np.fill_diagonal(allowed, val=False)
    return allowed


def _hold_odd_sets(
    values: FloatArray, rho: float, should_stop: StopCallback
) -> GroupMarginals | None:
    """Solve over the matching polytope with active odd sets; return None on failure."""
    weights = np.full(len(values), rho)
    scores = values.copy()
    np.fill_diagonal(scores, 0.0)
    start = _equal_scores(_allowed(values), weights, should_stop)
    if start is None:
        return None
    found = solve_over_polytope(start, scores, weights, should_stop=should_stop)
    if not found.proof.holds:
        return None
    gap = max(found.upper_bound - found.value, 0.0)
    return _bethe(found.tau, gap if gap > NEGLIGIBLE_GAP else 0.0)


def _equal_scores(
    allowed: BoolArray, weights: FloatArray, should_stop: StopCallback
) -> NewtonPoint | None:
    """Return the solution for equal scores of all allowed pairs, None if it is not found.

    Forbidden pairs first lose ``PENALTY``, and are excluded once their marginals are negligible.
    """
    point = uniform_point(len(weights), weights)
    apart = ~(allowed | np.eye(len(weights), dtype=np.bool_))
    if not apart.any():
        return point
    point = follow_path(
        point, np.where(apart, -PENALTY, 0.0), weights, PATH_END, should_stop=should_stop
    )
    scores = np.where(apart, -np.inf, 0.0)
    start = replace(point, scores=scores)
    point = follow_path(start, scores, weights, PATH_END, should_stop=should_stop)
    return point if point.residual <= PATH_END else None


def exclude_pairs(scores: FloatArray, forbidden: IntArray) -> FloatArray:
    """Return symmetric scores (m, m) with -inf for the forbidden pairs (f, 2)."""
    values = np.minimum(scores, scores.T)  # matrix products are symmetric only up to rounding
    values[forbidden[:, 0], forbidden[:, 1]] = -np.inf
    values[forbidden[:, 1], forbidden[:, 0]] = -np.inf
    return values


def _solve_bethe(
    values: FloatArray, rho: float, should_stop: StopCallback, tolerance: float = TOLERANCE
) -> FloatArray:
    """Return the optimum over the degree constraints."""
    weights = np.full(len(values), rho)
    solution = solve_potentials(
        DenseScores(values), weights, None, tolerance, should_stop=should_stop
    )
    if solution.is_on_branch:
        return solution.marginals()
    return solve_messages(values, weights, None, tolerance, should_stop=should_stop).tau


def _row_error(tau: FloatArray) -> float:
    return float(np.abs(tau.sum(axis=1) - 1.0).max())


def _is_feasible(tau: FloatArray, should_stop: StopCallback) -> bool:
    """Return True if rows sum to 1 and every odd-set constraint is proved."""
    return _row_error(tau) <= TOLERANCE and is_in_matching_polytope(tau, should_stop)


def _is_every_pair_usable(values: FloatArray) -> bool:
    """Return True if every student may live with half of the group and one more.

    Dirac's condition then holds without any two, so that every allowed pair is in a matching.
    """
    allowed = (values > -np.inf).sum(axis=1) - 1  # the diagonal is never excluded
    return bool(allowed.min() >= len(values) / 2 + 1)


def _repair(
    values: FloatArray, rho: float, start: FloatArray | None, should_stop: StopCallback
) -> GroupMarginals:
    """Approximate the optimum by Frank-Wolfe, from a point above 0 on every usable pair."""
    if start is None and (values == -np.inf).any():
        start = _interior_point(values, should_stop)
    result = compute_frank_wolfe_marginals(
        values,
        CompleteGraphMatcher(),
        rho=rho,
        is_bipartite=False,
        max_iterations=MAX_CALLS,
        start=start,
        should_stop=should_stop,
    )
    if should_stop():
        raise StoppedError("Cancelled.")
    return _bethe(result.marginals, max(result.upper_bound - result.value, 0.0))


def _interior_point(values: FloatArray, should_stop: StopCallback) -> FloatArray:
    """Return an average of matchings (m, m), above 0 on every pair of a perfect matching."""
    matcher = CompleteGraphMatcher()
    first, second = np.nonzero(np.triu(values > -np.inf, 1))
    place = np.zeros(values.shape, dtype=np.int64)
    place[first, second] = np.arange(len(first))

    def oracle(weights: FloatArray) -> IntArray:
        if should_stop():
            raise StoppedError("Cancelled.")
        dense = np.full(values.shape, -np.inf)
        dense[first, second] = dense[second, first] = weights
        partner = matcher.solve(dense).partner
        lower = np.flatnonzero(partner > np.arange(len(partner)))
        return place[lower, partner[lower]]

    tau = np.zeros(values.shape)
    tau[first, second] = tau[second, first] = find_interior_start(len(first), oracle).tau
    return tau
