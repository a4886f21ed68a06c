"""Marginals of the joint matching within one group of students.

Up to 18 students they are summed exactly. Above, they are the optimum of the Bethe free energy,
found over the degree constraints; it is the one over the matching polytope if it satisfies every
odd set, which is checked. Odd sets that bind are held by multipliers. Where pairs are in no perfect
matching, these are clamped to 0 (Tang 2015, D.3), and up to 400 students Frank-Wolfe, whose oracle
knows the whole polytope, takes over.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from engine.core.arguments import FloatArray, IntArray, read_only
from engine.core.errors import StoppedError
from engine.core.progress import StopCallback, never_stop
from engine.inference.matching.exact import compute_matching_marginals
from engine.inference.matching.frank_wolfe import compute_frank_wolfe_marginals
from engine.inference.matching.messages import solve_messages
from engine.inference.matching.newton import uniform_point
from engine.inference.matching.odd_sets import is_in_matching_polytope
from engine.inference.matching.polytope import solve_over_polytope
from engine.inference.matching.potentials import DenseScores, solve_potentials
from engine.objectives.interior_start import find_interior_start
from engine.oracles.perfect_matching import CompleteGraphMatcher

TOLERANCE = 1e-9  # largest error of a row sum, far below what is ever printed
SUMMED_UP_TO = 18  # students of a group whose sets of pairs are summed exactly, in 50 ms
REPAIRED_UP_TO = 400  # students up to whom Frank-Wolfe comes near
CLAMPED_UP_TO = 500  # students whose unusable pairs are found in about five seconds
NEGLIGIBLE_GAP = 1e-6  # nats: rounding of the bound
MAX_CALLS = 1_000  # of Frank-Wolfe's oracle: within 0.01 of the optimum where that was known


@dataclass(frozen=True, slots=True)
class GroupMarginals:
    """Probabilities of the pairs of a group, and what they are.

    Parameters
    ----------
    tau : ndarray, shape (m, m), symmetric, rows summing to 1, read-only.
    accuracy : "exact" or "bethe"
        Exact: summed over all perfect matchings. Bethe: the optimum of the free energy over the
        matching polytope, which approximates them.
    gap : float, nats
        What the free energy lacks of that optimum at most, certified; 0 where it is known to the
        last digits, inf where no bound could be worked out.
    """

    tau: FloatArray
    accuracy: Literal["exact", "bethe"]
    gap: float = 0.0


def compute_group_marginals(
    scores: FloatArray,
    rho: float,
    forbidden: IntArray,
    *,
    should_stop: StopCallback = never_stop,
) -> GroupMarginals:
    """Return the marginals of perfect matchings that avoid the forbidden pairs.

    Parameters
    ----------
    scores : ndarray, shape (m, m), symmetric up to rounding, nats; the diagonal is ignored.
    rho : float, reweighting; groups that are summed exactly need none.
    forbidden : ndarray, shape (f, 2), positions.
    should_stop : asked before every sweep and every call of an oracle.

    Raises
    ------
    InfeasibleError
        If the forbidden pairs leave no perfect matching, where that is noticed.
    StoppedError
        If ``should_stop`` answered True.

    Notes
    -----
    By potentials, in a few sweeps; by messages where a pair is likelier than all others together;
    by Newton's method where an odd set binds. Where pairs are forbidden Frank-Wolfe repairs what
    fails, up to 400 students.
    """
    m = len(scores)
    if m == 0:
        return GroupMarginals(np.zeros((0, 0)), "exact")
    values = exclude_pairs(scores, forbidden)
    if m <= SUMMED_UP_TO:
        tau = compute_matching_marginals(values).marginals
        if _row_error(tau) <= TOLERANCE:  # lost only where scores of 1e6 nats drown in rounding
            return GroupMarginals(tau, "exact")
    tau = _solve_bethe(values, rho, should_stop)
    if _is_feasible(tau, should_stop):
        return GroupMarginals(read_only(tau), "bethe")
    if len(forbidden) == 0:
        held = _hold_odd_sets(values, rho, should_stop)
        if held is not None:
            return held
    if m > REPAIRED_UP_TO and (m > CLAMPED_UP_TO or _is_every_pair_usable(values)):
        return GroupMarginals(read_only(tau), "bethe", np.inf)
    return _repair(values, tau, rho, len(forbidden) > 0, should_stop)


def _hold_odd_sets(
    values: FloatArray, rho: float, should_stop: StopCallback
) -> GroupMarginals | None:
    """Solve over the matching polytope by multipliers of the odd sets that bind, if that ends."""
    weights = np.full(len(values), rho)
    np.fill_diagonal(values, 0.0)
    found = solve_over_polytope(
        uniform_point(len(values), weights), values, weights, should_stop=should_stop
    )
    if not found.proof.holds:
        return None
    gap = max(found.upper_bound - found.value, 0.0)
    return GroupMarginals(read_only(found.tau), "bethe", gap if gap > NEGLIGIBLE_GAP else 0.0)


def exclude_pairs(scores: FloatArray, forbidden: IntArray) -> FloatArray:
    """Return symmetric scores (m, m) with -inf for the forbidden pairs (f, 2)."""
    values = np.minimum(scores, scores.T)  # products of matrices are symmetric up to rounding only
    values[forbidden[:, 0], forbidden[:, 1]] = -np.inf
    values[forbidden[:, 1], forbidden[:, 0]] = -np.inf
    return values


def _solve_bethe(values: FloatArray, rho: float, should_stop: StopCallback) -> FloatArray:
    """Return the optimum over the degree constraints."""
    weights = np.full(len(values), rho)
    solution = solve_potentials(
        DenseScores(values), weights, None, TOLERANCE, should_stop=should_stop
    )
    if solution.is_on_branch:
        return solution.marginals()
    return solve_messages(values, weights, None, TOLERANCE, should_stop=should_stop).tau


def _row_error(tau: FloatArray) -> float:
    return float(np.abs(tau.sum(axis=1) - 1.0).max())


def _is_feasible(tau: FloatArray, should_stop: StopCallback) -> bool:
    """Whether rows sum to 1 and every odd set is proved."""
    return _row_error(tau) <= TOLERANCE and is_in_matching_polytope(tau, should_stop)


def _is_every_pair_usable(values: FloatArray) -> bool:
    """Whether everybody may live with half of the group and one more.

    Dirac's condition then holds without any two, so that every allowed pair is in a matching.
    """
    allowed = (values > -np.inf).sum(axis=1) - 1  # the diagonal is never excluded
    return bool(allowed.min() >= len(values) / 2 + 1)


def _repair(
    values: FloatArray,
    tau: FloatArray,
    rho: float,
    has_forbidden: bool,
    should_stop: StopCallback,
) -> GroupMarginals:
    """Clamp the pairs in no perfect matching; turn to Frank-Wolfe where that is not enough.

    Not above 400 students, where ``tau`` may be the optimum and only the proof have failed.
    """
    start = None
    if has_forbidden:
        start = _interior_point(values, should_stop)
        is_never = (start == 0.0) & (values > -np.inf)
        np.fill_diagonal(is_never, val=False)
        if is_never.any():
            values = np.where(is_never, -np.inf, values)
            tau = _solve_bethe(values, rho, should_stop)
            if _is_feasible(tau, should_stop):
                return GroupMarginals(read_only(tau), "bethe")
    if len(values) > REPAIRED_UP_TO:
        return GroupMarginals(read_only(tau), "bethe", np.inf)
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
    return GroupMarginals(result.marginals, "bethe", max(result.upper_bound - result.value, 0.0))


def _interior_point(values: FloatArray, should_stop: StopCallback) -> FloatArray:
    """Return an average of matchings (m, m) above 0 on every pair that is in one."""
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
