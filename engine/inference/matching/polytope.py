"""Pseudomarginals of perfect matchings over the matching polytope itself, with both bounds.

The optimum under the degree constraints comes first (``newton``). Odd sets that it
violates are held at equality by a multiplier m_U >= 0 each, which lowers the scores of the pairs
inside; sets whose multiplier turns negative are let go; so on until every odd set is proved. Where
the way there is too long, scores in between come first, with their sets.

    value(s) <= value(tau) + max_s <s - tau, R> + sum_U m_U ((|U| - 1) / 2 - tau(U))

for every s of the polytope, with R the gradient at tau less the potentials and the multipliers:
the bound holds wherever the search ends, for any m >= 0.
"""

from dataclasses import dataclass, replace

import numpy as np

from engine.core.arguments import BoolArray, FloatArray, IntArray
from engine.core.progress import StopCallback, never_stop
from engine.inference.matching.messages import bound_value as bound_messages
from engine.inference.matching.messages import scale_to_rows, solve_messages
from engine.inference.matching.newton import (
    NewtonPoint,
    drop_slack_sets,
    follow_path,
    read_marginals,
)
from engine.inference.matching.odd_sets import (
    EXACT_IN_PASSING,
    EXACT_UP_TO,
    TOLERANCE,
    OddSetProof,
    examine_odd_sets,
    smaller_side,
)
from engine.kernels.matching_newton import bound_rows
from engine.kernels.threads import for_row_ranges

RESIDUAL = 1e-10  # of potentials, nats: Newton's last step passes it by far
MAX_ROUNDS = 40  # of odd sets found, held and let go
SHORTEST_LEG = 1.0 / 256.0  # share of the way to the scores below which none is tried
MESSAGE_TOLERANCE = 1e-9  # where Newton's method stood still
TINY = 1e-290  # marginals below this are zero for the certificate's logarithms


@dataclass(frozen=True, slots=True)
class PolytopeSolution:
    """The optimum over the matching polytope, or what is proved of it.

    Parameters
    ----------
    tau : ndarray, shape (n, n), symmetric with row sums 1.
    point : NewtonPoint, to start warm from.
    value : float, <W, tau> + H_rho(tau), nats.
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
    should_stop: StopCallback = never_stop,
) -> PolytopeSolution:
    """Maximise <W, tau> + H_rho(tau) over the matching polytope of a dense graph.

    Parameters
    ----------
    start : NewtonPoint, the solution at other scores that exclude the same pairs.
    scores : ndarray, shape (n, n), symmetric, nats; -inf excludes a pair.
    rho : ndarray, shape (n,), reweighting in [0, 1].
    exact_up_to : int, nodes up to which all odd cuts are looked at if nothing else proves them.
    should_stop : asked before every step.

    Raises
    ------
    StoppedError
        If ``should_stop`` answered True.
    """
    point, reached, steps, done, share = start, None, 0, 0.0, 1.0
    while done < 1.0:
        here = min(done + share, 1.0)
        is_last = here == 1.0
        asked = scores if is_last else _between(start.scores, scores, here)
        looked_at = exact_up_to if is_last else min(exact_up_to, EXACT_IN_PASSING)
        found = _hold_sets(point, asked, rho, looked_at, should_stop)
        steps += found.steps
        if found.point.scores is scores:
            reached = found
        if found.is_solved:
            point, done, share = found.point, here, 2.0 * share
        elif share <= SHORTEST_LEG:
            break
        else:
            share *= 0.25
    if reached is None:
        messages = solve_messages(scores, rho, None, MESSAGE_TOLERANCE, should_stop=should_stop)
        proof = examine_odd_sets(messages.tau, exact_up_to=exact_up_to, should_stop=should_stop)
        steps += messages.sweeps
        bounds = bound_messages(scores, rho, messages)
        return PolytopeSolution(messages.tau, point, *bounds, proof, steps)
    point = reached.point
    value, upper_bound = bound_value(scores, rho, reached.tau, reached.residual, point)
    return PolytopeSolution(reached.tau, point, value, upper_bound, reached.proof, steps)


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
    should_stop: StopCallback,
) -> _Leg:
    """Solve under the degree constraints; hold what is violated, and let go what is slack."""
    point = follow_path(start, scores, rho, RESIDUAL, should_stop=should_stop)
    steps, is_solved = 0, False
    for _ in range(MAX_ROUNDS):
        steps += point.steps
        tau, residual = scale_to_rows(read_marginals(point, rho), should_stop)
        proof = examine_odd_sets(tau, exact_up_to=exact_up_to, should_stop=should_stop)
        free = drop_slack_sets(point, RESIDUAL)
        is_there = point.scores is scores
        if not proof.violated and free is point:
            is_solved = is_there
            break
        new = uncross(tau, free.sets, proof.violated)
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


def bound_value(
    scores: FloatArray, rho: FloatArray, tau: FloatArray, residual: float, point: NewtonPoint
) -> tuple[float, float]:
    """Return <W, tau> + H(tau) and a certified bound of its maximum over the matching polytope.

    ``tau`` (n, n) with row sums within ``residual`` of 1; any potentials and multipliers will do.
    """
    kept = np.maximum(point.multipliers, 0.0)
    reduced = replace(point, scores=scores, multipliers=kept).reduced_scores()
    nu = point.potentials - rho
    rows = np.empty((len(tau), 3))
    spare = np.where(tau > 0.5, 0.0, tau).sum(axis=1)

    def work(first: int, last: int) -> None:
        bound_rows(reduced, tau, nu, rho, spare, TINY, first, last, rows)

    for_row_ranges(len(tau), work)
    value, top, mean = rows.sum(axis=0) / 2.0
    inside = np.array([tau[np.ix_(nodes, nodes)].sum() / 2.0 for nodes in point.sets])
    room = np.array([(len(nodes) - 1) / 2.0 for nodes in point.sets]) - inside
    value += float(kept @ inside)
    slack = len(tau) * residual * (1.0 + float(np.abs(nu).max(initial=0.0)))
    return value, value + max(top - mean, 0.0) + float(kept @ np.maximum(room, 0.0)) + slack
