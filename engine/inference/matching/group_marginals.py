"""Marginals of the joint matching within one group of students.

What the allowed pairs do not connect is solved apart. Parts whose sets of pairs are few enough are
summed exactly. The others get the optimum of the Bethe free energy, found over the degree
constraints; it is the one over the matching polytope if it satisfies every odd set, which is
checked. Odd sets that bind are held by multipliers. Pairs that are in no perfect matching are
clamped to 0 (Tang 2015, D.3). Where all that fails, up to 400 students Frank-Wolfe, whose oracle
knows the whole polytope, takes over.
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

TOLERANCE = 1e-9  # largest error of a row sum, far below what is ever printed
GUIDE_TOLERANCE = 1e-4  # of marginals that a Markov chain is held against, and corrects
PENALTY = 40.0  # nats off a forbidden pair on the way to forbidding it: nothing is left of it
PATH_END = 1e-8  # residual at the end of that way, nats
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
    is_exact : ndarray, shape (m,), bool, read-only
        Whose probabilities are summed over all perfect matchings. Those of the others are the
        optimum of the Bethe free energy over the matching polytope, which approximates them.
    gap : float, nats
        What the free energy lacks of that optimum at most, certified; 0 where it is known to the
        last digits, inf where no bound could be worked out.
    """

    tau: FloatArray
    is_exact: BoolArray
    gap: float = 0.0

    @property
    def accuracy(self) -> Literal["exact", "bethe"]:
        """Whether all of the group is exact."""
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
    forbidden : ndarray, shape (f, 2), positions.
    is_guide : bool
        Whether what is not summed exactly only guides a Markov chain: it is then good to 1e-4
        under the degree constraints, and its gap is inf, for no odd set is looked at. Only where
        everybody may live with half of the group; else some pairs might have to be clamped.
    should_stop : asked before every sweep and every call of an oracle.

    Raises
    ------
    InfeasibleError
        If the forbidden pairs leave no perfect matching, where that is noticed.
    StoppedError
        If ``should_stop`` answered True.

    Notes
    -----
    By sums over all sets of pairs, of up to 30 students who may all live together and of more where
    most may not; by potentials, in a few sweeps; by messages where a pair is likelier than all
    others together; by Newton's method where an odd set binds. Frank-Wolfe repairs what fails, up
    to 400 students.
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
    """Return the marginals of students whom allowed pairs connect."""
    summed = sum_perfect_matchings(values, should_stop=should_stop)
    # lost only where scores of 1e6 nats drown in rounding
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
    """Return which pairs may share, (m, m), nobody with themselves."""
    allowed = values > -np.inf
    np.fill_diagonal(allowed, val=False)
    return allowed


def _hold_odd_sets(
    values: FloatArray, rho: float, should_stop: StopCallback
) -> GroupMarginals | None:
    """Solve over the matching polytope by multipliers of the odd sets that bind, if that ends."""
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
    """Return the solution where all allowed pairs score alike, None where it is not found.

    The forbidden ones lose ``PENALTY`` first, and are excluded when nothing is left of them.
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
    values = np.minimum(scores, scores.T)  # products of matrices are symmetric up to rounding only
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
    """Whether rows sum to 1 and every odd set is proved."""
    return _row_error(tau) <= TOLERANCE and is_in_matching_polytope(tau, should_stop)


def _is_every_pair_usable(values: FloatArray) -> bool:
    """Whether everybody may live with half of the group and one more.

    Dirac's condition then holds without any two, so that every allowed pair is in a matching.
    """
    allowed = (values > -np.inf).sum(axis=1) - 1  # the diagonal is never excluded
    return bool(allowed.min() >= len(values) / 2 + 1)


def _repair(
    values: FloatArray, rho: float, start: FloatArray | None, should_stop: StopCallback
) -> GroupMarginals:
    """Come near the optimum by Frank-Wolfe, from a point above 0 on every usable pair."""
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
