"""Pseudomarginals of perfect matchings over the matching polytope itself, with both bounds.

The optimum under the degree constraints comes first (``newton``). Odd sets that it
violates are held at equality by a multiplier m_U >= 0 each, which lowers the scores of the pairs
inside; sets whose multiplier turns negative are let go; so on until every odd set is proved. Where
the way there is too long, scores in between come first, with their sets. Where the way ends, the
optimum is approached from inside the polytope (``interior``), which needs no way.

    value(s) <= value(tau) + max_s <s - tau, R> + sum_U m_U ((|U| - 1) / 2 - tau(U))

for every s of the polytope, with R the gradient at tau less the potentials and the multipliers:
the bound holds wherever the search ends, for any m >= 0.
"""

from dataclasses import dataclass

import numpy as np

from engine.core.arguments import BoolArray, FloatArray, IntArray
from engine.core.progress import StopCallback, never_stop
from engine.inference.matching.interior import solve_from_inside
from engine.inference.matching.messages import scale_to_rows
from engine.inference.matching.newton import follow_path, read_marginals
from engine.inference.matching.newton_point import NewtonPoint, drop_slack_sets
from engine.inference.matching.odd_sets import (
    EXACT_IN_PASSING,
    EXACT_UP_TO,
    TOLERANCE,
    OddSetProof,
    examine_odd_sets,
    smaller_side,
)
from engine.inference.matching.polytope_bound import bound_value

RESIDUAL = 1e-10  # of potentials, nats: Newton's last step passes it by far
MAX_ROUNDS = 40  # of odd sets found, held and let go
SHORTEST_LEG = 1.0 / 16.0  # share of the way to the scores below which none is tried
NO_LEGS = 100  # nodes up to which the way from inside costs less than legs do
UNBOUNDED = 1e-7  # gap beyond which potentials have lost their digits, relative
GAP = 1e-9  # wanted from inside, relative to values above 1


@dataclass(frozen=True, slots=True)
class PolytopeSolution:
    """The optimum over the matching polytope, or what is proved of it.

    Parameters
    ----------
    tau : ndarray, shape (n, n), symmetric with row sums 1.
    point : NewtonPoint, to start warm from.
    value : float, <W, tau> + H_rho(tau), nats, less what rounding and held sets may have added: no
        more than the maximum, but for what odd sets that tau misses by ``TOLERANCE`` are worth.
    upper_bound : float, certified, of the maximum over the matching polytope.
    proof : OddSetProof, of tau.
    steps : int, linear systems solved and sweeps.
    """

    tau: FloatArray
    point: NewtonPoint
    value: float
    upper_bound: float
    proof: OddSetProof
    steps: int


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
    start : NewtonPoint, the solution at other scores that exclude the same pairs.
    scores : ndarray, shape (n, n), symmetric, nats; -inf excludes a pair.
    rho : ndarray, shape (n,), reweighting in [0, 1].
    exact_up_to : int, nodes up to which all odd cuts are looked at if nothing else proves them.
    holds_new : bool, False if sets that the start does not hold need not be satisfied yet: the
        value and its bound are then those of a larger set of marginals.
    should_stop : asked before every step.

    Raises
    ------
    StoppedError
        If ``should_stop`` answered True.
    """
    point, steps, done, share = start, 0, 0.0, 1.0
    while done < 1.0:
        here = min(done + share, 1.0)
        is_last = here == 1.0
        asked = scores if is_last else _between(start.scores, scores, here)
        looked_at = exact_up_to if is_last else min(exact_up_to, EXACT_IN_PASSING)
        found = _hold_sets(point, asked, rho, looked_at, holds_new, should_stop)
        steps += found.steps
        if found.is_solved:
            point, done, share = found.point, here, 2.0 * share
        elif share <= SHORTEST_LEG or len(rho) <= NO_LEGS:
            break
        else:
            share *= 0.25
    if done == 1.0:
        value, upper_bound = bound_value(scores, rho, found.tau, found.residual, point)
        if upper_bound - value <= UNBOUNDED * max(1.0, abs(value)):
            return PolytopeSolution(found.tau, point, value, upper_bound, found.proof, steps)
    inside = solve_from_inside(scores, rho, GAP, exact_up_to=exact_up_to, should_stop=should_stop)
    steps += inside.steps
    return PolytopeSolution(
        inside.tau, start, inside.value, inside.upper_bound, inside.proof, steps
    )


@dataclass(frozen=True, slots=True)
class _Leg:
    """How far one set of scores was solved: ``is_solved`` if no odd set is left to hold or let go.

    ``tau`` (n, n) with row sums within ``residual`` of 1, and the ``proof`` of its odd sets.
    """

    point: NewtonPoint
    tau: FloatArray
    residual: float
    proof: OddSetProof
    steps: int
    is_solved: bool


def _hold_sets(
    start: NewtonPoint,
    scores: FloatArray,
    rho: FloatArray,
    exact_up_to: int,
    holds_new: bool,
    should_stop: StopCallback,
) -> _Leg:
    """Solve under the degree constraints; hold what is violated, and let go what is slack."""
    point = follow_path(start, scores, rho, RESIDUAL, should_stop=should_stop)
    steps, is_solved = 0, False
    for _ in range(MAX_ROUNDS):
        steps += point.steps
        tau, residual = scale_to_rows(read_marginals(point, rho), should_stop)
        free = drop_slack_sets(point, RESIDUAL)
        looked_at = exact_up_to if free is point else min(exact_up_to, EXACT_IN_PASSING)
        proof = examine_odd_sets(tau, exact_up_to=looked_at, should_stop=should_stop)
        is_there = point.scores is scores
        violated = proof.violated if holds_new else ()
        if not violated and free is point:
            is_solved = is_there
            break
        new = uncross(tau, free.sets, violated)
        following = follow_path(free, scores, rho, RESIDUAL, new_sets=new, should_stop=should_stop)
        if following.residual > RESIDUAL and not is_there:
            break
        point = following
    return _Leg(point, tau, residual, proof, steps, is_solved)


def uncross(
    tau: FloatArray, held: tuple[IntArray, ...], violated: tuple[IntArray, ...]
) -> tuple[IntArray, ...]:
    """Return violated odd sets of which none crosses another or a held one.

    Two odd sets that cross can be exchanged for two that do not and that no more leaves in all
    (submodularity): one of these is violated where one of the two was and the other holds with
    equality. Crossing sets cannot all hold with equality where every marginal is above 0.
    """
    n = len(tau)
    kept = [_side(nodes, n) for nodes in held]
    for nodes in violated:
        side = _side(nodes, n)
        for _ in range(n):
            other = next((k for k in kept if _crosses(side, k)), None)
            if other is None:
                break
            pair = (side & other, side | other)
            if pair[0].sum() % 2 == 0:
                pair = (side & ~other, other & ~side)
            side = min(pair, key=lambda part: _cut(tau, part))
        if _cut(tau, side) < 1.0 - TOLERANCE and not any(_is_same(side, k) for k in kept):
            kept.append(side)
    return tuple(smaller_side(side) for side in kept[len(held) :])


def _side(nodes: IntArray, n_nodes: int) -> BoolArray:
    side = np.zeros(n_nodes, dtype=np.bool_)
    side[nodes] = True
    return side


def _cut(tau: FloatArray, side: BoolArray) -> float:
    """Return what leaves a set."""
    return float(tau[np.ix_(side, ~side)].sum())


def _crosses(first: BoolArray, second: BoolArray) -> bool:
    """Whether all four parts that two sets make hold somebody."""
    parts = (first & second, first & ~second, ~first & second, ~(first | second))
    return all(bool(part.any()) for part in parts)


def _is_same(first: BoolArray, second: BoolArray) -> bool:
    """Whether two sets are the two sides of one cut, or the same."""
    return bool((first == second).all() or (first != second).all())


def _between(first: FloatArray, last: FloatArray, share: float) -> FloatArray:
    """Return scores on the way; pairs that one of them excludes stay excluded."""
    with np.errstate(invalid="ignore"):
        between = (1.0 - share) * first + share * last
    return np.where(np.isnan(between), -np.inf, between)
