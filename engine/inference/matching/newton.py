"""Newton's method on potentials for pseudomarginals of perfect matchings on dense graphs.

The maximum of <W, tau> + H_rho(tau) over the degree constraints and chosen odd sets U satisfies

    log tau_ij + c log(1 - tau_ij) = W_ij - u_i - u_j - sum_{U contains i, j} m_U
    sum_j tau_ij = 1,   tau(E(U)) = (|U| - 1) / 2, that is cut(U) = 1,   c = rho_i + rho_j - 1

Newton's method (``NewtonSteps``) converges from nearby. From further away, continuation changes
the scores in steps along a line (predictor and corrector), and likewise the logarithm of a newly
added set's cut.

References
----------
Allgower and Georg 1990 (continuation); Edmonds 1965 (odd sets).
"""

from dataclasses import dataclass, field, replace

import numpy as np
from scipy.linalg.lapack import dgetrf, dgetrs

from engine.core.arguments import BoolArray, FloatArray, IntArray
from engine.core.errors import StoppedError
from engine.core.progress import StopCallback, never_stop
from engine.core.tolerances import TOLERANCES
from engine.kernels.matching_potentials import fill_rows
from engine.kernels.threads import for_row_ranges

LIKELY = 0.2  # pairs above get their own log-odds, at most four a node
UNLIKELY = 0.1  # pairs below lose their own log-odds
CAP = 0.45  # largest marginal without its own log-odds, in the sweep in which the pair gets them
LONGEST_STEP = 30.0  # nats of a potential: a longer step leaves the neighbourhood
SOFTENED = 1e-9  # added to a singular diagonal, as of two sets that only each other's pairs leave
LONGEST_TURN = 4.0  # nats of a pair's log-odds in one step
STEPS = 8  # of Newton's method at one point of a continuation
ON_THE_WAY = 0.05  # residual at which an intermediate point allows the next continuation step
SHORTEST = 1e-4  # share of the continuation below which a step counts as stalled
MAX_POINTS = 400  # of one continuation


@dataclass(frozen=True, slots=True)
class ActiveSetState:
    """Solution in potentials and multipliers without its scores, which take n^2 numbers.

    Parameters
    ----------
    potentials : ndarray, shape (n,), u.
    likely : ndarray, shape (k, 2), pairs with their own log-odds; ``logits`` (k,).
    sets : tuple of ndarray, odd sets that hold with equality; ``multipliers`` (m,).
    """

    potentials: FloatArray
    likely: IntArray
    logits: FloatArray
    sets: tuple[IntArray, ...]
    multipliers: FloatArray

    def at(self, scores: FloatArray) -> "NewtonPoint":
        """Return the solution with its scores (n, n)."""
        return NewtonPoint(
            scores,
            self.potentials,
            self.likely,
            self.logits,
            self.sets,
            self.multipliers,
            np.ones(len(self.sets)),
        )


@dataclass(frozen=True, slots=True)
class NewtonPoint:
    """Solution in potentials and multipliers, or the last point of an unfinished search.

    Parameters
    ----------
    scores : ndarray, shape (n, n), of the solved problem; -inf excludes a pair.
    potentials : ndarray, shape (n,), u.
    likely : ndarray, shape (k, 2), pairs with their own log-odds; ``logits`` (k,).
    sets : tuple of ndarray, odd sets that hold with equality; ``multipliers`` (m,).
    targets : ndarray, shape (m,), excess of each set, 1 at the end: then one unit leaves it.
    residual : float, largest error of any condition above, nats.
    steps : int, linear systems solved.
    """

    scores: FloatArray
    potentials: FloatArray
    likely: IntArray = field(default_factory=lambda: np.empty((0, 2), dtype=np.int64))
    logits: FloatArray = field(default_factory=lambda: np.empty(0))
    sets: tuple[IntArray, ...] = ()
    multipliers: FloatArray = field(default_factory=lambda: np.empty(0))
    targets: FloatArray = field(default_factory=lambda: np.empty(0))
    residual: float = np.inf
    steps: int = 0

    def reduced_scores(self) -> FloatArray:
        """Return the scores less the multipliers of the sets that contain a pair, (n, n)."""
        return reduce_scores(self.scores, self.sets, self.multipliers)

    def state(self) -> ActiveSetState:
        """Return the solution without its scores."""
        return ActiveSetState(
            self.potentials, self.likely, self.logits, self.sets, self.multipliers
        )


def uniform_point(n_nodes: int, rho: FloatArray) -> NewtonPoint:
    """Return the solution at equal scores of all pairs and one rho: tau = 1 / (n - 1)."""
    t = 1.0 / (n_nodes - 1)
    potential = -0.5 * (np.log(t) + (2.0 * rho - 1.0) * np.log1p(-t))
    return NewtonPoint(np.zeros((n_nodes, n_nodes)), np.asarray(potential), residual=0.0)


def drop_slack_sets(
    point: NewtonPoint, tolerance: float, before: FloatArray | None = None
) -> NewtonPoint:
    """Return the solution without sets of negative multipliers, at equivalent scores.

    ``follow_path`` then continues it to the requested scores. With ``before`` (m,), the multipliers
    at the start of the continuation, only the set whose multiplier passed 0 first is dropped:
    without it, the others may be needed (Goldfarb and Idnani 1983).
    """
    slack = point.multipliers < -tolerance
    if not slack.any():
        return point
    if before is not None:
        fallen = np.maximum(before, 0.0) / np.where(slack, before - point.multipliers, 1.0)
        slack = np.arange(len(slack)) == np.argmin(np.where(slack, fallen, np.inf))
    kept = [k for k in range(len(point.sets)) if not slack[k]]
    dropped = [k for k in range(len(point.sets)) if slack[k]]
    return replace(
        point,
        scores=reduce_scores(
            point.scores, tuple(point.sets[k] for k in dropped), point.multipliers[dropped]
        ),
        sets=tuple(point.sets[k] for k in kept),
        multipliers=point.multipliers[kept],
        targets=point.targets[kept],
    )


def reduce_scores(
    scores: FloatArray, sets: tuple[IntArray, ...], multipliers: FloatArray
) -> FloatArray:
    """Return scores (n, n) less the multipliers of the sets that contain a pair."""
    if not sets:
        return scores
    reduced = scores.copy()
    for nodes, multiplier in zip(sets, multipliers, strict=True):
        reduced[np.ix_(nodes, nodes)] -= multiplier
    return reduced


@dataclass(frozen=True, slots=True)
class _Excess:
    """Inner sum, room and cut of an odd set; see ``NewtonSteps._excess_of``."""

    small: float
    large: float
    cut: float

    @property
    def ratio(self) -> float:
        """Excess of the set: 1 if one unit leaves it, infinity if nothing does."""
        return self.small / self.large / self.cut


@dataclass(frozen=True, slots=True)
class _System:
    """One linearised step with ``matrix`` (n + m, n + m), ``right`` and the largest residual, nats.

    ``error`` and ``slope`` (k,) are those of likely pairs.
    """

    matrix: FloatArray
    right: FloatArray
    error: FloatArray
    slope: FloatArray
    residual: float


class NewtonSteps:
    """Newton's method at one point after another, with reused buffers ``tau`` and ``rate``.

    One potential a node gives every small tau. A pair above ``LIKELY`` has its own log-odds as
    well, so that steps avoid the turn at tau = 1 / (1 + c), where two tau have one potential. A
    node that one pair dominates balances the remainder, log sum of the others = log(1 - tau), which
    keeps its digits however near 1 tau is; likewise a set whose pairs are near 1. A step is one
    linear system with one unknown for each node and set.
    """

    def __init__(self, rho: FloatArray, should_stop: StopCallback = never_stop) -> None:
        n = len(rho)
        self.rho, self.should_stop = rho, should_stop
        self.tau, self.rate = np.empty((n, n)), np.empty((n, n))

    def marginals(self, point: NewtonPoint) -> FloatArray:
        """Return tau (n, n) of a solution."""
        self._fill(point.reduced_scores(), point)
        first, second = point.likely.T
        self.tau[first, second] = self.tau[second, first] = _sigmoid(point.logits)
        return self.tau

    def rates(self, point: NewtonPoint) -> FloatArray:
        """Return minus d tau / d u_i (n, n) of a solution."""
        self._fill(point.reduced_scores(), point)
        self._fill_likely(point)
        return self.rate

    def _fill(self, reduced: FloatArray, point: NewtonPoint) -> None:
        """Write tau and its rate on the lower branch."""
        u = point.potentials

        def work(first: int, last: int) -> None:
            fill_rows(reduced, u, self.rho, CAP, first, last, self.tau, self.rate)

        for_row_ranges(len(u), work)

    def _fill_likely(self, point: NewtonPoint) -> tuple[FloatArray, FloatArray]:
        """Write the rates of likely pairs; return their tau and 1 - (1 + c) tau."""
        first, second = point.likely.T
        t, rest = _sigmoid(point.logits), _sigmoid(-point.logits)
        slope = _steepen(rest - (self.rho[first] + self.rho[second] - 1.0) * t)
        self.rate[first, second] = self.rate[second, first] = t * rest / slope
        return t, slope

    def add_sets(self, start: NewtonPoint, new_sets: tuple[IntArray, ...]) -> NewtonPoint:
        """Return the start with further sets, whose targets are their present excess."""
        if not new_sets:
            return start
        self._fill(start.reduced_scores(), start)
        start = self._promote(start)
        first, second = start.likely.T
        t = _sigmoid(start.logits)
        left = [
            self._excess_of(nodes, np.isin(first, nodes), np.isin(second, nodes), start, t).ratio
            for nodes in new_sets
        ]
        return replace(
            start,
            sets=(*start.sets, *new_sets),
            multipliers=np.concatenate([start.multipliers, np.zeros(len(new_sets))]),
            targets=np.concatenate([start.targets, left]),
        )

    def converge(self, point: NewtonPoint, tolerance: float) -> NewtonPoint:
        """Take Newton steps; return the point, of residual inf if the steps diverge."""
        best = np.inf
        for step in range(STEPS + 1):
            if self.should_stop():
                raise StoppedError("Cancelled.")
            reduced = point.reduced_scores()
            self._fill(reduced, point)
            point = self._promote(point)
            system = self._linearise(reduced, point)
            residual = system.residual
            point = replace(point, residual=residual, steps=step)
            if residual <= tolerance:
                return point
            leads_away = (step >= 2 and residual > 2.0 * best) or (step >= 4 and residual > 0.3)
            if step == STEPS or leads_away or not np.isfinite(residual):
                break
            best = min(best, residual) if step else np.inf
            following = self._step(point, system)
            if following is None:
                break
            point = following
        return replace(point, residual=np.inf)

    def _promote(self, point: NewtonPoint) -> NewtonPoint:
        """Give likely pairs their own log-odds; remove all such pairs from ``tau``."""
        first, second = point.likely.T
        self.tau[first, second] = self.tau[second, first] = 0.0
        rows, columns = np.nonzero(self.tau > LIKELY)
        upper = rows < columns
        rows, columns = rows[upper], columns[upper]
        if not len(rows):
            return point
        t = self.tau[rows, columns]
        self.tau[rows, columns] = self.tau[columns, rows] = 0.0
        return replace(
            point,
            likely=np.concatenate([point.likely, np.stack([rows, columns], axis=1)]),
            logits=np.concatenate([point.logits, np.log(t) - np.log1p(-t)]),
        )

    def _linearise(self, reduced: FloatArray, point: NewtonPoint) -> _System:
        """Write the residuals and the matrix of the next step, one unknown a node and a set."""
        n, (first, second) = len(self.rho), point.likely.T
        c = self.rho[first] + self.rho[second] - 1.0
        t, slope = self._fill_likely(point)
        error = reduced[first, second] - point.potentials[first] - point.potentials[second]
        error += np.logaddexp(0.0, -point.logits) + c * np.logaddexp(0.0, point.logits)
        tops = _tops(t, first, second, n)
        sums = self.tau.sum(axis=1)
        for end, is_top in zip((first, second), tops, strict=True):
            sums += np.bincount(end[~is_top], t[~is_top], n)
        sums = np.maximum(sums, TOLERANCES.tiny)
        balance = np.log(sums)
        size = n + len(point.sets)
        matrix = np.zeros((size, size))
        np.multiply(self.rate, 1.0 / sums[:, None], out=matrix[:n, :n])
        for end, other, is_top in ((first, second, tops[0]), (second, first, tops[1])):
            balance[end[is_top]] += np.logaddexp(0.0, point.logits[is_top])
            matrix[end[is_top], other[is_top]] = t[is_top] / slope[is_top]
        right = np.concatenate([balance, np.zeros(len(point.sets))])
        right[:n] += np.bincount(first, matrix[first, second] * error, n)
        right[:n] += np.bincount(second, matrix[second, first] * error, n)
        apart = self._add_sets(matrix, right, point, t, error)
        matrix[np.arange(n), np.arange(n)] = matrix[:n, :n].sum(axis=1)
        parts = (np.abs(balance), np.abs(error), np.abs(apart))
        residual = max(float(part.max(initial=0.0)) for part in parts)
        return _System(matrix, right, error, slope, residual)

    def _add_sets(
        self,
        matrix: FloatArray,
        right: FloatArray,
        point: NewtonPoint,
        t: FloatArray,
        error: FloatArray,
    ) -> FloatArray:
        """Write the rows and columns of the sets; return their logarithmic errors."""
        n, (first, second) = len(self.rho), point.likely.T
        balance = np.zeros(len(point.sets))
        member = _members(point.sets, n)
        inside = member[:, first] & member[:, second]
        meets = member.astype(np.float64) @ member.T >= 2.0
        for k, nodes in enumerate(point.sets):
            matrix[nodes, n + k] = matrix[np.ix_(nodes, nodes)].sum(axis=1)
            own = inside[k]
            excess = self._excess_of(nodes, member[k, first], member[k, second], point, t)
            balance[k] = np.log(excess.ratio / point.targets[k])
            weight = self.rate[np.ix_(nodes, nodes)] / excess.small
            place = np.searchsorted(nodes, np.stack([first[own], second[own]]))
            top = t[own] > 0.5
            weight[place[0, top], place[1, top]] *= excess.small / excess.large
            weight[place[1, top], place[0, top]] *= excess.small / excess.large
            right[n + k] = balance[k] + float(weight[place[0], place[1]] @ error[own])
            matrix[n + k, nodes] = weight.sum(axis=1)
            # the cut of the set counts with the other sign
            leaving = self.rate[nodes] / -excess.cut
            leaving[:, nodes] = 0.0
            matrix[n + k, :n] += leaving.sum(axis=0)
            matrix[n + k, nodes] += leaving.sum(axis=1)
            out = member[k, first] != member[k, second]
            right[n + k] -= float(self.rate[first[out], second[out]] @ error[out]) / excess.cut
            for other in np.flatnonzero(meets[k]):
                both = member[other][nodes]
                matrix[n + k, n + other] = weight[np.ix_(both, both)].sum() / 2.0
                matrix[n + k, n + other] += leaving[np.ix_(both, member[other])].sum()
        return balance

    def _excess_of(
        self,
        nodes: IntArray,
        has_first: BoolArray,
        has_second: BoolArray,
        point: NewtonPoint,
        t: FloatArray,
    ) -> _Excess:
        """Return the excess of a set over one leaving unit, by sums that keep their digits.

        ``small`` is the sum of pairs inside up to 1/2, ``large`` the room that the others leave:
        equal if one unit leaves. ``cut`` is the amount that leaves, accurate even if tiny.
        """
        own, out = has_first & has_second, has_first != has_second
        inside = t[own]
        top = inside > 0.5
        rows = self.tau[nodes]
        within = float(rows[:, nodes].sum())
        small = within / 2.0 + float(inside[~top].sum())
        room = (len(nodes) - 1) / 2.0 - int(top.sum())
        large = room + float(_sigmoid(-point.logits[own][top]).sum())
        cut = float(np.delete(rows, nodes, axis=1).sum()) + float(t[out].sum())
        return _Excess(*(max(part, TOLERANCES.tiny) for part in (small, large, cut)))

    def _step(self, point: NewtonPoint, system: _System) -> NewtonPoint | None:
        """Return the next point, None if the system is singular or the step too long."""
        n = len(self.rho)
        move = _solve(system, n)
        if move is None:
            system.matrix[np.diag_indices(len(system.matrix))] += SOFTENED
            move = _solve(system, n)
            if move is None:
                return None
        first, second = point.likely.T
        odds = system.error - move[first] - move[second]
        member = _members(point.sets, n)
        for k in range(len(point.sets)):
            odds[member[k, first] & member[k, second]] -= move[n + k]
        logits = point.logits + np.clip(odds / system.slope, -LONGEST_TURN, LONGEST_TURN)
        kept = _sigmoid(logits) > UNLIKELY
        return replace(
            point,
            potentials=point.potentials + move[:n],
            multipliers=point.multipliers + move[n:],
            likely=point.likely[kept],
            logits=logits[kept],
        )


def _solve(system: _System, n_nodes: int) -> FloatArray | None:
    """Return the step, None if the system is singular or the step too long."""
    factor, pivots, failure = dgetrf(system.matrix.T)
    move, _ = dgetrs(factor, pivots, system.right, trans=1)
    if failure or not np.isfinite(move).all() or np.abs(move[:n_nodes]).max() > LONGEST_STEP:
        return None
    return np.asarray(move)


def _steepen(slope: FloatArray) -> FloatArray:
    """Return 1 - (1 + c) tau with its size raised to ``TOLERANCES.smallest_curvature`` at least."""
    return np.asarray(
        np.where(slope < 0.0, -1.0, 1.0) * np.maximum(np.abs(slope), TOLERANCES.smallest_curvature)
    )


def _members(sets: tuple[IntArray, ...], n_nodes: int) -> BoolArray:
    """Return membership of nodes in sets, shape (m, n)."""
    member = np.zeros((len(sets), n_nodes), dtype=np.bool_)
    for k, nodes in enumerate(sets):
        member[k, nodes] = True
    return member


def _tops(
    t: FloatArray, first: IntArray, second: IntArray, n_nodes: int
) -> tuple[BoolArray, BoolArray]:
    """Return masks of the pairs that dominate their first and second node, at most one a node.

    If two pairs of a node exceed 1/2 during the search, only the larger one dominates.
    """
    order = np.argsort(t, kind="stable")
    own = np.full(n_nodes, -1, dtype=np.int64)
    likeliest = np.zeros(n_nodes)
    for end in (first, second):
        np.maximum.at(likeliest, end, t)
    order = order[t[order] > 0.5]
    for end in (first, second):
        here = order[t[order] == likeliest[end[order]]]
        own[end[here]] = here
    places = np.arange(len(t))
    return own[first] == places, own[second] == places


def _sigmoid(logits: FloatArray) -> FloatArray:
    return np.asarray(np.exp(-np.logaddexp(0.0, -logits)))


def follow_path(
    start: NewtonPoint,
    scores: FloatArray,
    rho: FloatArray,
    tolerance: float,
    *,
    new_sets: tuple[IntArray, ...] = (),
    should_stop: StopCallback = never_stop,
) -> NewtonPoint:
    """Continue a solution to other scores, with further odd sets active (held at equality).

    Parameters
    ----------
    start : NewtonPoint, a solution.
    scores : ndarray, shape (n, n), symmetric, excluding the pairs that the start's exclude.
    rho : ndarray, shape (n,)
    tolerance : float, target residual at the end, nats.
    new_sets : tuple of ndarray, odd sets to be made active besides the start's.
    should_stop : called before every step.

    Returns
    -------
    NewtonPoint
        At the requested scores if the residual is small enough, else where continuation stalled.

    Raises
    ------
    StoppedError
        If ``should_stop`` returned True.

    Notes
    -----
    O(n^3) a step, three arrays (n, n). Multipliers may become negative: see ``drop_slack_sets``.
    """
    work = NewtonSteps(rho, should_stop)
    point = work.add_sets(start, new_sets)
    first, before = point.scores, point.targets
    with np.errstate(invalid="ignore"):
        change = np.where(scores > -np.inf, scores - first, 0.0)
    done, share, steps = 0.0, 1.0, 0
    for _ in range(MAX_POINTS):
        is_last = done + share >= 1.0 - 1e-12
        here = 1.0 if is_last else done + share
        asked = replace(
            point,
            scores=scores if is_last else first + here * change,
            targets=before ** (1.0 - here),
        )
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # divergent steps
            reached = work.converge(asked, tolerance if is_last else max(tolerance, ON_THE_WAY))
        steps += reached.steps
        if reached.residual <= (tolerance if is_last else ON_THE_WAY):
            point, done = replace(reached, steps=0), here
            if is_last:
                break
            share = min(share * (2.0 if reached.steps <= 3 else 1.3), 1.0 - done)
        else:
            share *= 0.4
            if share < SHORTEST:
                break
    return replace(point, steps=steps)


def read_marginals(point: NewtonPoint, rho: FloatArray) -> FloatArray:
    """Return tau, shape (n, n), of a solution."""
    return NewtonSteps(rho).marginals(point)


def newton_rates(point: NewtonPoint, rho: FloatArray) -> FloatArray:
    """Return tau (1 - tau) / (1 - (1 + c) tau) of a solution, (n, n): minus d tau / d u_i."""
    return NewtonSteps(rho).rates(point)
