"""Active-set method for pseudomarginals of perfect matchings over the matching polytope.

The optimum under the degree constraints comes first (``newton``). Odd sets that it violates are
added to the active set, each held at equality by a multiplier m_U >= 0, which lowers the scores of
the pairs inside; sets whose multiplier turns negative are dropped; and so on until every odd set is
proved. If the continuation step is too long, intermediate scores come first, with their sets. If
continuation stalls, an interior-point method takes over (``interior``), which needs none.

    value(s) <= value(tau) + max_s <s - tau, R> + sum_U m_U ((|U| - 1) / 2 - tau(U))

for every s of the polytope, with R the gradient at tau less the potentials and the multipliers:
the bound holds wherever the search ends, for any m >= 0.
"""

from dataclasses import dataclass, replace

import numpy as np

from engine.core.arguments import FloatArray, IntArray
from engine.core.progress import StopCallback, never_stop
from engine.inference.matching.crossing_sets import uncross
from engine.inference.matching.interior import solve_from_inside
from engine.inference.matching.messages import scale_to_rows
from engine.inference.matching.newton import (
    NewtonPoint,
    drop_slack_sets,
    follow_path,
    read_marginals,
)
from engine.inference.matching.odd_sets import (
    EARLY_EXACT_MAX_NODES,
    EXACT_UP_TO,
    examine_odd_sets,
)
from engine.inference.matching.polytope_bound import bound_value
from engine.solvers.barrier import Proof

RESIDUAL = 1e-10  # of potentials, nats: Newton's last step is far more accurate
MAX_ROUNDS = 40  # maximum number of rounds of adding and dropping odd sets
SHORTEST_LEG = 1.0 / 16.0  # shortest continuation step, as a share of the change of scores
NO_LEGS = 300  # number of nodes up to which the interior-point method is cheaper
UNBOUNDED = 1e-7  # relative gap beyond which potentials have lost their digits
GAP = 1e-9  # target of the interior-point method, relative to values above 1
BINDS = 1e-6  # nats: a set with a smaller multiplier at the end does not bind


@dataclass(frozen=True, slots=True)
class PolytopeSolution:
    """Optimum over the matching polytope, or a point with proved bounds.

    Parameters
    ----------
    tau : ndarray, shape (n, n), symmetric with row sums 1.
    point : NewtonPoint, potentials, and the sets that bind with their multipliers.
    value : float, <W, tau> + H_rho(tau), nats, less allowances for rounding and active sets: at
        most the maximum, apart from the effect of violations up to ``TOLERANCE``.
    upper_bound : float, certified, of the maximum over the matching polytope.
    proof : Proof, of tau.
    steps : int, linear systems solved and sweeps.
    is_from_inside : bool, True if continuation stalled: ``point`` is near a solution, but no start.
    """

    tau: FloatArray
    point: NewtonPoint
    value: float
    upper_bound: float
    proof: Proof
    steps: int
    is_from_inside: bool = False


def solve_over_polytope(
    start: NewtonPoint,
    scores: FloatArray,
    rho: FloatArray,
    *,
    exact_up_to: int = EXACT_UP_TO,
    holds_new: bool = True,
    should_stop: StopCallback = never_stop,
) -> PolytopeSolution:
    """Maximise <W, tau> + H_rho(tau) over the matching polytope of a dense graph.

    Parameters
    ----------
    start : NewtonPoint, a solution at other scores that exclude the same pairs.
    scores : ndarray, shape (n, n), symmetric, nats; -inf excludes a pair.
    rho : ndarray, shape (n,), reweighting in [0, 1].
    exact_up_to : int, most nodes for which all odd cuts are examined if nothing else proves them.
    holds_new : bool, False if sets that are not active at the start need not be satisfied yet: the
        value and its bound are then those of a larger set of marginals.
    should_stop : called before every step.

    Raises
    ------
    StoppedError
        If ``should_stop`` returned True.
    """
    found = _follow_legs(start, scores, rho, exact_up_to, holds_new, should_stop)
    solution = _proved(found, scores, rho)
    if solution is not None:
        return solution
    inside = solve_inside_polytope(
        scores, rho, found.point.sets, exact_up_to=exact_up_to, should_stop=should_stop
    )
    return replace(inside, steps=found.steps + inside.steps)


def solve_inside_polytope(
    scores: FloatArray,
    rho: FloatArray,
    known: tuple[IntArray, ...],
    *,
    exact_up_to: int = EXACT_UP_TO,
    should_stop: StopCallback = never_stop,
) -> PolytopeSolution:
    """Maximise over the polytope by an interior-point method; ``known`` odd sets may bind."""
    found = solve_from_inside(
        scores, rho, GAP, exact_up_to=exact_up_to, known=known, should_stop=should_stop
    )
    point = found.point
    binds = np.flatnonzero(point.multipliers > BINDS)
    sets, multipliers = tuple(point.sets[k] for k in binds), point.multipliers[binds]
    point = replace(point, sets=sets, multipliers=multipliers)
    return PolytopeSolution(
        found.tau, point, found.value, found.upper_bound, found.proof, found.steps, True
    )


@dataclass(frozen=True, slots=True)
class _Leg:
    """Result at one set of scores, ``is_solved`` if no odd set remains to be added or dropped.

    ``tau`` (n, n) with row sums within ``residual`` of 1, and the ``proof`` of its odd sets.
    """

    point: NewtonPoint
    tau: FloatArray
    residual: float
    proof: Proof
    steps: int
    is_solved: bool


def _proved(found: _Leg, scores: FloatArray, rho: FloatArray) -> PolytopeSolution | None:
    """Return the solution; None if it is unsolved, or the bound shows that digits were lost."""
    if not found.is_solved or found.point.scores is not scores:
        return None
    value, bound = bound_value(scores, rho, found.tau, found.residual, found.point)
    if bound - value > UNBOUNDED * max(1.0, abs(value)):
        return None
    return PolytopeSolution(found.tau, found.point, value, bound, found.proof, found.steps)


def _follow_legs(
    start: NewtonPoint,
    scores: FloatArray,
    rho: FloatArray,
    exact_up_to: int,
    holds_new: bool,
    should_stop: StopCallback,
) -> _Leg:
    """Solve at the requested scores, by continuation through intermediate scores if necessary."""
    point, steps, done, share = start, 0, 0.0, 1.0
    while True:
        here = min(done + share, 1.0)
        is_last = here == 1.0
        asked = scores if is_last else _between(start.scores, scores, here)
        looked_at = exact_up_to if is_last else min(exact_up_to, EARLY_EXACT_MAX_NODES)
        found = _hold_sets(point, asked, rho, looked_at, holds_new, should_stop)
        steps += found.steps
        if found.is_solved:
            point, done, share = found.point, here, 2.0 * share
        elif share <= SHORTEST_LEG or len(rho) <= NO_LEGS:
            return replace(found, steps=steps)
        else:
            share *= 0.25
        if done == 1.0:
            return replace(found, steps=steps)


def _hold_sets(
    start: NewtonPoint,
    scores: FloatArray,
    rho: FloatArray,
    exact_up_to: int,
    holds_new: bool,
    should_stop: StopCallback,
) -> _Leg:
    """Solve under the degree constraints; add violated sets, and drop slack ones."""
    point = follow_path(start, scores, rho, RESIDUAL, should_stop=should_stop)
    before = start.multipliers
    steps, is_solved, is_careful = 0, False, False
    tried: set[frozenset[tuple[int, ...]]] = set()
    for _ in range(MAX_ROUNDS):
        steps += point.steps
        tau, residual = scale_to_rows(read_marginals(point, rho), should_stop)
        free = drop_slack_sets(point, RESIDUAL, before if is_careful else None)
        looked_at = exact_up_to if free is point else min(exact_up_to, EARLY_EXACT_MAX_NODES)
        proof = examine_odd_sets(tau, exact_up_to=looked_at, should_stop=should_stop)
        is_there = point.scores is scores
        violated = proof.violated if holds_new else ()
        if not violated and free is point:
            is_solved = is_there
            break
        new = uncross(tau, free.sets, violated)
        held = frozenset(tuple(nodes.tolist()) for nodes in (*free.sets, *new))
        if held in tried:  # dropped two sets at once, but one was needed
            if is_careful:
                break
            is_careful = True
            tried.clear()
        tried.add(held)
        before = np.concatenate([free.multipliers, np.zeros(len(new))])
        following = follow_path(free, scores, rho, RESIDUAL, new_sets=new, should_stop=should_stop)
        if following.residual > RESIDUAL and not is_there:
            break
        point = following
    return _Leg(point, tau, residual, proof, steps, is_solved)


def _between(first: FloatArray, last: FloatArray, share: float) -> FloatArray:
    """Return intermediate scores; pairs that either of them excludes stay excluded."""
    with np.errstate(invalid="ignore"):
        between = (1.0 - share) * first + share * last
    return np.where(np.isnan(between), -np.inf, between)
